"""What a document may cost an isolated step before it is a suspect, and when it is judged.

Limits catch what the counts of a transform (bytes, nodes, depth) let through. They make suspects, never verdicts: a
suspect is tried alone with `FACTOR` times the limits, `ATTEMPTS` times. They are no part of any key.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from curate.isolation.machine import available_memory

SECONDS: Final = 3.0
"""Wall clock of a document, or of a slice of cheap ones, less what its process waits for a processor."""

MEMORY: Final = 1 << 30
"""Bytes that a child may grow over what it needed when it was ready."""

FACTOR: Final = 10
"""How much more a suspect gets when it is tried alone."""

ATTEMPTS: Final = 2
"""Fresh processes in which a suspect must fail before there is a verdict."""

LONGEST_TICK: Final = 0.25
"""Seconds that one look at the clock counts at most: a machine that was stopped meanwhile is no fault of a document."""

_STEP: Final = 256 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """What one document may take.

    Attributes:
        seconds: wall clock.
        memory: growth in bytes.
        usual: growth that is usually allowed, where this is more: who is silent for too long and holds more than that
            has run out of memory rather than of time.

    Raises:
        ValueError: a limit is not positive.
    """

    seconds: float = SECONDS
    memory: int = MEMORY
    usual: int | None = None

    def __post_init__(self) -> None:
        if not self.seconds > 0 or self.memory < 1 << 20:
            raise ValueError(
                f"{self.seconds} s and {self.memory} bytes a document: give more than 0 s, and at least 1 MiB"
            )

    def alone(self) -> Limits:
        """Return the limits of each trial of a suspect: together never more than half of the memory that is free."""
        return Limits(self.seconds * FACTOR, bounded(self.memory * FACTOR, 2 * ATTEMPTS), self.memory)

    def here(self) -> Limits:
        """Return these limits, bounded by half of the memory that is free now."""
        return Limits(self.seconds, bounded(self.memory, 2))


def bounded(memory: int, parts: int) -> int:
    """Return `memory`, or that part of what the machine has free, in steps of 256 MiB (at least one), if it is less."""
    part = available_memory() // parts
    return min(memory, max(part // _STEP, 1) * _STEP)


class Patience:
    """Counts down the seconds that a child may be silent, by looks at the clock that come every few milliseconds.

    `starved` says how many seconds the child has waited for a processor so far: these do not count, so that a busy
    machine makes no suspects.
    """

    def __init__(self, seconds: float, starved: Callable[[], float] = lambda: 0.0) -> None:
        self.seconds, self.starved = seconds, starved
        self.renew()

    def renew(self) -> None:
        """Begin again: the child has been heard."""
        self.left, self.last, self.starved_before = self.seconds, time.monotonic(), self.starved()

    def is_over(self) -> bool:
        """Look at the clock and return whether the time is up."""
        now, starved = time.monotonic(), self.starved()
        self.left -= max(0.0, min(now - self.last, LONGEST_TICK) - (starved - self.starved_before))
        self.last, self.starved_before = now, starved
        return self.left <= 0
