"""Running transforms over batches with every document and code point accounted for.

After each transform: the ids kept and dropped are the ids that came in, in order, and for each kept document the code
points of its text changed by what its edits say; a text without an edit is the text that came in. A transform that
breaks this stops the run: its outcome cannot be trusted. Ledger rows come out in the order (record, step), whatever the
batching.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from curate.accounting.attributes import attributes_of
from curate.accounting.blame import blaming
from curate.accounting.found_items import count_items
from curate.accounting.ledger import LEDGER
from curate.accounting.measures import Coded, Integers, Measures, coded, combined, measure
from curate.accounting.rules import count_near, count_overlap, count_spreads
from curate.accounting.samples import Samples, edit_excerpt, excerpt_of
from curate.accounting.statistics import Statistics, add
from curate.accounting.who import Who, with_scripts
from transforms.chain import rename
from transforms.outcome import Outcome, Transform, name_of
from transforms.pii import mask_evidence, mask_evidences, mask_excerpt
from transforms.sharing import Sharing
from transforms.spread import renamed
from transforms.text_columns import first_difference, ordered_places
from transforms.withdraw import withholds


class ConservationError(RuntimeError):
    """Documents or code points do not add up: a transform or operation broke its promise."""


@dataclass(frozen=True, slots=True)
class Step:
    """A transform of a chain with the `name` that is unique in it (a second GopherQuality is "GopherQuality#2")."""

    name: str
    transform: Transform


@dataclass(frozen=True, slots=True)
class LedgerPart:
    """Rows of the ledger from one step: their records' ordinals, the step, and the columns of `LEDGER`."""

    ordinals: Integers
    step: int
    rows: pa.RecordBatch


@dataclass(frozen=True, slots=True)
class Passed:
    """What a chain kept of a batch, the ordinals and measures of these rows, and what goes to the ledger."""

    rows: pa.RecordBatch
    ordinals: Integers
    measures: Measures
    ledger: list[LedgerPart]


def in_order(parts: Sequence[LedgerPart]) -> pa.RecordBatch | None:
    """Return the rows of `parts` by record, then step; None where there are none."""
    filled = [part for part in parts if part.rows.num_rows]
    if not filled:
        return None
    ordinals = np.concatenate([part.ordinals for part in filled])
    steps = np.concatenate([np.full(len(part.ordinals), part.step) for part in filled])
    return pa.concat_batches([part.rows for part in filled]).take(pa.array(np.lexsort((steps, ordinals))))


@runtime_checkable
class SamplesMore(Protocol):
    """A step that has documents sampled besides those that it drops, nearly drops or edits."""

    def sampled_besides(self, batch: pa.RecordBatch, outcome: Outcome) -> dict[str, pa.RecordBatch]:
        """Return kind → rows of `DROPPED` about documents of `batch`."""
        ...


def _nothing(source: str) -> bool:
    return False


class Accountant:
    """Applies the steps of a chain to batches and keeps the books of one shard."""

    def __init__(self, steps: Sequence[Step], samples: Samples, shows: Callable[[str], bool]) -> None:
        """`shows` tells whether excerpts of a source may be written."""
        self.steps, self.samples, self.shows = steps, samples, shows
        self.statistics: Statistics = {}
        self.who = Who([step.transform for step in steps])

    def run(self, batch: pa.RecordBatch, ordinals: Integers, measures: Measures | None = None) -> Passed:
        """Return what the steps keep of `batch`, and the ledger rows of all steps; `measures` are of its texts."""
        ledger: list[LedgerPart] = []
        measures, shared, origins = measures or measure(batch), Sharing(), self.who.enter(batch)
        for index, step in enumerate(self.steps):
            with blaming(step.name, step.transform, batch):
                outcome = _named(step, shared.apply(step.transform, batch))
            flow = _Flow(step.name, index, batch, measures, outcome)
            flow.check()
            flow.count(self.statistics)
            self.who.count(f"{index:02d}", origins, batch, measures.characters, flow.dropped, outcome)
            ledger.extend(flow.ledger(ordinals))
            besides = step.transform.sampled_besides(batch, outcome) if isinstance(step.transform, SamplesMore) else {}
            flow.sample(self.samples, _nothing if withholds(step.transform) else self.shows, besides)
            batch, ordinals, measures = outcome.kept, ordinals[flow.kept], flow.after
            origins = with_scripts(origins.take(flow.kept), batch)
        return Passed(batch, ordinals, measures, ledger)


