"""Replays a recording on a real file system, and copies its device at the moment of the cut. Needs root."""

import os
import resource
import shutil
import stat
import subprocess
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.power_cuts.disk.operations import (
    ROOT,
    ChangeMode,
    Create,
    Link,
    Mark,
    Operation,
    Remove,
    Rename,
    Sync,
    Truncate,
    Write,
)
from tests.power_cuts.disk.tree import Tree, read_tree

# The options keep the kernel from committing on its own during the replay, and allow to mount a copy.
FILE_SYSTEMS = {
    "ext4": (96, ["mkfs.ext4", "-q"], "commit=600", ""),
    "xfs": (320, ["mkfs.xfs", "-q"], "", "nouuid"),
    "btrfs": (160, ["mkfs.btrfs", "-q"], "commit=600", ""),
}


def can_mount(name: str, folder: Path) -> bool:
    """Return whether this file system can be created and mounted here."""
    if os.getuid() != 0 or shutil.which(FILE_SYSTEMS[name][1][0]) is None:
        return False
    try:
        with _new_device(name, folder):
            return True
    except subprocess.CalledProcessError:
        return False


def replay(name: str, base: Tree, operations: Sequence[Operation], cuts: Sequence[int], folder: Path) -> list[Tree]:
    """Return the folder as each cut leaves it: only the bytes that had reached the device, after log recovery."""
    images: dict[int, Path] = {}
    with _new_device(name, folder) as (device, mounted):
        player = _Player(mounted)
        player.write_base(base)
        os.sync()
        try:
            for number in range(len(operations) + 1):
                if number in cuts:
                    images[number] = folder / f"cut-{number}.img"
                    subprocess.run(["cp", "--sparse=always", str(device), str(images[number])], check=True)
                if number < len(operations):
                    player.play(operations[number])
        finally:
            player.close()
    trees = {cut: _read_image(name, image, folder) for cut, image in images.items()}
    return [trees[cut] for cut in cuts]


def _read_image(name: str, image: Path, folder: Path) -> Tree:
    with _mount(image, folder / "mounted", FILE_SYSTEMS[name][3]) as mounted:
        tree = read_tree(mounted / "root")
    image.unlink()
    return tree


@contextmanager
def _new_device(name: str, folder: Path) -> Generator[tuple[Path, Path]]:
    megabytes, make, options, _ = FILE_SYSTEMS[name]
    device = folder / f"{name}.img"
    device.unlink(missing_ok=True)
    device.touch()
    os.truncate(device, megabytes << 20)
    subprocess.run([*make, str(device)], check=True, capture_output=True)
    try:
        with _mount(device, folder / "mounted", options) as mounted:
            (mounted / "root").mkdir(exist_ok=True)
            yield device, mounted / "root"
    finally:
        device.unlink()


@contextmanager
def _mount(device: Path, mountpoint: Path, options: str) -> Generator[Path]:
    mountpoint.mkdir(exist_ok=True)
    options = ",".join(filter(None, ("loop", options)))
    subprocess.run(["mount", "-o", options, str(device), str(mountpoint)], check=True, capture_output=True)
    try:
        yield mountpoint
    finally:
        subprocess.run(["umount", str(mountpoint)], check=True)


class _Player:
    """Repeats recorded operations below a folder. All files stay open, so that renames don't matter."""

    def __init__(self, root: Path) -> None:
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        self._files: dict[int, int] = {ROOT: os.open(root, os.O_RDONLY)}

    def close(self) -> None:
        for file in self._files.values():
            os.close(file)

    def write_base(self, base: Tree) -> None:
        """Create the files that are there before the recording."""
        pending = [ROOT]
        while pending:
            folder = pending.pop()
            for name, inode in base.nodes[folder].entries.items():
                node = base.nodes[inode]
                self.play(Create(folder, name, inode, node.mode, node.target))
                if node.content:
                    self.play(Write(inode, 0, bytes(node.content)))
                if stat.S_ISDIR(node.mode):
                    pending.append(inode)

    def play(self, operation: Operation) -> None:
        files = self._files
        match operation:
            case Create():
                self._create(operation)
            case Link(folder, name, inode):
                os.link(f"/proc/self/fd/{files[inode]}", name, dst_dir_fd=files[folder], follow_symlinks=True)
            case Remove(folder, name):
                is_folder = stat.S_ISDIR(os.stat(name, dir_fd=files[folder], follow_symlinks=False).st_mode)
                (os.rmdir if is_folder else os.unlink)(name, dir_fd=files[folder])
            case Rename(source, source_name, folder, name):
                os.rename(source_name, name, src_dir_fd=files[source], dst_dir_fd=files[folder])
            case Write(inode, offset, data):
                os.pwrite(files[inode], data, offset)
            case Truncate(inode, size):
                os.ftruncate(files[inode], size)
            case ChangeMode(inode, permissions):
                os.fchmod(files[inode], permissions)
            case Sync(inode):
                os.sync() if inode is None else os.fsync(files[inode])
            case Mark():
                pass

    def _create(self, operation: Create) -> None:
        folder, name, mode = self._files[operation.folder], operation.name, stat.S_IMODE(operation.mode)
        if stat.S_ISLNK(operation.mode):
            os.symlink(operation.target, name, dir_fd=folder)
            return
        if stat.S_ISDIR(operation.mode):
            os.mkdir(name, mode, dir_fd=folder)
            self._files[operation.inode] = os.open(name, os.O_RDONLY, dir_fd=folder)
        else:
            self._files[operation.inode] = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode, dir_fd=folder)
