"""A frozen reference: a finished dataset, of this store or another, that documents are held against.

It is opened when the recipe is called (one manifest is read) and only read. Its content digest is part of the key of
what is held against it, its place is not: a copy elsewhere is the same reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from curate.configuration import ConfigurationError
from curate.datasets import Dataset, datasets_in
from curate.store import Store, open_store


@dataclass(frozen=True, slots=True)
class Frozen:
    """A shard of a reference: where it lies, its key, and what the reference is called."""

    store: Store
    key: str
    name: str


@dataclass(frozen=True, slots=True)
class Reference:
    """The dataset in `folder` of `store`; `content` is its content digest, `name` that of the stage that made it."""

    store: Store = field(metadata={"key": False})
    folder: str = field(metadata={"key": False})
    name: str = field(metadata={"key": False})
    columns: tuple[str, ...] = field(metadata={"key": False})
    content: str

    @property
    def dataset(self) -> Dataset:
        """The dataset, opened.

        Raises:
            ConfigurationError: another one stands there since.
        """
        found = next((made for made in datasets_in(self.store) if made.folder == self.folder), None)
        if found is None or found.content != self.content:
            raise ConfigurationError(f"{self.store.url(self.folder)} is no longer the dataset that the recipe opened")
        return found


def frozen_shards(references: Sequence[Reference], count: str = "bytes") -> tuple[tuple[Frozen, ...], tuple[int, ...]]:
    """Return the shards of `references` that hold anything, and how large each is: "rows" or "bytes".

    Raises:
        ConfigurationError: one is not what it was when the recipe was called.
    """
    made = [(each, shard) for each in references for shard in each.dataset.kept_shards()]
    shards = tuple(Frozen(each.store, shard["key"], each.name) for each, shard in made)
    return shards, tuple(shard[count] for _, shard in made)


Against = Reference | tuple[Reference, ...] | None
"""What an operation is held against: as one, where it is one, which its key is made of."""


def against_of(against: Reference | Sequence[Reference] | None) -> Against:
    """Return what a recipe gave as `against=` in the form that operations hold."""
    found = references_of(against)
    return found if len(found) > 1 else found[0] if found else None


def references_of(against: Reference | Sequence[Reference] | None) -> tuple[Reference, ...]:
    """Return what a recipe gave as `against=`: none, one or several."""
    if against is None:
        return ()
    return (against,) if isinstance(against, Reference) else tuple(against)


def reference(store: str | Path | Store, name: str) -> Reference:
    """Return the dataset `name` (of a stage, or its folder) of an earlier result, to hold documents against.

    Raises:
        ConfigurationError: the store has none of that name, or several; the message lists what there is.
    """
    place = open_store(store)
    there = datasets_in(place)
    found = [made for made in there if name in (made.name, made.folder)]
    if len(found) != 1:
        told = ", ".join(sorted(made.folder for made in found or there)) or "no dataset"
        many = f"{len(found)} datasets" if found else "no dataset"
        raise ConfigurationError(f"{place.url('')} has {many} called {name!r}: give the folder of one of {told}")
    columns = tuple(column for column, _ in found[0].manifest["schema"])
    if "text" not in columns:
        raise ConfigurationError(f"{place.url(found[0].folder)} has records, not documents: nothing can be compared")
    return Reference(place, found[0].folder, found[0].name, columns, found[0].content)
