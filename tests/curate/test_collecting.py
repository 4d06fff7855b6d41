"""`curate gc`: what no kept result names goes, in an order that leaves a sound store wherever it is stopped."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

import pytest

from curate import Outputs, deduplicate, hold_out, read_jsonl, tokenize, train_tokenizer
from curate.accounting.quarantine import Verdict, write_quarantine
from curate.command_line import main
from curate.configuration import ConfigurationError
from curate.run import Result, open_result, run
from curate.store import Store
from curate.upkeep.collecting import (
    ALIVE_SECONDS,
    RunningError,
    alive_in,
    collect,
    latest_results,
    named_results,
    older_than_runs,
    refuse_while_running,
    results_of,
    unfinished_run,
)
from curate.upkeep.leftovers import INNER, JOURNALS, KINDS, leftovers
from curate.upkeep.trace import trace_token
from curate.upkeep.verify import verify
from tests.curate.corpus import write_lines
from transforms import GopherQuality, MaskPII

DEAD = 24 * 3600.0


def _write(root: Path) -> Path:
    for number in range(6):
        lines = [
            {"name": f"{number}.{n}", "text": f"In the {n}th book of house {number} it says that the ship was well."}
            for n in range(6)
        ]
        lines += [{"name": f"{number}.short", "text": f"That of house {number} was well."}]
        write_lines(root / f"{number}.jsonl", lines)
    return root


def recipe(root: Path, least: int) -> Outputs:
    """Return every kind of product; `least` words a document must have."""
    notes = read_jsonl(root, source="notes", columns={"key": "name"})
    notes = notes.apply(GopherQuality(min_words=least, min_stop_words=1), MaskPII(), name="notes")
    train, valid = hold_out(deduplicate(notes), documents=2, near_duplicates=None)
    tokenizer = train_tokenizer(train, 270)
    return Outputs(training=tokenize(train, tokenizer), validation=tokenize(valid, tokenizer, name="valid cells"))


def _run(root: Path, store: Path, least: int) -> Result:
    return run(recipe(root, least), store, name=f"least{least}", runner="local")


def _end_runs(store: Path) -> None:
    """Make the journals of a store old."""
    for path in store.glob("runs/*/journal.jsonl"):
        events = [json.loads(line) for line in path.read_text().splitlines()]
        path.write_text("".join(json.dumps({**event, "time": event["time"] - DEAD}) + "\n" for event in events))


@pytest.fixture(scope="module")
def inputs(memory: Path) -> Path:
    return _write(memory / "gc inputs")


@pytest.fixture(scope="module")
def made(inputs: Path, memory: Path) -> tuple[Path, Result, Result]:
    """A store with two results, the second made last."""
    store = memory / "gc store"
    return store, _run(inputs, store, 3), _run(inputs, store, 9)


@pytest.fixture
def store(made: tuple[Path, Result, Result], tmp_path: Path) -> Path:
    """A copy that a test may change."""
    return Path(shutil.copytree(made[0], tmp_path / "store"))


def _files(store: Path) -> dict[str, int]:
    return {
        path.relative_to(store).as_posix(): path.stat().st_mtime_ns
        for path in store.rglob("*")
        if path.is_file() and not path.relative_to(store).as_posix().startswith("runs/")
    }


def _last(store: Path) -> str:
    (folder,) = (folder for folder, name in results_of(Store(store)).items() if name == "least9")
    return folder


def _collect(store: Path, *keep: str, more: tuple[str, ...] = ()) -> None:
    place = Store(store)
    collect(place, leftovers(place, list(keep) or list(results_of(place)), more))


def test_gc_of_a_store_whose_results_are_all_kept_removes_nothing_that_they_name(store: Path) -> None:
    before = _files(store)
    assert {leftover.kind for leftover in leftovers(Store(store), list(results_of(Store(store))))} <= {
        "receipt",
        "shard file",
    }
    _collect(store)
    assert verify(store).problems == []
    assert {name for name in before if "manifest" in name or "cache" in name} <= set(_files(store))


def test_gc_keeps_one_result_whole_and_rerun_reuses_it(
    made: tuple[Path, Result, Result], store: Path, inputs: Path
) -> None:
    before = set(_files(store))
    _collect(store, _last(store))
    after = _files(store)
    assert len(after) < 0.7 * len(before)
    found = verify(store)
    assert (found.problems, found.notes) == ([], [])
    again = _run(inputs, store, 9)
    assert again.digest == made[2].digest
    assert _files(store) == after
    assert list(results_of(Store(store))) == [_last(store)]


def test_gc_then_running_the_other_recipe_makes_it_again(
    made: tuple[Path, Result, Result], store: Path, inputs: Path
) -> None:
    _collect(store, _last(store))
    assert _run(inputs, store, 3).digest == made[1].digest
    assert verify(store).problems == []


def _stopping(store: Path, after: int) -> Store:
    left = [after]

    def failpoint(reached: str) -> None:
        if reached.endswith(":removing"):
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt

    return Store(store, failpoint)


@pytest.mark.parametrize("share", [0.0, 0.02, 0.05, 0.1, 0.3, 0.6, 0.9])
def test_gc_that_is_stopped_leaves_a_sound_store(store: Path, inputs: Path, share: float) -> None:
    found = leftovers(Store(store), [_last(store)])
    with pytest.raises(KeyboardInterrupt):
        collect(_stopping(store, int(share * len(found))), found)
    assert verify(store).problems == []
    _collect(store, _last(store))
    checked = verify(store)
    assert (checked.problems, checked.notes) == ([], [])


def test_gc_that_is_stopped_leaves_stages_that_are_run_again(
    made: tuple[Path, Result, Result], store: Path, inputs: Path
) -> None:
    found = leftovers(Store(store), [_last(store)])
    with pytest.raises(KeyboardInterrupt):
        collect(_stopping(store, len(found) // 2), found)
    assert _run(inputs, store, 3).digest == made[1].digest
    assert verify(store).problems == []


def test_leftovers_are_removed_manifests_first_then_receipts_then_data(store: Path) -> None:
    found = leftovers(Store(store), [_last(store)])
    order = [KINDS.index(leftover.kind) for leftover in found]
    assert order == sorted(order)
    assert {"manifest of a result", "manifest of a stage", "cache.json", "receipt", "shard file", "cache file"} <= {
        leftover.kind for leftover in found
    }


def test_gc_removes_what_killed_processes_left_and_nothing_that_is_not_its_own(store: Path) -> None:
    result = _last(store)
    _collect(store)
    cell = next(path.parent for path in store.glob("caches/*/cache.json"))
    lost = {
        "spool/elsewhere-1-abc": "spool file",
        f"{cell.relative_to(store)}/tokens/c/0.__lock": "lock of a killed writer",
        "shards/0123456789abcdef/part.parquet": "shard file",
        "caches/all-0123456789abcdef/tokens/c/0": "cache file",
        "unfinished-0123456789abcdef/shards.parquet": "file of a result or stage",
        "report.html": "report page",
        "report.json": "report page",
    }
    for name in (*lost, "notes.txt", "mine/notes.txt", "runs/notes.txt"):
        (store / name).parent.mkdir(parents=True, exist_ok=True)
        (store / name).write_text("x")
    write_quarantine(Store(store), "fedcba9876543210" * 4, [Verdict(bytes(16), "hung", "MaskPII")])
    found = {leftover.name: leftover.kind for leftover in leftovers(Store(store), list(results_of(Store(store))))}
    assert found == {**lost, "quarantine/fedcba9876543210.jsonl": "quarantine list"}
    _collect(store)
    assert not [name for name in found if (store / name).exists()]
    assert not (store / "shards/0123456789abcdef").exists()
    assert (store / "mine/notes.txt").exists()
    assert (store / "runs/fingerprints.jsonl").exists()
    assert (store / result / "manifest.json").exists()


def test_report_page_of_a_kept_result_stays(made: tuple[Path, Result, Result], store: Path) -> None:
    (store / "report.html").write_text(f"<p>{made[2].digest}</p>")
    assert not any(leftover.kind == "report page" for leftover in leftovers(Store(store), [_last(store)]))
    other = next(folder for folder in results_of(Store(store)) if folder != _last(store))
    assert any(leftover.kind == "report page" for leftover in leftovers(Store(store), [other]))


def test_inner_files_may_go_and_the_result_is_still_whole(
    made: tuple[Path, Result, Result], store: Path, inputs: Path
) -> None:
    _collect(store, _last(store))
    before = set(_files(store))
    _collect(store, _last(store), more=(INNER,))
    after = _files(store)
    assert any(name.endswith(".exchange") for name in before)
    assert not any(name.endswith(".exchange") for name in after)
    found = verify(store)
    assert found.problems == []
    assert all("tasks in between were collected" in note for note in found.notes)
    assert found.notes
    assert _run(inputs, store, 9).digest == made[2].digest
    assert _files(store) == after
    caches = open_result(Store(store), _last(store)).caches["training"]
    assert trace_token(caches, "all", 3).row["source"] == "notes"


def test_damage_after_inner_files_went_is_still_found(store: Path) -> None:
    _collect(store, _last(store), more=(INNER,))
    path = next(store.glob("deduplicate-*/statistics.json"))
    path.write_bytes(path.read_bytes().replace(b'"documents":', b'"documentz":', 1))
    assert verify(store).problems


def test_stage_whose_inner_files_went_is_made_again_when_a_shard_is_removed(
    made: tuple[Path, Result, Result], store: Path, inputs: Path
) -> None:
    _collect(store, _last(store), more=(INNER,))
    train = next(dataset for dataset in open_result(Store(store), _last(store)).stages if dataset.name == "train")
    shutil.rmtree(store / "shards" / train.shards()[0]["key"][:16])
    assert _run(inputs, store, 9).digest == made[2].digest
    assert verify(store).problems == []


def test_journals_go_on_request_only(store: Path) -> None:
    assert not [leftover for leftover in leftovers(Store(store), [_last(store)]) if leftover.kind == "journal"]
    _collect(store, more=(JOURNALS,))
    assert [path.name for path in (store / "runs").iterdir()] == ["fingerprints.jsonl"]


def _going_on(store: Path, began: float, heard: float) -> None:
    folder = store / "runs" / "20990101-000000-abcdef"
    folder.mkdir(parents=True)
    events = [{"time": began, "event": "started"}, {"time": heard, "event": "alive"}]
    (folder / "journal.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))


def test_gc_while_a_run_goes_on_is_refused(store: Path) -> None:
    _going_on(store, time.time() - 60, time.time() - 5)
    with pytest.raises(RunningError, match="20990101-000000-abcdef is going on: it was heard of"):
        refuse_while_running(Store(store))
    before = _files(store)
    assert main(["gc", str(store), "--keep", _last(store), "--delete"]) == 3
    assert _files(store) == before


def test_run_that_ended_or_was_silent_for_long_is_not_alive(store: Path) -> None:
    now = time.time()
    assert alive_in(Store(store)) == []
    _going_on(store, now - 1000, now - 10)
    assert [run.run for run in alive_in(Store(store))] == ["20990101-000000-abcdef"]
    assert alive_in(Store(store), lambda: now + ALIVE_SECONDS) == []


def test_forced_gc_leaves_what_is_younger_than_the_run(store: Path) -> None:
    found = leftovers(Store(store), [_last(store)])
    began = time.time() + 30
    _going_on(store, began, time.time())
    young = store / found[3].name
    os.utime(young, (began + 1, began + 1))
    older = older_than_runs(Store(store), leftovers(Store(store), [_last(store)], (JOURNALS,)))
    assert found[3].name not in {leftover.name for leftover in older}
    assert not [leftover for leftover in older if "20990101" in leftover.name]
    assert len(older) > len(found) / 2


def test_run_that_begins_meanwhile_stops_gc(store: Path) -> None:
    found = leftovers(Store(store), [_last(store)])
    looks = []

    def look(place: Store) -> None:
        looks.append(place)
        raise RunningError

    with pytest.raises(RunningError):
        collect(Store(store), found, look)
    assert looks
    assert all((store / leftover.name).exists() for leftover in found)


def test_results_are_chosen_by_folder_or_as_the_latest_of_each_recipe(store: Path, inputs: Path) -> None:
    write_lines(inputs / "more.jsonl", [{"name": "more", "text": "And of the last book there is no more to be said."}])
    _run(inputs, store, 9)
    (inputs / "more.jsonl").unlink()
    there = results_of(Store(store))
    assert sorted(there.values()) == ["least3", "least9", "least9"]
    latest = latest_results(Store(store))
    assert sorted(there[folder] for folder in latest) == ["least3", "least9"]
    assert named_results(Store(store), [f"{latest[0]}/"]) == [latest[0]]
    with pytest.raises(ConfigurationError, match="has no result 'none'; it has "):
        named_results(Store(store), ["none"])


def test_gc_of_a_folder_without_results_is_refused(tmp_path: Path) -> None:
    (tmp_path / "shards" / "x").mkdir(parents=True)
    (tmp_path / "shards" / "x" / "part.parquet").write_bytes(b"x")
    assert main(["gc", str(tmp_path), "--delete"]) == 2
    assert (tmp_path / "shards" / "x" / "part.parquet").exists()


def test_gc_command_lists_without_delete_and_says_what_it_would_remove(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = _files(store)
    assert main(["gc", str(store), "--keep", _last(store)]) == 0
    shown = capsys.readouterr().out
    assert _files(store) == before
    assert f"kept: {_last(store)}" in shown
    assert "left over; --delete removes them" in shown
    assert "manifest of a result: 1 files" in shown
    assert main(["gc", str(store), "--keep", _last(store), "--delete"]) == 0
    assert "removed" in capsys.readouterr().out
    assert main(["gc", str(store)]) == 0
    assert "0 files, 0 bytes left over" in capsys.readouterr().out


def test_gc_command_says_that_what_a_stopped_run_made_goes_too(
    store: Path, inputs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(reached: str) -> None:
        if reached.startswith("deduplicate-"):
            raise KeyboardInterrupt

    assert unfinished_run(Store(store)) is None
    with pytest.raises(KeyboardInterrupt):
        run(recipe(inputs, 5), store, name="least5", runner="local", failpoint=stop)
    assert main(["gc", str(store)]) == 0
    assert f"note: run {unfinished_run(Store(store))} did not finish" in capsys.readouterr().out


def test_gc_with_a_damaged_manifest_of_a_kept_result_removes_nothing(store: Path) -> None:
    path = next(store.glob("deduplicate-*/manifest.json"))
    path.write_bytes(b"{}\n")
    before = _files(store)
    assert main(["gc", str(store), "--delete"]) == 3
    assert _files(store) == before
