"""What runners run: a job is shipped to a worker once, its items are small and many.

A job's `run(item)` does one task: it publishes the files of a shard, then its receipt. It may be run again, on another
host, at any time; two attempts at one item publish the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from curate.accounting.statistics import Statistics
from curate.committing.gathered import Receipts
from curate.receipts import FileEntry, Receipt, publish_receipt, shard_folder
from curate.store import Store


@dataclass(frozen=True, slots=True)
class Resources:
    """What one task of a job needs of its node; declared, not enforced.

    Attributes:
        cpus: whole CPUs.
        memory: bytes; 0 where the job cannot say.
        gpus: whole GPUs.
    """

    cpus: int = 1
    memory: int = 0
    gpus: int = 0

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            ValueError: no CPU, or a negative number.
        """
        if self.cpus < 1 or self.memory < 0 or self.gpus < 0:
            raise ValueError(f"{self!r}: a task needs at least one CPU, and nothing less than nothing")

    def __str__(self) -> str:
        parts = [f"{self.cpus} CPU" + "s" * (self.cpus > 1)]
        parts += [f"{self.memory / 1e9:.2f} GB of memory"] * (self.memory > 0)
        parts += [f"{self.gpus} GPU" + "s" * (self.gpus > 1)] * (self.gpus > 0)
        return ", ".join(parts)


def resources_of(job: Job) -> Resources:
    """Return what a task of `job` needs: its `resources`, or one CPU."""
    declared = getattr(job, "resources", None)
    return declared if isinstance(declared, Resources) else Resources()


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
    """Configuration of many tasks of one kind; it may have `resources`, what one task needs (`Resources`)."""

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
    """A task failed; the message names the job, the item and the cause.

    Attributes:
        details: what the journal wants to know: key, label, attempt, host, where its log lies.
    """

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.details = details


Spooled = tuple[Path, int] | tuple[Path, int, str]
"""A file to publish: path, rows, and the digest of its content where it has one."""


def publish_files(
    store: Store,
    item: Item,
    task: str,
    files: Mapping[str, Spooled],
    counts: Statistics,
) -> None:
    """Publish spooled `files` (name → path, rows, digest of content) under the item's shard key, then the receipt."""
    entries = {}
    for name, (path, rows, *content) in files.items():
        size = path.stat().st_size
        digest = store.publish(path, f"{shard_folder(item.key)}/{name}")
        entries[name] = FileEntry(size, digest, rows, content[0] if content else None)
    publish_receipt(store, Receipt(item.key, task, {"unit": item.unit}, entries, counts))
