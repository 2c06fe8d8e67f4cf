"""What the programs do that talk to other machines."""

import re

from hark.command_safety.following.call import Judge, ProgramCall
from hark.command_safety.following.findings import Risk
from hark.command_safety.following.options import names
from hark.command_safety.following.unknown_marks import DECODED, NETWORK, SECRET, UNKNOWN, shown

_LOCAL = re.compile(r"(?:\w+://)?(?:[^/@]*@)?(?:localhost|127\.\d+\.\d+\.\d+|\[::1\]|0\.0\.0\.0|::1)(?:[:/?].*)?$")
_SENDING = (
    *(
        "-d",
        "--data",
        "--data-raw",
        "--data-binary",
        "--data-urlencode",
        "--data-ascii",
        "-F",
        "--form",
        "--form-string",
    ),
    *("-T", "--upload-file", "--json", "--post-data", "--post-file", "--body-data", "--body-file", "--url-query"),
)
_CURL_VALUED = (
    *_SENDING,
    *(
        "-X",
        "--request",
        "-o",
        "--output",
        "--output-dir",
        "-H",
        "--header",
        "-u",
        "--user",
        "-A",
        "--user-agent",
        "-e",
    ),
    *(
        "-b",
        "--cookie",
        "-c",
        "--cookie-jar",
        "-D",
        "--dump-header",
        "-K",
        "--config",
        "-m",
        "--max-time",
        "-w",
        "--url",
    ),
    *(
        "--write-out",
        "--connect-timeout",
        "--retry",
        "-x",
        "--proxy",
        "-E",
        "--cert",
        "--key",
        "--cacert",
        "-r",
        "--range",
    ),
    *(
        "--trace",
        "--trace-ascii",
        "--stderr",
        "--etag-save",
        "--hsts",
        "--libcurl",
        "-C",
        "-Y",
        "-y",
        "-z",
        "--resolve",
    ),
)
_WGET_VALUED = (
    *(
        "-O",
        "--output-document",
        "-P",
        "--directory-prefix",
        "-o",
        "--output-file",
        "-a",
        "--append-output",
        "-U",
        "-e",
    ),
    *("--method", "--header", "-T", "-t", "--post-data", "--post-file", "--body-data", "--body-file", "-i", "--user"),
    *("--use-askpass", "--timeout", "--tries", "--password", "-l", "-A", "-R", "-D"),
)
_STDOUT = ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "/dev/tty")
_EXECUTING = re.compile(r"(?i:exec:|system:|/bin/(?:ba|z|da)?sh)")


def _note_sent_secrets(call: ProgramCall) -> None:
    if SECRET in (call.feed or "") or any(SECRET in arg for arg in call.args):
        call.note(Risk.HARD, f"{call.name} may send secrets over the network")


def _curl(call: ProgramCall) -> str:
    options = call.options(*_CURL_VALUED)
    call.note(Risk.CHANGING)
    _note_sent_secrets(call)
    urls = [*options.operands, *options.values("--url")]
    sent = options.values(*_SENDING)
    method = " ".join(options.values("-X", "--request")).upper()
    if (sent or method in ("POST", "PUT", "DELETE", "PATCH") or UNKNOWN in method) and not _is_local(urls):
        call.note(Risk.RISKY, f"curl sends something to {shown(' '.join(urls))[:60]}")
    if _names_secret(call, sent):
        call.note(Risk.HARD, "curl sends a file that holds secrets")
    for config in options.values("-K", "--config"):
        call.note(Risk.RISKY, f"curl does what {shown(config)} says")
    outputs = options.values("-o", "--output")
    folder = next(iter(options.values("--output-dir")), "")
    if options.has("-O", "--remote-name", "-J", "--remote-name-all"):
        outputs = [*outputs, *(url.rstrip("/").rpartition("/")[2] or "index" for url in urls)]
    written = [path for path in outputs if path not in _STDOUT]
    call.writes(*(f"{folder}/{path}" if folder else path for path in written), content=NETWORK)
    call.writes(*options.values("-c", "--cookie-jar", "-D", "--dump-header", "--trace", "--trace-ascii", "--stderr"))
    call.writes(*options.values("--etag-save", "--hsts", "--libcurl"))
    return "" if written else _fetched(urls)


