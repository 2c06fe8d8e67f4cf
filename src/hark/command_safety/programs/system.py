"""Analyzers for programs that manage the machine, its services, databases and cloud resources."""

import re

from hark.command_safety.following.findings import Risk
from hark.command_safety.following.markers import SECRET, is_unknown, printable
from hark.command_safety.following.options import split_names
from hark.command_safety.following.program_call import ProgramAnalyzer, ProgramCall

# These programs always need approval, whatever their arguments are.
_HARD_PROGRAMS = split_names(
    "mkfs mke2fs mkswap swapoff wipefs sfdisk cfdisk gdisk sgdisk parted blkdiscard hdparm badblocks "
    "cryptsetup newfs lvremove vgremove pvremove mdadm shutdown reboot halt poweroff telinit killall5 "
    "userdel groupdel deluser delgroup usermod useradd adduser passwd chpasswd visudo vipw insmod rmmod "
    "modprobe kexec efibootmgr grub-install update-grub setenforce umount dropdb dropuser debugfs "
    "mkfs.ext4 format pivot_root switch_root losetup zdb nvram csrutil bless"
)
_RISKY_PROGRAMS = split_names(
    "pkill killall xkill skill crontab launchctl terraform tofu pulumi ansible ansible-playbook ansible-"
    "galaxy puppet chef-client twine heroku fly flyctl vercel netlify wrangler firebase serverless sls "
    "cap eb doctl linode-cli ipset iptables ip6tables nft ufw firewall-cmd pfctl route ifconfig nmcli "
    "networksetup scutil defaults systemsetup tmutil setcap setfattr swapon ldconfig update-alternatives "
    "dpkg-reconfigure chsh chfn gpasswd newgrp hark hark-agent security gpg gpg2 pass ssh-copy-id ssh-add "
    "snap flatpak dpkg rpm port winget choco scoop pacman yay emerge xbps-install nixos-rebuild virsh "
    "vboxmanage vagrant gsutil az aws gcloud kubectl oc helm gh glab systemctl service rc-service "
    "supervisorctl diskutil zfs zpool lvm"
)
_SETTING_VERBS = frozenset(split_names("set add del delete change replace flush append prepend up down exec"))
_READING_VERBS = frozenset(
    split_names(
        "list ls show get describe status info search view version help diff plan validate fmt init logs log "
        "top explain config cat is-active is-enabled is-failed list-units list-unit-files list-timers print "
        "output graph providers workspace lint template history repo-list check files depends whoami head "
        "wait api-resources api-versions cluster-info auth current-context get-contexts outdated deps uses "
        "desc doctor leaves test checks watch browse clone checkout fetch"
    )
)
_HARD_VERBS: dict[str, frozenset[str]] = {
    "systemctl": frozenset(
        split_names("poweroff reboot halt kexec emergency rescue suspend hibernate isolate soft-reboot")
    ),
    "diskutil": frozenset(split_names("eraseDisk eraseVolume partitionDisk zeroDisk secureErase reformat")),
    "zfs": frozenset(("destroy", "rollback")),
    "zpool": frozenset(("destroy", "create", "labelclear")),
    "ufw": frozenset(("disable", "reset")),
    "tmutil": frozenset(("delete", "disable")),
}
_CREATING = {
    "gh": frozenset(
        split_names(
            "create comment list view status diff checks edit ready review close reopen checkout clone fork sync"
        )
    )
}
_SQL_HARD = re.compile(r"(?i)\bdrop\s+(?:database|schema|user|role|owned)|dropDatabase|flushall|flushdb|\bshutdown\b")
_SQL_RISKY = re.compile(
    r"(?i)\bdrop\s+\w+|\btruncate\b|\bdelete\s+from\s+[\w.\"`]+\s*(?:;|$)|\\!|into\s+outfile|copy\b[^\n]{0,500}\bprogram\b|\.drop\(|deleteMany\(\{\}|pg_read_file|lo_export"
)


def _is_help_request(call: ProgramCall) -> bool:
    """Return whether the invocation only asks for help or the version."""
    return any(arg in ("--help", "--version", "-V", "-h") for arg in call.args) and not call.operands


