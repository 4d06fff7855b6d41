"""Which steps of a shard are guarded, and what happens to the verdicts: read first, found, written once.

A list that is in the store when a task begins, or was passed in, is part of its input. Verdicts that the task finds are
published before any file of the shard, create-if-absent. An attempt that finds another attempt's list there reads it
and makes the shard again with it; one that finds the receipt there is done. So a receipt always names the list that
its shard was made with.
"""

from __future__ import annotations

import enum
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from curate.accounting.accountant import Step
from curate.accounting.quarantine import (
    NO_QUARANTINE,
    Quarantine,
    Verdicts,
    quarantine_name,
    read_quarantine,
    write_quarantine,
)
from curate.isolation.crew import crew_of
from curate.isolation.judging import Judge
from curate.isolation.limits import Limits
from curate.isolation.step import Isolated, Listed
from curate.receipts import read_receipt
from curate.store import Store, StoreError
from transforms.outcome import Transform

CHILD_BYTES: Final = 384 << 20
"""Memory of a nursery and its child, most of it shared: libraries, an extractor, 64 MiB each of batch and replies."""


@dataclass(frozen=True, slots=True)
class Isolation:
    """How a run isolates.

    Attributes:
        limits: what a document may cost before it is a suspect.
        modules: names of modules that children cannot import, as the recipe's own file.
        passed: verdicts that were passed in.
    """

    limits: Limits = field(default_factory=Limits)
    modules: tuple[str, ...] = ()
    passed: Verdicts = field(default_factory=dict)

    def guard(self, steps: Sequence[Step]) -> Guard:
        """Return the guard of tasks that apply `steps`."""
        isolated = [step.transform for step in steps if is_isolated(step.transform)]
        return Guard(ship(isolated, self.modules) if isolated else b"", self.limits, self.passed)


ISOLATED: Final = Isolation()
"""How a run isolates that is told nothing of it."""


@dataclass(frozen=True, slots=True)
class Guard:
    """What tasks need to isolate: the isolated transforms, pickled once, limits, and verdicts that were passed in."""

    chain: bytes
    limits: Limits
    passed: Verdicts

    @property
    def memory(self) -> int:
        """Bytes that a task needs beside its worker; not what a suspect may take, which is rare and soon over."""
        return CHILD_BYTES if self.chain else 0


NO_GUARD: Final = Guard(b"", Limits(), {})
"""Of tasks that have nothing to isolate: every step is applied in the worker itself."""


class Settled(enum.Enum):
    """What a task that has made its shard does: publish it, make it again with another list, or nothing more."""

    PUBLISH = enum.auto()
    AGAIN = enum.auto()
    DONE = enum.auto()


class GuardedShard:
    """The steps of one shard with their guards, and its quarantine list."""

    def __init__(
        self, store: Store, key: str, label: str, steps: Sequence[Step], guard: Guard, shows: Callable[[str], bool]
    ) -> None:
        """`label` is stage and shard in words, `shows` whether texts of a source may be shown.

        Raises:
            StoreError: a list names a step that is not there, or says other than what was passed in.
        """
        self.store, self.key, self.label = store, key, label
        self.judge = Judge(label, guard.limits, shows)
        self.listed = self._read(guard, steps)
        self.digest = self.listed.digest
        number = 0
        self.steps: list[Step] = []
        for step in steps:
            transform = step.transform
            if guard.chain and is_isolated(transform):
                transform = Isolated(transform, number, step.name, partial(crew_of, guard.chain), self.judge)
                number += 1
            if mine := self.listed.of_step(step.name):
                transform = Listed(transform, mine)
            self.steps.append(Step(step.name, transform))

    def _read(self, guard: Guard, steps: Sequence[Step]) -> Quarantine:
        listed, passed = read_quarantine(self.store, self.key), guard.passed.get(self.key, {})
        if listed is NO_QUARANTINE:
            listed = Quarantine(passed, None)
        elif not set(passed.values()) <= set(listed.verdicts.values()):
            raise StoreError(
                f"{self.store.url(quarantine_name(self.key))} has other verdicts than the list that was passed in: "
                "pass the list with a new store, or run without it"
            )
        if strange := sorted({verdict.transform for verdict in listed.verdicts.values()} - {s.name for s in steps}):
            raise StoreError(
                f"{self.store.url(quarantine_name(self.key))}, or the list that was passed in, has a verdict on the "
                f"step {strange[0]!r}; the steps of the shard are {', '.join(step.name for step in steps)}"
            )
        return listed

    def settle(self) -> Settled:
        """Publish what was found, and say what is to be done with the shard.

        Raises:
            TooManyRaised: most documents raised in a step.
            StoreError: there is a list already, and still more was found.
        """
        self.judge.close()
        wanted = {**self.listed.verdicts, **self.judge.verdicts}
        found = bool(self.judge.verdicts)
        if found and read_receipt(self.store, self.key) is not None:
            return Settled.DONE  # another attempt made it, with or without a list: that one counts
        if found and self.listed.digest is not None:
            raise StoreError(
                f"{self.label}: {self.store.url(quarantine_name(self.key))} was there before, and "
                f"{len(self.judge.verdicts)} more documents could not be processed. Remove it to have all judged again"
            )
        if not wanted or self.listed.digest is not None:
            return Settled.PUBLISH if self._is_alone() else Settled.AGAIN
        try:
            self.digest = write_quarantine(self.store, self.key, wanted.values())
        except StoreError:
            if not self.store.exists(quarantine_name(self.key)):
                raise
            return Settled.AGAIN
        return Settled.PUBLISH

    def _is_alone(self) -> bool:
        """Return whether no other attempt has published a list since this one began."""
        isolates = any(isinstance(step.transform, Isolated) for step in self.steps)
        return self.digest is not None or not isolates or not self.store.exists(quarantine_name(self.key))


def is_isolated(transform: Transform) -> bool:
    """Return whether `transform` is applied in a child process: it says so by its attribute `isolated`."""
    return bool(getattr(transform, "isolated", False))


def ship(transforms: Sequence[Transform], modules: Sequence[str]) -> bytes:
    """Return `transforms` as a child can load them; what is defined in `modules`, or cannot be imported, goes along."""
    from ray import cloudpickle

    there = {*cloudpickle.list_registry_pickle_by_value()}
    mine = [sys.modules[name] for name in modules if name in sys.modules and name not in there]
    for module in mine:
        cloudpickle.register_pickle_by_value(module)
    try:
        return bytes(cloudpickle.dumps(list(transforms)))
    finally:
        for module in mine:
            cloudpickle.unregister_pickle_by_value(module)