def _fetched(urls: list[str]) -> str:
    if any(url.startswith("file:") for url in urls):
        return UNKNOWN
    return NETWORK


def _is_local(urls: list[str]) -> bool:
    return bool(urls) and all(_LOCAL.match(url) for url in urls)


def _names_secret(call: ProgramCall, sent: list[str]) -> bool:
    paths = [piece.lstrip("@<") for text in sent for piece in (text, *text.split("="), *text.split("@"))]
    return any(
        call.runner.places.is_secret(spot) for path in paths if path for spot in call.spots(path.partition(";")[0])
    )


def _wget(call: ProgramCall) -> str:
    options = call.options(*_WGET_VALUED)
    call.note(Risk.CHANGING)
    _note_sent_secrets(call)
    sent = options.values("--post-data", "--post-file", "--body-data", "--body-file")
    if (sent or options.values("--method") not in ([], ["GET"], ["HEAD"])) and not _is_local(list(options.operands)):
        call.note(Risk.RISKY, f"wget sends something to {shown(' '.join(options.operands))[:60]}")
    if _names_secret(call, sent):
        call.note(Risk.HARD, "wget sends a file that holds secrets")
    for command in options.values("--use-askpass"):
        call.run([command])
    call.writes(*options.values("-o", "--output-file", "-a", "--append-output"))
    outputs = options.values("-O", "--output-document")
    if any(path in _STDOUT for path in outputs):
        return NETWORK
    if not outputs and not options.has("--spider"):
        folder = next(iter(options.values("-P", "--directory-prefix")), ".")
        outputs = [f"{folder}/{url.rstrip('/').rpartition('/')[2] or 'index.html'}" for url in options.operands]
    call.writes(*outputs, content=NETWORK)
    return ""


def _fetcher(call: ProgramCall) -> str:
    """httpie, lynx and others."""
    call.note(Risk.CHANGING)
    _note_sent_secrets(call)
    options = call.options("-o", "--output", "--out", "-d", "--dir", "--body", "-D")
    call.writes(*options.values("-o", "--output", "--out", "--dir"), content=NETWORK)
    is_sending = any(arg in ("POST", "PUT", "DELETE", "PATCH") or re.match(r"\w+:?=|\w+@", arg) for arg in call.args)
    if (
        call.name in ("http", "https", "xh", "xhs", "curlie")
        and is_sending
        and not _is_local(list(options.operands[-1:]))
    ):
        call.note(Risk.RISKY, f"{call.name} sends something over the network")
    return NETWORK


def _netcat(call: ProgramCall) -> str:
    if "-z" in call.args or any(re.fullmatch("-[a-y]*z[a-y]*", arg) for arg in call.args):
        call.note(Risk.CHANGING)
        return NETWORK
    _note_sent_secrets(call)
    is_running = call.name != "socat" and call.options("-p", "-w", "-s", "-X", "-x", "-i", "-q").has(
        "-e", "-c", "--exec", "--sh-exec"
    )
    if is_running or any(_EXECUTING.search(arg) for arg in call.args):
        call.note(Risk.HARD, f"{call.name} gives a program to somebody over the network")
    call.note(Risk.RISKY, f"{call.name} talks to another machine")
    return NETWORK


