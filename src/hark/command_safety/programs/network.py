"""Analyzers for programs that communicate with other machines."""

import re

from hark.command_safety.following.findings import Risk
from hark.command_safety.following.markers import DECODED, NETWORK, SECRET, UNKNOWN, printable
from hark.command_safety.following.options import split_names
from hark.command_safety.following.program_call import ProgramAnalyzer, ProgramCall

_LOCAL_URL = re.compile(r"(?:\w+://)?(?:[^/@]*@)?(?:localhost|127\.\d+\.\d+\.\d+|\[::1\]|0\.0\.0\.0|::1)(?:[:/?].*)?$")
_SENDING_OPTIONS = (
    *split_names("-d --data --data-raw --data-binary --data-urlencode --data-ascii -F --form --form-string"),
    *("-T", "--upload-file", "--json", "--post-data", "--post-file", "--body-data", "--body-file", "--url-query"),
)
_CURL_VALUED = (
    *_SENDING_OPTIONS,
    *split_names("-X --request -o --output --output-dir -H --header -u --user -A --user-agent -e"),
    *split_names("-b --cookie -c --cookie-jar -D --dump-header -K --config -m --max-time -w --url"),
    *split_names("--write-out --connect-timeout --retry -x --proxy -E --cert --key --cacert -r --range"),
    *split_names("--trace --trace-ascii --stderr --etag-save --hsts --libcurl -C -Y -y -z --resolve"),
)
_WGET_VALUED = (
    *split_names("-O --output-document -P --directory-prefix -o --output-file -a --append-output -U -e"),
    *("--method", "--header", "-T", "-t", "--post-data", "--post-file", "--body-data", "--body-file", "-i", "--user"),
    *("--use-askpass", "--timeout", "--tries", "--password", "-l", "-A", "-R", "-D"),
)
_STDOUT = ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "/dev/tty")
_EXECUTING = re.compile(r"(?i:exec:|system:|/bin/(?:ba|z|da)?sh)")


def _check_sent_secrets(call: ProgramCall) -> None:
    if SECRET in (call.stdin or "") or any(SECRET in arg for arg in call.args):
        call.add_risk(Risk.HARD, f"{call.name} may send secrets over the network")


def _analyze_curl(call: ProgramCall) -> str:
    options = call.parse_options(*_CURL_VALUED)
    call.add_risk(Risk.CHANGING)
    _check_sent_secrets(call)
    urls = [*options.operands, *options.values("--url")]
    sent_values = options.values(*_SENDING_OPTIONS)
    method = " ".join(options.values("-X", "--request")).upper()
    if (sent_values or method in ("POST", "PUT", "DELETE", "PATCH") or UNKNOWN in method) and not _are_all_local(urls):
        call.add_risk(Risk.RISKY, f"curl sends data to {printable(' '.join(urls))[:60]}")
    if _has_secret_path(call, sent_values):
        call.add_risk(Risk.HARD, "curl sends a file that contains secrets")
    for config in options.values("-K", "--config"):
        call.add_risk(Risk.RISKY, f"curl reads its options from {printable(config)}")
    outputs = options.values("-o", "--output")
    folder = next(iter(options.values("--output-dir")), "")
    if options.has("-O", "--remote-name", "-J", "--remote-name-all"):
        outputs = [*outputs, *(url.rstrip("/").rpartition("/")[2] or "index" for url in urls)]
    written = [path for path in outputs if path not in _STDOUT]
    call.record_write(*(f"{folder}/{path}" if folder else path for path in written), content=NETWORK)
    call.record_write(
        *options.values("-c", "--cookie-jar", "-D", "--dump-header", "--trace", "--trace-ascii", "--stderr")
    )
    call.record_write(*options.values("--etag-save", "--hsts", "--libcurl"))
    return "" if written else _downloaded_content(urls)


def _downloaded_content(urls: list[str]) -> str:
    if any(url.startswith("file:") for url in urls):
        return UNKNOWN
    return NETWORK


def _are_all_local(urls: list[str]) -> bool:
    return bool(urls) and all(_LOCAL_URL.match(url) for url in urls)


def _has_secret_path(call: ProgramCall, sent_values: list[str]) -> bool:
    paths = [piece.lstrip("@<") for text in sent_values for piece in (text, *text.split("="), *text.split("@"))]
    return any(
        call.context.paths.is_secret(resolved)
        for path in paths
        if path
        for resolved in call.resolve_path(path.partition(";")[0])
    )


def _analyze_wget(call: ProgramCall) -> str:
    options = call.parse_options(*_WGET_VALUED)
    call.add_risk(Risk.CHANGING)
    _check_sent_secrets(call)
    sent_values = options.values("--post-data", "--post-file", "--body-data", "--body-file")
    if (sent_values or options.values("--method") not in ([], ["GET"], ["HEAD"])) and not _are_all_local(
        list(options.operands)
    ):
        call.add_risk(Risk.RISKY, f"wget sends data to {printable(' '.join(options.operands))[:60]}")
    if _has_secret_path(call, sent_values):
        call.add_risk(Risk.HARD, "wget sends a file that contains secrets")
    for command in options.values("--use-askpass"):
        call.analyze_program([command])
    call.record_write(*options.values("-o", "--output-file", "-a", "--append-output"))
    outputs = options.values("-O", "--output-document")
    if any(path in _STDOUT for path in outputs):
        return NETWORK
    if not outputs and not options.has("--spider"):
        folder = next(iter(options.values("-P", "--directory-prefix")), ".")
        outputs = [f"{folder}/{url.rstrip('/').rpartition('/')[2] or 'index.html'}" for url in options.operands]
    call.record_write(*outputs, content=NETWORK)
    return ""


