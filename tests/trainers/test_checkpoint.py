import json
import subprocess
import sys
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from curate.store import json_line, self_digested
from tests.trainers.saving import example
from trainers.checkpoint import POINTS, CheckpointError, Checkpoints, Saver, digest_arrays

ROOT = Path(__file__).parents[2]


def saved(folder, *steps, keep=2, keep_every=0):
    checkpoints = Checkpoints(folder, keep, keep_every=keep_every)
    with checkpoints.locked():
        for step in steps:
            checkpoints.save(example(step))
    return checkpoints


def files(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_checkpoint_comes_back_bit_for_bit(tmp_path):
    found, expected = saved(tmp_path, 5).load(5), example(5)
    arrays = found.read()
    assert [*found.arrays] == [*arrays] == [*expected.arrays]
    for name, array in expected.arrays.items():
        assert found.arrays[name].dtype == arrays[name].dtype == array.dtype
        assert found.arrays[name].shape == array.shape
        assert np.array_equal(arrays[name], array)
    assert found.state == digest_arrays(expected.arrays)
    assert replace(found, arrays={}, state="") == replace(expected, arrays={})


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


def test_checkpoints_of_every_few_updates_stay_for_good(tmp_path):
    assert saved(tmp_path, 0, 1, 2, 3, 4, 5, 6, keep=1, keep_every=3).steps() == [0, 3, 6]
    with pytest.raises(ValueError, match="keep_every"):
        Checkpoints(tmp_path, keep_every=-1)


def test_same_step_with_another_state_is_refused_and_with_the_same_is_fine(tmp_path):
    checkpoints = saved(tmp_path, 1)
    checkpoints.save(example(1))
    other = replace(example(2), step=1)
    with pytest.raises(CheckpointError, match=digest_arrays(other.arrays)):
        checkpoints.save(other)


def test_second_process_in_a_folder_is_refused_while_the_first_is_there(tmp_path):
    one, other = Checkpoints(tmp_path), Checkpoints(tmp_path)
    with one.locked(), pytest.raises(CheckpointError, match="another process"), other.locked():
        pass
    with other.locked():
        pass


@pytest.mark.parametrize("name", ["model.half/zarr.json", "model.half/c.0.0", "updates/c", "manifest.json"])
def test_every_flipped_byte_of_a_checkpoint_is_found(tmp_path, name):
    checkpoints = saved(tmp_path, 1)
    path = tmp_path / "checkpoints" / "step-00000001" / name
    content = path.read_bytes()
    for place in range(0, len(content), 7):
        path.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
        with pytest.raises(CheckpointError, match=r"step-00000001.*Remove the folder of that step"):
            checkpoints.load(1).read()
    path.unlink()
    with pytest.raises(CheckpointError, match="missing"):
        checkpoints.load(1).read()


@pytest.mark.parametrize("old", ["curate checkpoint 0", "curate checkpoint 1"])
def test_checkpoint_of_another_format_says_which_and_what_to_do(tmp_path, old):
    checkpoints = saved(tmp_path, 1)
    path = tmp_path / "checkpoints" / "step-00000001" / "manifest.json"
    value = json.loads(path.read_bytes())
    del value["digest"]
    path.write_bytes(json_line(self_digested({**value, "format": old})))
    with pytest.raises(CheckpointError, match=rf"{old}.*curate checkpoint 2.*another folder"):
        checkpoints.load(1)


def test_checkpoint_is_read_by_another_zarr_library(tmp_path):
    zarr = pytest.importorskip("zarr")
    saved(tmp_path, 1)
    stored = zarr.open_array(tmp_path / "checkpoints" / "step-00000001" / "model.matrix", mode="r")
    assert np.array_equal(stored[...], example(1).arrays["model.matrix"])


def test_saver_saves_while_its_caller_goes_on_and_tells_when_it_is_done(tmp_path):
    gate, told = threading.Event(), []
    checkpoints = Checkpoints(tmp_path, failpoint=lambda point: gate.wait(10))
    with checkpoints.locked(), closing(Saver(checkpoints, lambda step, state, _: told.append((step, state)))) as saver:
        saver.save(example(1))
        assert checkpoints.steps() == told == []
        gate.set()
        saver.save(example(2))
        saver.settle()
    assert told == [(step, digest_arrays(example(step).arrays)) for step in (1, 2)]


def test_save_that_fails_in_the_background_is_told_at_the_next(tmp_path):
    checkpoints = saved(tmp_path, 1)
    with closing(Saver(checkpoints, lambda *done: None)) as saver:
        saver.save(replace(example(2), step=1))
        with pytest.raises(CheckpointError, match="not deterministic"):
            saver.save(example(3))


def test_save_killed_at_each_of_its_points_leaves_whole_checkpoints_and_goes_on(tmp_path):
    # The third checkpoint is the only one that removes another.
    kills = [(point, count) for point in POINTS for count in (1, 3) if (point, count) != ("pruned", 3)]
    undisturbed = files(saved(tmp_path / "undisturbed", 1, 2, 3).folder)
    command = [
        sys.executable,
        "-m",
        "tests.trainers.saving",
        str(tmp_path),
        *(str(each) for kill in kills for each in kill),
    ]
    ended = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    assert ended.stdout.split() == ["-9"] * len(kills), ended.stderr
    for point, count in kills:
        checkpoints = Checkpoints(tmp_path / f"{point}{count}")
        for step in checkpoints.steps():
            assert digest_arrays(checkpoints.load(step).read()) == digest_arrays(example(step).arrays)
        with checkpoints.locked():
            for step in range(max(checkpoints.steps(), default=0) + 1, 4):
                checkpoints.save(example(step))
        found = files(checkpoints.folder)
        assert found == undisturbed, (point, count, sorted(found.keys() ^ undisturbed.keys()))
