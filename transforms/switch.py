"""Branching by a column: each value has its own chain of transforms.

Invariants: every row goes through exactly one chain; kept rows stay in input order; the ledger names the branch, as
"Switch(language=en)/GopherQuality". Cost: one selection of rows per branch, plus the chains on their own rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from transforms.chain import concatenate, in_row_order, positions_of, rename, run_chain, run_chain_schema
from transforms.outcome import DROPPED, EDITS, Outcome, SchemaError, Transform, require
from transforms.spread import renamed

Chain = tuple[Transform, ...]


@dataclass(frozen=True, slots=True, init=False)
class Switch:
    """Applies the chain that belongs to a row's value in the string column `column`.

    `Switch("language", en=[GopherRepetition(), GopherQuality()], de=[GopherQuality(stop_words=GERMAN)])`. Rows with
    another value, and nulls, go through the chain `others`, which by default is empty and leaves them as they are.
    For values that are no Python names use `**{"zh-hant": […]}`. All chains must give the same columns.
    """

    column: str
    chains: tuple[tuple[str, Chain], ...]
    others: Chain

    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ()

    def __init__(self, column: str, /, *, others: Sequence[Transform] = (), **chains: Sequence[Transform]) -> None:
        """Branch by `column`; the order in which values are given does not matter.

        Raises:
            TypeError: a chain is not a list or tuple of transforms.
        """
        object.__setattr__(self, "column", column)
        object.__setattr__(self, "chains", tuple((value, _chain(value, chains[value])) for value in sorted(chains)))
        object.__setattr__(self, "others", _chain("others", others))

    @property
    def isolated(self) -> bool:
        """Whether a transform in a branch is applied in a child process: then all are."""
        inner = [*self.others, *(transform for _, chain in self.chains for transform in chain)]
        return any(getattr(transform, "isolated", False) for transform in inner)

    def ready(self) -> None:
        """Load what the transforms in the branches need."""
        for transform in [*self.others, *(inner for _, chain in self.chains for inner in chain)]:
            if (ready := getattr(transform, "ready", None)) is not None:
                ready()

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema that all chains give.

        Raises:
            SchemaError: `column` is missing or no large_string, a chain cannot be applied, or two chains give
                different columns.
        """
        require(schema, "Switch", **{self.column: pa.large_string()})
        expected = run_chain_schema(self.others, schema)
        for value, chain in self.chains:
            found = run_chain_schema(chain, schema)
            if found != expected:
                raise SchemaError(
                    f"Switch({self.column}=…): the branches must give the same columns in the same order; "
                    f"{self.column}={value} {_difference(found, expected)} than the rows of other values"
                )
        return expected

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        """Send each row through its chain and put the kept rows back into input order."""
        ids = batch.column("id")
        outcomes = [
            (branch, run_chain(chain, batch.take(pa.array(rows, pa.int64()))))
            for branch, chain, rows in self._branches(batch)
        ]
        if not outcomes:
            outcomes = [("others", run_chain(self.others, batch))]
        rows = concatenate([outcome.kept for _, outcome in outcomes])
        in_order = np.argsort(positions_of(ids, rows), kind="stable")
        return Outcome(
            rows.take(pa.array(in_order, pa.int64())),
            in_row_order([self._named(branch, outcome.dropped) for branch, outcome in outcomes], DROPPED, ids),
            in_row_order([self._named(branch, outcome.edits) for branch, outcome in outcomes], EDITS, ids),
            in_row_order([self._named(branch, outcome.near) for branch, outcome in outcomes], DROPPED, ids),
            tuple(spread for b, outcome in outcomes for spread in renamed(outcome.spreads, "", self._prefix(b))),
        )

    def _branches(self, batch: pa.RecordBatch) -> list[tuple[str, Chain, npt.NDArray[np.int64]]]:
        """Return name, chain and rows of each branch that has rows."""
        values = pa.array([value for value, _ in self.chains], pa.large_string())
        found: Any = pc.index_in(batch.column(self.column), value_set=values).fill_null(-1)
        branch = np.asarray(found.to_numpy(zero_copy_only=False), np.int64)
        everything = [*((f"{self.column}={value}", chain) for value, chain in self.chains), ("others", self.others)]
        numbers = [*range(len(self.chains)), -1]
        rows = [np.flatnonzero(branch == number) for number in numbers]
        return [(name, chain, mine) for (name, chain), mine in zip(everything, rows, strict=True) if len(mine)]

    def _named(self, branch: str, rows: pa.RecordBatch) -> pa.RecordBatch:
        return rename(rows, "", self._prefix(branch))

    def _prefix(self, branch: str) -> str:
        where = branch if branch != "others" else f"{self.column}=others"
        return f"Switch({where})/"


def _chain(value: str, transforms: Sequence[Any]) -> Chain:
    if not isinstance(transforms, (list, tuple)):
        raise TypeError(f"the chain of {value!r} is a list of transforms, got {transforms!r}")
    for transform in transforms:
        if not isinstance(transform, Transform):
            raise TypeError(f"the chain of {value!r} holds {transform!r}, which is no transform")
    return tuple(transforms)


def _difference(found: pa.Schema, expected: pa.Schema) -> str:
    """Return how `found` differs, as "adds 'a' and lacks 'b'"."""
    added = [name for name in found.names if name not in expected.names]
    lacking = [name for name in expected.names if name not in found.names]
    other = [name for name in found.names if name in expected.names and found.field(name) != expected.field(name)]
    parts = [
        f"has {_list(added)} more" if added else "",
        f"lacks {_list(lacking)}" if lacking else "",
        f"has another type of {_list(other)}" if other else "",
    ]
    return " and ".join(part for part in parts if part) or f"has another order ({', '.join(found.names)})"


def _list(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names)
