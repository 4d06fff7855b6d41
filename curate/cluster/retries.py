"""How often a task is tried again: after it lost its worker or its node, never after an error of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Retries:
    """The policy.

    Attributes:
        workers: lost workers that a task survives: a task may be what takes them down, by its memory or a crash.
        nodes: lost nodes that it survives; a task has no part in those, so there are more.
        first: seconds before the first new attempt; each further wait is twice as long.
        longest: the longest wait.
    """

    workers: int = 4
    nodes: int = 16
    first: float = 1.0
    longest: float = 60.0

    def wait(self, losses: int) -> float:
        """Return the seconds to wait after so many losses of one task, 1 and more."""
        return float(min(self.longest, self.first * 2 ** min(losses - 1, 30)))


RETRIES: Final = Retries()
