"""What the programs do that manage a machine, its packages, its services, databases and clouds."""

import re

from hark.command_safety.following.call import Judge, ProgramCall
from hark.command_safety.following.findings import Risk
from hark.command_safety.following.options import names
from hark.command_safety.following.unknown_marks import SECRET, is_unknown, shown

# Whatever they are told, they are asked for.
_HARD = names(
    "mkfs mke2fs mkswap swapoff wipefs sfdisk cfdisk gdisk sgdisk parted blkdiscard hdparm badblocks "
    "cryptsetup newfs lvremove vgremove pvremove mdadm shutdown reboot halt poweroff telinit killall5 "
    "userdel groupdel deluser delgroup usermod useradd adduser passwd chpasswd visudo vipw insmod rmmod "
    "modprobe kexec efibootmgr grub-install update-grub setenforce umount dropdb dropuser debugfs "
    "mkfs.ext4 format pivot_root switch_root losetup zdb nvram csrutil bless"
)
_RISKY = names(
    "pkill killall xkill skill crontab launchctl terraform tofu pulumi ansible ansible-playbook ansible-"
    "galaxy puppet chef-client twine heroku fly flyctl vercel netlify wrangler firebase serverless sls "
    "cap eb doctl linode-cli ipset iptables ip6tables nft ufw firewall-cmd pfctl route ifconfig nmcli "
    "networksetup scutil defaults systemsetup tmutil setcap setfattr swapon ldconfig update-alternatives "
    "dpkg-reconfigure chsh chfn gpasswd newgrp hark hark-agent security gpg gpg2 pass ssh-copy-id ssh-add "
    "snap flatpak dpkg rpm port winget choco scoop pacman yay emerge xbps-install nixos-rebuild virsh "
    "vboxmanage vagrant gsutil az aws gcloud kubectl oc helm gh glab systemctl service rc-service "
    "supervisorctl diskutil zfs zpool lvm"
)
_SETTING_VERBS = frozenset(names("set add del delete change replace flush append prepend up down exec"))
_READING_VERBS = frozenset(
    names(
        "list ls show get describe status info search view version help diff plan validate fmt init logs log "
        "top explain config cat is-active is-enabled is-failed list-units list-unit-files list-timers print "
        "output graph providers workspace lint template history repo-list check files depends whoami head "
        "wait api-resources api-versions cluster-info auth current-context get-contexts outdated deps uses "
        "desc doctor leaves test checks watch browse clone checkout fetch"
    )
)
_HARD_VERBS: dict[str, frozenset[str]] = {
    "systemctl": frozenset(names("poweroff reboot halt kexec emergency rescue suspend hibernate isolate soft-reboot")),
    "diskutil": frozenset(names("eraseDisk eraseVolume partitionDisk zeroDisk secureErase reformat")),
    "zfs": frozenset(("destroy", "rollback")),
    "zpool": frozenset(("destroy", "create", "labelclear")),
    "ufw": frozenset(("disable", "reset")),
    "tmutil": frozenset(("delete", "disable")),
}
_CREATING = {
    "gh": frozenset(
        names("create comment list view status diff checks edit ready review close reopen checkout clone fork sync")
    )
}
_SQL_HARD = re.compile(r"(?i)\bdrop\s+(?:database|schema|user|role|owned)|dropDatabase|flushall|flushdb|\bshutdown\b")
_SQL_RISKY = re.compile(
    r"(?i)\bdrop\s+\w+|\btruncate\b|\bdelete\s+from\s+[\w.\"`]+\s*(?:;|$)|\\!|into\s+outfile|copy\b.*\bprogram\b|\.drop\(|deleteMany\(\{\}|pg_read_file|lo_export"
)


def _is_asking(call: ProgramCall) -> bool:
    """Tell whether only help or the version is wanted."""
    return any(arg in ("--help", "--version", "-V", "-h") for arg in call.args) and not call.operands


