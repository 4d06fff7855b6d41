"""What steps of training read: examples to show, and where the documents of small components begin.

The plan alone says which tokens a step reads; whose documents they are stands in the caches' borders. Borders of a
component are listed whole or not at all, the smallest components first, within a budget of bytes. Packed sequences lie
where their packing says, which is not read here: of them nothing is listed.

Cost: 8 bytes per tokenized document while its cache is looked into; the page grows by the budget at most.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from curate.caches.cache import TokenCache
from mixtures.explain import Explanation, explain
from mixtures.plan import Plan
from mixtures.sequences import Chunks

LISTED_BYTES: Final = 400_000
"""Bytes of all borders on a page."""

LEAST_BYTES: Final = 40
"""A border takes at least so many: the id in hex, two numbers, what separates them."""

PHASES: Final = 6
"""Phases whose first step is an example."""

ROWS: Final = 8
"""Rows shown of an example."""

SHOWN: Final = 4
"""Documents named of a row."""


@dataclass(frozen=True, slots=True)
class Row:
    """The documents of a row of a step: how many, and the ids of the first of them."""

    documents: int
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Example:
    """A step and the documents of its first rows."""

    explanation: Explanation
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Reads:
    """Examples, and number of a component in the plan → (first token, id) of each of its documents."""

    examples: tuple[Example, ...]
    borders: Mapping[int, tuple[tuple[int, str], ...]]


def reads_of(plan: Plan, caches: Mapping[str, TokenCache], limit: int = LISTED_BYTES) -> Reads:
    """Return what `plan` reads of `caches`, which are those it was compiled for.

    Raises:
        CacheError: a cache is damaged.
    """
    if not in_chunks(plan):
        return Reads((), {})
    firsts = sorted({plan.starts[number] for number in range(len(plan.segments))})[:PHASES]
    return Reads(tuple(_example(plan, step, caches) for step in firsts), _listed(plan, caches, limit))


def in_chunks(plan: Plan) -> bool:
    """Tell whether sequences are stretches of the token stream: what else they hold, the plan alone does not say."""
    return isinstance(plan.sequences, Chunks)


def _example(plan: Plan, step: int, caches: Mapping[str, TokenCache]) -> Example:
    explanation = explain(plan, step)
    rows = []
    for place in explanation.rows[:ROWS]:
        cache = caches[place.component]
        first, last = cache.document_at(place.start), cache.document_at(place.stop - 1)
        ids = cache.ids(first, min(last + 1, first + SHOWN))
        rows.append(Row(last + 1 - first, tuple(bytes(identity).hex() for identity in ids)))
    return Example(explanation, tuple(rows))


def _listed(plan: Plan, caches: Mapping[str, TokenCache], limit: int) -> dict[int, tuple[tuple[int, str], ...]]:
    found: dict[int, tuple[tuple[int, str], ...]] = {}
    order = sorted(range(len(plan.components)), key=lambda at: (caches[plan.components[at].name].documents, at))
    used = 0
    for number in order:
        cache = caches[plan.components[number].name]
        if used + cache.documents * LEAST_BYTES > limit:
            break
        ids = [bytes(identity).hex() for identity in cache.ids(0, cache.documents)]
        borders = tuple(zip(cache.starts[:-1].tolist(), ids, strict=True))
        used += sum(len(str(start)) + len(str(number)) + LEAST_BYTES - 2 for start, _ in borders)
        if used > limit:
            break
        found[number] = borders
    return dict(sorted(found.items()))
