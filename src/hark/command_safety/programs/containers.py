"""What docker and its kin do: what a container may see of the machine, and what runs in it."""

import re
from collections.abc import Sequence

from hark.command_safety.following.call import Judge, ProgramCall
from hark.command_safety.following.findings import Risk
from hark.command_safety.following.options import read_options
from hark.command_safety.following.unknown_marks import UNKNOWN, shown


def _container(call: ProgramCall) -> str | None:
    """docker and podman: what a container may see of the machine, and what runs in it."""
    call.note(Risk.CHANGING)
    valued = (
        *("-v", "--volume", "--mount", "-e", "--env", "-p", "--publish", "-w", "--workdir", "-u", "--user", "--name"),
        *("--network", "--net", "--pid", "--cap-add", "--device", "--security-opt", "--env-file", "--entrypoint", "-l"),
        *("--label", "-m", "--memory", "--cpus", "--platform", "-h", "--hostname", "--restart", "--ipc", "--uts", "-f"),
        *("--volumes-from", "--add-host", "--dns", "--gpus", "--pull", "--shm-size", "--tmpfs", "--ulimit", "--userns"),
        *("--file", "-H", "--host", "--context", "-c", "--log-level", "--profile", "--project-directory"),
    )
    at = next((at for at, arg in enumerate(call.args) if arg in ("run", "exec", "create")), -1)
    verbs = [arg for arg in call.args if not arg.startswith("-")][:3]
    _judge_container_verbs(call, verbs)
    if at < 0:
        return None
    options = read_options(call.args[at + 1 :], valued, is_leading=True)
    for mount in [*options.values("-v", "--volume"), *_mounted(options.values("--mount"))]:
        _judge_mount(call, mount.partition(":")[0])
    given = " ".join(options.values("--cap-add", "--security-opt", "--pid", "--ipc", "--userns", "--uts"))
    if options.has("--privileged") or re.search(r"\bhost\b|(?i:SYS_|ALL\b|unconfined)", given):
        call.note(Risk.HARD, f"{call.name} gives a container the rights of the machine")
    for device in options.values("--device"):
        call.note(Risk.HARD, f"{call.name} gives a container the device {shown(device)}")
    inner = list(options.operands[1:])
    for entry in options.values("--entrypoint"):
        inner.insert(0, entry)
    return call.run(inner, call.feed) if inner else None


def _judge_container_verbs(call: ProgramCall, verbs: Sequence[str]) -> None:
    if verbs[:1] in (["push"], ["login"]) or "prune" in verbs or verbs[:2] in (["volume", "rm"], ["swarm", "leave"]):
        call.note(Risk.RISKY, f"{call.name} {' '.join(verbs[:2])} can't be undone")
    if "down" in verbs and any(arg in ("-v", "--volumes", "--rmi") for arg in call.args):
        call.note(Risk.RISKY, f"{call.name} down removes what the containers keep")


def _mounted(mounts: Sequence[str]) -> list[str]:
    pairs = [part.partition("=") for mount in mounts for part in mount.split(",")]
    return [value for name, _, value in pairs if name in ("source", "src")]


def _judge_mount(call: ProgramCall, source: str) -> None:
    if not source.startswith(("/", "~", ".", UNKNOWN)):
        return  # a volume by its name
    for spot in call.spots(source):
        if (
            spot.is_unknown
            or "docker.sock" in spot.path
            or spot.path == "/run"
            or (call.runner.places.is_system_tree(spot) and not call.runner.places.is_inside(spot))
        ):
            call.note(Risk.HARD, f"{call.name} lets a container write to {shown(source)}")
        elif not call.runner.places.is_inside(spot):
            call.note(Risk.LEAVING, f"{call.name} lets a container write to {shown(source)}, outside the workspace")


PROGRAMS: dict[str, Judge] = {
    **dict.fromkeys(("docker", "podman", "nerdctl", "docker-compose"), _container),
}