def _named(step: Step, outcome: Outcome) -> Outcome:
    """Return `outcome` under the step's own name, which is unique in the chain."""
    before = name_of(step.transform)
    dropped, edits, near = (rename(rows, before, step.name) for rows in (outcome.dropped, outcome.edits, outcome.near))
    spreads = renamed(outcome.spreads, before, step.name)
    return Outcome(outcome.kept, dropped, edits, near, spreads)


class _Flow:
    """One batch through one step: positions of the outcome's rows among the rows that came in, and measures of both."""

    def __init__(self, name: str, index: int, batch: pa.RecordBatch, before: Measures, outcome: Outcome) -> None:
        self.name, self.index, self.batch, self.before, self.outcome = name, index, batch, before, outcome
        self.kept = self._positions(outcome.kept, "kept")
        self.dropped = self._positions(outcome.dropped, "dropped")
        self.edited = self._positions(outcome.edits, "edited")
        self.starts = batch.schema.get_field_index("text") < 0
        self.after = before  # until `check` has seen what became of the texts

    def _positions(self, rows: pa.RecordBatch, what: str) -> Integers:
        ids = rows.column("id")
        places = ordered_places(self.batch.column("id"), ids)
        if places is not None:
            return places
        found = pc.index_in(ids, self.batch.column("id"))
        if found.null_count:
            strange = ids.filter(found.is_null())[0].as_py().hex()
            raise ConservationError(f"{self.name}: {what} document {strange} did not come in")
        return np.asarray(found.to_numpy(zero_copy_only=False), np.int64)

    def check(self) -> None:
        """Measure the kept texts, and raise `ConservationError` unless documents and code points add up."""
        if len(self.kept) > 1 and not (np.diff(self.kept) > 0).all():
            raise ConservationError(f"{self.name}: kept documents are not in the order in which they came in")
        seen = np.bincount(np.concatenate([self.kept, self.dropped]), minlength=self.batch.num_rows)
        if (seen != 1).any():
            row = int(np.flatnonzero(seen != 1)[0])
            raise ConservationError(
                f"{self.name}: document {self._id(row)} came in once, left {int(seen[row])} "
                "times: each must be kept or dropped with a reason, once"
            )
        if self.starts:
            self.after = measure(self.outcome.kept)
        else:
            self._check_texts()

    def _check_texts(self) -> None:
        """Measure edited texts, and see that all others are the texts that came in."""
        same = np.ones(self.batch.num_rows, np.bool_)
        same[self.edited] = False
        rows, edited = np.flatnonzero(same[self.kept]), np.flatnonzero(~same[self.kept])
        text = self.outcome.kept.column("text")
        changed = first_difference(self.batch.column("text"), self.kept[rows], text, rows)
        if changed is not None:
            self._check_lengths(measure(self.outcome.kept))
            identity = self._id(int(self.kept[rows[changed]]))
            raise ConservationError(f"{self.name}: the text of document {identity} changed without an edit")
        after = self.before.take(self.kept)
        if len(edited):
            after = after.replaced(edited, measure(self.outcome.kept.select(["text"]).take(pa.array(edited))))
            self._check_lengths(after)
        self.after = after

    def _check_lengths(self, after: Measures) -> None:
        change = np.zeros(self.batch.num_rows, np.int64)
        np.add.at(change, self.edited, self._edit("inserted") - self._edit("cut"))
        expected = self.before.characters[self.kept] + change[self.kept]
        wrong = np.flatnonzero(after.characters != expected)
        if len(wrong):
            row = int(self.kept[wrong[0]])
            raise ConservationError(
                f"{self.name}: document {self._id(row)} had {int(self.before.characters[row])} code "
                f"points, has {int(after.characters[wrong[0]])}, and its edits say {int(change[row]):+d}"
            )

    def _id(self, row: int) -> str:
        return str(self.batch.column("id")[row].as_py().hex())

    def _edit(self, column: str) -> Integers:
        return np.asarray(self.outcome.edits.column(column).to_numpy(zero_copy_only=False), np.int64)

    def _edits_that_stay(self) -> Integers:
        """Return the rows of `edits` whose document was not dropped later: an edit inside a branch goes with it."""
        gone = np.zeros(self.batch.num_rows, np.bool_)
        gone[self.dropped] = True
        return np.flatnonzero(~gone[self.edited])

    def count(self, statistics: Statistics) -> None:
        """Add this batch to the funnel of the step, per source."""
        step = statistics.setdefault(f"{self.index:02d}", {"name": self.name, "sources": {}})
        node = step["sources"]
        source = coded(self.batch.column("source"))
        stays = source.take(self.kept)
        counted = {
            "documents_in": source.counts(),
            "documents_out": stays.counts(),
            "characters_in": source.counts(self.before.characters),
            "characters_out": stays.counts(self.after.characters),
        }
        if self.starts:
            lengths = pc.binary_length(self.batch.column("payload")).to_numpy(zero_copy_only=False)
            counted["payload_bytes_in"] = source.counts(np.asarray(lengths, np.int64))
        for place, name in enumerate(source.values):
            for what, amounts in counted.items():
                add(node.setdefault(name, {}), [what], amounts[place])
        self._count_dropped(node, source)
        self._count_edits(node, source)
        near = self._positions(self.outcome.near, "near")
        count_near(node, source.take(near), self.outcome.near)
        stay = self._edits_that_stay()
        for rows, places in (
            (self.outcome.dropped, self.dropped),
            (self.outcome.edits.take(pa.array(stay)), self.edited[stay]),
            (self.outcome.near, near),
        ):
            if rows.num_rows:
                count_items(step, self.batch.column("source"), rows, places)
        count_overlap(node, source.take(self.dropped), self.outcome.dropped)
        count_spreads(step, self.outcome.spreads)

    def _count_dropped(self, node: Statistics, source: Coded) -> None:
        if not len(self.dropped):
            return
        why = [coded(self.outcome.dropped.column(name)) for name in ("transform", "reason")]
        groups = combined(source.take(self.dropped), *why)
        amounts = zip(groups.values, groups.counts(), groups.counts(self.before.characters[self.dropped]), strict=True)
        for (name, *path), documents, characters in amounts:
            add(node[name], ["dropped", *path, "documents"], documents)
            add(node[name], ["dropped", *path, "characters"], characters)

    def _count_edits(self, node: Statistics, source: Coded) -> None:
        stay = self._edits_that_stay()
        if not len(stay):
            return
        groups = combined(source.take(self.edited[stay]), coded(self.outcome.edits.column("reason")).take(stay))
        counted = {"documents": groups.counts(), **{n: groups.counts(self._edit(n)[stay]) for n in ("cut", "inserted")}}
        for place, (name, reason) in enumerate(groups.values):
            for what, amounts in counted.items():
                add(node[name], ["edits", reason, what], amounts[place])

    def ledger(self, ordinals: Integers) -> Iterator[LedgerPart]:
        """Yield the ledger rows of this batch and step."""
        stay = self._edits_that_stay()
        edits = self.outcome.edits.take(pa.array(stay))
        for kind, rows, places in (("dropped", self.outcome.dropped, self.dropped), ("edit", edits, self.edited[stay])):
            if rows.num_rows:
                yield LedgerPart(ordinals[places], self.index, self._ledger_rows(kind, rows, places))

    def _ledger_rows(self, kind: str, rows: pa.RecordBatch, places: Integers) -> pa.RecordBatch:
        taken, count = pa.array(places), rows.num_rows
        given: dict[str, pa.Array] = {
            **{name: rows.column(name) for name in rows.schema.names},
            "kind": pa.repeat(pa.scalar(kind, pa.large_string()), count),
            "evidence": mask_evidences(rows.column("evidence")),
            "source": self.batch.column("source").take(taken),
            "origin": self.batch.column("origin").take(taken),
            "characters": pa.array(self.before.characters[places]),
            "text_digest": self.before.digests.take(taken),
        }
        nothing = {"cut": pa.array(np.zeros(count, np.int64)), "inserted": pa.array(np.zeros(count, np.int64))}
        given = {**nothing, **given}
        arrays = [given[f.name] if f.name in given else pa.nulls(count, f.type) for f in LEDGER]
        return pa.RecordBatch.from_arrays(arrays, schema=LEDGER)

    def sample(self, samples: Samples, shows: Callable[[str], bool], besides: Mapping[str, pa.RecordBatch]) -> None:
        """Offer dropped, nearly dropped and edited documents of this batch, and others by kind, to the samples."""
        if self.starts:
            return
        for kind, rows in (
            ("dropped", self.outcome.dropped),
            ("near miss", self.outcome.near),
            ("edited", self.outcome.edits),
            *besides.items(),
        ):
            if rows.num_rows:
                self._sample(kind, rows, self._positions(rows, kind), samples, shows)

    def _sample(
        self, kind: str, rows: pa.RecordBatch, places: Integers, samples: Samples, shows: Callable[[str], bool]
    ) -> None:
        groups = combined(coded(rows.column("transform")), coded(rows.column("reason")))
        digests = self.before.digests.take(pa.array(places))
        for group, (transform, reason) in enumerate(groups.values):
            mine = np.flatnonzero(groups.codes == group)
            for row in mine[samples.candidates((kind, transform, reason), digests.take(pa.array(mine)))].tolist():
                values, digest = rows.slice(row, 1).to_pylist()[0], digests[row].as_py()
                if samples.wants((kind, transform, reason), digest, values["id"]):
                    place = int(places[row])
                    later = self._later(place) if kind == "edited" else None
                    samples.offer(sample_row(kind, values, self.batch, place, self.before, shows, later))

    def _later(self, place: int) -> str | None:
        row = int(np.searchsorted(self.kept, place))
        there = row < len(self.kept) and self.kept[row] == place
        return str(self.outcome.kept.column("text")[row].as_py()) if there else None


