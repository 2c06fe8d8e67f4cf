"""Whatever was done to a tree, undo brings it back byte by byte."""

from pathlib import Path

import pytest

from tests.tools.undo.trees import Chaos, Tree, step, tree_of, undoing


@pytest.mark.parametrize("seed", range(12))
async def test_any_steps_are_undone_one_by_one(tmp_path: Path, seed: int) -> None:
    workspace = tmp_path / "work"
    workspace.mkdir()
    chaos = Chaos(workspace, seed)
    chaos.act(30)
    trees: list[Tree] = []
    async with undoing(tmp_path / "home" / "undo") as undo:
        for number in range(4):
            trees.append(tree_of(workspace))
            await undo.before(step(number), workspace, None)
            chaos.act(12)
            undo.after(step(number))
        while trees:
            tree = trees.pop()
            if tree != tree_of(workspace):
                done = await undo.undo("s", only_step=True)
                assert done.not_undone == ()
            assert tree_of(workspace) == tree


@pytest.mark.parametrize("seed", range(100, 108))
async def test_any_turns_are_undone_turn_by_turn(tmp_path: Path, seed: int) -> None:
    workspace = tmp_path / "work"
    workspace.mkdir()
    chaos = Chaos(workspace, seed)
    chaos.act(30)
    trees: list[Tree] = []
    async with undoing(tmp_path / "home" / "undo") as undo:
        for turn in range(3):
            trees.append(tree_of(workspace))
            for number in range(3):
                await undo.before(step(number, f"t{turn}"), workspace, None)
                chaos.act(5)
                undo.after(step(number, f"t{turn}"))
    async with undoing(tmp_path / "home" / "undo") as undo:  # as after a restart
        while trees:
            tree = trees.pop()
            if tree != tree_of(workspace):
                assert (await undo.undo("s")).not_undone == ()
            assert tree_of(workspace) == tree
