"""The child of this thread: kept from task to task while they apply the same chain, replaced when it falls.

One per thread, because the kernel ends a nursery with the thread that started it, and because two runs in one process
must not share one. `crew_of` makes it, `dismiss` ends it; at the latest it ends with the process. Memory: the child
(about 200 MB with an extractor), and the batch in hand once more.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from curate.isolation.arena import Arena
from curate.isolation.limits import Limits
from curate.isolation.nursery import Nursery, NurseryGone
from curate.isolation.process import Answer, Child, Fall, IsolationError, Lost, request
from curate.isolation.replies import Part, decode

SLICE_SECONDS: Final = 0.2
"""What a slice should take: long against asking for it, short against the limit."""

FASTER: Final = 8
"""A slice has at most so many times the rows of the one before."""

LOSSES: Final = 5
"""How often in a row a child may be killed by somebody else."""


@dataclass(slots=True)
class Pace:
    """How many rows a slice has: so many that it takes `SLICE_SECONDS`. Decides about no document."""

    rows: int = 1
    slices: int = 0

    def took(self, rows: int, seconds: float) -> None:
        """Learn from a slice."""
        self.slices += 1
        self.rows = max(1, min(int(rows * SLICE_SECONDS / max(seconds, 1e-6)), self.rows * FASTER))


class Crew:
    """A child with the chain `chain`, and the memory that it shares with its worker."""

    def __init__(self, chain: bytes) -> None:
        self.chain, self.owner = chain, os.getpid()
        self.arena = Arena()
        self.child: Child | None = None
        self.nursery: Nursery | None = None
        self.paces: dict[int, Pace] = {}
        self.batch: pa.RecordBatch | None = None
        self.limits = Limits()

    def take(self, batch: pa.RecordBatch, limits: Limits) -> None:
        """Make `batch` the one that slices are of, and `limits` those of its documents."""
        self.arena.write(batch)
        self.batch, self.limits = batch, limits
        if self.child is not None and self.child.has_grown(limits):
            self.release()

    def apply(self, step: int, start: int, stop: int) -> Part | Fall:
        """Return the outcome of rows of the batch through a transform of the chain.

        Raises:
            IsolationError: children cannot be started, or are killed again and again from outside.
        """
        lost: list[str] = []
        while len(lost) < LOSSES:
            if self.child is None:
                (self.child,) = self.start(1, self.limits)
            began = time.monotonic()
            try:
                answer = self.child.apply(request(self.arena, step, start, stop), self.limits)
            except BaseException:  # somebody stops this worker: what the child says now would answer another question
                self.release()
                raise
            found = self.decoded(answer, start, stop)
            if isinstance(found, Part):
                self.paces.setdefault(step, Pace()).took(stop - start, time.monotonic() - began)
                return found
            if isinstance(found, Lost) or found.reason != "raised":
                self.release()
            if isinstance(found, Fall):
                return found
            lost.append(found.how)
        raise lost_again(lost)

    def rows(self, step: int) -> int:
        """Return how many rows the next slice should have."""
        return self.paces.setdefault(step, Pace()).rows

    def decoded(self, answer: Answer | Fall | Lost, start: int, stop: int) -> Part | Fall | Lost:
        """Return the outcome that an answer for these rows holds; how the child fell, where there is none."""
        if not isinstance(answer, Answer):
            return answer
        if self.batch is None:
            raise TypeError("no batch was taken")
        try:
            return decode(answer.header, answer.body, self.batch, start, stop)
        except (ValueError, KeyError, TypeError, IndexError, pa.ArrowException, OSError) as error:
            return Fall("crashed", {"reply": type(error).__name__})

    def start(self, count: int, limits: Limits) -> list[Child]:
        """Return `count` new children.

        Raises:
            IsolationError: they cannot be started, or nurseries are killed again and again from outside.
        """
        children: list[Child] = []
        gone: list[str] = []
        while len(children) < count:
            try:
                if self.nursery is None:
                    self.nursery = Nursery(self.chain, self.arena)
                children.append(self.nursery.child(limits))
            except NurseryGone as error:
                if not self._drop_nursery():
                    gone.append(str(error))
                if len(gone) == LOSSES:
                    raise lost_again(gone) from error
        return children

    def adopt(self, child: Child) -> None:
        """Go on with `child`."""
        self.release()
        self.child = child

    def is_warm(self, step: int) -> bool:
        """Return whether children have answered for this transform: what takes long then is not its loading."""
        return step in self.paces and self.paces[step].slices > 0

    def _drop_nursery(self) -> bool:
        """Part from the nursery, and return whether it is a child now."""
        nursery, self.nursery = self.nursery, None
        if nursery is None:
            return False
        (nursery.leave if nursery.is_child else nursery.close)()
        return nursery.is_child

    def release(self) -> None:
        """End the child."""
        if self.child is not None:
            self.child.close()
            self.child = None

    def close(self) -> None:
        """End the child and its nursery, and give the shared memory back."""
        self.release()
        self._drop_nursery()
        self.arena.close()

    def __del__(self) -> None:
        if self.owner == os.getpid():  # a thread that ended without a word
            self.close()


class _Mine(threading.local):
    crew: Crew | None = None


_MINE: Final = _Mine()
_ELSEWHERE: Final[list[Crew]] = []
"""Crews of the process that this one was forked from: not ours to end, nor to collect."""


def crew_of(chain: bytes) -> Crew:
    """Return the crew of this thread for `chain`; one with another chain is dismissed."""
    if _MINE.crew is None or (_MINE.crew.chain, _MINE.crew.owner) != (chain, os.getpid()):
        dismiss()
        _MINE.crew = Crew(chain)
    return _MINE.crew


def dismiss() -> None:
    """End the child of this thread, if it has one."""
    crew, _MINE.crew = _MINE.crew, None
    if crew is not None and crew.owner != os.getpid():
        _ELSEWHERE.append(crew)
    elif crew is not None:
        crew.close()


def lost_again(how: Sequence[str]) -> IsolationError:
    """Return the error that says that children were killed from outside, each time as in `how`."""
    return IsolationError(
        f"child processes that transforms are applied in were killed from outside again and again ({', '.join(how)}): "
        "is the machine short of memory? Use fewer workers"
    )


atexit.register(dismiss)
