"""The journal says what happened to every attempt, survives a full disk, and `curate status` reads it."""

from __future__ import annotations

import json
import os
import socket
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import curate.running.journal
from curate.command_line import main
from curate.running.engine import Engine
from curate.running.jobs import Item, TaskError
from curate.running.journal import JOURNAL, Journal, events_of, finished_recipes, runs_in
from curate.running.runners import Attempt, LocalRunner
from curate.store import Store
from curate.upkeep.status import SILENT_SECONDS, status_of
from tests.curate.ray_jobs import Acting, items
from tests.waiting import wait_for

ITEM = Item("ab" * 32, "part-1", None, 4_000_000)
ATTEMPT = Attempt(ITEM, 200, 2.0, "host-a", 12, 345, 1000.0, 2, "a warning\n")


def of_kind(store: Store, kind: str) -> list[dict[str, Any]]:
    return [event for event in events_of(store, runs_in(store)[-1]) if event["event"] == kind]


def test_task_is_told_with_start_rates_peak_host_and_output(tmp_path: Path) -> None:
    journal = Journal(Store(tmp_path))
    journal.task("read web", ATTEMPT)
    journal.close()
    (event,) = of_kind(Store(tmp_path), "task")
    assert {name: value for name, value in event.items() if name != "time"} == {
        "event": "task", "job": "read web", "key": ITEM.key, "label": "part-1", "attempt": 2, "start": 1000.0,
        "seconds": 2.0, "documents": 200, "bytes": 4_000_000, "documents_per_s": 100.0, "mb_per_s": 2.0,
        "peak_mb": 345, "host": "host-a", "pid": 12, "output": "a warning\n",
    }  # fmt: skip


def test_journal_beats_while_nothing_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curate.running.journal, "BEAT_SECONDS", 0.02)
    journal = Journal(Store(tmp_path))
    wait_for(lambda: len(of_kind(Store(tmp_path), "alive")) >= 2)
    journal.close()
    beats = len(of_kind(Store(tmp_path), "alive"))
    time.sleep(0.1)
    assert len(of_kind(Store(tmp_path), "alive")) == beats


def test_runs_are_in_the_order_in_which_they_began_however_soon_one_follows_the_other(tmp_path: Path) -> None:
    store, begun = Store(tmp_path), []
    for _ in range(8):
        journal = Journal(store)
        journal.close()
        begun.append(journal.run)
    assert runs_in(store) == begun


