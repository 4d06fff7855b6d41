"""A transform that is applied in a child process: the same outcome, less the documents that take the child down.

A batch goes slice by slice. Where a slice falls, it is taken apart until one document is the suspect: by halves where
it raised, else row by row, since each fall costs a child. Invariant: the outcome is that of the transform itself,
without the documents that a verdict names, which are dropped under "quarantined: …".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from curate.accounting.quarantine import Verdict
from curate.isolation.crew import Crew
from curate.isolation.judging import Judge, row_of
from curate.isolation.process import Fall
from curate.isolation.replies import Part, joined
from curate.isolation.trials import MOST, TURN, Trial
from transforms.chain import in_row_order
from transforms.outcome import DROPPED, Outcome, Transform, name_of, rows


@dataclass(frozen=True, slots=True)
class Isolated:
    """`inner`, which is number `step` of the shipped chain and is called `label` in its stage."""

    inner: Transform
    step: int
    label: str
    crew: Callable[[], Crew]
    judge: Judge

    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ()

    @property
    def name(self) -> str:
        """Name of the transform itself."""
        return name_of(self.inner)

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return that of the transform itself."""
        return self.inner.output_schema(schema)

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        """Apply the transform in the child.

        Raises:
            TooManyRaised: it raises for too many documents.
            IsolationError: children cannot be started, or are killed again and again from outside.
        """
        self.judge.seen[self.label] += batch.num_rows
        if not batch.num_rows:
            return self.inner.apply(batch)
        crew = self.crew()
        crew.take(batch, self.judge.limits.here())
        found = self._found(crew, batch.num_rows)
        parts = [part for part in found if isinstance(part, Part)]
        verdicts = [verdict for verdict in found if isinstance(verdict, Verdict)]
        outcome = joined(parts, batch, self.inner.output_schema(batch.schema))
        return outcome if not verdicts else with_verdicts(outcome, verdicts, self.name, batch)

    def _found(self, crew: Crew, count: int) -> list[Part | Verdict]:
        """Return what became of `count` rows, in order; trials go on while later rows are applied."""
        trials: list[Trial] = []
        try:
            found = list(self._slices(crew, count, trials))
            while going_on := [trial for trial in trials if trial.found is None]:
                for trial in going_on:
                    trial.advance(TURN)
            return [self.judge.decide(one, self.label) if isinstance(one, Trial) else one for one in found]
        finally:
            for trial in trials:
                trial.close()

    def _slices(self, crew: Crew, count: int, trials: list[Trial]) -> Iterator[Part | Verdict | Trial]:
        start = 0
        while start < count:
            stop = min(start + crew.rows(self.step), count)
            yield from self._slice(crew, start, stop, trials)
            start = stop
            for trial in trials:
                trial.advance()

    def _slice(self, crew: Crew, start: int, stop: int, trials: list[Trial]) -> Iterator[Part | Verdict | Trial]:
        found = crew.apply(self.step, start, stop)
        if isinstance(found, Part):
            yield found
        elif stop - start == 1:
            yield self._suspect(crew, start, found, trials)
        elif found.reason == "raised":
            middle = (start + stop) // 2
            yield from self._slice(crew, start, middle, trials)
            yield from self._slice(crew, middle, stop, trials)
        else:
            for row in range(start, stop):
                yield from self._slice(crew, row, row + 1, trials)

    def _suspect(self, crew: Crew, row: int, fall: Fall, trials: list[Trial]) -> Part | Verdict | Trial:
        """Return what became of a row that fell, or its trial where that takes time and nothing waits for it."""
        if self.judge.believes(self.label, fall):
            return self.judge.convict(crew, row, fall, self.label)
        going_on = [trial for trial in trials if trial.found is None]
        for number, other in enumerate(going_on):  # so many at once, and one that may take half of the memory
            if number + MOST <= len(going_on) or other.fall.reason == fall.reason == "out of memory":
                other.result()
        trials.append(self.judge.trial(crew, self.step, row, fall))
        if fall.reason in ("hung", "out of memory") and crew.is_warm(self.step):
            return trials[-1]
        return self.judge.decide(trials[-1], self.label)


@dataclass(frozen=True, slots=True)
class Listed:
    """`inner`, to which the documents of `verdicts` never come: they are dropped as those verdicts say."""

    inner: Transform
    verdicts: Mapping[bytes, Verdict]

    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ()

    @property
    def name(self) -> str:
        """Name of the transform itself."""
        return name_of(self.inner)

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return that of the transform itself."""
        return self.inner.output_schema(schema)

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        """Apply the transform to the documents that no verdict names."""
        hit = pc.is_in(batch.column("id"), pa.array(list(self.verdicts), pa.binary(16)))
        found = [self.verdicts[identity] for identity in batch.column("id").filter(hit).to_pylist()]
        outcome = self.inner.apply(batch.filter(pc.invert(hit)) if found else batch)
        return outcome if not found else with_verdicts(outcome, found, self.name, batch)


def with_verdicts(outcome: Outcome, verdicts: list[Verdict], name: str, batch: pa.RecordBatch) -> Outcome:
    """Return `outcome` with the documents of `verdicts` dropped too; `batch` has the order."""
    quarantined = rows(DROPPED, [row_of(verdict, name) for verdict in verdicts])
    dropped = in_row_order([outcome.dropped, quarantined], DROPPED, batch.column("id"))
    return replace(outcome, dropped=dropped)
