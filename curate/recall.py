"""`recall.json`: how many similar pairs the banding of each deduplication proposed, of pairs drawn without bias.

`curate dedup-curve --store STORE` writes it, `curate report` draws it. It stands in the store beside `report.json`,
names the result that it is about by its key, and is hashed by nothing but itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import exp, lgamma, log, sqrt
from typing import Any, Final

from curate.beside import read_beside, write_beside
from curate.formats import Format
from curate.store import Store

FILE: Final = "recall.json"
FORMAT: Final = Format(1, "make it again with curate dedup-curve --store")
"""Version 1: the first."""

UNIT: Final = 10**12
"""Of a probability: a banding may miss one pair in millions."""


@dataclass(frozen=True, slots=True)
class RecallPoint:
    """Pairs of Jaccard similarity `low` to below `high` (decimals; to 1, included), and how many were proposed.

    `expected` is the mean probability of these very pairs to be proposed, in `UNIT`s.
    """

    low: str
    high: str
    pairs: int
    proposed: int
    expected: int

    @property
    def standard_error(self) -> float:
        """Of the share of proposed pairs, were each proposed with the expected probability, independently."""
        chance = self.expected / UNIT
        return sqrt(chance * (1 - chance) / self.pairs)

    @property
    def luck(self) -> float:
        """The probability that so few, or fewer, of so many pairs are proposed (binomial)."""
        chance = self.expected / UNIT
        if not 0 < chance < 1:
            return float(self.proposed >= self.pairs * chance)
        return min(1.0, sum(exp(self._log_chance(number, chance)) for number in range(self.proposed + 1)))

    def _log_chance(self, number: int, chance: float) -> float:
        """Return the logarithm of the probability that just `number` of the pairs are proposed."""
        ways = lgamma(self.pairs + 1) - lgamma(number + 1) - lgamma(self.pairs - number + 1)
        return ways + number * log(chance) + (self.pairs - number) * log(1 - chance)


@dataclass(frozen=True, slots=True)
class StageRecall:
    """What was measured of a stage: its name and key, different texts that came into it, and the points."""

    name: str
    key: str
    texts: int
    points: tuple[RecallPoint, ...]


@dataclass(frozen=True, slots=True)
class Recall:
    """What was measured of the result with this key."""

    key: str
    stages: tuple[StageRecall, ...]


def write_recall(store: Store, recall: Recall) -> None:
    """Put `recall.json` into `store`, in place of what is there."""
    write_beside(store, FILE, FORMAT, "recall", asdict(recall))


def read_recall(store: Store, key: str) -> Recall | None:
    """Return what was measured of the result with this key, None where nothing was.

    Raises:
        StoreError: the file is damaged.
        FormatError: it has a version that is not read.
    """
    return read_beside(
        store, FILE, FORMAT, key, lambda value: Recall(value["key"], tuple(map(_stage, value["stages"])))
    )


def _stage(value: Mapping[str, Any]) -> StageRecall:
    points = tuple(RecallPoint(**point) for point in value["points"])
    return StageRecall(value["name"], value["key"], value["texts"], points)
