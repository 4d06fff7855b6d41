"""Running transforms over batches with every document and code point accounted for.

After each transform: the ids kept and dropped are the ids that came in, in order, and for each kept document the code
points of its text changed by what its edits say; a text without an edit is the text that came in. A transform that
breaks this stops the run: its outcome cannot be trusted. Ledger rows come out in the order (record, step), whatever the
batching.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from curate.digests import text_digest
from curate.samples import Samples, edit_excerpt, excerpt
from curate.statistics import Statistics, add
from transforms.chain import name_of, rename
from transforms.outcome import Outcome, Transform
from transforms.pii import mask_excerpt

Integers = npt.NDArray[np.int64]
LedgerRow = tuple[int, int, dict[str, Any]]  # (ordinal of the record, step, columns)


class ConservationError(RuntimeError):
    """Documents or code points do not add up: a transform or operation broke its promise."""


@dataclass(frozen=True, slots=True)
class Step:
    """A transform of a chain with the `name` that is unique in it (a second GopherQuality is "GopherQuality#2")."""

    name: str
    transform: Transform


def characters_of(batch: pa.RecordBatch) -> Integers:
    """Return the code points of each text; zeros while there is no text yet."""
    if batch.schema.get_field_index("text") < 0:
        return np.zeros(batch.num_rows, np.int64)
    return np.asarray(pc.utf8_length(batch.column("text")).to_numpy(zero_copy_only=False), np.int64)


class Accountant:
    """Applies the steps of a chain to batches and keeps the books of one shard."""

    def __init__(self, steps: Sequence[Step], samples: Samples, shows: Callable[[str], bool]) -> None:
        """`shows` tells whether excerpts of a source may be written."""
        self.steps, self.samples, self.shows = steps, samples, shows
        self.statistics: Statistics = {}

    def run(self, batch: pa.RecordBatch, ordinals: Integers) -> tuple[pa.RecordBatch, Integers, list[LedgerRow]]:
        """Return the kept rows, their ordinals, and the ledger rows of all steps, ordered."""
        ledger: list[LedgerRow] = []
        for index, step in enumerate(self.steps):
            outcome = _named(step, step.transform.apply(batch))
            flow = _Flow(step.name, index, batch, outcome)
            flow.check()
            flow.count(self.statistics)
            ledger.extend(flow.ledger(ordinals))
            flow.sample(self.samples, _nothing if withholds(step.transform) else self.shows)
            batch, ordinals = outcome.kept, ordinals[flow.kept]
        ledger.sort(key=lambda row: row[:2])
        return batch, ordinals, ledger


def withholds(transform: Transform) -> bool:
    """Return whether no excerpt may be shown of what `transform` drops, as it is withdrawn."""
    return bool(getattr(transform, "withholds", False))


def _nothing(source: str) -> bool:
    return False


def _named(step: Step, outcome: Outcome) -> Outcome:
    """Return `outcome` under the step's own name, which is unique in the chain."""
    before = name_of(step.transform)
    renamed = [rename(rows, before, step.name) for rows in (outcome.dropped, outcome.edits, outcome.near)]
    return Outcome(outcome.kept, *renamed)


