"""Tasks on Ray: what is lost is tried again and named, what fails ends the run, and only little is in flight."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from curate.cluster.clusters import Connection, StartedRay
from curate.cluster.retries import Retries
from curate.cluster.runner import RayRunner, ray_runner
from curate.running.jobs import Resources, TaskError
from curate.running.runners import Attempt, run_item
from tests.curate import ray_jobs
from tests.curate.processes import descendants, left_of
from tests.curate.ray_jobs import Acting, Counted, Told, items, labels, marks

pytestmark = pytest.mark.ray
QUICK = Retries(workers=2, nodes=2, first=0.05)


@pytest.fixture(scope="module")
def ray_here() -> Iterator[RayRunner]:
    with ray_runner(2, [ray_jobs]) as runner:
        runner.connection.open()  # whichever test comes first
        yield runner


def runner_on(shared: RayRunner, told: Told | None = None, most: int | None = None) -> RayRunner:
    return RayRunner(shared.connection, most, told or Told(), QUICK)


def test_task_that_loses_its_worker_twice_is_run_again_and_told(
    ray_here: RayRunner, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = Told(tmp_path)
    done = list(runner_on(ray_here, told).run(Acting(tmp_path), items("crash 2", "number 5")))
    assert labels(done) == ["item 0", "item 1"]
    again = next(attempt for attempt in done if attempt.item.label == "item 0")
    assert (again.number, again.result) == (3, 7)
    lost = list(told.of("lost"))
    assert [(event["label"], event["attempt"]) for event in lost] == [("item 0", 1), ("item 0", 2)]
    assert [event["again_in"] for event in lost] == [0.05, 0.1]
    assert all(event["pid"] and event["host"] and event["exit"].startswith("WorkerCrashedError: ") for event in lost)
    assert "last words of item 0" in told.kept[lost[0]["log"]]
    assert capsys.readouterr().err.count("acting, item 0: lost its worker (WorkerCrashedError: ") == 2
    assert marks(tmp_path).count("ran item 1") == 1


def test_task_that_loses_its_worker_again_and_again_is_named_with_host_exit_and_log(
    ray_here: RayRunner, tmp_path: Path
) -> None:
    told = Told(tmp_path)
    with pytest.raises(TaskError) as failed:
        list(runner_on(ray_here, told).run(Acting(tmp_path), items("crash 9")))
    message = str(failed.value)
    assert message.startswith("acting, item 0: its worker was lost 3 times, the last time on ")
    assert "SYSTEM_ERROR" in message and "its last words: lost-" in message
    assert len(marks(tmp_path, "ran item 0")) == 3
    assert failed.value.details["log"] in told.kept


def test_task_that_raises_is_not_run_again_and_is_named_with_its_record_and_trace(
    ray_here: RayRunner, tmp_path: Path
) -> None:
    told = Told()
    with pytest.raises(TaskError, match=r"acting, item 0: ValueError: no good; record 12 at byte 3400 \(on ") as failed:
        list(runner_on(ray_here, told).run(Acting(tmp_path), items("raise no good")))
    assert marks(tmp_path) == ["ran item 0"]
    kept = told.kept[failed.value.details["log"]]
    assert "Traceback" in kept and "said before it raised" in kept


def test_task_that_exits_is_an_error_of_its_own(ray_here: RayRunner, tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="item 0: SystemExit: 3"):
        list(runner_on(ray_here).run(Acting(tmp_path), items("exit 3")))
    assert marks(tmp_path) == ["ran item 0"]


def test_error_is_the_same_on_ray_and_in_process(ray_here: RayRunner, tmp_path: Path) -> None:
    messages = []
    for run in (lambda: list(runner_on(ray_here).run(Acting(tmp_path), items("raise x"))),
                lambda: run_item(Acting(tmp_path), *items("raise x"), Told())):  # fmt: skip
        with pytest.raises(TaskError) as failed:
            run()
        messages.append(str(failed.value).partition(" (on ")[0])
    assert messages[0] == messages[1]


def test_job_is_pickled_once_and_unpickled_once_per_worker(ray_here: RayRunner, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    job = Acting(tmp_path, pickled=(Counted(tmp_path / "other"),))
    done = list(runner_on(ray_here).run(job, items(*["number 1"] * 60)))
    assert len(done) == 60
    assert len(marks(tmp_path / "other", "pickled")) == 1
    unpickled = marks(tmp_path / "other", "unpickled")
    assert 1 <= len(unpickled) == len(set(unpickled)) < 30


def test_window_follows_the_cpus_and_items_are_drawn_as_they_are_sent(ray_here: RayRunner, tmp_path: Path) -> None:
    drawn = []

    def endless() -> Iterator[Any]:
        for number in range(10**9):
            drawn.append(number)
            yield items(f"number {number}")[0]

    class Endless:
        def __iter__(self) -> Iterator[Any]:
            return endless()

    stream = runner_on(ray_here).run(Acting(tmp_path), Endless())  # type: ignore[arg-type]
    for done, _ in enumerate(islice(stream, 50), 1):
        assert len(drawn) - done <= 2 * 2  # CPUs × window
    stream.close()  # type: ignore[attr-defined]


def test_limit_is_the_most_tasks_at_once(ray_here: RayRunner, tmp_path: Path) -> None:
    list(runner_on(ray_here, most=1).run(Acting(tmp_path), items(*["sleep 0.1"] * 4)))
    order = [line.split()[0] for line in marks(tmp_path) if not line.startswith("ran")]
    assert order == ["sleeps", "woke"] * 4


def test_stage_that_needs_more_than_any_node_has_is_an_error_that_names_both(
    ray_here: RayRunner, tmp_path: Path
) -> None:
    job = Acting(tmp_path, "greedy", Resources(cpus=1, memory=1 << 50))
    with pytest.raises(TaskError, match=r"greedy: each task needs 1 CPU, 1125899\.91 GB of memory, .*: 2 CPUs, [0-9]"):
        list(runner_on(ray_here).run(job, items("number 1")))
    with pytest.raises(TaskError, match="3 CPUs, 1 GPU, and no node has as much"):
        list(runner_on(ray_here).run(Acting(tmp_path, "wide", Resources(3, gpus=1)), items("number 1")))
    assert marks(tmp_path) == []


def test_stage_without_room_waits_a_while_for_a_node_that_has_it(ray_here: RayRunner, tmp_path: Path) -> None:
    told = Told()
    runner = RayRunner(Connection(StartedRay(2, patience=0.5)), log=told)
    began = time.monotonic()
    with pytest.raises(TaskError, match="no node has as much"):
        list(runner.run(Acting(tmp_path, "wide", Resources(3)), items("number 1")))
    assert time.monotonic() - began >= 0.5
    (waiting,) = told.of("waiting")
    assert (waiting["job"], waiting["needs"]) == ("wide", "3 CPUs")


def test_memory_that_tasks_declare_limits_how_many_run_at_once(ray_here: RayRunner, tmp_path: Path) -> None:
    (node,) = ray_here.connection.nodes()
    job = Acting(tmp_path, resources=Resources(memory=int(node.memory * 0.6)))
    list(runner_on(ray_here).run(job, items(*["sleep 0.1"] * 3)))
    order = [line.split()[0] for line in marks(tmp_path) if not line.startswith("ran")]
    assert order == ["sleeps", "woke"] * 3


def test_output_of_a_task_and_its_own_peak_come_back_with_it(ray_here: RayRunner, tmp_path: Path) -> None:
    done = list(runner_on(ray_here, most=1).run(Acting(tmp_path), items("say hello", "eat 300", "number 2")))
    assert [attempt.output for attempt in done] == ["out hello\nerr hello\n", "", ""]
    assert done[1].peak_mb >= done[2].peak_mb + 200
    assert all(attempt.start > 1e9 and attempt.seconds >= 0 for attempt in done)


def test_began_is_told_while_a_task_runs(ray_here: RayRunner, tmp_path: Path) -> None:
    told = Told()
    stream = runner_on(ray_here, told).run(Acting(tmp_path), items("number 1", "sleep 0.5"))
    next(iter(stream))
    list(stream)
    began = list(told.of("began"))
    assert sorted(event["label"] for event in began) == ["item 0", "item 1"]
    assert all(event["host"] and event["pid"] != os.getpid() for event in began)


def test_failure_cancels_what_runs_and_ends_what_does_not_listen(ray_here: RayRunner, tmp_path: Path) -> None:
    told = Told(tmp_path)
    with pytest.raises(TaskError, match="item 1"):
        list(runner_on(ray_here, told).run(Acting(tmp_path), items("stubborn 100000000", "late item 0")))
    assert left_of({event["pid"] for event in told.of("began") if event["label"] == "item 0"}) == {}
    assert labels(list(runner_on(ray_here).run(Acting(tmp_path), items("number 1")))) == ["item 0"]
    assert "sleeps item 0" in marks(tmp_path) and "woke item 0" not in marks(tmp_path)


def test_job_that_cannot_be_pickled_is_an_error_that_says_why(ray_here: RayRunner, tmp_path: Path) -> None:
    job = Acting(tmp_path, "locked", pickled=(threading.Lock(),))
    with pytest.raises(TaskError, match=r"locked: cannot be sent to workers: .*lock"):
        list(runner_on(ray_here).run(job, items("number 1")))


def test_attempt_made_in_process_measures_itself(tmp_path: Path) -> None:
    attempt = run_item(Acting(tmp_path), *items("number 3"))
    assert isinstance(attempt, Attempt) and (attempt.documents, attempt.number, attempt.pid) == (3, 1, os.getpid())


USAGE = """
import os, sys
from curate.cluster.runner import ray_runner
from tests.curate.ray_jobs import Acting, items
from pathlib import Path
with ray_runner(1) as runner:
    list(runner.run(Acting(Path(sys.argv[1])), items("number 1")))
    from ray._common.usage import usage_lib
    print(usage_lib.usage_stats_enabled(), os.environ.get("RAY_AUTH_TOKEN"), os.environ.get("RAY_AUTH_MODE"))
    given_up = runner.run(Acting(Path(sys.argv[1])), items("number 1", "number 2", "number 3"))
    next(given_up)
given_up.close()  # as when a traceback holds it until long after the run
import ray
print(ray.is_initialized())
"""


@pytest.mark.slow
def test_own_ray_sends_no_usage_statistics_writes_nothing_to_the_home_and_is_gone_when_it_was_closed(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    child = subprocess.Popen(
        [sys.executable, "-c", USAGE, str(tmp_path)],
        env={**kept, "HOME": str(home), "RAY_ADDRESS": "127.0.0.1:1"},  # an own Ray joins no other
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        text=True,
    )
    below: set[int] = set()
    while child.poll() is None:
        below |= descendants(child.pid)
        time.sleep(0.1)
    out, _ = child.communicate()
    assert (child.returncode, out.split()) == (0, ["False", "None", "None", "False"])
    assert not (home / ".ray").exists()
    assert len(below) > 3
    assert left_of(below) == {}