def _analyze_hard_risk_program(call: ProgramCall) -> None:
    if _is_help_request(call):
        call.add_risk(Risk.CHANGING)
        return
    call.add_risk(Risk.HARD, f"{call.command_text} changes the system itself")


def _analyze_mount(call: ProgramCall) -> None:
    if call.args and not _is_help_request(call) and call.args != ["-l"]:
        call.add_risk(Risk.HARD, f"{call.command_text} changes the mounted file systems")


def _analyze_fdisk(call: ProgramCall) -> None:
    if not any(arg.startswith("-") and "l" in arg for arg in call.args):
        _analyze_hard_risk_program(call)


def _analyze_sysctl(call: ProgramCall) -> None:
    is_setting = any("=" in arg for arg in call.args) or call.parse_options("-w").has(
        "-w", "-p", "--write", "--load", "--system", "-f"
    )
    call.add_risk(Risk.HARD if is_setting else Risk.CHANGING, "sysctl changes the kernel's settings")


def _analyze_network_settings(call: ProgramCall) -> None:
    call.add_risk(Risk.CHANGING)
    if set(call.operands) & _SETTING_VERBS or call.parse_options().has("-s", "-K", "-G", "-A"):
        call.add_risk(Risk.RISKY, f"{call.command_text} changes this machine's network settings")


def _analyze_init(call: ProgramCall) -> None:
    is_level = any(re.fullmatch("[0-6sS]", arg) for arg in call.args)
    call.add_risk(
        Risk.HARD if is_level else Risk.RISKY, f"{call.command_text} stops or restarts the services of this machine"
    )


def _analyze_kill(call: ProgramCall) -> None:
    args = list(call.args)
    if args[:1] in (["-l"], ["-L"]):
        return
    if args[:1] in (["-s"], ["-n"], ["--signal"]):
        args = args[2:]
    elif args and re.fullmatch(r"-[A-Za-z]\w*|-\d+|--signal=.*", args[0]) and len(args) > 1:
        args = args[1:]
    targets = [arg for arg in args if arg != "--"]
    call.add_risk(Risk.CHANGING)
    if any(re.fullmatch(r"-1|-?0|1", target) for target in targets):
        call.add_risk(Risk.HARD, "kill stops every process")
    elif any(not target.startswith("%") for target in targets):
        call.add_risk(Risk.RISKY, f"kill stops {printable(' '.join(targets))}, which the command may not have started")


def _analyze_firewall(call: ProgramCall) -> None:
    is_flushing = any(arg in ("-F", "--flush", "-X", "flush", "-Z", "reset", "-d") for arg in call.args) or (
        "-P" in call.args or "--policy" in call.args
    )
    is_listing = any(re.fullmatch(r"-[nv]*[LS][nv]*|--list\S*|list", arg) for arg in call.args) and not is_flushing
    call.add_risk(
        Risk.CHANGING if is_listing else Risk.HARD if is_flushing else Risk.RISKY,
        f"{call.command_text} changes the firewall",
    )


def _analyze_crontab(call: ProgramCall) -> None:
    options = call.parse_options("-u")
    if options.has("-r"):
        call.add_risk(Risk.HARD, "crontab -r deletes all scheduled jobs")
    elif options.has("-l"):
        call.add_risk(Risk.CHANGING)
    else:
        call.add_risk(Risk.RISKY, "crontab changes the scheduled jobs")
        for line in (call.stdin or "").split("\n"):
            if line and not is_unknown(line):
                call.context.analyze_subshell(" ".join(line.split()[5:]) or line, None, ())


def _analyze_risky_program(call: ProgramCall) -> None:
    operands = call.operands
    verbs = [word for word in operands[:4] if re.fullmatch(r"[A-Za-z][\w-]*", word)]
    call.add_risk(Risk.CHANGING)
    if any(verb in _HARD_VERBS.get(call.name, ()) for verb in verbs):
        call.add_risk(Risk.HARD, f"{call.command_text} changes the system itself")
        return
    if _is_help_request(call):
        return
    if call.name in ("kubectl", "oc") and "exec" in verbs and "--" in call.args:
        call.add_risk(Risk.RISKY, f"{call.name} exec runs a command in the cluster")
        call.analyze_program(call.args[call.args.index("--") + 1 :])
        return
    if call.name == "gh":
        _analyze_gh(call, verbs)
        return
    if verbs and any(_is_read_only_verb(verb) for verb in verbs[:3]) and not _has_changing_verb(call, verbs):
        return
    call.add_risk(Risk.RISKY, f"{call.command_text} changes something outside the workspace")


