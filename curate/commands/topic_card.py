"""The card of topics in words, for `curate card`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

TERMS: Final = 7
"""Telling words of a topic that are shown."""


def topic_lines(card: Mapping[str, Any]) -> Iterator[str]:
    """Yield the card of `fit_topics` in words."""
    yield f"  fitted to {card['documents']:,} of {card['of']:,} documents, {card['without_words']:,} without words"
    yield f"  vectors of {card['embedder']['class']}; two seeds agree to {card['adjusted_rand']} (adjusted Rand index)"
    if len(card["topics"]) < card["asked"]:
        yield f"  {len(card['topics'])} topics where {card['asked']} were asked for: no more reach the least share"
    width = max(len(topic["name"]) for topic in card["topics"])
    yield "  documents, mean cosine with the centre, name, telling words; one of the most central documents"
    for topic in card["topics"]:
        told = f"{' '.join(topic['terms'][:TERMS])}; {topic['central'][0]}"
        yield f"    {topic['documents']:>7,}  {topic['similarity']}  {topic['name']:<{width}}  {told}"
