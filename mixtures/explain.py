"""What a step reads, and where a token of a batch comes from. Both need the plan alone, no cache."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mixtures.plan import Plan


@dataclass(frozen=True, slots=True)
class Place:
    """A sequence in a cache: tokens [`start`, `stop`) of `component`, chunk `chunk`, seen in pass `epoch` (from 0)."""

    sequence: int
    component: str
    epoch: int
    chunk: int
    start: int
    stop: int


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


def explain(plan: Plan, step: int) -> Explanation:
    """Return where each row of `step` comes from.

    Raises:
        IndexError: the plan has no such step.
    """
    phase = plan.phase_of(step)
    sequences = np.arange(step * plan.batch, (step + 1) * plan.batch, dtype=np.int64)
    draws = plan.draw(sequences)
    rows = []
    for sequence, index, epoch, chunk in zip(
        sequences.tolist(), draws.components.tolist(), draws.epochs.tolist(), draws.chunks.tolist(), strict=True
    ):
        component = plan.components[index]
        rows.append(Place(sequence, component.name, epoch, chunk, *plan.sequences.span(chunk, component.tokens)))
    return Explanation(step, phase, tuple(rows))


def locate(plan: Plan, step: int, row: int, token: int) -> Location:
    """Return where the token at (`row`, `token`) of the batch of `step` comes from.

    Raises:
        IndexError: the plan has no such step, row or token, or the token is padding.
    """
    place = explain(plan, step).rows[_checked("row", row, plan.batch)]
    offset = place.start + _checked("token", token, plan.sequences.length)
    if offset >= place.stop:
        length = place.stop - place.start
        raise IndexError(f"token {token} of row {row} in step {step} is padding: the sequence has {length}")
    return Location(place.component, place.epoch, place.chunk, offset)


@dataclass(frozen=True, slots=True)
class Drawn:
    """A row of a step that reads chunk `chunk` of a component, in pass `epoch` (from 0)."""

    step: int
    row: int
    epoch: int
    chunk: int


def drawn(plan: Plan, component: str, start: int, stop: int) -> Iterator[Drawn]:
    """Yield the rows of steps that read any of the tokens `start` to `stop` - 1 of `component`, pass by pass.

    Raises:
        KeyError: the plan has no such component.
        IndexError: it has not so many tokens.
    """
    part = plan.components[plan.component_index(component)]
    if not 0 <= start <= stop <= part.tokens:
        raise IndexError(f"tokens {start} to {stop} are not in range({part.tokens}) of {component}")
    chunks = range(start // plan.sequences.length, -(-stop // plan.sequences.length)) if start < stop else range(0)
    for epoch in range(-(-plan.draws()[component] // part.sequences)):
        for chunk in chunks:
            sequence = plan.index(component, epoch, chunk)
            if sequence is not None:
                yield Drawn(*divmod(sequence, plan.batch), epoch, chunk)


def _checked(what: str, value: int, length: int) -> int:
    if not 0 <= value < length:
        raise IndexError(f"{what} {value} is not in range({length})")
    return value
