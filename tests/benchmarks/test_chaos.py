"""What chaos kills and sees, and how a failed check looks; it itself runs in the files beside this one."""

from __future__ import annotations

import json
import random
from pathlib import Path

from benchmarks.chaos import checks_of
from benchmarks.chaos_look import Outcome, leftovers, tasks_done, tree
from benchmarks.chaos_points import choose_points, kind_of
from benchmarks.chaos_recipe import Amount, outputs, write_inputs
from curate.recipes.compiling import compile_stages
from curate.recipes.stages import VERBS, DocumentStage, WideStage
from curate.run import run
from curate.store import POINTS, Store


def test_recipe_of_chaos_has_every_kind_of_stage(tmp_path: Path) -> None:
    write_inputs(tmp_path, Amount(1, 8), 1)
    stages = compile_stages(outputs(tmp_path).products).ordered
    wide = {type(stage.operation).__name__ for stage in stages if isinstance(stage, WideStage)}
    assert wide == {kind.__name__ for kind in VERBS}
    formats = {stage.reader.format for stage in stages if isinstance(stage, DocumentStage) and stage.reader is not None}
    assert formats == {"jsonl", "parquet", "warc"}


def test_kinds_of_points_cover_every_file_that_a_store_promises(tmp_path: Path) -> None:
    write_inputs(tmp_path / "in", Amount(1, 12), 1)
    root = tmp_path / "store"
    run(outputs(tmp_path / "in"), root, runner="local")
    names = sorted(tree(Store(root)))
    passed = [f"{name}:{point}" for name in names for point in POINTS]
    for point in POINTS:
        chosen = [entry.rpartition(":")[0] for entry in choose_points(passed, root, point, random.Random(1))]
        assert {kind_of(name, root) for name in chosen} == {kind_of(name, root) for name in names}
    kinds = {stage for stage, _ in (kind_of(name, root) for name in names)}
    assert {"documents", "dataset", "recipe", "caches", "tokenizer", "model"} <= kinds


def test_file_of_other_bytes_a_task_done_twice_and_a_spool_file_are_noticed(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for name in ("shards/a/part.parquet", "runs/r/journal.jsonl", "spool/left", "caches/c/tokens/c/0.__lock"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_bytes(b"x")
    expected = tree(store)
    task = json.dumps({"time": 1, "event": "task", "key": "k"}).encode() + b"\n"
    (tmp_path / "runs/r/journal.jsonl").write_bytes(task + task + b'{"event": "ta')
    (tmp_path / "shards/a/part.parquet").write_bytes(b"y")
    assert tasks_done(store) == {"k": 2}
    assert len(leftovers(store)) == 2
    outcome = Outcome()
    outcome.look(store, expected, "here")
    assert (outcome.different, outcome.again, outcome.left) == (1, 1, 2)
    outcome.missed.append("p")
    outcome.tried = outcome.failed = 1
    assert [right for _, _, right in checks_of({"points": outcome}).values()] == [
        False,
        False,
        False,
        False,
        True,
        False,
        False,
    ]