def _is_read_only_verb(verb: str) -> bool:
    return verb in _READING_VERBS or verb.startswith(("list-", "describe-", "get-", "show-", "lookup-"))


def _has_changing_verb(call: ProgramCall, verbs: list[str]) -> bool:
    words = set(verbs) | set(call.args)
    changing = set(split_names("apply destroy delete set create update rm cp mv sync mb rb import --fix taint"))
    changing |= set(split_names("install uninstall upgrade remove edit replace patch scale drain cordon deploy login"))
    return bool(words & changing)


def _analyze_gh(call: ProgramCall, verbs: list[str]) -> None:
    if SECRET in "".join(call.args) + (call.stdin or "") or call.check_secret_arguments():
        call.add_risk(Risk.HARD, "gh sends secrets to GitHub")
    first, second = (*verbs, "", "")[:2]
    if first == "api":
        options = call.parse_options(
            "-X", "--method", "-f", "-F", "--field", "--raw-field", "--input", "-H", "-q", "--jq", "-t"
        )
        is_sending = bool(options.values("-f", "-F", "--field", "--raw-field", "--input"))
        is_sending = is_sending or any(value.upper() != "GET" for value in options.values("-X", "--method"))
        call.add_risk(Risk.RISKY if is_sending else Risk.CHANGING, f"{call.command_text} changes something on GitHub")
    elif first in ("pr", "issue", "repo", "run", "workflow", "release", "gist", "label", "search", "status", "browse"):
        is_public = first in ("release", "repo", "gist") and second not in (
            "list",
            "view",
            "clone",
            "fork",
            "download",
            "",
        )
        is_final = second in split_names("merge delete transfer archive cancel rerun run lock enable disable")
        call.add_risk(
            Risk.RISKY if is_public or is_final else Risk.CHANGING, f"{call.command_text} changes something on GitHub"
        )
    elif first not in ("version", "help") and not (first == "auth" and second == "status"):
        call.add_risk(Risk.RISKY, f"{call.command_text} changes something on GitHub")


def _analyze_database(call: ProgramCall) -> str | None:
    call.add_risk(Risk.CHANGING)
    text = " ".join([*call.args, call.stdin or ""])
    if _SQL_HARD.search(text):
        call.add_risk(Risk.HARD, f"{call.name} deletes a whole database")
    elif _SQL_RISKY.search(text) and not call.name.startswith("sqlite"):
        call.add_risk(Risk.RISKY, f"{call.name} deletes data")
    for command in re.findall(r"(?:\.shell|\.system|\\!|\bsystem)\s+([^\n'\"]+)", text):
        call.add_risk(Risk.RISKY, f"{call.name} runs a command")
        call.context.analyze_subshell(command, None, ())
    for path in re.findall(r"\.(?:output|once|backup|save|dump)\s+(\S+)", text):
        call.record_write(path)
    if call.name.startswith("sqlite"):
        call.record_write(*call.operands[:1])
    return None


PROGRAMS: dict[str, ProgramAnalyzer] = {
    **dict.fromkeys(_HARD_PROGRAMS, _analyze_hard_risk_program),
    **dict.fromkeys(_RISKY_PROGRAMS, _analyze_risky_program),
    **dict.fromkeys(("iptables", "ip6tables", "nft", "pfctl", "ipset"), _analyze_firewall),
    **dict.fromkeys(
        split_names(
            "psql mysql mariadb sqlite3 sqlite mongo mongosh redis-cli mysqladmin clickhouse-client sqlcmd duckdb"
        ),
        _analyze_database,
    ),
    "mount": _analyze_mount,
    "fdisk": _analyze_fdisk,
    "sysctl": _analyze_sysctl,
    "init": _analyze_init,
    **dict.fromkeys(("ip", "tc", "bridge", "iw", "ethtool"), _analyze_network_settings),
    "kill": _analyze_kill,
    "crontab": _analyze_crontab,
}