class Full:
    """A file on a disk that is full for a while, and takes half of what it is given."""

    def __init__(self, path: Path) -> None:
        self.path, self.full = path, True

    def write(self, lines: bytes) -> None:
        with self.path.open("ab") as file:
            if self.full:
                file.write(lines[: len(lines) // 2])
                raise OSError(28, "No space left on device")
            file.write(lines)

    def close(self) -> None:
        """Nothing is open."""


def fill(journal: Journal, store: Path) -> Full:
    journal._file.close()
    full = Full(store / "runs" / journal.run / JOURNAL)
    journal._file = full
    return full


def test_journal_on_a_full_disk_ends_no_run_and_is_whole_once_there_is_room(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    journal = Journal(Store(tmp_path))
    full = fill(journal, tmp_path)
    journal.write("one", value=1)
    journal.write("two", value=2)
    full.full = False
    journal.write("three", value=3)
    journal.close()
    events = [event["event"] for event in events_of(Store(tmp_path), journal.run)]
    assert [event for event in events if event != "alive"] == ["started", "one", "two", "three"]
    assert capsys.readouterr().err == ""


def test_journal_that_never_finds_room_is_told_at_the_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal = Journal(Store(tmp_path))
    fill(journal, tmp_path)
    journal.write("one")
    journal.close()
    assert f"the journal of run {journal.run} is not whole" in capsys.readouterr().err


def test_finished_recipes_are_those_of_all_runs_and_cut_lines_are_left_out(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for folder in ("a-1", "b-2"):
        journal = Journal(store)
        journal.write("recipe", name="r", folder=folder, digest="d")
        journal.close()
    with (tmp_path / "runs" / runs_in(store)[-1] / JOURNAL).open("ab") as file:
        file.write(b'{"event": "rec')
    assert [event["folder"] for event in finished_recipes(store)] == ["a-1", "b-2"]


def test_failure_of_a_task_is_told_with_label_and_trace_file(tmp_path: Path) -> None:
    store = Store(tmp_path)
    journal = Journal(store)
    engine = Engine(store, LocalRunner(journal), journal)
    with pytest.raises(
        TaskError, match=r"acting, item 1: ValueError: bad; record 12 at byte 3400 \(on .*; trace in "
    ) as error:
        list(engine.attempts(Acting(tmp_path), items("number 4", "raise bad", "number 5"), 3))
    journal.close()
    (failure,) = of_kind(store, "failure")
    assert (failure["job"], failure["label"], failure["attempt"]) == ("acting", "item 1", 1)
    assert (failure["host"], failure["pid"]) == (socket.gethostname(), os.getpid())
    assert "Traceback" in Path(failure["log"]).read_text()
    assert str(failure["log"]) in str(error.value)
    assert [event["label"] for event in of_kind(store, "began")] == ["item 0", "item 1"]


def told(store: Path, *events: dict[str, Any], run: str = "r") -> Store:
    """Write a journal of these events, one a second from time 1000 on."""
    lines = [json.dumps({"time": 1000.0 + number, **event}) for number, event in enumerate(events)]
    (store / "runs" / run).mkdir(parents=True)
    (store / "runs" / run / JOURNAL).write_text("".join(f"{line}\n" for line in lines))
    return Store(store)


STARTED = {"event": "started", "host": "elsewhere", "pid": 7}
JOB = {"event": "job", "job": "read", "total": 10, "missing": 8, "bytes": 8_000_000}


def began(label: str) -> dict[str, Any]:
    return {"event": "began", "job": "read", "key": label, "label": label, "attempt": 1, "host": "n1", "pid": 5}


def task(label: str) -> dict[str, Any]:
    return {"event": "task", "job": "read", "key": label, "label": label, "documents": 50, "bytes": 1_000_000}


def test_status_of_a_run_that_goes_on_has_counts_rates_time_left_and_what_runs(tmp_path: Path) -> None:
    lost = {**began("b"), "event": "lost", "exit": "WorkerCrashedError: SYSTEM_ERROR"}
    store = told(tmp_path, STARTED, JOB, began("a"), began("b"), task("a"), lost, began("c"))
    status = status_of(store, now=1008.0)
    assert (status.state, status.quiet) == ("running", 2.0)
    (job,) = status.jobs.values()
    assert (job.done, job.reused, job.total, job.lost, job.seconds) == (1, 2, 10, 1, 3.0)
    assert job.left() == pytest.approx(21.0)
    assert [event["label"] for event in status.running.values()] == ["c"]
    lines = "\n".join(status.lines())
    assert "read: 3/10, 2 reused, 17 documents/s, 0.3 MB/s, 1 lost, 21.0 s left" in lines
    assert "read, c: on n1 (process 5) for 2.0 s" in lines
    assert "read, b: attempt 1 on n1: WorkerCrashedError: SYSTEM_ERROR" in lines
    assert json.loads(json.dumps(status.to_json()))["jobs"][0]["left_s"] == pytest.approx(21.0)


def test_status_of_a_driver_that_was_killed_is_no_sign_of_life(tmp_path: Path) -> None:
    store = told(tmp_path, STARTED, JOB, began("a"))
    assert status_of(store, now=1002.0 + SILENT_SECONDS).state == "running"
    status = status_of(store, now=1003.0 + SILENT_SECONDS)
    assert status.state == "silent"
    assert f"no sign of life for {SILENT_SECONDS + 1:.1f} s" in status.lines()[0]
    here = told(tmp_path / "here", {**STARTED, "host": socket.gethostname(), "pid": 2**22 + 1}, JOB)
    assert status_of(here, now=1017.0).state == "silent"  # sooner, where its process can be looked for


@pytest.mark.parametrize(
    ("last", "state", "status"),
    [
        ({"event": "recipe", "folder": "r-1", "digest": "d"}, "finished", 0),
        ({"event": "stopped", "error": "a signal (Ctrl-C, SIGTERM)"}, "stopped", 1),
        ({"event": "alive"}, "silent", 1),
    ],
)
def test_status_command_tells_the_end_of_a_run_by_its_exit_status(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], last: dict[str, Any], state: str, status: int
) -> None:
    told(tmp_path, STARTED, JOB, began("a"), last)
    assert main(["status", str(tmp_path), "--json"]) == status
    assert json.loads(capsys.readouterr().out)["state"] == state
    assert main(["status", str(tmp_path), "--watch"]) == status
    assert "read: 2/10" in capsys.readouterr().out


def test_status_of_a_store_without_runs_or_of_another_run_says_what_there_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["status", str(tmp_path)]) == 2
    told(tmp_path, STARTED, run="20260101-000000-aaaaaa")
    assert main(["status", str(tmp_path), "--run", "other"]) == 2
    assert "holds no run other; it has 20260101-000000-aaaaaa" in capsys.readouterr().err


def test_job_that_is_asked_for_again_counts_anew(tmp_path: Path) -> None:
    again = {**JOB, "missing": 1, "bytes": 1_000_000}
    store = told(tmp_path, STARTED, JOB, *[task(str(number)) for number in range(8)], again, task("0"))
    (job,) = status_of(store, now=1011.0).jobs.values()
    assert (job.done, job.reused, job.left()) == (1, 9, None)


def test_attempt_without_a_number_of_documents_has_none() -> None:
    assert replace(ATTEMPT, result=["digest"]).documents == 0
