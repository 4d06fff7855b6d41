"""Which samples stand behind a click: those that lists of addresses or words, or a score of toxicity, found.

A report cannot tell what is offensive; it knows what looked for it. The rule: the transform is one of `LISTS`, or its
reason, one that it fails besides, its measure or the name of a column in its evidence has one of the words of `WORDS`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

LISTS: Final = frozenset({"URLDenyList", "URLWords"})
"""Transforms that drop by lists of addresses and of words."""

WORDS: Final = re.compile(
    "toxic|porn|nsfw|obscen|profan|url_deny_list|url_words"
    "|(?:^|[^a-z])(?:adult|hate|hateful|insult|offens|sexual|slur|violen|bad[ _-]?word|banned[ _-]?word)"
)
"""Words, in lower case, by which rules and columns that look for such texts are named."""


def is_toxic(sample: Mapping[str, Any]) -> bool:
    """Return whether `sample` was found by what looks for texts that many do not want to read."""
    step = str(sample["transform"] or "").rpartition("/")[2].partition("#")[0]
    if step in LISTS:
        return True
    names = [sample["reason"], sample["measure"], *_named(sample["evidence"])]
    return any(WORDS.search(name.lower()) for name in names if name)


def _named(evidence: str | None) -> list[str]:
    """Return the columns, and all reasons, that `evidence` names."""
    try:
        value = json.loads(evidence or "{}")
    except ValueError:
        return []
    if not isinstance(value, dict):
        return []
    fails = value.get("fails")
    return [*value, *(str(reason) for reason in fails)] if isinstance(fails, list) else list(value)
