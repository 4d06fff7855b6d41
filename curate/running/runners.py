"""Runners: the same tasks in this process, or elsewhere (`curate.cluster.runner`).

A runner decides where and when an item runs, never what it makes. Items may finish in any order. The first failed item
ends the run with an error that names it; what was published stays, and the next run goes on from there.
"""

from __future__ import annotations

import os
import socket
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from curate.running.allocation import memory_kept
from curate.running.jobs import Item, Job, TaskError
from curate.running.measuring import Output, peak_mb, reset_peak

NOT_SENT: Final = Item("", "", None)
"""Stands for an item in what comes back from a worker: whoever sent it has it."""


class Log(Protocol):
    """Where runners say what happens to attempts: a `Journal`."""

    def write(self, event: str, **values: Any) -> None:
        """Append one event."""
        ...

    def keep(self, name: str, text: str) -> str:
        """Keep a text beside the events and return where it lies, nothing where it is not kept."""
        ...


class Silent:
    """A log that keeps nothing."""

    def write(self, event: str, **values: Any) -> None:
        """Do nothing."""

    def keep(self, name: str, text: str) -> str:
        """Keep nothing."""
        return ""


SILENT: Final = Silent()


@dataclass(frozen=True, slots=True)
class Attempt:
    """A finished task: its result, and what the journal wants to know.

    Attributes:
        peak_mb: the largest resident memory of the process during the task.
        start: seconds since 1970.
        number: 1, or more when earlier attempts lost their worker.
        output: what the task wrote to standard output and error, where that goes to a file.
    """

    item: Item
    result: Any
    seconds: float
    host: str
    pid: int
    peak_mb: int
    start: float = 0.0
    number: int = 1
    output: str = ""

    @property
    def documents(self) -> int:
        """How many documents the task read, where it says so."""
        return self.result if isinstance(self.result, int) else 0


@dataclass(frozen=True, slots=True)
class Failed:
    """A task that raised: the error in words, and where it was."""

    error: str
    trace: str
    seconds: float
    host: str
    pid: int
    start: float
    output: str = ""


class Runner(Protocol):
    """Runs the items of a job."""

    def run(self, job: Job, items: Sequence[Item]) -> Iterator[Attempt]:
        """Run all items, yielding each as it finishes.

        Raises:
            TaskError: an item failed.
        """
        ...


def try_item(job: Job, item: Item) -> Attempt | Failed:
    """Run one item here; whatever it raises but a stop is returned."""
    host, pid, output = socket.gethostname(), os.getpid(), Output()
    reset_peak()
    start, began = time.time(), time.monotonic()
    try:
        with memory_kept():
            result = job.run(item)
    except (Exception, SystemExit) as error:
        seconds = time.monotonic() - began
        return Failed(in_words(error), traceback.format_exc(), seconds, host, pid, start, output.text())
    return Attempt(item, result, time.monotonic() - began, host, pid, peak_mb(), start, output=output.text())


def in_words(error: BaseException) -> str:
    """Return an error with its notes, which say where it happened."""
    return "; ".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", [])])


def run_item(job: Job, item: Item, log: Log = SILENT) -> Attempt:
    """Run one item here.

    Raises:
        TaskError: it failed; the message names job, item and cause.
    """
    outcome = try_item(job, item)
    if isinstance(outcome, Failed):
        raise failure(job, item, 1, outcome, log)
    return outcome


def failure(job: Job, item: Item, number: int, failed: Failed, log: Log) -> TaskError:
    """Return the error of an attempt that raised; its trace and output are kept beside the journal."""
    text = f"{failed.trace}\n{failed.output}"
    kept = log.keep(f"failed-{item.key[:16] or 'task'}-{number}.txt", text)
    where = f"on {failed.host}, process {failed.pid}" + (f"; trace in {kept}" if kept else "")
    return TaskError(
        f"{job.name}, {item.label}: {failed.error} ({where})",
        key=item.key,
        label=item.label,
        attempt=number,
        start=failed.start,
        seconds=round(failed.seconds, 3),
        host=failed.host,
        pid=failed.pid,
        log=kept,
    )


@dataclass(frozen=True, slots=True)
class LocalRunner:
    """Runs items one after the other in this process."""

    log: Log = SILENT

    def run(self, job: Job, items: Sequence[Item]) -> Iterator[Attempt]:
        """Run all items in order."""
        for item in items:
            self.log.write(
                "began", job=job.name, key=item.key, label=item.label, attempt=1,
                host=socket.gethostname(), pid=os.getpid(),
            )  # fmt: skip
            yield run_item(job, item, self.log)
