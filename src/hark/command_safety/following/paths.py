"""Where a path in a shell command leads, and what that place is."""

import os
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from msgspec import Struct

from hark.command_safety.following.unknown_marks import UNKNOWN, is_unknown

PATH_CHARACTERS_MAX = 4096
_GLOB = re.compile(r"[*?\[]|[@!+]\(")
_ALL_WILD = re.compile(r"[*.?]*[*?][*.?]*|\.?\[[^\]]*\]\*?|!\(.*\)|[*@+?]\(.*\*.*\)")
_HARMLESS = re.compile(r"/dev/(?:null|std(?:in|out|err)|tty|zero|full|random|urandom|fd(?:/\d*)?)|/proc/self/fd/\d+")
_DEVICE = re.compile(
    r"/dev/(?:[hs]d[a-z]|x?vd[a-z]|nvme|mmcblk|r?disk|loop|dm-|md|mapper/|sr\d|nbd|zram|mtd|block/|ram|k?mem$|port$)"
)
_NETWORK = re.compile(r"/dev/(?:tcp|udp)/")
_SYSTEM_FILE = re.compile(
    r"(?:/private)?/etc/(?:passwd|shadow|gshadow|group|sudoers|ssh|pam|cron|profile|bash|zsh|environment|ld\.so|rc\."
    r"|init|systemd|fstab|security|apt|doas|polkit).*"
    r"|/(?:boot|proc|sys)(?:/.*)?|/(?:usr/)?s?bin/.*|/(?:usr/)?lib/systemd/.*"
    r"|/var/spool/cron.*|(?:/System)?/Library/Launch.*"
)
# Removing one of these, or what is in them, breaks the machine.
_SYSTEM_TREE = re.compile(r"/(?:usr|bin|sbin|lib\w*|boot|etc|dev|proc|sys|root|System|Library|private/etc)(?:/.*)?")
_TEMPORARY = ("/tmp", "/var/tmp", "/private/tmp")  # noqa: S108
_SYSTEM_TOP = re.compile(r"/[^/]*|/(?:var|home|Users|private|mnt|media|Volumes)/[^/]*|/private/var/[^/]*")
_HOME_FILE = (
    r"/(?:\.(?:bashrc|bash_\w+|profile|z(?:shrc|shenv|profile|login|logout)|[kt]?c?shrc|inputrc|xinitrc|xprofile|xsession"
    r"|gitconfig|netrc|npmrc|pypirc|vimrc|pythonrc\w*|hark|docker/config\.json)|\.(?:ssh|gnupg|aws|kube|vim)(?:/.*)?"
    r"|\.config/(?:fish|autostart|systemd|git|environment\.d|nvim)(?:/.*)?|Library/LaunchAgents(?:/.*)?)"
)
_HOME_KEYS = (
    r"/(?:\.(?:netrc|pgpass|npmrc|pypirc|git-credentials|my\.cnf|vault-token|\w+_history)|\.aws/credentials"
    r"|\.(?:gnupg|password-store)(?:/.*)?|\.docker/config\.json|\.kube/config|\.config/(?:gcloud|gh|op)(?:/.*)?"
    r"|\.mozilla.*|\.config/(?:google-chrome|chromium).*|Library/Keychains.*|\.ssh)"
)
_SECRET_ANYWHERE = re.compile(
    r"(?:/private)?/etc/(?:g?shadow-?|sudoers.*|master\.passwd|krb5\.keytab|ssl/private.*)|/proc/[^/]+/environ"
    r"|.*/\.ssh/(?!.*\.pub$|known_hosts|config$|authorized_keys$).+"
)
_SECRET_NAME = re.compile(
    r".*/(?:\.env(?:\.(?!example$|sample$|template$|dist$)[\w.-]+)?|id_(?:rsa|dsa|ecdsa|ed25519)|[^/]*\.(?:pem|p12|pfx|keystore)"
    r"|credentials(?:\.json)?|secrets?\.(?:json|ya?ml|toml))"
)
_GIT_HOOK = re.compile(r".*/\.git(?:/.*)?/hooks(?:/.*)?")
_GIT_CONFIG = re.compile(r".*/\.git(?:/.*)?/config(?:\.worktree)?")
_OWN_SETTINGS = re.compile(r".*/\.hark(?:/config\.toml)?")
_GIT_FOLDER = re.compile(r".*/\.git(?:/.*)?")


