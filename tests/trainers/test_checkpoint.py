import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from curate.store import json_line, self_digested
from tests.trainers.saving import example
from trainers.checkpoint import POINTS, CheckpointError, Checkpoints, digest_arrays

ROOT = Path(__file__).parents[2]


def saved(folder, *steps, keep=2):
    checkpoints = Checkpoints(folder, keep)
    with checkpoints.locked():
        for step in steps:
            checkpoints.save(example(step))
    return checkpoints


def files(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_checkpoint_comes_back_bit_for_bit(tmp_path):
    found, expected = saved(tmp_path, 5).load(5), example(5)
    assert [*found.arrays] == [*expected.arrays]
    for name, array in expected.arrays.items():
        assert found.arrays[name].dtype == array.dtype
        assert np.array_equal(found.arrays[name], array)
    assert replace(found, arrays={}) == replace(expected, arrays={})


def test_same_state_gives_the_same_files(tmp_path):
    saved(tmp_path / "one", 1)
    saved(tmp_path / "two", 1)
    assert files(tmp_path / "one") == files(tmp_path / "two")


def test_digest_of_arrays_sees_names_types_shapes_and_each_value():
    arrays = example(1).arrays
    others = [
        {**arrays, "updates": np.array(2, np.int32)},
        {**arrays, "updates": np.array(1, np.int64)},
        {**arrays, "empty": np.zeros((4, 0), np.float32)},
        {**arrays, "model.turned": arrays["model.turned"].reshape(3, 5)},
        {"other": arrays["model.matrix"]},
    ]
    assert len({digest_arrays(each) for each in [arrays, *others]}) == 6


def test_only_the_last_checkpoints_stay(tmp_path):
    assert saved(tmp_path, 1, 2, 3, 4, keep=2).steps() == [3, 4]
    assert {path.name for path in (tmp_path / "checkpoints").iterdir()} == {"step-00000003", "step-00000004"}
    with pytest.raises(ValueError, match="keep"):
        Checkpoints(tmp_path, 0)


def test_same_step_with_another_state_is_refused_and_with_the_same_is_fine(tmp_path):
    checkpoints = saved(tmp_path, 1)
    checkpoints.save(example(1))
    other = replace(example(2), step=1)
    with pytest.raises(CheckpointError, match=other.state):
        checkpoints.save(other)


def test_second_process_in_a_folder_is_refused_while_the_first_is_there(tmp_path):
    one, other = Checkpoints(tmp_path), Checkpoints(tmp_path)
    with one.locked(), pytest.raises(CheckpointError, match="another process"), other.locked():
        pass
    with other.locked():
        pass


@pytest.mark.parametrize("name", ["arrays.npz", "manifest.json"])
def test_every_flipped_byte_of_a_checkpoint_is_found(tmp_path, name):
    checkpoints = saved(tmp_path, 1)
    path = tmp_path / "checkpoints" / "step-00000001" / name
    content = path.read_bytes()
    for place in range(0, len(content), 7):
        path.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
        with pytest.raises(CheckpointError, match=r"step-00000001.*Remove that folder"):
            checkpoints.load(1)
    path.unlink()
    with pytest.raises(CheckpointError, match="missing"):
        checkpoints.load(1)


def test_checkpoint_of_another_format_says_which(tmp_path):
    checkpoints = saved(tmp_path, 1)
    path = tmp_path / "checkpoints" / "step-00000001" / "manifest.json"
    value = json.loads(path.read_bytes())
    del value["digest"]
    path.write_bytes(json_line(self_digested({**value, "format": "curate checkpoint 0"})))
    with pytest.raises(CheckpointError, match=r"curate checkpoint 0.*curate checkpoint 1"):
        checkpoints.load(1)


def save_in_child(folder, count, point):
    command = [sys.executable, "-m", "tests.trainers.saving", str(folder), str(count), point]
    return subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)


@pytest.mark.slow
def test_save_killed_at_each_of_its_points_leaves_whole_checkpoints_and_goes_on(tmp_path):
    reached = {(point, count): False for point in POINTS for count in (1, 3)} | {("pruned", 1): False}
    del reached["pruned", 3]  # the third checkpoint is the only one that removes another
    undisturbed = files(saved(tmp_path / "undisturbed", 1, 2, 3).folder)
    for point, count in reached:
        folder = tmp_path / f"{point}{count}"
        assert save_in_child(folder, count, point).returncode == -9, point
        checkpoints = Checkpoints(folder)
        for step in checkpoints.steps():
            assert checkpoints.load(step).state == example(step).state
        with checkpoints.locked():
            for step in range(max(checkpoints.steps(), default=0) + 1, 4):
                checkpoints.save(example(step))
        found = files(folder)
        assert found == undisturbed, (point, count, sorted(found.keys() ^ undisturbed.keys()))
