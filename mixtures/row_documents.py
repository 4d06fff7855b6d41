"""The documents of a row: pieces of a component's stream put together, and rearranged where the plan says so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mixtures.cache import Cache
from mixtures.fill_in_the_middle import view_key
from mixtures.plan import Plan
from mixtures.plan_fields import Component

Ints = npt.NDArray[np.int64]


class Documents(NamedTuple):
    """Tokens of a row and where documents begin in them.

    `stream` is its tokens, no more than a row holds; `borders` are places at which documents begin, ascending, counted
    so that the row begins at `start`; repeats are one border.
    """

    stream: npt.NDArray[Any]
    borders: Ints
    start: int
    untrained: npt.NDArray[np.bool_] | None = None
    """Which tokens are no targets; None where all may be."""

    def ends(self) -> Ints:
        """Return where each document ends in the row, ascending."""
        inside = self.borders[(self.borders > self.start) & (self.borders < self.start + len(self.stream))] - self.start
        return np.append(np.unique(inside), len(self.stream)).astype(np.int64)


def documents_of(
    cache: Cache,
    spans: Sequence[tuple[int, int]],
    pieces: Sequence[npt.NDArray[Any]],
    untrained: Sequence[npt.NDArray[np.uint8]] | None = None,
) -> Documents:
    """Return the documents of a row that holds `pieces`, the tokens at `spans` of `cache`; see `Cache` for `untrained`.

    Of several pieces each is one document, or a part of one.
    """
    mask = None if untrained is None else np.concatenate(untrained) > 0
    if len(spans) == 1:
        start, stop = spans[0]
        return Documents(pieces[0], cache.borders(start, stop), start, mask)
    lengths = np.array([len(piece) for piece in pieces], np.int64)
    return Documents(np.concatenate(pieces), np.cumsum(lengths) - lengths, 0, mask)


def rearranged(
    plan: Plan, component: Component, eos: int | None, documents: Documents, epoch: int, chunk: int
) -> Documents:
    """Return `documents` as the view of `component` shows them in pass `epoch`, cut where the row ends."""
    sources, begins = row_sources(plan, component, eos, documents, epoch, chunk)
    sentinels = np.array(plan.views[component.name].sentinels, np.int32)
    stream = np.where(
        sources < 0, sentinels[np.maximum(-sources - 1, 0)], documents.stream.astype(np.int32)[np.maximum(sources, 0)]
    )
    untrained = None if documents.untrained is None else (sources >= 0) & documents.untrained[np.maximum(sources, 0)]
    return Documents(stream, begins, 0, untrained)


def row_sources(
    plan: Plan, component: Component, eos: int | None, documents: Documents, epoch: int, chunk: int
) -> tuple[Ints, Ints]:
    """Return where each token of a row of a view stood in `documents` (below 0: sentinels), and where they begin."""
    ends = documents.ends()
    ended = np.zeros(len(ends), np.bool_) if eos is None else documents.stream[ends - 1] == eos
    key = view_key(plan.seed, component.name)
    sources, begins = plan.views[component.name].sources(ends, ended, key, epoch, chunk)
    return sources[: plan.sequences.length], begins
