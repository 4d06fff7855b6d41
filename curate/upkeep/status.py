"""How a run stands, read from its journal alone: also from another host, and after the driver was killed.

Cost: the journal is read whole, some 650 bytes a task.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from curate.configuration import ConfigurationError
from curate.running.journal import BEAT_SECONDS, events_of, runs_in
from curate.running.progress import clock
from curate.store import Store

SILENT_SECONDS: Final = 4 * BEAT_SECONDS
"""A run without a line for so long is said to give no sign of life."""

SHOWN: Final = 8
"""Running tasks, losses and failures that are shown in words."""


@dataclass(slots=True)
class JobStatus:
    """One job of a stage: `done` of `total` shards, `reused` of which were there; rates are over `seconds` of work."""

    name: str
    total: int = 0
    reused: int = 0
    done: int = 0
    missing_bytes: int = 0
    documents: int = 0
    bytes: int = 0
    lost: int = 0
    began: float = 0.0
    last: float = 0.0

    @property
    def seconds(self) -> float:
        """Return the time from its start to its last finished task."""
        return max(self.last - self.began, 1e-3)

    def left(self) -> float | None:
        """Return the seconds left at the rate so far; None before a task is done, and when all are."""
        missing = self.total - self.reused
        share = self.bytes / self.missing_bytes if self.missing_bytes and self.bytes else self.done / max(missing, 1)
        return self.seconds * (1 - share) / share if share > 0 and self.done < missing else None

    def to_json(self) -> dict[str, Any]:
        """Return counts, rates and time left."""
        rates = {"documents_per_s": self.documents / self.seconds, "mb_per_s": self.bytes / self.seconds / 1e6}
        return {**asdict(self), **rates, "left_s": self.left()}

    def __str__(self) -> str:
        parts = [f"{self.name}: {self.done + self.reused}/{self.total}"]
        parts += [f"{self.reused} reused"] * (self.reused > 0)
        parts += [f"{self.documents / self.seconds:,.0f} documents/s"] * (self.documents > 0)
        parts += [f"{self.bytes / self.seconds / 1e6:,.1f} MB/s"] * (self.bytes > 0)
        parts += [f"{self.lost} lost"] * (self.lost > 0)
        left = self.left()
        return ", ".join(parts + ([] if left is None else [f"{clock(left)} left"]))


@dataclass(slots=True)
class RunStatus:
    """A run: its jobs in order, what runs now, what was lost and what failed.

    Attributes:
        state: "running", "finished", "stopped" (an error or a signal; see `error`) or "silent" (no sign of life).
        quiet: seconds since the last line of the journal.
    """

    run: str
    host: str = ""
    pid: int = 0
    began: float = 0.0
    last: float = 0.0
    state: str = "running"
    quiet: float = 0.0
    error: str | None = None
    result: str | None = None
    jobs: dict[str, JobStatus] = field(default_factory=dict)
    running: dict[str, dict[str, Any]] = field(default_factory=dict)
    lost: list[dict[str, Any]] = field(default_factory=list)
    failures: list[dict[str, Any]] = field(default_factory=list)
    nodes: list[dict[str, Any]] = field(default_factory=list)

    @property
    def ended(self) -> bool:
        """Whether nothing more will come."""
        return self.state in ("finished", "stopped")

    def to_json(self) -> dict[str, Any]:
        """Return all of it."""
        values = {name: getattr(self, name) for name in self.__slots__ if name not in ("jobs", "running")}
        return values | {"jobs": [job.to_json() for job in self.jobs.values()], "running": list(self.running.values())}

    def take(self, event: Mapping[str, Any]) -> None:
        """Take the next event of the journal."""
        self.last = max(self.last, float(event["time"]))
        handler = _HANDLERS.get(event["event"])
        if handler is not None:
            handler(self, event)

    def lines(self) -> list[str]:
        """Return the status in words."""
        return [_headline(self), *(f"  {job}" for job in self.jobs.values()), *_more(self)]


def _started(status: RunStatus, event: Mapping[str, Any]) -> None:
    status.host, status.pid, status.began = event["host"], event["pid"], event["time"]


def _job(status: RunStatus, event: Mapping[str, Any]) -> None:
    job = status.jobs.setdefault(event["job"], JobStatus(event["job"], began=event["time"]))
    if job.total:  # asked for again, as after repeats were found: what was done then is there now
        job.documents = job.bytes = job.done = 0
        job.began = event["time"]
    job.total, job.reused, job.last = event["total"], event["total"] - event["missing"], event["time"]
    job.missing_bytes = event["bytes"]


def _began(status: RunStatus, event: Mapping[str, Any]) -> None:
    status.running[_place(event)] = dict(event)


def _task(status: RunStatus, event: Mapping[str, Any]) -> None:
    status.running.pop(_place(event), None)
    job = status.jobs.setdefault(event["job"], JobStatus(event["job"], began=event["time"]))
    job.done += 1
    job.documents += event.get("documents", 0)
    job.bytes += event.get("bytes", 0)
    job.last = event["time"]


def _lost(status: RunStatus, event: Mapping[str, Any]) -> None:
    status.running.pop(_place(event), None)
    status.lost.append(dict(event))
    if event["job"] in status.jobs:
        status.jobs[event["job"]].lost += 1


def _failure(status: RunStatus, event: Mapping[str, Any]) -> None:
    status.running.pop(_place(event), None)
    status.failures.append(dict(event))


def _stopped(status: RunStatus, event: Mapping[str, Any]) -> None:
    status.state, status.error = "stopped", event["error"]
    status.running.clear()


def _recipe(status: RunStatus, event: Mapping[str, Any]) -> None:
    status.state, status.result = "finished", f"{event['folder']}, digest {event['digest']}"
    status.running.clear()


def _node(status: RunStatus, event: Mapping[str, Any]) -> None:
    status.nodes.append(dict(event))


_HANDLERS: Final = {
    "started": _started,
    "job": _job,
    "began": _began,
    "task": _task,
    "lost": _lost,
    "failure": _failure,
    "stopped": _stopped,
    "recipe": _recipe,
    "node": _node,
}


def _place(event: Mapping[str, Any]) -> str:
    return f"{event['job']}\0{event.get('key')}\0{event.get('label')}"


def _headline(status: RunStatus) -> str:
    began = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(status.began))
    head = f"run {status.run} on {status.host} (process {status.pid}), begun {began} UTC"
    if status.state == "finished":
        return f"{head}: finished after {clock(status.last - status.began)}: {status.result}"
    if status.state == "stopped":
        return f"{head}: stopped after {clock(status.last - status.began)}: {status.error}"
    if status.state == "silent":
        return f"{head}: no sign of life for {clock(status.quiet)}. The same command goes on from there"
    return f"{head}: running, last line {clock(status.quiet)} ago"


def _more(status: RunStatus) -> list[str]:
    running = [
        f"    {event['job']}, {event['label']}: on {event.get('host', '?')} (process {event.get('pid', '?')}) for "
        f"{clock(max(0.0, status.last - event['time'] + status.quiet))}"
        for event in status.running.values()
    ]
    word = "running now" if status.state == "running" else "running then"
    lost = [
        f"    {event['job']}, {event['label']}: attempt {event['attempt']} on {event.get('host', '?')}: {event['exit']}"
        for event in status.lost
    ]
    failures = [f"    {event['error']}" for event in status.failures]
    nodes = [f"    {event['change']}: {event['has']}" for event in status.nodes]
    parts = ((word, running), ("nodes", nodes), ("lost attempts", lost), ("failures", failures))
    return [line for title, found in parts for line in _section(title, found)]


def _section(title: str, found: list[str]) -> list[str]:
    if not found:
        return []
    more = [f"    and {len(found) - SHOWN} before these"] * (len(found) > SHOWN)
    return [f"  {title}: {len(found)}", *more, *found[-SHOWN:]]


def status_of(store: Store, run: str | None = None, now: float | None = None) -> RunStatus:
    """Return how a run of `store` stands, by default the one that began last.

    Args:
        store: of the run.
        run: its folder below runs/.
        now: seconds since 1970, the clock by default.

    Raises:
        ConfigurationError: there is no such run.
    """
    there = runs_in(store)
    if not there or (run is not None and run not in there):
        wanted = "run" if run is None else f"run {run}"
        raise ConfigurationError(f"{store.url('')} holds no {wanted}; it has {', '.join(there[-5:]) or 'none'}")
    status = RunStatus(run or there[-1])
    for event in events_of(store, status.run):
        status.take(event)
    status.quiet = max(0.0, (time.time() if now is None else now) - status.last)
    patience = BEAT_SECONDS * 1.5 if _is_gone(status) else SILENT_SECONDS  # another host may have the same name
    if not status.ended and status.quiet > patience:
        status.state = "silent"
    return status


def _is_gone(status: RunStatus) -> bool:
    """Return whether the driver was on this host and is no more."""
    if status.host != socket.gethostname() or not status.pid:
        return False
    try:
        os.kill(status.pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