def _hard(call: ProgramCall) -> None:
    if _is_asking(call):
        call.note(Risk.CHANGING)
        return
    call.note(Risk.HARD, f"{call.text} changes the machine itself")


def _mount(call: ProgramCall) -> None:
    if call.args and not _is_asking(call) and call.args != ["-l"]:
        call.note(Risk.HARD, f"{call.text} changes what is mounted")


def _fdisk(call: ProgramCall) -> None:
    if not any(arg.startswith("-") and "l" in arg for arg in call.args):
        _hard(call)


def _sysctl(call: ProgramCall) -> None:
    is_setting = any("=" in arg for arg in call.args) or call.options("-w").has(
        "-w", "-p", "--write", "--load", "--system", "-f"
    )
    call.note(Risk.HARD if is_setting else Risk.CHANGING, "sysctl changes the kernel's settings")


def _network_settings(call: ProgramCall) -> None:
    call.note(Risk.CHANGING)
    if set(call.operands) & _SETTING_VERBS or call.options().has("-s", "-K", "-G", "-A"):
        call.note(Risk.RISKY, f"{call.text} changes the machine's network")


def _init(call: ProgramCall) -> None:
    is_level = any(re.fullmatch("[0-6sS]", arg) for arg in call.args)
    call.note(Risk.HARD if is_level else Risk.RISKY, f"{call.text} ends what runs on the machine")


def _kill(call: ProgramCall) -> None:
    args = list(call.args)
    if args[:1] in (["-l"], ["-L"]):
        return
    if args[:1] in (["-s"], ["-n"], ["--signal"]):
        args = args[2:]
    elif args and re.fullmatch(r"-[A-Za-z]\w*|-\d+|--signal=.*", args[0]) and len(args) > 1:
        args = args[1:]
    targets = [arg for arg in args if arg != "--"]
    call.note(Risk.CHANGING)
    if any(re.fullmatch(r"-1|-?0|1", target) for target in targets):
        call.note(Risk.HARD, "kill ends everything that runs")
    elif any(not target.startswith("%") for target in targets):
        call.note(Risk.RISKY, f"kill ends {shown(' '.join(targets))}, which may not be its own")


def _firewall(call: ProgramCall) -> None:
    is_flushing = any(arg in ("-F", "--flush", "-X", "flush", "-Z", "reset", "-d") for arg in call.args) or (
        "-P" in call.args or "--policy" in call.args
    )
    is_listing = any(re.fullmatch(r"-[nv]*[LS][nv]*|--list\S*|list", arg) for arg in call.args) and not is_flushing
    call.note(
        Risk.CHANGING if is_listing else Risk.HARD if is_flushing else Risk.RISKY, f"{call.text} changes the firewall"
    )


def _crontab(call: ProgramCall) -> None:
    options = call.options("-u")
    if options.has("-r"):
        call.note(Risk.HARD, "crontab -r removes all scheduled jobs")
    elif options.has("-l"):
        call.note(Risk.CHANGING)
    else:
        call.note(Risk.RISKY, "crontab changes the scheduled jobs")
        for line in (call.feed or "").split("\n"):
            if line and not is_unknown(line):
                call.runner.run_child(" ".join(line.split()[5:]) or line, None, ())


def _risky(call: ProgramCall) -> None:
    operands = call.operands
    verbs = [word for word in operands[:4] if re.fullmatch(r"[A-Za-z][\w-]*", word)]
    call.note(Risk.CHANGING)
    if any(verb in _HARD_VERBS.get(call.name, ()) for verb in verbs):
        call.note(Risk.HARD, f"{call.text} changes the machine itself")
        return
    if _is_asking(call):
        return
    if call.name in ("kubectl", "oc") and "exec" in verbs and "--" in call.args:
        call.note(Risk.RISKY, f"{call.name} exec runs something elsewhere")
        call.run(call.args[call.args.index("--") + 1 :])
        return
    if call.name == "gh":
        _judge_gh(call, verbs)
        return
    if verbs and any(_is_reading_verb(verb) for verb in verbs[:3]) and not _is_changing(call, verbs):
        return
    call.note(Risk.RISKY, f"{call.text} changes something beyond the workspace")


