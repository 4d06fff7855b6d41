"""Suspects on trial: one row in fresh processes, in rounds, while the worker goes on with the batch.

A trial is over when the row succeeds in one of its processes, or has fallen in all of every round. Children are started
by the worker's own thread only; threads wait for them. Cost: two threads a trial.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Final

from curate.isolation.crew import LOSSES, Crew, lost_again
from curate.isolation.limits import Limits
from curate.isolation.process import Answer, Child, Fall, Lost, request
from curate.isolation.replies import Part

MOST: Final = 4
"""Trials that may be going on beside the batch."""

TURN: Final = 0.05
"""Seconds that one of several trials is waited for before the next is looked at."""


class Trial:
    """One row that is tried alone; `rounds` are how many processes try it at a time."""

    def __init__(self, crew: Crew, step: int, row: int, fall: Fall, limits: Limits, rounds: Sequence[int]) -> None:
        """Begin with the first round; `fall` is why the row is a suspect."""
        self.crew, self.step, self.row, self.fall, self.limits = crew, step, row, fall, limits
        self.rounds = list(rounds)
        self.found: Part | Fall | None = None
        self.lost: list[str] = []
        self.threads = ThreadPoolExecutor(max(rounds))
        self._begin()

    def _begin(self) -> None:
        self.falls: list[Fall] = []
        children = self.crew.start(self.rounds[0], self.limits)
        asked = request(self.crew.arena, self.step, self.row, self.row + 1)
        self.running: dict[Future[Answer | Fall | Lost], Child] = {
            self.threads.submit(child.apply, asked, self.limits): child for child in children
        }

    def advance(self, seconds: float = 0) -> None:
        """Take note of what has happened, or happens in so many seconds; begin the next round where it is time."""
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
            else:
                self.lost.append(found.how)
        if not self.running:
            self._end_round()

    def _end_round(self) -> None:
        if len(self.lost) >= LOSSES:
            raise lost_again(self.lost)
        if len(self.falls) == self.rounds[0]:
            self.rounds.pop(0)
            if not self.rounds:
                self.found = self.falls[0]
                self.close()
                return
        self._begin()

    def close(self) -> None:
        """End what is still running."""
        for child in self.running.values():
            child.kill()
        self.threads.shutdown()
        for child in self.running.values():
            child.close()
        self.running = {}