def _analyze_http_client(call: ProgramCall) -> str:
    """Analyze httpie, lynx and other HTTP clients."""
    call.add_risk(Risk.CHANGING)
    _check_sent_secrets(call)
    options = call.parse_options("-o", "--output", "--out", "-d", "--dir", "--body", "-D")
    call.record_write(*options.values("-o", "--output", "--out", "--dir"), content=NETWORK)
    is_sending = any(arg in ("POST", "PUT", "DELETE", "PATCH") or re.match(r"\w+:?=|\w+@", arg) for arg in call.args)
    if (
        call.name in ("http", "https", "xh", "xhs", "curlie")
        and is_sending
        and not _are_all_local(list(options.operands[-1:]))
    ):
        call.add_risk(Risk.RISKY, f"{call.name} sends data over the network")
    return NETWORK


def _analyze_netcat(call: ProgramCall) -> str:
    if "-z" in call.args or any(re.fullmatch("-[a-y]*z[a-y]*", arg) for arg in call.args):
        call.add_risk(Risk.CHANGING)
        return NETWORK
    _check_sent_secrets(call)
    is_running = call.name != "socat" and call.parse_options("-p", "-w", "-s", "-X", "-x", "-i", "-q").has(
        "-e", "-c", "--exec", "--sh-exec"
    )
    if is_running or any(_EXECUTING.search(arg) for arg in call.args):
        call.add_risk(Risk.HARD, f"{call.name} lets another machine control a program on this machine")
    call.add_risk(Risk.RISKY, f"{call.name} connects to another machine")
    return NETWORK


def _analyze_ssh(call: ProgramCall) -> str:
    options = call.parse_options(
        *split_names("-i -p -l -o -F -L -R -D -J -W -b -c -E -e -m -O -S -w -Q -B"),
        stops_at_operand=True,
    )
    call.add_risk(Risk.RISKY, f"{call.name} runs commands on another machine")
    _check_sent_secrets(call)
    for option in options.values("-o"):
        name, _, value = re.sub(r"[ =]+", "=", option, count=1).partition("=")
        if name.lower() in ("proxycommand", "localcommand", "knownhostscommand"):
            call.context.analyze_subshell(value, None, ())
    remote = list(options.operands[1:])
    if remote:
        call.context.analyze_subshell(" ".join(remote), call.stdin, ())
    elif call.stdin is not None and SECRET not in call.stdin:
        call.context.analyze_subshell(call.stdin, None, ())
    return NETWORK


def _analyze_file_transfer(call: ProgramCall) -> str | None:
    """Analyze scp, rsync and other programs whose remote paths have the form `host:path`."""
    options = call.parse_options(
        *split_names("-i -P -o -F -e --rsh --exclude --include --filter -f -l -c -S -J --rsync-path"),
        *split_names(
            "--exclude-from --include-from --files-from --log-file --backup-dir --temp-dir -T --password-file"
        ),
    )
    call.add_risk(Risk.CHANGING)
    for command in options.values("-e", "--rsh", "--rsync-path", "-S"):
        call.context.analyze_subshell(command, None, ())
    remote = [path for path in options.operands if re.match(r"[^/.~][^/]*:|\w+://", path)]
    if remote or call.name != "rsync":
        call.add_risk(Risk.RISKY, f"{call.name} copies files between machines")
        if _has_secret_path(call, [path for path in options.operands if path not in remote]):
            call.add_risk(Risk.HARD, f"{call.name} sends a file that contains secrets")
    target = options.operands[-1] if len(options.operands) > 1 else ""
    if target and target not in remote:
        call.record_write(target)
        if options.has("--delete", "--delete-after", "--delete-before", "--delete-excluded", "--del"):
            call.record_delete(target.rstrip("/") + "/", is_recursive=True)
    if options.has("--remove-source-files"):
        call.add_risk(Risk.RISKY, "rsync deletes the source files after copying")
    call.record_write(*options.values("--log-file", "--backup-dir"))
    return None


def _analyze_mail(call: ProgramCall) -> str | None:
    call.add_risk(Risk.RISKY, f"{call.name} sends an email")
    _check_sent_secrets(call)
    return None


def _analyze_network_query(call: ProgramCall) -> str | None:
    call.add_risk(Risk.CHANGING)
    _check_sent_secrets(call)
    return NETWORK


def _analyze_openssl(call: ProgramCall) -> str:
    if call.args[:1] in (["s_client"], ["s_server"], ["ocsp"]):
        return _analyze_netcat(call)
    call.add_risk(Risk.CHANGING)
    call.record_write(
        *call.parse_options("-in", "-out", "-k", "-pass", "-key", "-keyout", "-inkey").values("-out", "-keyout")
    )
    return call.unknown_output() + (DECODED if any(arg in ("-d", "-decrypt") for arg in call.args) else "")


PROGRAMS: dict[str, ProgramAnalyzer] = {
    "curl": _analyze_curl,
    "wget": _analyze_wget,
    "wget2": _analyze_wget,
    "openssl": _analyze_openssl,
    **dict.fromkeys(
        split_names("http https xh xhs curlie lynx links w3m elinks fetch aria2c axel youtube-dl yt-dlp"),
        _analyze_http_client,
    ),
    **dict.fromkeys(split_names("nc ncat netcat socat telnet ftp tftp nc.openbsd nc.traditional"), _analyze_netcat),
    **dict.fromkeys(split_names("ssh autossh mosh sshpass plink rsh"), _analyze_ssh),
    **dict.fromkeys(split_names("scp sftp rsync rclone lftp croc"), _analyze_file_transfer),
    **dict.fromkeys(split_names("mail mailx sendmail mutt swaks msmtp"), _analyze_mail),
    **dict.fromkeys(split_names("dig nslookup host ping ping6 traceroute mtr whois drill"), _analyze_network_query),
}
