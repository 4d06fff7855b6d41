"""Ladders: the published one, 200 of known truth, and one of our own whose largest run is forecast before it runs.

    python -m benchmarks.evidence_ladder [--size small|full]

`checks()` gives the figures to `benchmarks.evidence`. small leaves out the own ladder (`evidence_own_ladder`), which
takes a quarter of an hour on one core.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable
from typing import Any, Final, Literal

import numpy as np

from benchmarks.evidence_own_ladder import DATA, own
from trainers.evidence.scaling import Rung, fit_law, predict

PUBLISHED: Final = [Rung(2.650e19, (3.0154,)), Rung(1.726e20, (2.7809,)), Rung(1.381e21, (2.5638,))]
PUBLISHED_TARGET: Final = 2.611e24
LADDERS: Final = 200

Size = Literal["small", "full"]
Checks = dict[str, tuple[Any, str, bool]]


def checks(size: Size = "full", workers: int = 1) -> Checks:
    """Return name → (value, what is asked of it, whether it holds)."""
    found = published() | known_truth()
    if size == "full":
        found |= own(workers) if DATA.exists() else {"own ladder": (f"{DATA} is absent", "measured", False)}
    return found


def published() -> Checks:
    """Return the checks of the published rungs (2.650e19 to 1.381e21 FLOP), with E fixed at 1.5 and free."""
    fixed = fit_law(PUBLISHED, 1.5).at(PUBLISHED_TARGET)
    free = predict(PUBLISHED, PUBLISHED_TARGET)
    said = f"{free.low:.3f} to {free.high:.3f}"
    return {
        "published rungs, E = 1.5": (round(fixed, 4), "2.041 ± .002", abs(fixed - 2.041) <= 0.002),
        "published rungs, E free": (said, "holds 2.041", free.holds(2.041)),
        "published rungs, width": (said, "⊇ 2.00 to 2.09", free.low <= 2.00 and free.high >= 2.09),
    }


def known_truth() -> Checks:
    """Return how many of 200 ladders of known truth have the next run in their band of 80 %."""
    rng = np.random.default_rng(13)
    hits = 0
    for number in range(LADDERS):
        rungs, run = _ladder(rng, 3 + number % 3)
        flop = rungs[-1].flop * (10, 100)[number % 2]
        hits += predict(rungs, flop).holds(run(flop))
    share = hits / LADDERS
    return {"bands of 80 % that hold": (share, ".70 to .90", 0.7 <= share <= 0.9)}


def _ladder(rng: np.random.Generator, count: int) -> tuple[list[Rung], Callable[[float], float]]:
    """Return rungs over two decades, the first with three seeds, and what makes further runs."""
    least, exponent, scale = rng.uniform(1.2, 2.2), rng.uniform(0.05, 0.25), rng.uniform(0.8, 2.5)
    noise = math.exp(rng.uniform(math.log(0.001), math.log(0.01)))
    flops = 1e15 * 10.0 ** np.linspace(0, 2, count)

    def run(flop: float) -> float:
        return float(least + scale * (flop / 1e15) ** -exponent + noise * rng.standard_normal())

    rungs = [Rung(float(f), tuple(run(f) for _ in range(3 if n == 0 else 1))) for n, f in enumerate(flops)]
    return rungs, run


def main() -> int:
    """Print each check, and all of them as JSON; return 1 when one fails."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--size", choices=("small", "full"), default="small")
    found = checks(parser.parse_args().size)
    for name, (value, asked, holds) in found.items():
        print(f"{'holds' if holds else 'FAILS'}  {name}: {value} (asked: {asked})")
    print(json.dumps({"name": "evidence_ladder", "checks": {name: list(found[name]) for name in found}}))
    return 0 if all(holds for _, _, holds in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
