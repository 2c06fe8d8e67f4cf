"""What the programs do that build, install and publish software."""

import re

from hark.command_safety.following.call import Judge, ProgramCall
from hark.command_safety.following.findings import Risk
from hark.command_safety.following.options import names

_INSTALLERS = ("cargo", "gem", "go", "uv", "pipx", "cpan", "cpanm", "luarocks", "rustup")
_ADDRESS = re.compile(
    r"(?:[\w.-]+\s*@\s*)?(?:git\+)?(?:https?|git|ssh|ftp)(?:\+\w+)?:|(?:github|gitlab|bitbucket|gist):"
)
_PACKAGES = names("apt apt-get aptitude dnf yum zypper apk brew")
_PACKAGE_READING = frozenset(
    names("list show search info policy cache deps outdated leaves config doctor help --version -v desc")
)


def _packages(call: ProgramCall) -> None:
    verbs = call.operands[:1]
    call.note(Risk.CHANGING)
    if verbs and not set(verbs) & _PACKAGE_READING:
        call.note(Risk.RISKY, f"{call.text} changes the software of the machine")


def _pip(call: ProgramCall) -> None:
    options = call.options(
        "-r", "-c", "-e", "-t", "--target", "--prefix", "--root", "-i", "--index-url", "--python", "--extra-index-url"
    )
    call.note(Risk.CHANGING)
    if options.has("--user", "--break-system-packages", "--system"):
        call.note(Risk.RISKY, f"{call.text} changes the software of the machine")
    if options.has("-i", "--index-url", "--extra-index-url", "-f", "--find-links", "--trusted-host"):
        call.note(Risk.RISKY, f"{call.text} takes software from another place than usual")
    _guard_sources(call)
    call.writes(*options.values("-t", "--target", "--prefix", "--root"))


def _guard_sources(call: ProgramCall) -> None:
    """A package from an address is code from anywhere, and may run when it is installed."""
    if any(_ADDRESS.match(operand) for operand in call.operands[1:]):
        call.note(Risk.RISKY, f"{call.text} installs code from an address")


def _npm(call: ProgramCall) -> None:
    options = call.options("--prefix", "-C", "--cwd", "--dir", "-w")
    call.works_here()
    verbs = set(call.operands[:2])
    call.note(Risk.CHANGING)
    if (
        options.has("-g", "--global", "--location")
        or "global" in verbs
        or (call.name == "corepack" and "enable" in verbs)
    ):
        call.note(Risk.RISKY, f"{call.text} changes the software of the machine")
    if verbs & {"publish", "unpublish", "deprecate", "owner", "dist-tag", "login", "adduser", "token", "access"}:
        call.note(Risk.RISKY, f"{call.text} changes what others get")
    if options.has("--registry"):
        call.note(Risk.RISKY, f"{call.text} takes software from another place than usual")
    _guard_sources(call)
    call.writes(*options.values("--prefix", "-C", "--cwd", "--dir"))


def _publisher(call: ProgramCall) -> None:
    """Build tools that can publish or install."""
    verbs = call.operands
    call.note(Risk.CHANGING)
    call.works_here()
    published = {
        "publish",
        "yank",
        "deploy",
        "push",
        "owner",
        "login",
        "release:perform",
        "release",
        "publish-to-sonatype",
        "upload",
    }
    if set(verbs[:3]) & published and not call.options().has("--dry-run", "-n"):
        call.note(Risk.RISKY, f"{call.text} changes what others get")
    is_installing = verbs[:1] in (["install"], ["tool"], ["uninstall"]) and verbs[:2] != ["tool", "run"]
    if call.name in _INSTALLERS and is_installing and not call.options().has("--local", "--root"):
        call.note(Risk.RISKY, f"{call.text} changes the software of the machine")
    if call.name == "uv" and verbs[:1] == ["pip"]:
        _pip(call)


def _builder(call: ProgramCall) -> None:
    options = call.options(
        "-C", "--directory", "-f", "--file", "--eval", "-j", "-o", "-B", "--build", "--prefix", "--install", "-S", "-D"
    )
    call.note(Risk.CHANGING)
    call.works_here()
    for text in options.values("--eval"):
        call.note(Risk.RISKY, "make runs rules from its arguments")
        for match in re.finditer(r"\$\(shell (.*?)\)|:\s*;?\s*(.*)", text):
            call.runner.run_child(match[1] or match[2] or "", None, ())
    if "-" in options.values("-f", "--file") or "/dev/stdin" in options.values("-f", "--file"):
        call.note(Risk.RISKY, "make runs rules that it is fed with")
        call.runner.run_child(re.sub(r"(?m)^[\w.-]+:.*?(?:;|$)|^\t[@-]?", "", call.feed or ""), None, ())
    for assignment in options.operands:
        if assignment.startswith("SHELL="):
            call.note(Risk.RISKY, "make is given another shell")
    is_installing = "install" in options.operands or options.has("--install")
    is_bounded = any(re.match(r"(?:DESTDIR|PREFIX|prefix)=", operand) for operand in options.operands) or options.has(
        "--prefix"
    )
    if is_installing and not is_bounded:
        call.note(Risk.LEAVING, f"{call.text} installs outside the workspace")
    call.writes(
        *(operand.partition("=")[2] for operand in options.operands if re.match(r"(?i)(?:DESTDIR|PREFIX)=", operand))
    )
    call.writes(*options.values("-C", "--directory", "-B", "--prefix"))


PROGRAMS: dict[str, Judge] = {
    **dict.fromkeys(_PACKAGES, _packages),
    **dict.fromkeys(("pip", "pip3", "easy_install"), _pip),
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun", "corepack"), _npm),
    **dict.fromkeys(
        names("cargo gem poetry flit hatch uv pdm mvn gradle gradlew rustup pipx cpan cpanm luarocks dotnet nuget go"),
        _publisher,
    ),
    **dict.fromkeys(("make", "gmake", "ninja", "cmake", "meson", "scons"), _builder),
}