class Spot(Struct, frozen=True):
    """A path: its `lexical` form, the `path` with links followed, and `pattern`, what is behind its first wildcard."""

    lexical: str
    path: str
    pattern: str = ""
    is_unknown: bool = False


class WorkspacePaths:
    """The workspace, what else may be written to, and everything else."""

    def __init__(self, workspace: Path, writable: Sequence[Path], home: Path) -> None:
        self.workspace = _resolved(str(workspace)) or str(workspace)
        self.home = str(home)
        self._allowed = (self.workspace, *(_resolved(str(folder)) or str(folder) for folder in writable))
        homes = rf"(?:{re.escape(self.home)}|/root|/home/[^/]+|/Users/[^/]+)"
        self._located: dict[tuple[str, str, bool], Spot] = {}
        self._home = re.compile(homes)
        self._home_file = re.compile(homes + _HOME_FILE)
        self._home_secret = re.compile(homes + _HOME_KEYS)
        self._protected_samples = (
            *("/etc/passwd", "/etc/shadow", "/etc/sudoers", "/etc/crontab", "/dev/sda", "/dev/nvme0n1"),
            *(f"{self.home}/{name}" for name in (".bashrc", ".zshrc", ".profile", ".ssh/authorized_keys")),
            f"{self.workspace}/.git/hooks/pre-commit",
        )
        self._secret_samples = (
            *("/etc/shadow", "/root/.ssh/id_rsa", "/proc/1/environ"),
            *(f"{self.home}/{name}" for name in (".ssh/id_rsa", ".ssh/id_ed25519", ".aws/credentials", ".netrc")),
        )

    def locate(self, text: str, folder: str, *, is_followed: bool = True) -> Spot:
        """Return where a path leads, seen from a folder. `is_followed` is False for the link itself."""
        key = (text, folder, is_followed)
        if key not in self._located:
            self._located[key] = self._locate(text, folder, is_followed=is_followed)
        return self._located[key]

    def _locate(self, text: str, folder: str, *, is_followed: bool) -> Spot:
        if text.startswith("~"):
            user, slash, rest = text[1:].partition("/")
            home = self.home if user in ("", "+", "-") else "/root" if user == "root" else f"/home/{user}"
            text = home + slash + rest
        whole = text if text.startswith("/") else f"{folder}/{text}"
        if len(whole) > PATH_CHARACTERS_MAX:
            return Spot(UNKNOWN, UNKNOWN, is_unknown=True)
        names = whole.split("/")
        wild = next((at for at, name in enumerate(names) if _GLOB.search(name) or is_unknown(name)), len(names))
        pattern = "/".join(names[wild:])
        base = "/".join(names[:wild]) or "/"
        lexical = os.path.normpath(whole).replace("//", "/")
        # What is in /proc depends on who asks: a link there means another place for the command than it does here.
        path = lexical if lexical.startswith("/proc/") else self._follow(base, is_followed=is_followed or bool(pattern))
        if path is None:
            return Spot(lexical, lexical, pattern, is_unknown=True)
        is_lost = is_unknown(whole) or ".." in names[wild:]
        return Spot(lexical, path, pattern, is_lost)

    def _follow(self, base: str, *, is_followed: bool) -> str | None:
        parent, _, name = base.rpartition("/")
        if is_followed or name in ("", ".", ".."):
            return _resolved(base)
        resolved = _resolved(parent or "/")
        return None if resolved is None else f"{resolved.rstrip('/')}/{name}"

    def is_folder(self, path: str) -> bool:
        """Tell whether a folder is there."""
        try:
            return Path(path).is_dir()
        except (OSError, ValueError):
            return False

    def is_inside(self, spot: Spot) -> bool:
        """Tell whether all that the path can mean is in the workspace or writable."""
        return not spot.is_unknown and any(_is_within(spot.path, folder) for folder in self._allowed)

    def is_harmless(self, spot: Spot) -> bool:
        """Tell whether writing there changes nothing."""
        return bool(_HARMLESS.fullmatch(spot.lexical))

    def is_device(self, spot: Spot) -> bool:
        """Tell whether it is a disk or memory."""
        return any(_DEVICE.match(path) for path in (spot.lexical, spot.path))

    def is_network(self, spot: Spot) -> bool:
        """Tell whether the shell opens a connection for it."""
        return bool(_NETWORK.match(spot.lexical))

    def is_root_or_home(self, spot: Spot) -> bool:
        """Tell whether it is the root, a home, or where homes are."""
        return any(path in ("/", "/home", "/Users") or self._home.fullmatch(path) for path in (spot.lexical, spot.path))

    def protection(self, spot: Spot) -> str:
        """Return what a write there would change that nobody should change unasked, "" for nothing."""
        for path in (spot.lexical, spot.path):
            if _SYSTEM_FILE.fullmatch(path):
                return "a file of the system"
            if self._home_file.fullmatch(path):
                return "a start-up or key file of yours"
            if _GIT_HOOK.fullmatch(path):
                return "a git hook, which git runs"
            if _OWN_SETTINGS.fullmatch(path):
                return "the settings of this agent"
        if spot.pattern and any(_fits(sample, spot.lexical) for sample in self._protected_samples):
            return "a file of the system or a start-up file"
        return ""

    def is_git_settings(self, spot: Spot) -> bool:
        """Tell whether it is a repository's own settings, which can name programs to run."""
        return bool(_GIT_CONFIG.fullmatch(spot.path))

    def is_git_folder(self, spot: Spot) -> bool:
        """Tell whether it is a repository's store, or in it."""
        return bool(_GIT_FOLDER.fullmatch(spot.path))

    def is_system_tree(self, spot: Spot) -> bool:
        """Tell whether it is a folder that the system or a person lives in, or a parent of what may be written to."""
        if self.is_inside(spot) and spot.path not in self._allowed:
            return False
        path = spot.path
        if path in _TEMPORARY and spot.pattern and not self.is_all_wild(spot):
            return False
        return bool(
            any(_is_within(folder, path) for folder in self._allowed)
            or _SYSTEM_TREE.fullmatch(path)
            or _SYSTEM_TOP.fullmatch(path)
            or self._home.fullmatch(path)
            or self._home_file.fullmatch(path)
        )

    def is_all_wild(self, spot: Spot) -> bool:
        """Tell whether its last name fits everything in a folder."""
        return bool(spot.pattern) and bool(_ALL_WILD.fullmatch(spot.pattern.rstrip("/").rpartition("/")[2]))

    def is_secret(self, spot: Spot) -> bool:
        """Tell whether it holds keys or passwords, wherever it is."""
        return self.is_foreign_secret(spot) or any(_SECRET_NAME.fullmatch(path) for path in (spot.lexical, spot.path))

    def is_foreign_secret(self, spot: Spot) -> bool:
        """Tell whether it holds keys or passwords that aren't the workspace's own."""
        paths = (spot.lexical, spot.path)
        if self.is_device(spot) or any(
            self._home_secret.fullmatch(path) or _SECRET_ANYWHERE.fullmatch(path) for path in paths
        ):
            return True
        if spot.pattern:
            return any(_fits(sample, spot.lexical) for sample in self._secret_samples)
        return not self.is_inside(spot) and bool(_SECRET_NAME.fullmatch(spot.path))


def _fits(path: str, pattern: str) -> bool:
    """Tell whether a path fits a pattern, name by name."""
    names, patterns = path.split("/"), pattern.split("/")
    return len(names) == len(patterns) and all(map(fnmatchcase, names, patterns))


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _resolved(path: str) -> str | None:
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):  # a name that can't be
        return None
