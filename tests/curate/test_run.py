"""The same content whatever happens: runners, orders, batch sizes, kills, and what a changed input reruns."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from curate.cluster.runner import RayRunner
from curate.configuration import ConfigurationError
from curate.run import Result, open_result, results_in, run
from curate.running.runners import Runner
from curate.store import Store, StoreError
from tests.curate.corpus import ShuffledRunner, journal, ledger, run_on, small, staged, tasks, texts, tree

STAGES = ("books", "apply web", "deduplicate", "case")


def same_tree(left: Path, right: Path) -> None:
    """Fail with the names of the files that only one store has, or that differ."""
    mine, other = tree(left), tree(right)
    assert sorted(mine) == sorted(other)
    assert {name for name in mine if mine[name] != other[name]} == set()
    assert len(mine) > 80


def root_of(result: Result) -> Path:
    return result.folder.parent


@pytest.mark.parametrize("chunk_rows", [1, 7])
def test_store_made_with_other_chunks_is_equal_byte_for_byte(
    raw: Path, undisturbed: Result, tmp_path: Path, chunk_rows: int
) -> None:
    run_on(small(raw), tmp_path, chunk_rows=chunk_rows)
    same_tree(tmp_path, root_of(undisturbed))


@pytest.mark.parametrize("seed", [1, 2])
def test_store_made_in_another_order_is_equal_byte_for_byte(
    raw: Path, undisturbed: Result, tmp_path: Path, seed: int
) -> None:
    run_on(small(raw), tmp_path, ShuffledRunner(seed))
    assert tasks(tmp_path) == tasks(root_of(undisturbed))
    same_tree(tmp_path, root_of(undisturbed))


@pytest.mark.ray
@pytest.mark.parametrize("workers", [2])
def test_store_made_on_ray_is_equal_byte_for_byte(
    raw: Path, undisturbed: Result, tmp_path: Path, ray_of_two: RayRunner, workers: int
) -> None:
    runner: Runner = ray_of_two if workers == 2 else RayRunner(ray_of_two.connection, most=1)
    run_on(small(raw), tmp_path, runner, chunk_rows=5)
    same_tree(tmp_path, root_of(undisturbed))
    pids = {event["pid"] for event in journal(tmp_path) if event["event"] == "task"}
    driver = journal(tmp_path)[0]["pid"]
    assert pids and driver not in pids


MACHINES = [
    {"PYTHONHASHSEED": "1", "TZ": "Asia/Tokyo", "LC_ALL": "C", "threads": "1"},
    {"PYTHONHASHSEED": "2", "TZ": "America/St_Johns", "LC_ALL": "tr_TR.UTF-8", "PYTHONUTF8": "0", "threads": "5"},
]


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine["TZ"])
def test_store_made_under_another_locale_zone_and_hash_seed_is_equal_byte_for_byte(
    raw: Path, undisturbed: Result, tmp_path: Path, machine: dict[str, str]
) -> None:
    program = (
        "import sys, pathlib, pyarrow; from tests.curate.corpus import run_on, small; "
        "pyarrow.set_cpu_count(int(sys.argv[3])); run_on(small(pathlib.Path(sys.argv[1])), pathlib.Path(sys.argv[2]))"
    )
    threads, surroundings = machine["threads"], {k: v for k, v in machine.items() if k != "threads"}
    folder = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", program, str(raw), str(tmp_path), threads],
        env={**os.environ, **surroundings, "PYTHONPATH": str(folder)},
        cwd=tmp_path.parent,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    same_tree(tmp_path, root_of(undisturbed))


def test_drivers_at_work_in_one_store_at_once_give_the_same(raw: Path, undisturbed: Result, tmp_path: Path) -> None:
    with ThreadPoolExecutor(3) as pool:
        results = list(pool.map(lambda seed: run_on(small(raw), tmp_path, ShuffledRunner(seed)), range(3)))
    assert {result.digest for result in results} == {undisturbed.digest}
    same_tree(tmp_path, root_of(undisturbed))
    assert not list((tmp_path / "spool").iterdir())


def test_run_again_does_nothing_and_gives_the_same(raw: Path, undisturbed: Result, finished: Path) -> None:
    made = {path: path.stat().st_mtime_ns for path in finished.rglob("*") if path.is_file()}
    seen: list[tuple[str, bool]] = []
    second = run(small(raw), finished, runner="local", started=lambda stage, there: seen.append((stage.name, there)))
    assert tasks(finished) == {}
    assert seen == [(dataset.name, True) for dataset in undisturbed.stages]
    assert second.digest == undisturbed.digest
    assert {path: path.stat().st_mtime_ns for path in made if "runs" not in path.parts} == {
        path: time for path, time in made.items() if "runs" not in path.parts
    }


def test_finished_result_opens_as_it_was_made(undisturbed: Result) -> None:
    store = Store(root_of(undisturbed))
    (folder,) = results_in(store)
    opened = open_result(store, folder)
    assert (opened.digest, opened.folder) == (undisturbed.digest, undisturbed.folder)
    assert {name: d.manifest for name, d in opened.outputs.items()} == {
        name: d.manifest for name, d in undisturbed.outputs.items()
    }


def test_result_opened_as_a_recipe_that_is_a_dataset_is_refused(undisturbed: Result) -> None:
    with pytest.raises(ConfigurationError, match="is a dataset, not the result of a recipe"):
        open_result(Store(root_of(undisturbed)), undisturbed.stages[0].folder)


def test_stages_of_the_small_recipe_keep_and_drop_what_they_should(undisturbed: Result) -> None:
    books, web, unique, case = (staged(undisturbed, name) for name in STAGES)
    assert [(d.name, d.rows) for d in undisturbed.stages] == [
        ("books", 12), ("compact books", 12), ("apply web", 8), ("compact apply web", 8), ("deduplicate", 14),
        ("case", 14),
    ]  # fmt: skip
    reasons = sorted(row["reason"] for row in ledger(books, "dropped"))
    assert reasons == ["language", "not JSON", "same record", "too few words", "too few words"]
    assert [row["reason"] for row in ledger(books, "edit")] == ["e-mail", "white space", "e-mail"]
    assert [row["reason"] for row in ledger(web, "dropped")] == ["language"]
    assert sorted(row["reason"] for row in ledger(unique, "dropped")) == ["equal text"] * 2 + ["near duplicate"] * 4
    assert [text.swapcase() for text in texts(unique)] == texts(case)
    assert "someone.else@mail.example.net" not in "".join(texts(books))


def test_schema_of_a_joined_dataset_has_the_columns_of_all_inputs(undisturbed: Result) -> None:
    assert [name for name, _ in undisturbed.outputs["texts"].manifest["schema"]][-3:] == ["language", "pages", "extra"]
    rows = [row for batch in undisturbed.outputs["texts"].batches() for row in batch.to_pylist()]
    assert {row["pages"] for row in rows if row["source"] == "web"} == {None}
    assert {row["pages"] for row in rows if row["source"] == "books"} == {0, 2, 3, 4, 5, None}
    assert json.loads(next(row["extra"] for row in rows if row["pages"] == 3)) == {"shelf": "A"}


def test_every_record_is_kept_or_dropped_once_in_each_stage(undisturbed: Result) -> None:
    books, web, unique, case = (staged(undisturbed, name) for name in STAGES)
    for dataset, inputs in ((unique, (books, web)), (case, (unique,))):
        came = [identity for upstream in inputs for identity in ids(upstream)]
        left = ids(dataset) + [row["id"] for row in ledger(dataset, "dropped")]
        assert sorted(came) == sorted(left)
        assert len(set(left)) == len(left)
    for dataset, lines in ((books, 17), (web, 9)):  # but blank ones
        rows = ledger(dataset, "dropped")
        assert len(ids(dataset)) + len(rows) == lines
        again = [row["id"] for row in rows if row["reason"] == "same record"]
        once = ids(dataset) + [row["id"] for row in rows if row["reason"] != "same record"]
        assert len(set(once)) == len(once)
        assert set(again) <= set(ids(dataset))


def ids(dataset: object) -> list[bytes]:
    return [identity for batch in dataset.batches(["id"]) for identity in batch.column("id").to_pylist()]  # type: ignore[attr-defined]


def test_statistics_of_a_stage_agree_with_its_documents_and_ledger(undisturbed: Result) -> None:
    for dataset in undisturbed.stages:
        counted = dataset.statistics
        found = texts(dataset)
        assert counted["texts"]["count"] == len(found) == dataset.rows
        by_source = counted["groups"]["source"]
        assert sum(source["documents"] for source in by_source.values()) == len(found)
        assert sum(source["characters"] for source in by_source.values()) == sum(map(len, found))
        dropped = [row for row in ledger(dataset, "dropped") if not row["transform"].startswith("read_")]
        funnel = [
            (source, reasons)
            for step in counted.get("steps", {}).values()
            for source in step["sources"].values()
            for reasons in source.get("dropped", {}).values()
        ]
        assert sum(c["documents"] for _, reasons in funnel for c in reasons.values()) == len(dropped)
        assert sum(c["characters"] for _, reasons in funnel for c in reasons.values()) == sum(
            row["characters"] for row in dropped
        )


def test_manifest_and_receipts_hold_nothing_of_the_machine(raw: Path, undisturbed: Result) -> None:
    root = root_of(undisturbed)
    for path in [*root.glob("*/manifest.json"), *root.glob("shards/*/receipt.json"), *root.glob("*/statistics.json")]:
        content = path.read_text()
        assert str(raw) not in content and str(root) not in content
        assert not any(isinstance(leaf, float) for leaf in leaves(json.loads(content)))


def leaves(value: object) -> list[object]:
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in leaves(item)]
    return [leaf for item in value for leaf in leaves(item)] if isinstance(value, list) else [value]


@pytest.mark.parametrize("name", ["manifest.json", "statistics.json"])
def test_changed_character_in_a_published_json_is_found_when_it_is_read(
    undisturbed: Result, finished: Path, name: str
) -> None:
    path = finished / undisturbed.stages[0].folder / name
    content = path.read_bytes()
    path.write_bytes(content.replace(b'"format":1', b'"format":0').replace(b'"format":3', b'"format":2'))
    with pytest.raises(StoreError, match="digest"):
        _ = open_result(Store(finished), undisturbed.folder.name).stages[0].statistics


def test_dataset_asked_for_under_another_key_is_refused(raw: Path, undisturbed: Result) -> None:
    from curate.datasets import open_dataset

    books = undisturbed.stages[0]
    other = books.key[:16] + "0" * 48
    with pytest.raises(StoreError, match=f"has the key {books.key}, asked for was {other}"):
        open_dataset(Store(root_of(undisturbed)), books.name, other)


def test_sample_of_a_run_is_part_of_its_keys(raw: Path, undisturbed: Result, tmp_path: Path) -> None:
    sampled = run(small(raw), tmp_path, runner="local", sample="0.5")
    assert {d.key for d in sampled.stages}.isdisjoint(d.key for d in undisturbed.stages)
    assert 0 < staged(sampled, "apply web").rows < staged(undisturbed, "apply web").rows


@pytest.mark.parametrize("sample", ["0", "1.5", "half", "nan"])
def test_sample_that_is_no_share_is_refused_before_any_work(raw: Path, tmp_path: Path, sample: str) -> None:
    with pytest.raises(ConfigurationError, match="sample"):
        run(small(raw), tmp_path / "store", runner="local", sample=sample)
    assert not (tmp_path / "store").exists()


def test_runner_that_is_not_there_is_refused(raw: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"runner='spark' is not one of ray, local"):
        run(small(raw), tmp_path, runner="spark")
