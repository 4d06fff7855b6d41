"""What steps of training read: examples to show, and where the documents of small components begin.

The plan alone says which tokens a step reads; whose documents they are stands in the caches' borders. Borders of a
component are listed whole or not at all, the smallest components first, within a budget of bytes; so is how packed
sequences lie.

Cost: 8 bytes per tokenized document while its cache is looked into; the page grows by the budget at most.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final
from urllib.parse import quote

from curate.caches.cache import TokenCache
from mixtures.explain import Explanation, Place, explain
from mixtures.packing import Packing
from mixtures.plan import Plan
from viewers.visible import shortened

LISTED_BYTES: Final = 400_000
"""Bytes of all borders on a page."""

LEAST_BYTES: Final = 40
"""A border takes at least so many: the id in hex, two numbers, a name, what separates them."""

NAME: Final = 40
"""Code points of a component's name in lists; its number is before it."""

PIECE_BYTES: Final = 32
"""A piece of a packed sequence takes about so many beside its component's name: three numbers and a short one."""

PHASES: Final = 6
"""Phases whose first step is an example."""

ROWS: Final = 16
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
    """Examples; and by number of a component in the plan, where its documents begin, and how its sequences are packed.

    `borders` are (first token, id) of each document, `pieces` (chunk, first token, tokens) of each stretch of a packed
    sequence; a component is in both, or in none. Of chunks there are no pieces.
    """

    examples: tuple[Example, ...]
    borders: Mapping[int, tuple[tuple[int, str], ...]]
    pieces: Mapping[int, tuple[tuple[int, int, int], ...]] = field(default_factory=dict)


def listed_name(name: str) -> str:
    """Return a component's name as lists have it: hidden characters named, a long one cut."""
    return shortened(name, NAME)


def reads_of(
    plan: Plan,
    caches: Mapping[str, TokenCache],
    packings: Mapping[str, Packing] = MappingProxyType({}),
    limit: int = LISTED_BYTES,
) -> Reads:
    """Return what `plan` reads of `caches`, which are those it was compiled for; `packings` are its own, too.

    Raises:
        CacheError: a cache is damaged.
    """
    firsts = sorted(set(plan.starts[:-1]))[:PHASES]
    listed = _listed(plan, caches, packings, limit)
    names = {number: plan.components[number].name for number in listed if plan.components[number].name in packings}
    pieces = {number: _pieces(packings[name]) for number, name in names.items()}
    return Reads(tuple(_example(plan, step, caches, packings) for step in firsts), listed, pieces)


def _example(plan: Plan, step: int, caches: Mapping[str, TokenCache], packings: Mapping[str, Packing]) -> Example:
    explanation = explain(plan, step, packings)
    return Example(explanation, tuple(_row(caches[place.component], place) for place in explanation.rows[:ROWS]))


def _row(cache: TokenCache, place: Place) -> Row:
    count, ids = 0, list[str]()
    for start, stop in place.spans:
        first, last = cache.document_at(start), cache.document_at(stop - 1)
        count += last + 1 - first
        ids += [bytes(i).hex() for i in cache.ids(first, min(last + 1, first + max(SHOWN - len(ids), 0)))]
    return Row(count, tuple(ids))


def _pieces(packing: Packing) -> tuple[tuple[int, int, int], ...]:
    return tuple((chunk, start, stop - start) for chunk in range(len(packing)) for start, stop in packing.spans(chunk))


def _listed(
    plan: Plan, caches: Mapping[str, TokenCache], packings: Mapping[str, Packing], limit: int
) -> dict[int, tuple[tuple[int, str], ...]]:
    found: dict[int, tuple[tuple[int, str], ...]] = {}
    order = sorted(range(len(plan.components)), key=lambda at: (caches[plan.components[at].name].documents, at))
    used = 0
    for number in order:
        name = plan.components[number].name
        cache = caches[name]
        piece = PIECE_BYTES + len(quote(listed_name(name)))
        used += piece * len(packings[name].starts) if name in packings else 0
        if used + cache.documents * LEAST_BYTES > limit:
            break
        ids = [bytes(identity).hex() for identity in cache.ids(0, cache.documents)]
        borders = tuple(zip(cache.starts[:-1].tolist(), ids, strict=True))
        named = len(str(number)) + len(quote(listed_name(name)))
        used += sum(len(str(start)) + named + LEAST_BYTES - 3 for start, _ in borders)
        if used > limit:
            break
        found[number] = borders
    return dict(sorted(found.items()))