def sample_row(
    kind: str,
    values: Mapping[str, Any],
    batch: pa.RecordBatch,
    position: int,
    measures: Measures,
    shows: Callable[[str], bool],
    after: str | None = None,
) -> dict[str, Any]:
    """Return the row of `SAMPLES` for the document at `position` of `batch`, of which these are the measures."""
    source = batch.column("source")[position].as_py()
    text, characters = batch.column("text")[position], int(measures.characters[position])
    url = batch.column("url")[position].as_py() if batch.schema.get_field_index("url") >= 0 else None
    shown: tuple[str, str | None] = ("", None)
    if shows(source):
        shown = (excerpt_of(text, characters), None) if after is None else edit_excerpt(text.as_py(), after)
    measured = ("measure", "numerator", "denominator", "threshold")
    return {
        "kind": kind,
        "transform": values.get("transform", ""),
        "reason": values.get("reason", ""),
        "text_digest": measures.digests[position].as_py(),
        "id": batch.column("id")[position].as_py(),
        "source": source,
        "origin": batch.column("origin")[position].as_py(),
        "url": None if url is None else mask_excerpt(url),
        **{name: values.get(name) for name in measured},
        "evidence": None if values.get("evidence") is None else mask_evidence(values["evidence"]),
        "characters": characters,
        "excerpt": shown[0],
        "after": shown[1],
        **attributes_of(batch, position),
    }