def _is_reading_verb(verb: str) -> bool:
    return verb in _READING_VERBS or verb.startswith(("list-", "describe-", "get-", "show-", "lookup-"))


def _is_changing(call: ProgramCall, verbs: list[str]) -> bool:
    words = set(verbs) | set(call.args)
    changing = {
        "apply",
        "destroy",
        "delete",
        "set",
        "create",
        "update",
        "rm",
        "cp",
        "mv",
        "sync",
        "mb",
        "rb",
        "import",
        "--fix",
        "taint",
    }
    changing |= {
        "install",
        "uninstall",
        "upgrade",
        "remove",
        "edit",
        "replace",
        "patch",
        "scale",
        "drain",
        "cordon",
        "deploy",
        "login",
    }
    return bool(words & changing)


def _judge_gh(call: ProgramCall, verbs: list[str]) -> None:
    if SECRET in "".join(call.args) + (call.feed or "") or call.guards_secrets():
        call.note(Risk.HARD, "gh sends secrets")
    first, second = (*verbs, "", "")[:2]
    if first == "api":
        options = call.options(
            "-X", "--method", "-f", "-F", "--field", "--raw-field", "--input", "-H", "-q", "--jq", "-t"
        )
        is_sending = bool(options.values("-f", "-F", "--field", "--raw-field", "--input"))
        is_sending = is_sending or any(value.upper() != "GET" for value in options.values("-X", "--method"))
        call.note(Risk.RISKY if is_sending else Risk.CHANGING, f"{call.text} changes something at the host")
    elif first in ("pr", "issue", "repo", "run", "workflow", "release", "gist", "label", "search", "status", "browse"):
        is_public = first in ("release", "repo", "gist") and second not in (
            "list",
            "view",
            "clone",
            "fork",
            "download",
            "",
        )
        is_final = second in (
            "merge",
            "delete",
            "transfer",
            "archive",
            "cancel",
            "rerun",
            "run",
            "lock",
            "enable",
            "disable",
        )
        call.note(Risk.RISKY if is_public or is_final else Risk.CHANGING, f"{call.text} changes something at the host")
    elif first not in ("version", "help") and not (first == "auth" and second == "status"):
        call.note(Risk.RISKY, f"{call.text} changes something at the host")


def _database(call: ProgramCall) -> str | None:
    call.note(Risk.CHANGING)
    text = " ".join([*call.args, call.feed or ""])
    if _SQL_HARD.search(text):
        call.note(Risk.HARD, f"{call.name} removes a whole database")
    elif _SQL_RISKY.search(text) and not call.name.startswith("sqlite"):
        call.note(Risk.RISKY, f"{call.name} removes data")
    for command in re.findall(r"(?:\.shell|\.system|\\!|\bsystem)\s+([^\n'\"]+)", text):
        call.note(Risk.RISKY, f"{call.name} runs a command")
        call.runner.run_child(command, None, ())
    for path in re.findall(r"\.(?:output|once|backup|save|dump)\s+(\S+)", text):
        call.writes(path)
    if call.name.startswith("sqlite"):
        call.writes(*call.operands[:1])
    return None


PROGRAMS: dict[str, Judge] = {
    **dict.fromkeys(_HARD, _hard),
    **dict.fromkeys(_RISKY, _risky),
    **dict.fromkeys(("iptables", "ip6tables", "nft", "pfctl", "ipset"), _firewall),
    **dict.fromkeys(
        names("psql mysql mariadb sqlite3 sqlite mongo mongosh redis-cli mysqladmin clickhouse-client sqlcmd duckdb"),
        _database,
    ),
    "mount": _mount,
    "fdisk": _fdisk,
    "sysctl": _sysctl,
    "init": _init,
    **dict.fromkeys(("ip", "tc", "bridge", "iw", "ethtool"), _network_settings),
    "kill": _kill,
    "crontab": _crontab,
}
