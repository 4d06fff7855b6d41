"""Kills at every point and at random, by the program that the benchmarks run too; and how a failed check looks."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from benchmarks.chaos import Outcome, checks_of, choose_points, kind_of, tasks_done, tree
from curate.run import Result
from curate.store import POINTS

ROOT = Path(__file__).parents[2]


def chaos(*arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.chaos", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return dict(json.loads(done.stdout.splitlines()[-1]))


def test_run_killed_at_each_kind_of_point_ends_in_the_same_store() -> None:
    report = chaos("--no-ray", "--seed", "7")
    assert report["ours"] == report["checks"]["kinds of points"][0] >= 150
    assert all(right for _, _, right in report["checks"].values())


@pytest.mark.slow
@pytest.mark.ray
def test_run_on_ray_whose_driver_and_worker_are_killed_ends_in_the_same_store() -> None:
    report = chaos("--seed", "3")
    assert report["checks"]["stores that differ after random kills on Ray"] == [0, "= 0", True]
    assert report["ours"] > report["checks"]["kinds of points"][0]


def test_kinds_of_points_cover_every_file_that_a_store_promises(undisturbed: Result) -> None:
    root = undisturbed.folder.parent
    names = sorted(tree(root))
    passed = [f"{name}:{point}" for name in names for point in POINTS]
    for point in POINTS:
        chosen = [entry.rpartition(":")[0] for entry in choose_points(passed, root, point, random.Random(1))]
        assert {kind_of(name, root) for name in chosen} == {kind_of(name, root) for name in names}
    kinds = Counter(stage for stage, _ in {kind_of(name, root) for name in names})
    assert kinds["documents"] == 5 and kinds["dataset"] == 4 and kinds["recipe"] == 1 and len(kinds) == 11


def test_file_of_other_bytes_a_task_done_twice_and_a_spool_file_are_noticed(tmp_path: Path) -> None:
    for name in ("shards/a/part.parquet", "runs/r/journal.jsonl", "spool/left"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_bytes(b"x")
    expected = tree(tmp_path)
    task = json.dumps({"event": "task", "key": "k"}).encode() + b"\n"
    (tmp_path / "runs/r/journal.jsonl").write_bytes(task + task + b'{"event": "ta')
    (tmp_path / "shards/a/part.parquet").write_bytes(b"y")
    assert tasks_done(tmp_path) == {"k": 2}
    outcome = Outcome()
    outcome.look(tmp_path, expected, "here")
    assert (outcome.different, outcome.again, outcome.spooled) == (1, 1, 1)
    outcome.missed.append("p")
    outcome.points = 1
    checks = checks_of(outcome, Outcome())
    assert [right for _, _, right in checks.values()] == [False, False, False, True, False, False]
