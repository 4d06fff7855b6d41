"""Suspects on trial: one row in `ATTEMPTS` fresh processes at once, while the worker goes on with the batch.

A trial is over when the row succeeds in one of its processes, or has fallen in all. Children are started by the
worker's own thread only; threads wait for them. Cost: two threads a trial.
"""

from __future__ import annotations

from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Final

from curate.isolation.crew import LOSSES, Crew, lost_again
from curate.isolation.limits import ATTEMPTS, Limits
from curate.isolation.process import Answer, Child, Fall, Lost, request
from curate.isolation.replies import Part

MOST: Final = 4
"""Trials that may be going on beside the batch."""

TURN: Final = 0.05
"""Seconds that one of several trials is waited for before the next is looked at."""


class Trial:
    """One row that is tried alone."""

    def __init__(self, crew: Crew, step: int, row: int, fall: Fall, limits: Limits) -> None:
        """Begin; `fall` is why the row is a suspect."""
        self.crew, self.step, self.row, self.fall, self.limits = crew, step, row, fall, limits
        self.found: Part | Fall | None = None
        self.falls: list[Fall] = []
        self.lost: list[str] = []
        self.threads = ThreadPoolExecutor(ATTEMPTS)
        self.running: dict[Future[Answer | Fall | Lost], Child] = {}
        self._begin(ATTEMPTS)

    def _begin(self, count: int) -> None:
        asked = request(self.crew.arena, self.step, self.row, self.row + 1)
        for child in self.crew.start(count, self.limits):
            self.running[self.threads.submit(child.apply, asked, self.limits)] = child

    def advance(self, seconds: float = 0) -> None:
        """Take note of what has happened, or happens in so many seconds."""
        if self.found is None:
            self._look(seconds)

    def result(self) -> Part | Fall:
        """Wait for the end, and return the outcome of the row or how it fell.

        Raises:
            IsolationError: the processes are killed again and again from outside.
        """
        while self.found is None:
            self._look(None)
        return self.found

    def _look(self, timeout: float | None) -> None:
        for future in wait(self.running, timeout, FIRST_COMPLETED).done:
            child = self.running.pop(future)
            found = self.crew.decoded(future.result(), self.row, self.row + 1)
            if isinstance(found, Part):
                self.crew.adopt(child)  # with all that it has loaded by now
                self.found = found
                self.close()
                return
            child.close()
            if isinstance(found, Fall):
                self.falls.append(found)
                continue
            self.lost.append(found.how)
            if len(self.lost) >= LOSSES:
                raise lost_again(self.lost)
            self._begin(1)
        if not self.running:
            self.found = self.falls[0]
            self.close()

    def close(self) -> None:
        """End what is still running."""
        for child in self.running.values():
            child.kill()
        self.threads.shutdown()
        for child in self.running.values():
            child.close()
        self.running = {}
