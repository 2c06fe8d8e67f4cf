"""`hark skills`: lists installed skills, searches skill sources, and installs skills from them."""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import anyio
from msgspec import Struct

from hark.app.settings import config
from hark.app.shutdown import BAD_USAGE, COMPLETED, FAILED, INTERRUPTED, Signals, Watchdog
from hark.cli.skills.clone import RepositoryCloner
from hark.cli.skills.install import InstalledSkill, InstallError, install_skill
from hark.cli.skills.sources import SkillOffer, SourceResult, is_address, printable_source, read_sources
from hark.processes.cookies import current_owner
from hark.tools.skills.catalog import SkillCatalogCache, skill_folders, truncate_line
from hark.tools.skills.settings import SkillSettings
from hark.tools.skills.skill import is_skill_name

ASK_SECONDS = 5.0
FETCH_SECONDS = 120.0
EXIT_SECONDS = 5.0


class SkillsContext(Struct, frozen=True):
    """The home, workspace and settings of one `hark skills` command."""

    home: Path
    workspace: Path
    settings: SkillSettings
    ask_seconds: float = ASK_SECONDS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("action", nargs="?", choices=("list", "search", "install"), default="list")
    parser.add_argument("value", nargs="*", help="the text to search for, or the skill to install")
    parser.add_argument("--from", dest="source", help="the source to use: a folder, a git URL or an index file")
    parser.add_argument("--project", action="store_true", help="install into this project")
    parser.add_argument("--force", action="store_true", help="replace an installed skill")


async def run(options: argparse.Namespace) -> int:
    """Run the command. A signal cancels it without leaving partial results."""
    settings = config.load_here().skills
    scope = anyio.CancelScope()
    with Signals(Watchdog(EXIT_SECONDS), lambda _: scope.cancel()) as signals, scope:
        return await run_action(options, SkillsContext(config.home_directory(), config.workspace(), settings))
    return signals.code or INTERRUPTED


async def run_action(options: argparse.Namespace, context: SkillsContext) -> int:
    """Run the requested action and return the exit code. Cancelling leaves no partial results."""
    match options.action:
        case "list":
            return _print_skills(context)
        case "search":
            return await _print_matches(options, context)
        case _:
            return await _install_skill(options, context)


def _print_skills(context: SkillsContext) -> int:
    catalog = SkillCatalogCache(skill_folders(context.workspace, context.home, context.settings.folders)).load()
    for skill in catalog.skills.values():
        _print(truncate_line(f"{skill.name:24}  {skill.description}"))
        _print(f"{'':24}  {skill.folder}")
    if not catalog.skills:
        _print("No skills are installed. docs/skills.md explains how to find, install and write skills.")
    for problem in catalog.problems:
        _print_warning(problem)
    return COMPLETED


async def _print_matches(options: argparse.Namespace, context: SkillsContext) -> int:
    sources = [options.source] if options.source else context.settings.sources
    if not sources:
        return _report_no_sources()
    with tempfile.TemporaryDirectory(prefix="hark-skills-") as scratch:
        answers = await read_sources(
            sources, RepositoryCloner(Path(scratch), current_owner(context.home)), context.ask_seconds
        )
    found = _filter_offers([offer for answer in answers for offer in answer.offers], options.value)
    installed = (
        SkillCatalogCache(skill_folders(context.workspace, context.home, context.settings.folders)).load().skills
    )
    for offer in found:
        suffix = f" {offer.version}" * bool(offer.version) + " (installed)" * (offer.name in installed)
        _print(truncate_line(f"{offer.name}{suffix}: {offer.description}"))
        _print(f"    from {offer.source}")
    if not found:
        _print("No skills match." if options.value else "The sources offer no skills.")
    _print_problems(answers)
    return FAILED if all(answer.is_dead for answer in answers) else COMPLETED


