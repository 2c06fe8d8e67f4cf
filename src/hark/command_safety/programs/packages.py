"""Analyzers for programs that build, install and publish software."""

import re

from hark.command_safety.following.findings import Risk
from hark.command_safety.following.options import split_names
from hark.command_safety.following.program_call import ProgramAnalyzer, ProgramCall

_INSTALLERS = ("cargo", "gem", "go", "uv", "pipx", "cpan", "cpanm", "luarocks", "rustup")
_PACKAGE_URL = re.compile(
    r"(?:[\w.-]+\s*@\s*)?(?:git\+)?(?:https?|git|ssh|ftp)(?:\+\w+)?:|(?:github|gitlab|bitbucket|gist):"
)
_PACKAGE_MANAGERS = split_names("apt apt-get aptitude dnf yum zypper apk brew")
_READ_ONLY_VERBS = frozenset(
    split_names("list show search info policy cache deps outdated leaves config doctor help --version -v desc")
)


def _analyze_package_manager(call: ProgramCall) -> None:
    verbs = call.operands[:1]
    call.add_risk(Risk.CHANGING)
    if verbs and not set(verbs) & _READ_ONLY_VERBS:
        call.add_risk(Risk.RISKY, f"{call.command_text} changes software installed on this machine")


def _analyze_pip(call: ProgramCall) -> None:
    options = call.parse_options(
        "-r", "-c", "-e", "-t", "--target", "--prefix", "--root", "-i", "--index-url", "--python", "--extra-index-url"
    )
    call.add_risk(Risk.CHANGING)
    if options.has("--user", "--break-system-packages", "--system"):
        call.add_risk(Risk.RISKY, f"{call.command_text} changes software installed on this machine")
    if options.has("-i", "--index-url", "--extra-index-url", "-f", "--find-links", "--trusted-host"):
        call.add_risk(Risk.RISKY, f"{call.command_text} downloads packages from a non-default source")
    _check_package_sources(call)
    call.record_write(*options.values("-t", "--target", "--prefix", "--root"))


def _check_package_sources(call: ProgramCall) -> None:
    """Record a risk if a package is installed from a URL, because its installation can run arbitrary code."""
    if any(_PACKAGE_URL.match(operand) for operand in call.operands[1:]):
        call.add_risk(Risk.RISKY, f"{call.command_text} installs code from a URL")


def _analyze_npm(call: ProgramCall) -> None:
    options = call.parse_options("--prefix", "-C", "--cwd", "--dir", "-w")
    call.check_output_locations()
    verbs = set(call.operands[:2])
    call.add_risk(Risk.CHANGING)
    if (
        options.has("-g", "--global", "--location")
        or "global" in verbs
        or (call.name == "corepack" and "enable" in verbs)
    ):
        call.add_risk(Risk.RISKY, f"{call.command_text} changes software installed on this machine")
    if verbs & {"publish", "unpublish", "deprecate", "owner", "dist-tag", "login", "adduser", "token", "access"}:
        call.add_risk(Risk.RISKY, f"{call.command_text} changes a published package or service that others use")
    if options.has("--registry"):
        call.add_risk(Risk.RISKY, f"{call.command_text} downloads packages from a non-default source")
    _check_package_sources(call)
    call.record_write(*options.values("--prefix", "-C", "--cwd", "--dir"))


def _analyze_publisher(call: ProgramCall) -> None:
    """Analyze build tools that can also publish or install packages."""
    verbs = call.operands
    call.add_risk(Risk.CHANGING)
    call.check_output_locations()
    published = set(
        split_names("publish yank deploy push owner login release:perform release publish-to-sonatype upload")
    )
    if set(verbs[:3]) & published and not call.parse_options().has("--dry-run", "-n"):
        call.add_risk(Risk.RISKY, f"{call.command_text} changes a published package or service that others use")
    is_installing = verbs[:1] in (["install"], ["tool"], ["uninstall"]) and verbs[:2] != ["tool", "run"]
    if call.name in _INSTALLERS and is_installing and not call.parse_options().has("--local", "--root"):
        call.add_risk(Risk.RISKY, f"{call.command_text} changes software installed on this machine")
    if call.name == "uv" and verbs[:1] == ["pip"]:
        _analyze_pip(call)


def _analyze_build_tool(call: ProgramCall) -> None:
    options = call.parse_options(
        "-C", "--directory", "-f", "--file", "--eval", "-j", "-o", "-B", "--build", "--prefix", "--install", "-S", "-D"
    )
    call.add_risk(Risk.CHANGING)
    call.check_output_locations()
    for text in options.values("--eval"):
        call.add_risk(Risk.RISKY, "make runs rules from its arguments")
        for match in re.finditer(r"\$\(shell (.*?)\)|:\s*;?\s*(.*)", text):
            call.context.analyze_subshell(match[1] or match[2] or "", None, ())
    if "-" in options.values("-f", "--file") or "/dev/stdin" in options.values("-f", "--file"):
        call.add_risk(Risk.RISKY, "make runs rules from standard input")
        call.context.analyze_subshell(re.sub(r"(?m)^[\w.-]+:.*?(?:;|$)|^\t[@-]?", "", call.stdin or ""), None, ())
    for assignment in options.operands:
        if assignment.startswith("SHELL="):
            call.add_risk(Risk.RISKY, "make uses a different shell")
    is_installing = "install" in options.operands or options.has("--install")
    is_bounded = any(re.match(r"(?:DESTDIR|PREFIX|prefix)=", operand) for operand in options.operands) or options.has(
        "--prefix"
    )
    if is_installing and not is_bounded:
        call.add_risk(Risk.LEAVING, f"{call.command_text} installs outside the workspace")
    call.record_write(
        *(operand.partition("=")[2] for operand in options.operands if re.match(r"(?i)(?:DESTDIR|PREFIX)=", operand))
    )
    call.record_write(*options.values("-C", "--directory", "-B", "--prefix"))


PROGRAMS: dict[str, ProgramAnalyzer] = {
    **dict.fromkeys(_PACKAGE_MANAGERS, _analyze_package_manager),
    **dict.fromkeys(("pip", "pip3", "easy_install"), _analyze_pip),
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun", "corepack"), _analyze_npm),
    **dict.fromkeys(
        split_names(
            "cargo gem poetry flit hatch uv pdm mvn gradle gradlew rustup pipx cpan cpanm luarocks dotnet nuget go"
        ),
        _analyze_publisher,
    ),
    **dict.fromkeys(("make", "gmake", "ninja", "cmake", "meson", "scons"), _analyze_build_tool),
}
