"""What runners run: a job is shipped to a worker once, its items are small and many.

A job's `run(item)` does one task: it publishes the files of a shard, then its receipt. It may be run again, on another
host, at any time; two attempts at one item publish the same bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from curate.store import Store


@dataclass(frozen=True, slots=True)
class Item:
    """One task of a job.

    Attributes:
        key: the key of the shard that it makes.
        label: the input in words, for progress, logs and errors.
        unit: what the job needs to know about the input.
        bytes: size of the input, for rates and time left.
    """

    key: str
    label: str
    unit: Any
    bytes: int = 0


class Job(Protocol):
    """Configuration of many tasks of one kind."""

    @property
    def store(self) -> Store:
        """The store that shards are published in."""
        ...

    @property
    def name(self) -> str:
        """What the tasks do, for progress and journal."""
        ...

    def run(self, item: Item) -> Any:
        """Do one task; what it returns is small and goes to the driver.

        Raises:
            Exception: anything is a failure of the run, with the item named by the runner.
        """
        ...


class TaskError(RuntimeError):
    """A task failed; the message names the job, the item and the cause."""