def _filter_offers(offers: Sequence[SkillOffer], query: Sequence[str]) -> list[SkillOffer]:
    """Return the skills whose name and description contain all words of the query, name matches first."""
    words = " ".join(query).lower().split()
    found = [offer for offer in offers if all(word in f"{offer.name} {offer.description}".lower() for word in words)]
    return sorted(found, key=lambda offer: not any(word in offer.name.lower() for word in words))


async def _install_skill(options: argparse.Namespace, context: SkillsContext) -> int:
    value = " ".join(options.value)
    if not value:
        _print_warning("missing argument: hark skills install NAME, or a folder or git repository")
        return BAD_USAGE
    is_source = not options.source and _is_source(value)
    sources = [value] if is_source else [options.source] if options.source else list(context.settings.sources)
    name = "" if is_source else value
    if not sources:
        return _report_no_sources()
    with tempfile.TemporaryDirectory(prefix="hark-skills-") as scratch:
        cloner = RepositoryCloner(Path(scratch), current_owner(context.home))
        # A single source may take its time; several are only waited for briefly.
        seconds = FETCH_SECONDS if len(sources) == 1 else context.ask_seconds
        answers = await read_sources(sources, cloner, seconds)
        offer = _choose_offer(answers, name)
        if offer is not None and offer.folder is None:
            origin = await read_sources([offer.origin], cloner, FETCH_SECONDS)
            fetched = _choose_offer(origin, offer.name)
            answers = [*answers, *origin]
            offer = fetched and SkillOffer(fetched.name, "", fetched.source, "", fetched.folder, "", offer.sha256)
        _print_problems(answers)
        if offer is None or offer.folder is None:
            return FAILED
        into = (context.workspace / ".hark" if options.project else context.home) / "skills"
        try:
            installed = await install_skill(
                offer.folder, into, offer.sha256, is_forced=options.force, is_private=not options.project
            )
            _print_installed(installed, offer.source)
        except InstallError as error:
            _print_warning(str(error))
            return FAILED
    return COMPLETED


def _is_source(value: str) -> bool:
    return is_address(value) or not is_skill_name(value) or "#" in value


def _choose_offer(answers: Sequence[SourceResult], name: str) -> SkillOffer | None:
    """Return the only matching skill, or None if no skill or several skills match."""
    offers = [offer for answer in answers for offer in answer.offers if name in ("", offer.name)]
    if len(offers) == 1:
        return offers[0]
    if not offers:
        if name:
            _print_warning(f"no source offers a skill named {name}; `hark skills search` lists the skills")
        return None
    if name:
        sources = "".join(f"\n  {offer.source}" for offer in offers)
        _print_warning(f"several sources offer {name}; choose one with --from:{sources}")
    else:
        names = ", ".join(offer.name for offer in offers)
        _print_warning(
            f"the source has several skills; choose one with hark skills install NAME --from SOURCE: {names}"
        )
    return None


def _print_installed(installed: InstalledSkill, source: str) -> None:
    _print(f"Installed {installed.skill.name} in {installed.skill.folder}, from {source}")
    for name in installed.files:
        _print(f"  {name}{' (executable)' if name in installed.executables else ''}")
    _print(f"sha256 {installed.sha256}")
    if installed.executables:
        _print("This skill has programs that the agent may run. Check them before you use it.")


def _print_problems(answers: Sequence[SourceResult]) -> None:
    """Print the problems with the sources. Called last, so that the user sees them."""
    for answer in answers:
        for problem in answer.problems:
            _print_warning(f"{printable_source(answer.source)}: {problem}")


def _report_no_sources() -> int:
    _print_warning('no skill sources: add some to config.toml ([skills] sources = ["..."]), or name one with --from')
    return BAD_USAGE


def _print(text: str) -> None:
    sys.stdout.write("".join(character for character in text if character.isprintable()) + "\n")


def _print_warning(text: str) -> None:
    sys.stderr.write(
        "hark: " + "".join(character for character in text if character.isprintable() or character == "\n") + "\n"
    )