class _Flow:
    """One batch through one step: positions of the outcome's rows among the rows that came in."""

    def __init__(self, name: str, index: int, batch: pa.RecordBatch, outcome: Outcome) -> None:
        self.name, self.index, self.batch, self.outcome = name, index, batch, outcome
        self.before, self.after = characters_of(batch), characters_of(outcome.kept)
        self.kept = self._positions(outcome.kept, "kept")
        self.dropped = self._positions(outcome.dropped, "dropped")
        self.edited = self._positions(outcome.edits, "edited")
        self.starts = batch.schema.get_field_index("text") < 0

    def _positions(self, rows: pa.RecordBatch, what: str) -> Integers:
        found = pc.index_in(rows.column("id"), self.batch.column("id"))
        if found.null_count:
            strange = rows.column("id").filter(found.is_null())[0].as_py().hex()
            raise ConservationError(f"{self.name}: {what} document {strange} did not come in")
        return np.asarray(found.to_numpy(zero_copy_only=False), np.int64)

    def check(self) -> None:
        """Raise `ConservationError` unless documents and code points add up."""
        where = self.name
        if len(self.kept) > 1 and not (np.diff(self.kept) > 0).all():
            raise ConservationError(f"{where}: kept documents are not in the order in which they came in")
        seen = np.bincount(np.concatenate([self.kept, self.dropped]), minlength=self.batch.num_rows)
        if (seen != 1).any():
            row = int(np.flatnonzero(seen != 1)[0])
            raise ConservationError(
                f"{where}: document {self.batch.column('id')[row].as_py().hex()} came in once, left {int(seen[row])} "
                "times: each must be kept or dropped with a reason, once"
            )
        if self.starts:
            return
        change = np.zeros(self.batch.num_rows, np.int64)
        np.add.at(change, self.edited, self._edit("inserted") - self._edit("cut"))
        wrong = np.flatnonzero(self.after != self.before[self.kept] + change[self.kept])
        if len(wrong):
            row = int(self.kept[wrong[0]])
            raise ConservationError(
                f"{where}: document {self.batch.column('id')[row].as_py().hex()} had {int(self.before[row])} code "
                f"points, has {int(self.after[wrong[0]])}, and its edits say {int(change[row]):+d}"
            )
        self._check_unedited()

    def _check_unedited(self) -> None:
        same = np.ones(self.batch.num_rows, np.bool_)
        same[self.edited] = False
        rows = np.flatnonzero(same[self.kept])
        before = self.batch.column("text").take(pa.array(self.kept[rows]))
        after = self.outcome.kept.column("text").take(pa.array(rows))
        if not before.equals(after):
            row = int(self.kept[rows[pc.index(pc.not_equal(before, after), True).as_py()]])
            identity = self.batch.column("id")[row].as_py().hex()
            raise ConservationError(f"{self.name}: the text of document {identity} changed without an edit")

    def _edit(self, column: str) -> Integers:
        return np.asarray(self.outcome.edits.column(column).to_numpy(zero_copy_only=False), np.int64)

    def count(self, statistics: Statistics) -> None:
        """Add this batch to the funnel of the step, per source."""
        node = statistics.setdefault(f"{self.index:02d}", {"name": self.name, "sources": {}})["sources"]
        sources = np.asarray(self.batch.column("source").to_numpy(zero_copy_only=False), object)
        for source in sorted(set(sources)):
            mine = sources == source
            self._count_source(node.setdefault(source, {}), mine)

    def _count_source(self, node: Statistics, mine: npt.NDArray[np.bool_]) -> None:
        stays = mine[self.kept]
        add(node, ["documents_in"], int(mine.sum()))
        add(node, ["documents_out"], int(stays.sum()))
        add(node, ["characters_in"], int(self.before[mine].sum()))
        add(node, ["characters_out"], int(self.after[stays].sum()))
        if self.starts:
            lengths = pc.binary_length(self.batch.column("payload")).to_numpy(zero_copy_only=False)
            add(node, ["payload_bytes_in"], int(lengths[mine].sum()))
        dropped = self.outcome.dropped
        for row, position in enumerate(self.dropped):
            if mine[position]:
                path = ["dropped", dropped.column("transform")[row].as_py(), dropped.column("reason")[row].as_py()]
                add(node, [*path, "documents"], 1)
                add(node, [*path, "characters"], int(self.before[position]))
        gone = set(self.dropped.tolist())
        for row, position in enumerate(self.edited.tolist()):
            if mine[position] and position not in gone:
                reason = self.outcome.edits.column("reason")[row].as_py()
                add(node, ["edits", reason, "documents"], 1)
                add(node, ["edits", reason, "cut"], self.outcome.edits.column("cut")[row].as_py())
                add(node, ["edits", reason, "inserted"], self.outcome.edits.column("inserted")[row].as_py())

    def ledger(self, ordinals: Integers) -> list[LedgerRow]:
        """Return the ledger rows of this batch and step."""
        rows = []
        gone = set(self.dropped.tolist())  # an edit inside a branch that then drops the document went with it
        for kind, table, positions in (
            ("dropped", self.outcome.dropped, self.dropped),
            ("edit", self.outcome.edits, self.edited),
        ):
            for values, position in zip(table.to_pylist(), positions, strict=True):
                if kind == "edit" and position in gone:
                    continue
                text = self._text(int(position))
                columns = {
                    **values,
                    "kind": kind,
                    "evidence": None if values["evidence"] is None else mask_excerpt(values["evidence"]),
                    "source": self.batch.column("source")[int(position)].as_py(),
                    "origin": self.batch.column("origin")[int(position)].as_py(),
                    "characters": int(self.before[position]),
                    "text_digest": None if text is None else text_digest(text),
                    "cut": values.get("cut", 0),
                    "inserted": values.get("inserted", 0),
                }
                rows.append((int(ordinals[position]), self.index, columns))
        return rows

    def _text(self, position: int) -> str | None:
        return None if self.starts else str(self.batch.column("text")[position].as_py())

    def sample(self, samples: Samples, shows: Callable[[str], bool]) -> None:
        """Offer dropped, nearly dropped and edited documents of this batch to the samples."""
        if self.starts:
            return
        near = self._positions(self.outcome.near, "near")
        after = dict(zip(self.kept.tolist(), range(len(self.kept)), strict=True))
        for kind, table, positions in (
            ("dropped", self.outcome.dropped, self.dropped),
            ("near miss", self.outcome.near, near),
            ("edited", self.outcome.edits, self.edited),
        ):
            for values, position in zip(table.to_pylist(), positions.tolist(), strict=True):
                text = self._text(position) or ""
                digest = text_digest(text)
                if samples.wants((kind, values["transform"], values["reason"]), digest, values["id"]):
                    later = self._later(after, position) if kind == "edited" else None
                    samples.offer(sample_row(kind, values, self.batch, position, digest, shows, later))

    def _later(self, after: Mapping[int, int], position: int) -> str | None:
        row = after.get(position)
        return None if row is None else str(self.outcome.kept.column("text")[row].as_py())


def sample_row(
    kind: str,
    values: Mapping[str, Any],
    batch: pa.RecordBatch,
    position: int,
    digest: bytes,
    shows: Callable[[str], bool],
    after: str | None = None,
) -> dict[str, Any]:
    """Return the row of `SAMPLES` for the document at `position` of `batch`."""
    source = batch.column("source")[position].as_py()
    text = batch.column("text")[position].as_py()
    url = batch.column("url")[position].as_py() if batch.schema.get_field_index("url") >= 0 else None
    shown: tuple[str, str | None] = ("", None)
    if shows(source):
        shown = (excerpt(text), None) if after is None else edit_excerpt(text, after)
    measured = ("measure", "numerator", "denominator", "threshold")
    return {
        "kind": kind,
        "transform": values.get("transform", ""),
        "reason": values.get("reason", ""),
        "text_digest": digest,
        "id": batch.column("id")[position].as_py(),
        "source": source,
        "origin": batch.column("origin")[position].as_py(),
        "url": None if url is None else mask_excerpt(url),
        **{name: values.get(name) for name in measured},
        "evidence": None if values.get("evidence") is None else mask_excerpt(values["evidence"]),
        "characters": len(text),
        "excerpt": shown[0],
        "after": shown[1],
    }
