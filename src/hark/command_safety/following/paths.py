"""Resolves paths in a shell command and classifies them, for example as secret, device or workspace file."""

import os
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from msgspec import Struct

from hark.command_safety.following.markers import UNKNOWN, is_unknown

PATH_CHARACTERS_MAX = 4096
_GLOB = re.compile(r"[*?\[]|[@!+]\(")
_MATCH_ALL_GLOB = re.compile(r"[*.?]*[*?][*.?]*|\.?\[[^\]]*\]\*?|!\(.*\)|[*@+?]\(.*\*.*\)")
_HARMLESS_DEVICE = re.compile(
    r"/dev/(?:null|std(?:in|out|err)|tty|zero|full|random|urandom|fd(?:/\d*)?)|/proc/self/fd/\d+"
)
_RAW_DEVICE = re.compile(
    r"/dev/(?:[hs]d[a-z]|x?vd[a-z]|nvme|mmcblk|r?disk|loop|dm-|md|mapper/|sr\d|nbd|zram|mtd|block/|ram|k?mem$|port$)"
)
_NETWORK_DEVICE = re.compile(r"/dev/(?:tcp|udp)/")
_SYSTEM_FILE = re.compile(
    r"(?:/private)?/etc/(?:passwd|shadow|gshadow|group|sudoers|ssh|pam|cron|profile|bash|zsh|environment|ld\.so|rc\."
    r"|init|systemd|fstab|security|apt|doas|polkit).*"
    r"|/(?:boot|proc|sys)(?:/.*)?|/(?:usr/)?s?bin/.*|/(?:usr/)?lib/systemd/.*"
    r"|/var/spool/cron.*|(?:/System)?/Library/Launch.*"
)
# Deleting one of these folders, or their contents, breaks the machine.
_SYSTEM_TREE = re.compile(r"/(?:usr|bin|sbin|lib\w*|boot|etc|dev|proc|sys|root|System|Library|private/etc)(?:/.*)?")
_TEMPORARY = ("/tmp", "/var/tmp", "/private/tmp")  # noqa: S108
_TOP_LEVEL_FOLDER = re.compile(r"/[^/]*|/(?:var|home|Users|private|mnt|media|Volumes)/[^/]*|/private/var/[^/]*")
_HOME_FILE = (
    r"/(?:\.(?:bashrc|bash_\w+|profile|z(?:shrc|shenv|profile|login|logout)|[kt]?c?shrc|inputrc|xinitrc|xprofile|xsession"
    r"|gitconfig|netrc|npmrc|pypirc|vimrc|pythonrc\w*|hark|docker/config\.json)|\.(?:ssh|gnupg|aws|kube|vim)(?:/.*)?"
    r"|\.config/(?:fish|autostart|systemd|git|environment\.d|nvim)(?:/.*)?|Library/LaunchAgents(?:/.*)?)"
)
_HOME_KEY_FILE = (
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
_HARK_SETTINGS = re.compile(r".*/\.hark(?:/config\.toml)?")
_GIT_FOLDER = re.compile(r".*/\.git(?:/.*)?")


class ResolvedPath(Struct, frozen=True):
    """A path in a command, with symbolic links resolved.

    `lexical` is the normalized text. `path` is resolved up to the first wildcard, and `pattern` is the remainder.
    """

    lexical: str
    path: str
    pattern: str = ""
    is_unknown: bool = False


class WorkspacePaths:
    """Resolves and classifies paths relative to the workspace, the other writable folders and the home directory."""

    def __init__(self, workspace: Path, writable: Sequence[Path], home: Path) -> None:
        self.workspace = _real_path(str(workspace)) or str(workspace)
        self.home = str(home)
        self._allowed = (self.workspace, *(_real_path(str(folder)) or str(folder) for folder in writable))
        homes = rf"(?:{re.escape(self.home)}|/root|/home/[^/]+|/Users/[^/]+)"
        self._located: dict[tuple[str, str, bool], ResolvedPath] = {}
        self._home = re.compile(homes)
        self._home_file = re.compile(homes + _HOME_FILE)
        self._home_secret = re.compile(homes + _HOME_KEY_FILE)
        self._protected_samples = (
            *("/etc/passwd", "/etc/shadow", "/etc/sudoers", "/etc/crontab", "/dev/sda", "/dev/nvme0n1"),
            *(f"{self.home}/{name}" for name in (".bashrc", ".zshrc", ".profile", ".ssh/authorized_keys")),
            f"{self.workspace}/.git/hooks/pre-commit",
        )
        self._secret_samples = (
            *("/etc/shadow", "/root/.ssh/id_rsa", "/proc/1/environ"),
            *(f"{self.home}/{name}" for name in (".ssh/id_rsa", ".ssh/id_ed25519", ".aws/credentials", ".netrc")),
        )

    def resolve(self, text: str, folder: str, *, follow_symlinks: bool = True) -> ResolvedPath:
        """Return a path resolved relative to a folder. `follow_symlinks=False` resolves to the link itself."""
        key = (text, folder, follow_symlinks)
        if key not in self._located:
            self._located[key] = self._resolve(text, folder, follow_symlinks=follow_symlinks)
        return self._located[key]

    def _resolve(self, text: str, folder: str, *, follow_symlinks: bool) -> ResolvedPath:
        if text.startswith("~"):
            user, slash, rest = text[1:].partition("/")
            home = self.home if user in ("", "+", "-") else "/root" if user == "root" else f"/home/{user}"
            text = home + slash + rest
        full_text = text if text.startswith("/") else f"{folder}/{text}"
        if len(full_text) > PATH_CHARACTERS_MAX:
            return ResolvedPath(UNKNOWN, UNKNOWN, is_unknown=True)
        names = full_text.split("/")
        wildcard_index = next(
            (at for at, name in enumerate(names) if _GLOB.search(name) or is_unknown(name)), len(names)
        )
        pattern = "/".join(names[wildcard_index:])
        base = "/".join(names[:wildcard_index]) or "/"
        lexical = os.path.normpath(full_text).replace("//", "/")
        # Links in /proc depend on the process that reads them, so they can't be resolved here.
        path = (
            lexical
            if lexical.startswith("/proc/")
            else self._resolve_base(base, follow_symlinks=follow_symlinks or bool(pattern))
        )
        if path is None:
            return ResolvedPath(lexical, lexical, pattern, is_unknown=True)
        is_unpredictable = is_unknown(full_text) or ".." in names[wildcard_index:]
        return ResolvedPath(lexical, path, pattern, is_unpredictable)

    def _resolve_base(self, base: str, *, follow_symlinks: bool) -> str | None:
        parent, _, name = base.rpartition("/")
        if follow_symlinks or name in ("", ".", ".."):
            return _real_path(base)
        resolved = _real_path(parent or "/")
        return None if resolved is None else f"{resolved.rstrip('/')}/{name}"

    def is_folder(self, path: str) -> bool:
        """Return whether a folder exists at this path."""
        try:
            return Path(path).is_dir()
        except (OSError, ValueError):
            return False

    def is_inside(self, resolved: ResolvedPath) -> bool:
        """Return whether everything that the path can match is in the workspace or a writable folder."""
        return not resolved.is_unknown and any(_is_within(resolved.path, folder) for folder in self._allowed)

    def is_harmless_device(self, resolved: ResolvedPath) -> bool:
        """Return whether the path is a device, such as /dev/null, where writes have no effect."""
        return bool(_HARMLESS_DEVICE.fullmatch(resolved.lexical))

    def is_raw_device(self, resolved: ResolvedPath) -> bool:
        """Return whether the path is a disk or memory device."""
        return any(_RAW_DEVICE.match(path) for path in (resolved.lexical, resolved.path))

    def is_network_device(self, resolved: ResolvedPath) -> bool:
        """Return whether the path is /dev/tcp or /dev/udp, for which the shell opens a connection."""
        return bool(_NETWORK_DEVICE.match(resolved.lexical))

    def is_root_or_home(self, resolved: ResolvedPath) -> bool:
        """Return whether the path is the root, a home directory, or the parent folder of home directories."""
        return any(
            path in ("/", "/home", "/Users") or self._home.fullmatch(path) for path in (resolved.lexical, resolved.path)
        )

    def protection_reason(self, resolved: ResolvedPath) -> str:
        """Return why writing to the path always needs approval, or "" if it doesn't."""
        for path in (resolved.lexical, resolved.path):
            if _SYSTEM_FILE.fullmatch(path):
                return "a system file"
            if self._home_file.fullmatch(path):
                return "one of your startup or key files"
            if _GIT_HOOK.fullmatch(path):
                return "a Git hook, which git runs automatically"
            if _HARK_SETTINGS.fullmatch(path):
                return "Hark's own settings"
        if resolved.pattern and any(_matches_pattern(sample, resolved.lexical) for sample in self._protected_samples):
            return "possibly a system or startup file"
        return ""

    def is_git_config(self, resolved: ResolvedPath) -> bool:
        """Return whether the path is a repository's Git configuration, which can name programs to run."""
        return bool(_GIT_CONFIG.fullmatch(resolved.path))

    def is_git_folder(self, resolved: ResolvedPath) -> bool:
        """Return whether the path is a repository's .git folder or inside it."""
        return bool(_GIT_FOLDER.fullmatch(resolved.path))

    def is_critical_folder(self, resolved: ResolvedPath) -> bool:
        """Return whether the path is a system or home folder, or a parent of the workspace or a writable folder."""
        if self.is_inside(resolved) and resolved.path not in self._allowed:
            return False
        path = resolved.path
        if path in _TEMPORARY and resolved.pattern and not self.is_match_all(resolved):
            return False
        return bool(
            any(_is_within(folder, path) for folder in self._allowed)
            or _SYSTEM_TREE.fullmatch(path)
            or _TOP_LEVEL_FOLDER.fullmatch(path)
            or self._home.fullmatch(path)
            or self._home_file.fullmatch(path)
        )

    def is_match_all(self, resolved: ResolvedPath) -> bool:
        """Return whether the last name of the path is a wildcard that matches everything in a folder."""
        return bool(resolved.pattern) and bool(
            _MATCH_ALL_GLOB.fullmatch(resolved.pattern.rstrip("/").rpartition("/")[2])
        )

    def is_secret(self, resolved: ResolvedPath) -> bool:
        """Return whether the path is a file with keys or passwords, in any location."""
        return self.is_secret_outside_workspace(resolved) or any(
            _SECRET_NAME.fullmatch(path) for path in (resolved.lexical, resolved.path)
        )

    def is_secret_outside_workspace(self, resolved: ResolvedPath) -> bool:
        """Return whether the path is a file with keys or passwords that doesn't belong to the workspace."""
        paths = (resolved.lexical, resolved.path)
        if self.is_raw_device(resolved) or any(
            self._home_secret.fullmatch(path) or _SECRET_ANYWHERE.fullmatch(path) for path in paths
        ):
            return True
        if resolved.pattern:
            return any(_matches_pattern(sample, resolved.lexical) for sample in self._secret_samples)
        return not self.is_inside(resolved) and bool(_SECRET_NAME.fullmatch(resolved.path))


def _matches_pattern(path: str, pattern: str) -> bool:
    """Return whether a path matches a wildcard pattern, compared name by name."""
    names, patterns = path.split("/"), pattern.split("/")
    return len(names) == len(patterns) and all(map(fnmatchcase, names, patterns))


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _real_path(path: str) -> str | None:
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):  # an invalid name
        return None
