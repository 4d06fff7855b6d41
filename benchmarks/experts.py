"""Experts on skewed data: does the bias keep the load even, and does that cost anything?

Run `python -m benchmarks.experts [--size small|full] [--tokens N] [--balance B…] [--keep FOLDER]`. The data are five
sources with very unequal shares of each batch (8 : 4 : 2 : 1 : 1 rows, as a plan gives them), each with a rule of its
own, so that experts that specialise are chosen unequally. The same small model is trained without balance, with "sign"
and with "quantile", on the same batches, over paired seeds; each step expects `--tokens` per expert, in whole fours.
Measured from the log, as the run page plots it, over the last 100 steps: the mean of a step's max violation (largest
load over mean load, less 1) over layers (Wang et al. 2024), that of its worst layer, and the violation of all these
steps' loads added up; and the loss on held-out text of the same mixture, whose difference to no balance has a paired
interval of 95 %. The mean of layers must stay below .2, and with "quantile", the default, the worst layer, too.

`--keep` leaves the runs there: `curate watch FOLDER/quantile-0` draws their page. The last line is JSON; the exit
status is 1 when a check fails. There are no peers: the unbalanced model is what it is compared with.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, get_args

import numpy as np

from trainers.batches import Sequences
from trainers.config import Balance, Config, ExpertsConfig, ModelConfig, OptimizerConfig
from trainers.evidence.statistics import paired_interval
from trainers.log import read_log
from trainers.train import train

STEPS: Final = {"small": 300, "full": 800}
SEEDS: Final = {"small": 3, "full": 5}
VOCABULARY: Final = 64
ROWS_OF: Final = (8, 4, 2, 1, 1)
ROWS: Final = sum(ROWS_OF)
EXPERTS, CHOSEN = 8, 2
LAST: Final = 100
PACKAGES: Final = ("jax", "jaxlib", "equinox", "optax", "numpy")


@dataclass(frozen=True, slots=True)
class Skewed:
    """Batches with `ROWS_OF` rows of each source; a source has its own rule and its own words to jump to."""

    seed: int
    length: int
    digest: str = "skewed"

    def batch(self, step: int) -> Sequences:
        """Return the batch of `step`."""
        draw = np.random.Generator(np.random.Philox(key=[self.seed, step]))
        source = np.repeat(np.arange(len(ROWS_OF)), ROWS_OF)
        columns = [draw.integers(0, VOCABULARY, ROWS)]
        while len(columns) < self.length:
            follows = ((4 * source + 5) * columns[-1] + 7 * source + 3) % VOCABULARY
            jumps = draw.random(ROWS) < 0.1
            columns.append(np.where(jumps, 8 * source + draw.integers(0, 8, ROWS), follows))
        tokens = np.stack(columns, axis=1).astype(np.int32)
        place = np.broadcast_to(np.arange(self.length, dtype=np.int32), tokens.shape)
        return Sequences(tokens, np.ones_like(tokens), place, np.ones(tokens.shape, np.bool_))


def config(balance: Balance, steps: int, seed: int, length: int) -> Config:
    """Return the run with this balance, on sequences of `length`."""
    experts = ExpertsConfig(EXPERTS, CHOSEN, balance=balance)
    model = ModelConfig(VOCABULARY, width=32, layers=2, heads=2, kv_heads=1, hidden=32, experts=experts)
    optimizer = OptimizerConfig(learning_rate=0.01, warmup=steps // 20, decay=steps // 5)
    return Config(model, optimizer, steps=steps, batch=ROWS, length=length, seed=seed)


@dataclass(frozen=True, slots=True)
class Measured:
    """A run: violation of its last steps, of the worst layers, of all loads together, the largest; held-out loss."""

    each: float
    worst: float
    together: float
    largest: float
    loss: float


def measure(balance: Balance, steps: int, seed: int, length: int, folder: Path) -> Measured:
    """Train in `folder` and read the log."""
    held_out = {"skewed": [Skewed(10**6, length).batch(step) for step in range(20)]}
    train(Skewed(seed, length), config(balance, steps, seed, length), folder, validation=held_out, validate_every=steps)
    log = read_log(folder)
    last = [line["experts"] for line in log.train[-LAST:]]
    worst = [max(line["max_violation"]) for line in last]
    load = np.sum([line["load"] for line in last], axis=0)
    together = float((load.max(axis=1) / load.mean(axis=1)).max() - 1)
    each = float(np.mean([line["max_violation"] for line in last]))
    return Measured(each, float(np.mean(worst)), together, max(worst), log.validation[-1]["loss"])


def summary(found: Mapping[str, Sequence[Measured]], tokens: int) -> dict[str, Any]:
    """Return the figures and checks as one JSON object."""
    figures, checks = {}, {}
    for balance, runs in found.items():
        figures[balance] = {
            name: [round(getattr(run, name), 4) for run in runs]
            for name in ("each", "worst", "together", "largest", "loss")
        }
        if balance == "none":
            continue
        worst = max(run.each for run in runs)
        checks[f"{balance}: max violation"] = [round(worst, 3), "< .2", worst < 0.2]
        if balance == "quantile":
            layer = max(run.worst for run in runs)
            checks["quantile: max violation, worst layer"] = [round(layer, 3), "< .2", layer < 0.2]
        if "none" not in found:
            continue
        interval = paired_interval([run.loss for run in found["none"]], [run.loss for run in runs], 0.05)
        figures[balance]["loss minus none"] = [round(x, 4) for x in (interval.mean, interval.low, interval.high)]
        checks[f"{balance}: loss minus none, low end"] = [round(interval.low, 4), "≤ 0", interval.low <= 0]
    return {
        "name": "experts",
        "unit": "max violation, mean of the last 100 steps and of layers, worst seed",
        "ours": max(run.each for run in found["quantile"]) if "quantile" in found else None,
        "peers": {},
        "ratio": None,
        "expected tokens per expert": tokens,
        "figures": figures,
        "checks": checks,
        "versions": {package: version(package) for package in PACKAGES},
    }


def main() -> int:
    """Measure, print, and return 1 when a check fails."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--size", choices=STEPS, default="small")
    parser.add_argument("--tokens", type=int, default=128, help="expected per expert (default: %(default)s)")
    parser.add_argument("--balance", choices=get_args(Balance), action="append", help="may be repeated (default: all)")
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    length = options.tokens * EXPERTS // (CHOSEN * ROWS)
    root = options.keep or Path(tempfile.mkdtemp(prefix="curate-experts-"))
    found: dict[str, list[Measured]] = {}
    for balance in options.balance or get_args(Balance):
        for seed in range(SEEDS[options.size]):
            run = measure(balance, STEPS[options.size], seed, length, root / f"{balance}-{seed}")
            found.setdefault(balance, []).append(run)
            print(f"{balance:>8}, seed {seed}: {run}", flush=True)
    if options.keep is None:
        shutil.rmtree(root)
    result = summary(found, ROWS * length * CHOSEN // EXPERTS)
    print(json.dumps(result, ensure_ascii=False))
    return 0 if all(check[2] for check in result["checks"].values()) else 1


if __name__ == "__main__":
    sys.exit(main())