def _ssh(call: ProgramCall) -> str:
    options = call.options(
        *(
            "-i",
            "-p",
            "-l",
            "-o",
            "-F",
            "-L",
            "-R",
            "-D",
            "-J",
            "-W",
            "-b",
            "-c",
            "-E",
            "-e",
            "-m",
            "-O",
            "-S",
            "-w",
            "-Q",
            "-B",
        ),
        is_leading=True,
    )
    call.note(Risk.RISKY, f"{call.name} does something on another machine")
    _note_sent_secrets(call)
    for option in options.values("-o"):
        name, _, value = re.sub(r"[ =]+", "=", option, count=1).partition("=")
        if name.lower() in ("proxycommand", "localcommand", "knownhostscommand"):
            call.runner.run_child(value, None, ())
    remote = list(options.operands[1:])
    if remote:
        call.runner.run_child(" ".join(remote), call.feed, ())
    elif call.feed is not None and SECRET not in call.feed:
        call.runner.run_child(call.feed, None, ())
    return NETWORK


def _transfer(call: ProgramCall) -> str | None:
    """scp, rsync and others: hosts are written `host:path`."""
    options = call.options(
        *(
            "-i",
            "-P",
            "-o",
            "-F",
            "-e",
            "--rsh",
            "--exclude",
            "--include",
            "--filter",
            "-f",
            "-l",
            "-c",
            "-S",
            "-J",
            "--rsync-path",
        ),
        *(
            "--exclude-from",
            "--include-from",
            "--files-from",
            "--log-file",
            "--backup-dir",
            "--temp-dir",
            "-T",
            "--password-file",
        ),
    )
    call.note(Risk.CHANGING)
    for command in options.values("-e", "--rsh", "--rsync-path", "-S"):
        call.runner.run_child(command, None, ())
    remote = [path for path in options.operands if re.match(r"[^/.~][^/]*:|\w+://", path)]
    if remote or call.name != "rsync":
        call.note(Risk.RISKY, f"{call.name} copies between machines")
        if _names_secret(call, [path for path in options.operands if path not in remote]):
            call.note(Risk.HARD, f"{call.name} sends a file that holds secrets")
    target = options.operands[-1] if len(options.operands) > 1 else ""
    if target and target not in remote:
        call.writes(target)
        if options.has("--delete", "--delete-after", "--delete-before", "--delete-excluded", "--del"):
            call.deletes(target.rstrip("/") + "/", is_recursive=True)
    if options.has("--remove-source-files"):
        call.note(Risk.RISKY, "rsync removes what it has copied")
    call.writes(*options.values("--log-file", "--backup-dir"))
    return None


def _mail(call: ProgramCall) -> str | None:
    call.note(Risk.RISKY, f"{call.name} sends something")
    _note_sent_secrets(call)
    return None


def _lookup(call: ProgramCall) -> str | None:
    call.note(Risk.CHANGING)
    _note_sent_secrets(call)
    return NETWORK


def _openssl(call: ProgramCall) -> str:
    if call.args[:1] in (["s_client"], ["s_server"], ["ocsp"]):
        return _netcat(call)
    call.note(Risk.CHANGING)
    call.writes(*call.options("-in", "-out", "-k", "-pass", "-key", "-keyout", "-inkey").values("-out", "-keyout"))
    return call.default_output() + (DECODED if any(arg in ("-d", "-decrypt") for arg in call.args) else "")


PROGRAMS: dict[str, Judge] = {
    "curl": _curl,
    "wget": _wget,
    "wget2": _wget,
    "openssl": _openssl,
    **dict.fromkeys(
        names("http https xh xhs curlie lynx links w3m elinks fetch aria2c axel youtube-dl yt-dlp"), _fetcher
    ),
    **dict.fromkeys(names("nc ncat netcat socat telnet ftp tftp nc.openbsd nc.traditional"), _netcat),
    **dict.fromkeys(names("ssh autossh mosh sshpass plink rsh"), _ssh),
    **dict.fromkeys(names("scp sftp rsync rclone lftp croc"), _transfer),
    **dict.fromkeys(names("mail mailx sendmail mutt swaks msmtp"), _mail),
    **dict.fromkeys(names("dig nslookup host ping ping6 traceroute mtr whois drill"), _lookup),
}
