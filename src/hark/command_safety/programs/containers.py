"""Analyzers for docker and similar tools: the container's access to the machine, and the command that runs in it."""

import re
from collections.abc import Sequence

from hark.command_safety.following.findings import Risk
from hark.command_safety.following.markers import UNKNOWN, printable
from hark.command_safety.following.options import parse_options
from hark.command_safety.following.program_call import ProgramAnalyzer, ProgramCall


def _analyze_container(call: ProgramCall) -> str | None:
    """Record a docker or podman container's access to the machine, and analyze the command that runs in it."""
    call.add_risk(Risk.CHANGING)
    valued = (
        *("-v", "--volume", "--mount", "-e", "--env", "-p", "--publish", "-w", "--workdir", "-u", "--user", "--name"),
        *("--network", "--net", "--pid", "--cap-add", "--device", "--security-opt", "--env-file", "--entrypoint", "-l"),
        *("--label", "-m", "--memory", "--cpus", "--platform", "-h", "--hostname", "--restart", "--ipc", "--uts", "-f"),
        *("--volumes-from", "--add-host", "--dns", "--gpus", "--pull", "--shm-size", "--tmpfs", "--ulimit", "--userns"),
        *("--file", "-H", "--host", "--context", "-c", "--log-level", "--profile", "--project-directory"),
    )
    at = next((at for at, arg in enumerate(call.args) if arg in ("run", "exec", "create")), -1)
    verbs = [arg for arg in call.args if not arg.startswith("-")][:3]
    _check_container_verbs(call, verbs)
    if at < 0:
        return None
    options = parse_options(call.args[at + 1 :], valued, stops_at_operand=True)
    for mount in [*options.values("-v", "--volume"), *_mount_sources(options.values("--mount"))]:
        _check_mount(call, mount.partition(":")[0])
    given = " ".join(options.values("--cap-add", "--security-opt", "--pid", "--ipc", "--userns", "--uts"))
    if options.has("--privileged") or re.search(r"\bhost\b|(?i:SYS_|ALL\b|unconfined)", given):
        call.add_risk(Risk.HARD, f"{call.name} gives a container full access to this machine")
    for device in options.values("--device"):
        call.add_risk(Risk.HARD, f"{call.name} gives a container access to the device {printable(device)}")
    inner = list(options.operands[1:])
    for entry in options.values("--entrypoint"):
        inner.insert(0, entry)
    return call.analyze_program(inner, call.stdin) if inner else None


def _check_container_verbs(call: ProgramCall, verbs: Sequence[str]) -> None:
    if verbs[:1] in (["push"], ["login"]) or "prune" in verbs or verbs[:2] in (["volume", "rm"], ["swarm", "leave"]):
        call.add_risk(Risk.RISKY, f"{call.name} {' '.join(verbs[:2])} can't be undone")
    if "down" in verbs and any(arg in ("-v", "--volumes", "--rmi") for arg in call.args):
        call.add_risk(Risk.RISKY, f"{call.name} down deletes the stored data of the containers")


def _mount_sources(mounts: Sequence[str]) -> list[str]:
    pairs = [part.partition("=") for mount in mounts for part in mount.split(",")]
    return [value for name, _, value in pairs if name in ("source", "src")]


def _check_mount(call: ProgramCall, source: str) -> None:
    if not source.startswith(("/", "~", ".", UNKNOWN)):
        return  # a named volume
    for resolved in call.resolve_path(source):
        if (
            resolved.is_unknown
            or "docker.sock" in resolved.path
            or resolved.path == "/run"
            or (call.context.paths.is_critical_folder(resolved) and not call.context.paths.is_inside(resolved))
        ):
            call.add_risk(Risk.HARD, f"{call.name} lets a container write to {printable(source)}")
        elif not call.context.paths.is_inside(resolved):
            call.add_risk(
                Risk.LEAVING, f"{call.name} lets a container write to {printable(source)}, outside the workspace"
            )


PROGRAMS: dict[str, ProgramAnalyzer] = {
    **dict.fromkeys(("docker", "podman", "nerdctl", "docker-compose"), _analyze_container),
}
