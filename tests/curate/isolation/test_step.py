"""Isolated steps give what the transform gives; what takes the child down costs one document and no other."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from curate.isolation.crew import crew_of, dismiss
from curate.isolation.judging import TooManyRaised
from curate.isolation.limits import Limits
from curate.isolation.process import Child, IsolationError
from curate.isolation.step import Isolated
from curate.isolation.trials import Trial
from tests.curate.isolation.poison import LIMITS, Poison, Threaded, applied, batch_of, dropped, guarded, texts_with

SEGV = '{"signal":"SIGSEGV"}'


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def child_of(shard: object) -> int:
    """Return the process id of the child that applies the steps of `shard`."""
    step = shard.steps[0].transform  # type: ignore[attr-defined]
    assert isinstance(step, Isolated)
    child = step.crew().child
    assert child is not None
    return child.pid


@pytest.mark.parametrize("count", [0, 1, 7, 900])
def test_isolated_step_without_poison_gives_the_outcome_of_the_transform(count: int, tmp_path: Path) -> None:
    texts = texts_with(count, {3: "drop this", 5: "ALL CAPITALS"})
    found, plain = applied(guarded(tmp_path), texts), Poison().apply(batch_of(texts))
    for name in ("kept", "dropped", "edits", "near"):
        assert getattr(found, name).equals(getattr(plain, name)), name
        getattr(found, name).validate(full=True)


def test_isolated_step_hands_on_columns_that_did_not_change_without_a_copy(tmp_path: Path) -> None:
    batch = batch_of(["A", "B"])
    found = guarded(tmp_path).steps[0].transform.apply(batch)
    assert found.kept.column("source").buffers()[2].address == batch.column("source").buffers()[2].address


@pytest.mark.parametrize(
    ("deed", "reason", "evidence"),
    [
        ("segfault", "crashed", SEGV),
        ("leave", "crashed", '{"exit status":3}'),
        ("hang", "hung", '{"seconds":"3"}'),
        ("fail my text", "raised", '{"message":"cannot bear my text at 0x…","type":"ValueError"}'),
    ],
)
def test_document_that_takes_the_child_down_is_dropped_and_the_others_stay(
    deed: str, reason: str, evidence: str, tmp_path: Path
) -> None:
    shard = guarded(tmp_path)
    found = applied(shard, texts_with(40, {17: f"do {deed}", 20: "drop this"}))
    assert dropped(found) == [(17, f"quarantined: {reason}", evidence), (20, "asked for", None)]
    assert found.kept.column("text").to_pylist() == [f"TEXT {n}" for n in range(40) if n not in (17, 20)]
    assert found.edits.num_rows == 38
    (verdict,) = shard.judge.verdicts.values()
    assert (verdict.reason, verdict.transform) == (reason, "Poison")


def test_document_that_allocates_without_end_is_dropped_before_the_machine_suffers(tmp_path: Path) -> None:
    limits = Limits(20, 64 << 20)
    found = applied(guarded(tmp_path, limits), texts_with(9, {4: "do eat"}))
    ((number, reason, evidence),) = dropped(found)
    assert (number, reason) == (4, "quarantined: out of memory")
    assert evidence is not None and 0 < int(evidence[9:-1]) <= 10 * limits.memory
    assert found.kept.num_rows == 8


def test_several_poisons_of_one_batch_each_cost_their_own_document(tmp_path: Path) -> None:
    found = applied(guarded(tmp_path), texts_with(30, {0: "do segfault", 1: "do leave", 29: "do segfault"}))
    assert [number for number, _, _ in dropped(found)] == [0, 1, 29]
    assert found.kept.num_rows == 27


def test_batch_goes_on_while_what_hangs_is_tried_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []
    begin, end = Trial.__init__, Trial.close

    def begun(self: Trial, *arguments: Any) -> None:
        begin(self, *arguments)
        events.append(f"begin {self.row}")

    def ended(self: Trial) -> None:
        end(self)
        events.append(f"end {self.row}")

    monkeypatch.setattr(Trial, "__init__", begun)
    monkeypatch.setattr(Trial, "close", ended)
    found = applied(guarded(tmp_path, Limits(0.3, 128 << 20)), texts_with(9, {3: "do hang", 5: "do hang"}))
    assert events[:2] == ["begin 3", "begin 5"] and {"end 3", "end 5"} == set(events[2:])
    assert [number for number, _, _ in dropped(found)] == [3, 5]


@pytest.mark.parametrize("deed", ["slow", "large", "once"])
def test_suspect_that_succeeds_alone_is_kept_without_a_verdict(deed: str, tmp_path: Path) -> None:
    shard = guarded(tmp_path)
    text = f"do {deed} {tmp_path / 'seen'}"
    found = applied(shard, texts_with(12, {6: text}))
    assert not shard.judge.verdicts and not found.dropped.num_rows
    assert found.kept.column("text")[6].as_py() == text.upper()
    assert found.kept.num_rows == 12


@pytest.mark.parametrize("deed", ["killed_once", "idle_once"])
def test_child_killed_by_somebody_else_or_idle_costs_no_document(deed: str, tmp_path: Path) -> None:
    shard = guarded(tmp_path)
    found = applied(shard, texts_with(12, {6: f"do {deed} {tmp_path / 'seen'}"}))
    assert (found.kept.num_rows, shard.judge.verdicts) == (12, {})


def test_child_killed_again_and_again_stops_the_task_and_is_no_verdict(tmp_path: Path) -> None:
    dismiss()  # what another test did to its crew is no end of this one's children
    shard = guarded(tmp_path)
    with pytest.raises(IsolationError, match=r"killed from outside again and again \(SIGKILL, "):
        applied(shard, texts_with(2, {1: "do killed"}))
    assert not shard.judge.verdicts


def test_nursery_killed_by_somebody_else_is_started_again(tmp_path: Path) -> None:
    shard = guarded(tmp_path)
    applied(shard, ["a"])
    nursery = shard.steps[0].transform.crew().nursery  # type: ignore[attr-defined]
    os.kill(nursery.process.pid, signal.SIGKILL)
    nursery.process.wait()
    assert applied(shard, texts_with(12, {1: f"do killed_once {tmp_path / 'seen'}"})).kept.num_rows == 12
    assert not shard.judge.verdicts
    assert shard.steps[0].transform.crew().nursery is not nursery  # type: ignore[attr-defined]


def test_step_that_cannot_be_forked_gets_a_process_of_its_own_for_each_child(tmp_path: Path) -> None:
    shard = guarded(tmp_path, Limits(20, 128 << 20), transform=Threaded())
    found = applied(shard, texts_with(5, {2: "do segfault"}))
    assert (found.kept.num_rows, dropped(found)) == (4, [(2, "quarantined: crashed", SEGV)])
    dismiss()


def test_worker_that_is_stopped_in_the_middle_of_a_slice_does_not_take_its_answer_for_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shard = guarded(tmp_path)
    applied(shard, ["a"])
    crew = shard.steps[0].transform.crew()  # type: ignore[attr-defined]

    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Child, "_hear", interrupted)
        applied(shard, ["b"])
    assert crew.child is None
    assert applied(shard, ["c"]).kept.column("text").to_pylist() == ["C"]


def test_step_that_raises_for_too_many_documents_stops_naming_step_document_and_exception(tmp_path: Path) -> None:
    texts = texts_with(200, dict.fromkeys(range(0, 200, 10), "do fail x"))
    with pytest.raises(TooManyRaised, match=r"Poison: 11 of the first 200 documents raised, 10 may.*mend it") as caught:
        applied(guarded(tmp_path), texts)
    said = str(caught.value)
    assert (100).to_bytes(16, "big").hex() in said and "pages.jsonl, row 100" in said
    assert "ValueError" in said and "poison.py" in said


def test_step_that_raises_for_few_of_many_documents_goes_on(tmp_path: Path) -> None:
    shard = guarded(tmp_path)
    shard.judge.seen["Poison"] = 10_000
    found = applied(shard, texts_with(60, dict.fromkeys(range(0, 60, 4), "do fail x")))
    assert (found.dropped.num_rows, found.kept.num_rows) == (15, 45)


def test_step_that_raises_for_most_of_a_few_documents_is_an_error_and_for_half_of_them_is_not(tmp_path: Path) -> None:
    half = guarded(tmp_path)
    applied(half, texts_with(6, dict.fromkeys(range(3), "do fail x")))
    half.judge.close()
    most = guarded(tmp_path)
    applied(most, texts_with(6, dict.fromkeys(range(4), "do fail x")))
    with pytest.raises(TooManyRaised, match="Poison: 4 of 6 documents raised, 3 may"):
        most.judge.close()


def test_exception_of_a_source_that_may_not_be_shown_is_not_quoted(tmp_path: Path) -> None:
    found = applied(guarded(tmp_path, shows=lambda source: False), texts_with(3, {1: "do fail secret"}))
    assert dropped(found) == [(1, "quarantined: raised", '{"message":null,"type":"ValueError"}')]


def test_child_is_kept_from_batch_to_batch_and_from_shard_to_shard(tmp_path: Path) -> None:
    first = guarded(tmp_path)
    applied(first, ["a"])
    pid = child_of(first)
    applied(first, ["b"])
    second = guarded(tmp_path)
    applied(second, ["c"])
    assert child_of(second) == child_of(first) == pid


def test_forked_worker_leaves_the_child_of_its_parent_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shard = guarded(tmp_path)
    applied(shard, ["a"])
    pid, parents = child_of(shard), shard.steps[0].transform.crew()  # type: ignore[attr-defined]
    monkeypatch.setattr(parents, "owner", -1)  # as if this process had been forked since
    assert applied(shard, ["b"]).kept.num_rows == 1
    assert child_of(shard) != pid and alive(pid)
    parents.close()


def test_thread_that_ends_takes_its_child_along(tmp_path: Path) -> None:
    def work() -> int:
        shard = guarded(tmp_path)
        applied(shard, ["a"])
        return child_of(shard)

    with ThreadPoolExecutor(1) as pool:
        pid = pool.submit(work).result()
    gc.collect()
    assert not alive(pid)


def test_child_that_keeps_memory_is_replaced_between_batches(tmp_path: Path) -> None:
    shard = guarded(tmp_path)
    applied(shard, ["a"])
    pid = child_of(shard)
    child = shard.steps[0].transform.crew().child  # type: ignore[attr-defined]
    child.base = -LIMITS.memory
    applied(shard, ["b"])
    assert child_of(shard) != pid and not alive(pid)


def test_children_that_fell_leave_no_zombie_and_no_open_file(tmp_path: Path) -> None:
    shard = guarded(tmp_path)
    applied(shard, ["a"])
    before = sorted(os.listdir("/proc/self/fd"))
    applied(shard, texts_with(5, {2: "do segfault"}))
    assert len(os.listdir("/proc/self/fd")) == len(before)
    me, zombies = os.getpid(), []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        zombies += [folder.name] if (int(parent), state) == (me, "Z") else []
    assert not zombies


KILLED = """
import os, signal, sys, time
from pathlib import Path
from typing import Any
from tests.curate.isolation.poison import applied, guarded, texts_with
from tests.curate.isolation.test_step import child_of

