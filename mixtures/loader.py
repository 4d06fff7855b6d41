"""From a plan and its caches to batches: a pure function of the step.

`loader.batch(step)`, `loader[sequence]`, `loader.slice(step, process, processes)` and `loader.batches(start, stop)` are
views of one function: sequence → row. So batches are the same for any number of hosts, any prefetching and any restart.

Invariants: rows depend on the plan and on the contents of its caches alone; caches are checked against the plan once,
at the beginning. Cost: one read of a cache per sequence, one pass over the tokens of a batch; memory of the batches
that are being prefetched, 13 bytes a token.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
import numpy.typing as npt

from mixtures.buffers import Buffers
from mixtures.cache import Cache
from mixtures.errors import PlanError, outside
from mixtures.lookup import Draws
from mixtures.packing import Packing
from mixtures.packings import packings_of
from mixtures.plan import Plan
from mixtures.plan_fields import Component
from mixtures.row_documents import Documents, documents_of, rearranged
from mixtures.rows import Cells, Mask, fill_row
from mixtures.updates import cut_rows


@dataclass(frozen=True, slots=True)
class Batch:
    """Sequences of a step. The first four arrays have shape (sequences, tokens of a sequence).

    `segments` are 1, 2 … for the documents of a row and 0 for padding; `positions` count from each document's first
    token in the row. `loss_mask` marks the tokens to predict, each from those before it in its row and document: with
    logits from tokens[:, :-1], the targets are tokens[:, 1:] under loss_mask[:, 1:]. Tokens that are not trained on
    (the column `not_trained` of documents) are not among them.
    """

    tokens: Cells
    segments: Cells
    positions: Cells
    loss_mask: Mask
    sequences: npt.NDArray[np.int64]
    """Numbers of the sequences in the plan."""
    components: npt.NDArray[np.int64]
    """Indices into `plan.components`."""

    def __len__(self) -> int:
        return len(self.sequences)


@dataclass(frozen=True, slots=True)
class Loader:
    """Reads the sequences of `plan` from `caches` (component → its cache).

    `threads` read ahead in `batches`, at most `ahead` batches. `packings` are those of a plan of packed sequences
    (component → packing); without them they are made again.
    """

    plan: Plan
    caches: Mapping[str, Cache]
    threads: int = 2
    ahead: int = 4
    packings: Mapping[str, Packing] = field(default_factory=dict)
    buffers: Buffers = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check the caches.

        Raises:
            PlanError: a cache is missing, or it or a packing is another than the plan was compiled for.
            ValueError: `threads` or `ahead` is below 1.
        """
        if self.threads < 1 or self.ahead < 1:
            raise ValueError(f"a loader needs threads and ahead of at least 1, got {self.threads} and {self.ahead}")
        object.__setattr__(self, "buffers", Buffers(self.ahead + self.threads + 2))
        self.plan.check_caches(self.caches)
        if not self.packings:
            object.__setattr__(self, "packings", packings_of(self.plan, self.caches))
        for part in self.plan.components:
            if part.packing and (packing := self.packings.get(part.name)) and packing.digest != part.packing:
                raise PlanError(f"{part.name}, packing: {part.packing} ≠ {packing.digest}: that of another plan")

    @property
    def digest(self) -> str:
        """Digest of the plan: loaders of equal digests give equal batches."""
        return self.plan.digest

    def __len__(self) -> int:
        """Number of sequences."""
        return len(self.plan)

    def __getitem__(self, sequence: int) -> Batch:
        """Return `sequence` as a batch of one."""
        return self._rows(np.array([sequence], np.int64))

    def batch(self, step: int) -> Batch:
        """Return the batch of `step`.

        Raises:
            IndexError: the plan has no such step.
            PlanError: a cache holds less than it says.
        """
        return self.slice(step, 0, 1)

    def slice(self, step: int, process: int, processes: int) -> Batch:
        """Return the rows of `step` that belong to `process` of `processes`: equal, consecutive parts of the batch.

        Raises:
            IndexError: the plan has no such step.
            ValueError: the batch cannot be split into so many parts, or there is no such process.
            PlanError: a cache holds less than it says.
        """
        if not 0 <= step < self.plan.steps:
            raise IndexError(outside("step", step, self.plan.steps, "the plan"))
        if processes < 1 or self.plan.batch % processes or not 0 <= process < processes:
            raise ValueError(f"a batch of {self.plan.batch} has no part {process} of {processes} equal ones")
        size = self.plan.batch // processes
        first = step * self.plan.batch + process * size
        return self._rows(np.arange(first, first + size, dtype=np.int64))

    def update(self, number: int, process: int = 0, processes: int = 1) -> Batch:
        """Return the rows of update `number` that belong to `process`: of the batch and the length that its phase has.

        Raises:
            IndexError: the plan has no such update.
            ValueError: the update cannot be split into so many parts, or there is no such process.
            PlanError: a cache holds less than it says.
        """
        update = self.plan.update(number)
        rows = (update.stop - update.start) * self.plan.batch
        if processes < 1 or rows % processes or not 0 <= process < processes:
            raise ValueError(f"an update of {rows} sequences has no part {process} of {processes} equal ones")
        first = update.start * self.plan.batch + process * (rows // processes)
        batch = self._rows(np.arange(first, first + rows // processes, dtype=np.int64))
        if update.length == self.plan.sequences.length:
            return batch
        cut = cut_rows(batch.tokens, batch.segments, batch.positions, batch.loss_mask, update.length)
        times = self.plan.sequences.length // update.length
        return Batch(*cut, batch.sequences.repeat(times), batch.components.repeat(times))

    def tokens_before(self, number: int) -> int:
        """Return the tokens of all updates before `number`, padding included; `plan.updates` asks for those of all.

        Raises:
            IndexError: the plan has no such update.
        """
        plan = self.plan
        steps = plan.steps if number == plan.updates else plan.update(number).start
        return steps * plan.batch * plan.sequences.length

    def batches(
        self, start: int = 0, stop: int | None = None, *, process: int = 0, processes: int = 1
    ) -> Iterator[Batch]:
        """Yield the batches of steps from `start` up to, not including, `stop` (by default: the end), read ahead.

        The first batch is read alone, so that a restart does not wait for others. Raises as `slice` does.
        """
        stop = self.plan.steps if stop is None else stop
        if not 0 <= start <= stop <= self.plan.steps:
            raise IndexError(f"steps {start} to {stop}: the plan has steps 0 to {self.plan.steps - 1:,}")
        return self._read_ahead(start, stop, process, processes)

    def _read_ahead(self, start: int, stop: int, process: int, processes: int) -> Iterator[Batch]:
        if start == stop:
            return
        first, steps = self.slice(start, process, processes), iter(range(start + 1, stop))
        pool = ThreadPoolExecutor(self.threads, "loader")
        pending: deque[Future[Batch]] = deque()

        def submit(count: int) -> None:
            pending.extend(pool.submit(self.slice, step, process, processes) for step in islice(steps, count))

        try:
            submit(self.ahead)
            yield first
            while pending:
                batch = pending.popleft().result()
                submit(1)
                yield batch
        finally:
            pool.shutdown(cancel_futures=True)

    def _rows(self, sequences: npt.NDArray[np.int64]) -> Batch:
        shape = len(sequences), self.plan.sequences.length
        tokens, segments, positions, mask = self.buffers.take(*shape)
        draws = self.plan.draw(sequences)
        for row, documents in self._documents(draws):
            fill_row(
                documents.stream, documents.borders, documents.start, self.plan.padding, row,
                tokens, segments, positions, mask,
            )  # fmt: skip
            if documents.untrained is not None:
                mask[row, : len(documents.untrained)] &= ~documents.untrained
        return Batch(tokens, segments, positions, mask, sequences, draws.components)

    def _documents(self, draws: Draws) -> Iterator[tuple[int, Documents]]:
        """Yield (row, its documents), read component by component."""
        rows: dict[int, list[tuple[int, int, int]]] = {}
        for row, (index, epoch, chunk) in enumerate(zip(*(array.tolist() for array in draws), strict=True)):
            rows.setdefault(index, []).append((row, epoch, chunk))
        for index, members in rows.items():
            component = self.plan.components[index]
            cache, packing = self.caches[component.name], self.packings.get(component.name)
            places = [self.plan.sequences.spans(chunk, component.tokens, packing) for _, _, chunk in members]
            wanted = places[0] if len(places) == 1 else [span for spans in places for span in spans]
            streams, untrained = cache.read_many(wanted), cache.read_untrained(wanted)
            at = 0
            for (row, epoch, chunk), spans in zip(members, places, strict=True):
                to = at + len(spans)
                for span, stream in zip(spans, streams[at:to], strict=True):
                    if len(stream) != span[1] - span[0]:
                        raise _cut_short(component, span, len(stream))
                documents = documents_of(cache, spans, streams[at:to], None if untrained is None else untrained[at:to])
                if component.name in self.plan.views:
                    documents = rearranged(self.plan, component, cache.eos, documents, epoch, chunk)
                yield row, documents
                at = to


def _cut_short(component: Component, span: tuple[int, int], found: int) -> PlanError:
    return PlanError(
        f"the cache of {component.name!r} is cut short: tokens {span[0]:,} to {span[1]:,} asked, got "
        f"{found:,} of {span[1] - span[0]:,}"
    )
