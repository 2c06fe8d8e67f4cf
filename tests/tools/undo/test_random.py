"""Undo exactly reverts random changes to a file tree."""

from pathlib import Path

import pytest

from tests.tools.undo.random_trees import RandomChanges, Tree, open_undo, read_tree, step_id


@pytest.mark.parametrize("seed", range(12))
async def test_random_steps_can_be_undone_one_by_one(tmp_path: Path, seed: int) -> None:
    workspace = tmp_path / "work"
    workspace.mkdir()
    changer = RandomChanges(workspace, seed)
    changer.make_changes(30)
    trees: list[Tree] = []
    async with open_undo(tmp_path / "home" / "undo") as undo:
        for number in range(4):
            trees.append(read_tree(workspace))
            await undo.save_before_step(step_id(number), workspace, None)
            changer.make_changes(12)
            undo.finish_step(step_id(number))
        while trees:
            tree = trees.pop()
            if tree != read_tree(workspace):
                undone = await undo.undo("s", only_step=True)
                assert undone.not_undone == ()
            assert read_tree(workspace) == tree


@pytest.mark.parametrize("seed", range(100, 108))
async def test_random_turns_can_be_undone_one_by_one(tmp_path: Path, seed: int) -> None:
    workspace = tmp_path / "work"
    workspace.mkdir()
    changer = RandomChanges(workspace, seed)
    changer.make_changes(30)
    trees: list[Tree] = []
    async with open_undo(tmp_path / "home" / "undo") as undo:
        for turn in range(3):
            trees.append(read_tree(workspace))
            for number in range(3):
                await undo.save_before_step(step_id(number, f"t{turn}"), workspace, None)
                changer.make_changes(5)
                undo.finish_step(step_id(number, f"t{turn}"))
    async with open_undo(tmp_path / "home" / "undo") as undo:  # as after a restart
        while trees:
            tree = trees.pop()
            if tree != read_tree(workspace):
                assert (await undo.undo("s")).not_undone == ()
            assert read_tree(workspace) == tree
