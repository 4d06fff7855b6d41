"""What runners run: a job is shipped to a worker once, its items are small and many.

A job's `run(item)` does one task: it publishes the files of a shard, then its receipt. It may be run again, on another
host, at any time; two attempts at one item publish the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from curate.gathered import Receipts
from curate.receipts import FileEntry, Receipt, publish_receipt, shard_folder
from curate.statistics import Statistics
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


class RunsJobs(Protocol):
    """What dataset-wide operations need of the engine."""

    @property
    def store(self) -> Store:
        """Where shards are published."""
        ...

    def receipts(self, job: Job, items: Sequence[Item]) -> Receipts:
        """Return the receipts of all items, in order, merged in a tree; those that are missing are made."""
        ...


class TaskError(RuntimeError):
    """A task failed; the message names the job, the item and the cause."""


def publish_files(
    store: Store, item: Item, task: str, files: Mapping[str, tuple[Path, int]], counts: Statistics
) -> None:
    """Publish spooled `files` (name → path, rows) under the item's shard key, then the receipt."""
    entries = {}
    for name, (path, rows) in files.items():
        size = path.stat().st_size
        entries[name] = FileEntry(size, store.publish(path, f"{shard_folder(item.key)}/{name}"), rows)
    publish_receipt(store, Receipt(item.key, task, {"unit": item.unit}, entries, counts))
