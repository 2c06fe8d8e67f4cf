"""`hark skills`: list what is here, search the sources, install from them."""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import anyio
from msgspec import Struct

from hark.app.settings import config
from hark.app.shutdown import BAD_USAGE, COMPLETED, FAILED, INTERRUPTED, Signals, Watchdog
from hark.cli.skills.clone import Clones
from hark.cli.skills.install import Installed, NotInstalled, install
from hark.cli.skills.sources import SkillOffer, SourceResult, ask_all, is_address, shown_source
from hark.processes.cookies import this_process
from hark.tools.skills.catalog import SkillCatalogs, short, skill_places
from hark.tools.skills.folder import is_skill_name
from hark.tools.skills.settings import SkillSettings

ASK_SECONDS = 5.0
FETCH_SECONDS = 120.0
EXIT_SECONDS = 5.0


class SkillsContext(Struct, frozen=True):
    """Where the command works."""

    home: Path
    workspace: Path
    settings: SkillSettings
    ask_seconds: float = ASK_SECONDS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("action", nargs="?", choices=("list", "search", "install"), default="list")
    parser.add_argument("value", nargs="*", help="the words to search for, or what to install")
    parser.add_argument("--from", dest="source", help="a folder, a git address or an index file")
    parser.add_argument("--project", action="store_true", help="install into this project")
    parser.add_argument("--force", action="store_true", help="put it in the place of one that is there")


async def run(options: argparse.Namespace) -> int:
    """Run the command; a signal ends what it started, and leaves nothing half."""
    settings = config.load_here().skills
    scope = anyio.CancelScope()
    signals = Signals(Watchdog(EXIT_SECONDS), lambda _: scope.cancel())
    signals.listen()
    with scope:
        return await act(options, SkillsContext(config.home_directory(), config.workspace(), settings))
    return signals.code or INTERRUPTED


async def act(options: argparse.Namespace, room: SkillsContext) -> int:
    """Do what was asked for, and return the exit code. Cancelling leaves nothing half."""
    match options.action:
        case "list":
            return _list(room)
        case "search":
            return await _search(options, room)
        case _:
            return await _install(options, room)


def _list(room: SkillsContext) -> int:
    shelf = SkillCatalogs(skill_places(room.workspace, room.home, room.settings.folders)).look()
    for skill in shelf.skills.values():
        _print(short(f"{skill.name:24}  {skill.description}"))
        _print(f"{'':24}  {skill.folder}")
    if not shelf.skills:
        _print("There are no skills yet. `hark skills search` looks for some; docs/skills.md tells how to write one.")
    for problem in shelf.problems:
        _warn(problem)
    return COMPLETED


async def _search(options: argparse.Namespace, room: SkillsContext) -> int:
    sources = [options.source] if options.source else room.settings.sources
    if not sources:
        return _no_sources()
    with tempfile.TemporaryDirectory(prefix="hark-skills-") as scratch:
        answers = await ask_all(sources, Clones(Path(scratch), this_process(room.home)), room.ask_seconds)
    found = _matching([offer for answer in answers for offer in answer.offers], options.value)
    here = SkillCatalogs(skill_places(room.workspace, room.home, room.settings.folders)).look().skills
    for offer in found:
        marks = f" {offer.version}" * bool(offer.version) + " (installed)" * (offer.name in here)
        _print(short(f"{offer.name}{marks}: {offer.description}"))
        _print(f"    from {offer.source}")
    if not found:
        _print("Nothing matches." if options.value else "The sources offer nothing.")
    _tell_problems(answers)
    return FAILED if all(answer.is_dead for answer in answers) else COMPLETED


def _matching(offers: Sequence[SkillOffer], query: Sequence[str]) -> list[SkillOffer]:
    """Return the offers that have all words, those with one in their name first."""
    words = " ".join(query).lower().split()
    found = [one for one in offers if all(word in f"{one.name} {one.description}".lower() for word in words)]
    return sorted(found, key=lambda one: not any(word in one.name.lower() for word in words))


async def _install(options: argparse.Namespace, room: SkillsContext) -> int:
    value = " ".join(options.value)
    if not value:
        _warn("say what to install: hark skills install NAME, or a folder or git repository")
        return BAD_USAGE
    is_source = not options.source and _is_source(value)
    sources = [value] if is_source else [options.source] if options.source else list(room.settings.sources)
    name = "" if is_source else value
    if not sources:
        return _no_sources()
    with tempfile.TemporaryDirectory(prefix="hark-skills-") as scratch:
        clones = Clones(Path(scratch), this_process(room.home))
        # One source that was named may take its time; many are asked in passing.
        seconds = FETCH_SECONDS if len(sources) == 1 else room.ask_seconds
        answers = await ask_all(sources, clones, seconds)
        offer = _chosen(answers, name)
        if offer is not None and offer.folder is None:
            origin = await ask_all([offer.origin], clones, FETCH_SECONDS)
            fetched = _chosen(origin, offer.name)
            answers = [*answers, *origin]
            offer = fetched and SkillOffer(fetched.name, "", fetched.source, "", fetched.folder, "", offer.sha256)
        _tell_problems(answers)
        if offer is None or offer.folder is None:
            return FAILED
        into = (room.workspace / ".hark" if options.project else room.home) / "skills"
        try:
            installed = await install(
                offer.folder, into, offer.sha256, is_forced=options.force, is_private=not options.project
            )
            _tell_installed(installed, offer.source)
        except NotInstalled as error:
            _warn(str(error))
            return FAILED
    return COMPLETED


def _is_source(value: str) -> bool:
    return is_address(value) or not is_skill_name(value) or "#" in value


def _chosen(answers: Sequence[SourceResult], name: str) -> SkillOffer | None:
    """Return the one offer that is meant, or say why there is none."""
    offers = [offer for answer in answers for offer in answer.offers if name in ("", offer.name)]
    if len(offers) == 1:
        return offers[0]
    if not offers:
        if name:
            _warn(f"no source offers a skill {name}; `hark skills search` shows what there is")
        return None
    if name:
        places = "".join(f"\n  {offer.source}" for offer in offers)
        _warn(f"several sources offer {name}; choose one with --from:{places}")
    else:
        names = ", ".join(offer.name for offer in offers)
        _warn(f"it has several skills; choose one with hark skills install NAME --from SOURCE: {names}")
    return None


def _tell_installed(installed: Installed, source: str) -> None:
    _print(f"Installed {installed.skill.name} in {installed.skill.folder}, from {source}")
    for name in installed.files:
        _print(f"  {name}{' (executable)' if name in installed.executables else ''}")
    _print(f"sha256 {installed.sha256}")
    if installed.executables:
        _print("It has programs that the agent may run: look at them before you use it.")


def _tell_problems(answers: Sequence[SourceResult]) -> None:
    """Name what is wrong with sources, last, so that it is seen."""
    for answer in answers:
        for problem in answer.problems:
            _warn(f"{shown_source(answer.source)}: {problem}")


def _no_sources() -> int:
    _warn('there are no sources: add some to config.toml ([skills] sources = ["..."]), or name one with --from')
    return BAD_USAGE


def _print(text: str) -> None:
    sys.stdout.write("".join(letter for letter in text if letter.isprintable()) + "\n")


def _warn(text: str) -> None:
    sys.stderr.write("hark: " + "".join(letter for letter in text if letter.isprintable() or letter == "\n") + "\n")
