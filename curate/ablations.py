"""`ablation.json`: which parts of a recipe earned their place; `curate ablate` writes it, `curate report` shows it.

It stands in the store beside `report.json`, names the result that it is about by its key, and is hashed by nothing but
itself. Differences are in nats per token, without the part minus with it: above zero the part helps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from curate.beside import read_beside, write_beside
from curate.formats import Format
from curate.store import Store

FILE: Final = "ablation.json"
FORMAT: Final = Format(1, "make it again with curate ablate")
"""Version 1: the first."""

MEAN: Final = "mean of domains"
"""The mean of the losses on all domains, each weighing the same: a further comparison where there are several."""

Verdict = Literal["earned its place", "is better left out", "not told apart", "not tried"]


@dataclass(frozen=True, slots=True)
class Effect:
    """What leaving a part out did to the loss on a domain: mean over seeds, and its interval."""

    domain: str
    difference: float
    low: float
    high: float
    verdict: str


@dataclass(frozen=True, slots=True)
class AblatedPart:
    """A part of the recipe, what was found of it, why it was not tried ("" if it was), and the effects by domain."""

    name: str
    verdict: Verdict
    why: str
    effects: tuple[Effect, ...]

    @property
    def whole(self) -> Effect:
        """The effect on the mean of domains, or on the only one; there is none of a part that was not tried."""
        return next((effect for effect in self.effects if effect.domain == MEAN), self.effects[0])


@dataclass(frozen=True, slots=True)
class Ablation:
    """What `curate ablate` found: the result's key, level and model of the comparisons, and the parts in order."""

    key: str
    level: float
    model: str
    parts: tuple[AblatedPart, ...]

    def to_json(self) -> dict[str, Any]:
        """Return it as it stands in the file, decimals as strings."""
        return {
            "key": self.key,
            "level": repr(self.level),
            "model": self.model,
            "parts": [
                {
                    "name": part.name,
                    "verdict": part.verdict,
                    "why": part.why,
                    "effects": [
                        {
                            "domain": effect.domain,
                            "difference": repr(effect.difference),
                            "low": repr(effect.low),
                            "high": repr(effect.high),
                            "verdict": effect.verdict,
                        }
                        for effect in part.effects
                    ],
                }
                for part in self.parts
            ],
        }


def write_ablation(store: Store, ablation: Ablation) -> None:
    """Put `ablation.json` into `store`, in place of what is there."""
    write_beside(store, FILE, FORMAT, "ablation", ablation.to_json())


def read_ablation(store: Store, key: str) -> Ablation | None:
    """Return what was found of the result with this key, None where nothing was.

    Raises:
        StoreError: the file is damaged.
        FormatError: it has a version that is not read.
    """
    return read_beside(store, FILE, FORMAT, key, _parsed)


def _parsed(value: Mapping[str, Any]) -> Ablation:
    parts = tuple(
        AblatedPart(part["name"], part["verdict"], part["why"], tuple(map(_effect, part["effects"])))
        for part in value["parts"]
    )
    return Ablation(value["key"], float(value["level"]), value["model"], parts)


def _effect(value: Mapping[str, Any]) -> Effect:
    difference, low, high = (float(value[name]) for name in ("difference", "low", "high"))
    return Effect(value["domain"], difference, low, high, value["verdict"])
