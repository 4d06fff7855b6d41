"""The records that a plan consists of, and how they stand in its file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mixtures.fill_in_the_middle import FillInTheMiddle
from mixtures.sequences import Chunks, Packed


@dataclass(frozen=True, slots=True)
class Component:
    """A cache in the mixture: its `name`, content digest (`cache`), `tokens`, and `sequences` that it is cut into.

    `packing` is the digest of how packed sequences lie in it, empty for chunks.
    """

    name: str
    cache: str
    tokens: int
    sequences: int
    packing: str = ""


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of training with fixed weights.

    `phase` is its name; `tokens` and `weights` (integers that stand to each other as asked) are what the mixture asked
    for; `counts` are the draws of each component over `quota_length` sequences, of which the first `drawn_length` are
    drawn.
    """

    phase: str
    tokens: int
    weights: Mapping[str, int]
    counts: Mapping[str, int]
    quota_length: int
    drawn_length: int
    batch: int = 0
    """Sequences of an update of the optimizer; 0: those of a step."""
    length: int = 0
    """Tokens of a row of an update; 0: those of a sequence."""


@dataclass(frozen=True, slots=True)
class Validation:
    """A cache of texts held out: `name`, content digest (`cache`) and `tokens`."""

    name: str
    cache: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Earlier:
    """A plan that this one agrees with in its first `steps` steps."""

    plan: str
    steps: int


def to_json(value: Any) -> Any:
    """Return `value`, a field of a plan, as it stands in the file."""
    if isinstance(value, (Chunks, Packed, FillInTheMiddle)):
        return value.to_json()
    if isinstance(value, tuple):
        return [to_json(item) for item in value]
    if isinstance(value, Mapping):
        return {name: to_json(item) for name, item in value.items()}
    if isinstance(value, Component) and not value.packing:
        return {name: getattr(value, name) for name in ("name", "cache", "tokens", "sequences")}
    if isinstance(value, Segment):
        fields = [
            name for name in value.__dataclass_fields__ if name not in ("batch", "length") or getattr(value, name)
        ]
        return {name: to_json(getattr(value, name)) for name in fields}
    if isinstance(value, (Component, Segment, Validation, Earlier)):
        return {name: to_json(getattr(value, name)) for name in value.__dataclass_fields__}
    return value