shard = guarded(Path(sys.argv[1]))
applied(shard, ["a"])
print(child_of(shard), flush=True)
if sys.argv[2] == "hang":
    applied(shard, ["do hang"])
time.sleep(60)
"""


@pytest.mark.parametrize("doing", ["nothing", "hang"])
def test_killed_worker_leaves_no_child_behind(doing: str, tmp_path: Path) -> None:
    arguments = [sys.executable, "-c", KILLED, str(tmp_path), doing]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        pid = int(worker.stdout.readline())
        assert alive(pid)
        time.sleep(0.2)
        worker.kill()
    until = time.monotonic() + 10
    while alive(pid) and time.monotonic() < until:
        time.sleep(0.02)
    assert not alive(pid)


def test_chain_that_a_child_cannot_load_is_an_error_that_says_why() -> None:
    crew = crew_of(b"\x80\x04cno_such_module\nthing\n.")
    crew.take(batch_of(["a"]), Limits())
    with pytest.raises(IsolationError, match=r"cannot load them(?s:.)*No module named 'no_such_module'"):
        crew.apply(0, 0, 1)


def test_large_batch_gives_its_shared_memory_back(tmp_path: Path) -> None:
    shard = guarded(tmp_path, Limits(10, 1 << 30))
    text = "X" * (65 << 20)
    assert applied(shard, [text]).kept.column("text")[0].as_py() == text
    crew = shard.steps[0].transform.crew()  # type: ignore[attr-defined]
    held = len(crew.arena.map)
    applied(shard, ["a"])
    assert held >= 65 << 20 > len(crew.arena.map)
