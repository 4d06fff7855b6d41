"""What a step reads, and where a token of a batch comes from.

For chunks both need the plan alone, no cache. Where packed sequences lie stands in their packings; where a view moved a
token to depends on where documents begin, which the cache knows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from mixtures.cache import Cache
from mixtures.errors import PlanError, outside
from mixtures.packing import Packing
from mixtures.plan import Plan
from mixtures.plan_fields import Component
from mixtures.row_documents import documents_of, row_sources
from mixtures.sequences import Packed, Spans

NOTHING: Mapping[str, Packing] = MappingProxyType({})
NO_CACHES: Mapping[str, Cache] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Place:
    """A sequence in a cache: chunk `chunk` of `component`, seen in pass `epoch` (from 0).

    `spans` are the tokens it holds, one [start, stop) after the other; of chunks it is one.
    """

    sequence: int
    component: str
    epoch: int
    chunk: int
    spans: tuple[tuple[int, int], ...]

    @property
    def start(self) -> int:
        """First token of the first span."""
        return self.spans[0][0]

    @property
    def stop(self) -> int:
        """Token after the last of the last span."""
        return self.spans[-1][1]

    def token(self, offset: int) -> int | None:
        """Return which token of the cache stands at `offset` of the sequence, None beyond its end."""
        for start, stop in self.spans:
            if offset < stop - start:
                return start + offset
            offset -= stop - start
        return None


@dataclass(frozen=True, slots=True)
class Explanation:
    """The rows of a step, in order."""

    step: int
    phase: str
    rows: tuple[Place, ...]

    def __str__(self) -> str:
        first, last = self.rows[0].sequence, self.rows[-1].sequence
        lines = [f"step {self.step:,}, phase {self.phase}, sequences {first:,} to {last:,}"]
        lines += [f"  {name}, pass {epoch}: chunks {chunks}" for name, epoch, chunks in self._groups()]
        return "\n".join(lines)

    def _groups(self) -> Iterator[tuple[str, int, str]]:
        for name, epoch in sorted({(row.component, row.epoch) for row in self.rows}):
            chunks = [row.chunk for row in self.rows if (row.component, row.epoch) == (name, epoch)]
            yield name, epoch, ", ".join(map(str, chunks))


@dataclass(frozen=True, slots=True)
class Location:
    """A token of a batch: token number `token` of the cache of `component`, in chunk `chunk`, read in pass `epoch`."""

    component: str
    epoch: int
    chunk: int
    token: int


def explain(plan: Plan, step: int, packings: Mapping[str, Packing] = NOTHING) -> Explanation:
    """Return where each row of `step` comes from; a plan of packed sequences needs its `packings` for that.

    Raises:
        IndexError: the plan has no such step.
        PlanError: a packing is missing.
    """
    phase = plan.phase_of(step)
    sequences = np.arange(step * plan.batch, (step + 1) * plan.batch, dtype=np.int64)
    draws = plan.draw(sequences)
    rows = []
    for sequence, index, epoch, chunk in zip(
        sequences.tolist(), draws.components.tolist(), draws.epochs.tolist(), draws.chunks.tolist(), strict=True
    ):
        component = plan.components[index]
        spans = _spans(plan, component, chunk, packings)
        rows.append(Place(sequence, component.name, epoch, chunk, tuple(spans)))
    return Explanation(step, phase, tuple(rows))


def locate(
    plan: Plan,
    step: int,
    row: int,
    token: int,
    packings: Mapping[str, Packing] = NOTHING,
    caches: Mapping[str, Cache] = NO_CACHES,
) -> Location:
    """Return where the token at (`row`, `token`) of the batch of `step` comes from.

    Args:
        plan: whose step it is.
        step: number of the batch.
        row: sequence of the batch.
        token: place in the sequence.
        packings: those of a plan of packed sequences.
        caches: component → its cache, for those that have a view.

    Raises:
        IndexError: the plan has no such step, row or token, or the token is padding or a sentinel.
        PlanError: a packing or cache that it takes is missing.
    """
    place = explain(plan, step, packings).rows[_checked("row", row, plan.batch, "the batch")]
    offset = _checked("token", token, plan.sequences.length, "a row")
    if place.component in plan.views:
        offset = _offset_before(plan, place, offset, caches)
    found = place.token(offset)
    if found is None:
        length = sum(stop - start for start, stop in place.spans)
        raise IndexError(f"token {token} of row {row} in step {step} is padding: the sequence has {length}")
    return Location(place.component, place.epoch, place.chunk, found)


def _offset_before(plan: Plan, place: Place, offset: int, caches: Mapping[str, Cache]) -> int:
    """Return where the token at `offset` of the rearranged sequence stood in it before."""
    if place.component not in caches:
        raise PlanError(f"{place.component!r} is rearranged when it is read: give its cache to find a token")
    cache = caches[place.component]
    documents = documents_of(cache, place.spans, cache.read_many(list(place.spans)))
    component = plan.components[plan.component_index(place.component)]
    sources, _ = row_sources(plan, component, cache.eos, documents, place.epoch, place.chunk)
    if offset < len(sources) and sources[offset] < 0:
        raise IndexError(f"token {offset} of sequence {place.sequence} is a sentinel of fill-in-the-middle")
    return int(sources[offset]) if offset < len(sources) else plan.sequences.length


def _spans(plan: Plan, component: Component, chunk: int, packings: Mapping[str, Packing]) -> Spans:
    packing = packings.get(component.name)
    if component.packing and packing is None:
        raise PlanError(f"where sequences of {component.name!r} lie is in its packing: give it")
    return plan.sequences.spans(chunk, component.tokens, packing)


@dataclass(frozen=True, slots=True)
class Drawn:
    """A row of a step that reads chunk `chunk` of a component, in pass `epoch` (from 0)."""

    step: int
    row: int
    epoch: int
    chunk: int


def drawn(
    plan: Plan, component: str, start: int, stop: int, packings: Mapping[str, Packing] = NOTHING
) -> Iterator[Drawn]:
    """Yield the rows of steps that read any of the tokens `start` to `stop` - 1 of `component`, pass by pass.

    A row of a view may leave out tokens at its end.

    Raises:
        KeyError: the plan has no such component.
        IndexError: it has not so many tokens.
        PlanError: its packing is missing from `packings`.
    """
    part = plan.components[plan.component_index(component)]
    if not 0 <= start <= stop <= part.tokens:
        raise IndexError(f"tokens {start} to {stop}: {component} has tokens 0 to {part.tokens - 1:,}")
    chunks = _chunks(plan, part, start, stop, packings)
    for epoch in range(-(-plan.draws()[component] // part.sequences)):
        for chunk in chunks:
            sequence = plan.index(component, epoch, chunk)
            if sequence is not None:
                yield Drawn(*divmod(sequence, plan.batch), epoch, chunk)


def _chunks(plan: Plan, component: Component, start: int, stop: int, packings: Mapping[str, Packing]) -> Sequence[int]:
    """Return the chunks of `component` that hold any of the tokens `start` to `stop` - 1."""
    if start >= stop:
        return range(0)
    if isinstance(plan.sequences, Packed):
        if component.name not in packings:
            raise PlanError(f"where tokens of {component.name!r} are packed is in its packing: give it")
        return packings[component.name].sequences_of(start, stop)
    return range(start // plan.sequences.length, -(-stop // plan.sequences.length))


def _checked(what: str, value: int, count: int, whole: str) -> int:
    if not 0 <= value < count:
        raise IndexError(outside(what, value, count, whole))
    return value
