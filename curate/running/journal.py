"""The journal of a run: every attempt, when and where, what was lost and what failed. Nothing hashes it.

Lines of JSON under `<store>/runs/<run>/journal.jsonl`, written by the driver alone: at once in a local store, within
seconds in a remote one (`Store.appender`). While the run is alive there is a line at least every `BEAT_SECONDS`, so
that who reads it elsewhere can tell a long task from a dead driver. A journal that cannot be written does not end the
run: its lines wait and are tried again.
"""

from __future__ import annotations

import json
import os
import platform
import socket
import sys
import threading
import time
import uuid
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from curate.cluster.versions import versions_here
from curate.store import Store, StoreError

if TYPE_CHECKING:
    from curate.cluster.worker import Agreement
    from curate.running.runners import Attempt

BEAT_SECONDS: Final = 10.0
"""A journal says at least so often that its run is alive."""

JOURNAL: Final = "journal.jsonl"
"""The journal's name in the folder of its run."""


class Journal:
    """Appends events, and keeps the logs of what went wrong beside them."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.run = new_run()
        self._waiting: deque[bytes] = deque()
        self._torn = b""
        self._lock = threading.Lock()
        self._file = store.appender(f"runs/{self.run}/{JOURNAL}")
        self._ended = threading.Event()
        self.write("started", host=socket.gethostname(), pid=os.getpid(), python=platform.python_version())
        self._beats = threading.Thread(target=self._beat, name="curate-journal", daemon=True)
        self._beats.start()

    def write(self, event: str, **values: Any) -> None:
        """Append one event with the time."""
        line = json.dumps({"time": time.time(), "event": event, **values}, default=str) + "\n"
        with self._lock:
            self._waiting.append(line.encode())
            self._flush()

    def estimate(self, name: str, needs: str) -> None:
        """Say what a stage is estimated to need, before it begins; also to who watches."""
        self.write("estimate", name=name, needs=needs)
        print(f"{name}: {needs}", file=sys.stderr)

    def job(self, name: str, total: int, missing: int, size: int) -> None:
        """Say that `missing` of `total` tasks, over `size` bytes, are run now."""
        self.write("job", job=name, total=total, missing=missing, bytes=size)

    def task(self, job: str, attempt: Attempt) -> None:
        """Append a finished attempt with what it measured."""
        seconds, size = max(attempt.seconds, 1e-6), attempt.item.bytes
        values = {
            "job": job,
            "key": attempt.item.key,
            "label": attempt.item.label,
            "attempt": attempt.number,
            "start": attempt.start,
            "seconds": round(attempt.seconds, 3),
            "documents": attempt.documents,
            "bytes": size,
            "documents_per_s": round(attempt.documents / seconds, 1),
            "mb_per_s": round(size / seconds / 1e6, 3),
            "peak_mb": attempt.peak_mb,
            "host": attempt.host,
            "pid": attempt.pid,
        }
        self.write("task", **values, **({"output": attempt.output} if attempt.output else {}))

    def keep(self, name: str, text: str) -> str:
        """Write `text` beside the journal, and return where it lies."""
        place = f"runs/{self.run}/{name}"
        try:
            self.store.put(place, text.encode("utf-8", "replace"))
        except (OSError, StoreError) as error:
            return f"(not written: {error})"
        return self.store.url(place)

    def close(self) -> None:
        """Write what waits, and say on standard error when that fails."""
        self._ended.set()
        self._beats.join()  # or a beat that is due would open the file again
        with self._lock:
            error = self._flush()
            try:
                self._file.close()
            except (OSError, StoreError) as failed:
                error = error or failed
        if error is not None:
            print(f"curate: the journal of run {self.run} is not whole: {error}", file=sys.stderr)

    def _flush(self) -> Exception | None:
        """Write the waiting lines; called with the lock held."""
        while self._waiting:
            try:
                self._file.write(self._torn + self._waiting[0])
            except (OSError, StoreError) as error:
                self._torn = b"\n"  # ends a line of which a full disk took the beginning
                return error
            self._torn = b""
            self._waiting.popleft()
        return None

    def _beat(self) -> None:
        while not self._ended.wait(BEAT_SECONDS):
            self.write("alive")


def agreement(journal: Journal) -> Agreement:
    """Return what the nodes of a run must have: our versions, and sight of a file that is written here."""
    token = uuid.uuid4().hex.encode()
    name = f"runs/{journal.run}/node-check"
    journal.store.put(name, token)
    from curate.cluster.worker import Agreement

    return Agreement(journal.store, name, token, versions_here())


def new_run() -> str:
    """Return a name for a run that begins now; the names of runs that begin one after the other are in that order."""
    now = time.time_ns()
    fraction = now % 10**9 * 16**5 // 10**9  # in microseconds, about
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(now // 10**9))}-{fraction:05x}{uuid.uuid4().hex[:3]}"


def runs_in(store: Store) -> list[str]:
    """Return the names of the runs of a store, oldest first."""
    return [folder.rpartition("/")[2] for folder in store.folders("runs")]


def events_of(store: Store, run: str) -> Iterator[dict[str, Any]]:
    """Yield the events of a run; a line that a kill cut short is left out."""
    for line in store.appended(f"runs/{run}/{JOURNAL}"):
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict) and isinstance(event.get("event"), str) and "time" in event:
            yield event


def finished_recipes(store: Store) -> list[dict[str, Any]]:
    """Return the "recipe" events of all journals of a store, oldest first."""
    events = [event for run in runs_in(store) for event in events_of(store, run) if event["event"] == "recipe"]
    return sorted(events, key=lambda event: event["time"])
