"""The bundled trainer: its step against a bare JAX loop of the same model, what strict mode costs, and that it holds.

Run `python -m benchmarks.trainer [--size small|full] [--only PART…] [--peers]` (parts: `PARTS`). The loop that is
measured is `trainers.train.train` with its log, checks and reading ahead; the bare one (`benchmarks.trainer_bare`) has
none of it and its batches on the device. Both see the same batches from the same parameters and must come to the same
losses. They take turns, and the best of some rounds counts, in CPU seconds of all threads: on a machine with other work
the clock says little.

Strict mode: its cost is a step of eight shards added in a tree over one of eight shards added one after the other, on
one device. That it holds is shown by digests of the whole state of `benchmarks.trainer_strict`, in a process of its own
for 1, 2, 4 and 8 devices: with small for bfloat16 + experts + Muon and for float32 + dense + AdamW, with full for all
eight cases. Full measures a larger model too and, where there is a GPU, one of 110 M parameters in bfloat16 with
its MFU over the measured peak. The last line is JSON; the exit status is 1 when a check fails. Peers cost nothing and
are measured with the step.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import jax
import numpy as np

from benchmarks.trainer_bare import make_loop
from benchmarks.trainer_strict import CASES, SHARDS
from trainers.batches import Sequences
from trainers.config import Config, recipe
from trainers.log import read_log
from trainers.speed import flop_per_token, measure_peak
from trainers.step import on_device
from trainers.train import train

SIZES: Final = {"small": (64, 16, 3), "full": (256, 8, 3)}
"""Width, updates of a round, rounds."""
VOCABULARY, ROWS, LENGTH = 4096, 8, 256
SLOWEST: Final = 1.1
PACKAGES: Final = ("jax", "jaxlib", "equinox", "optax", "numpy")
DEVICES: Final = (1, 2, 4, 8)
PARTS: Final = ("step", "cost", "states")
SMALL_CASES: Final = ("float32+dense+adamw", "bfloat16+experts+muon")


@dataclass(slots=True)
class Stamped:
    """Batches in memory, and the CPU time and clock at which each was asked for."""

    batches: list[Sequences]
    digest: str = "benchmark"
    stamps: list[tuple[float, float]] = field(default_factory=list)

    def batch(self, step: int) -> Sequences:
        """Return a batch."""
        self.stamps.append((time.process_time(), time.perf_counter()))
        return self.batches[step]

    def per_step(self) -> tuple[float, float]:
        """Return CPU seconds and seconds of a step, from the third batch asked for to the last: after compilation."""
        (cpu, clock), (cpu_end, clock_end) = self.stamps[2], self.stamps[-1]
        steps = len(self.stamps) - 3
        return (cpu_end - cpu) / steps, (clock_end - clock) / steps


def config_of(width: int, updates: int) -> Config:
    """Return the recipe's configuration of a width for so many updates."""
    return recipe(width, updates * ROWS * LENGTH, vocabulary=VOCABULARY, length=LENGTH, batch=ROWS)


def batches_of(config: Config) -> list[Sequences]:
    """Return batches of random tokens in documents of about a hundred."""
    rng = np.random.Generator(np.random.Philox(3))
    shape = config.batch, config.length
    found = []
    for _ in range(config.steps):
        begins = rng.random(shape) < 0.01
        begins[:, 0] = True
        place = np.arange(shape[1], dtype=np.int32)
        positions = place - np.maximum.accumulate(np.where(begins, place, 0), axis=1)
        tokens = rng.zipf(1.3, shape).astype(np.int32) % VOCABULARY
        found.append(
            Sequences(
                tokens, np.cumsum(begins, axis=1, dtype=np.int32), positions.astype(np.int32), np.ones(shape, bool)
            )
        )
    return found


def ours(config: Config, batches: list[Sequences]) -> tuple[float, float, list[float]]:
    """Return CPU seconds and seconds of a step of `train`, and its losses."""
    loader = Stamped(batches)
    with tempfile.TemporaryDirectory() as folder:
        train(loader, config, Path(folder), checkpoint_every=10**6)
        losses = [line["loss"] for line in read_log(Path(folder)).train]
    return (*loader.per_step(), losses)


def bare(config: Config, batches: list[Sequences]) -> Callable[[], tuple[float, float, list[float]]]:
    """Return the bare loop over `batches`, which returns CPU seconds and seconds of a step, and its losses."""
    loop, given = make_loop(config), [on_device(batch) for batch in batches]
    loop(given[:1])  # compiles

    def measured() -> tuple[float, float, list[float]]:
        cpu, clock = time.process_time(), time.perf_counter()
        losses = loop(given)
        return (time.process_time() - cpu) / len(given), (time.perf_counter() - clock) / len(given), losses

    return measured


def best(rounds: list[tuple[float, float, list[float]]]) -> tuple[float, float, list[float]]:
    """Return the least CPU seconds, the least seconds, and the losses."""
    return min(cpu for cpu, _, _ in rounds), min(clock for _, clock, _ in rounds), rounds[0][2]


def against_bare(size: str) -> dict[str, Any]:
    """Return what steps of the trainer and of the bare loop took, and how far their losses are apart."""
    width, updates, rounds = SIZES[size]
    config = config_of(width, updates)
    batches = batches_of(config)
    run = bare(config, batches)
    pairs = [(ours(config, batches), run()) for _ in range(rounds)]
    mine, other = best([pair[0] for pair in pairs]), best([pair[1] for pair in pairs])
    apart = max(abs(a - b) for a, b in zip(mine[2], other[2], strict=True))
    tokens = config.batch * config.length
    return {"ours": mine[:2], "bare": other[:2], "apart": apart, "tokens": tokens, "config": config}


def strict_cost(size: str) -> float:
    """Return the CPU time of a strict step of eight shards over that of the same shards by psum, on one device."""
    width, updates, rounds = SIZES[size]
    config = replace(config_of(width, updates), shards=SHARDS)
    batches = batches_of(config)
    modes = [replace(config, reduction="strict"), config]
    pairs = [[ours(mode, batches) for mode in modes] for _ in range(rounds)]
    strict, fast = (best([pair[place] for pair in pairs])[0] for place in (0, 1))
    return strict / fast


def strict_states(cases: tuple[str, ...]) -> dict[str, set[str]]:
    """Return case → the digests that processes of 1, 2, 4 and 8 devices came to."""
    found: dict[str, set[str]] = {case: set() for case in cases}
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    for devices in DEVICES:
        command = [sys.executable, "-m", "benchmarks.trainer_strict", str(devices), *cases]
        result = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
        for case, digest in json.loads(result.stdout.splitlines()[-1]).items():
            found[case].add(digest)
        print(f"{devices} devices: {result.stdout.strip()}", flush=True)
    return found


def step_report(size: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what stands in the last line of the step beside a bare loop, and its checks."""
    steps, gpu = against_bare(size), on_gpu()
    (cpu, clock), (bare_cpu, bare_clock), tokens = steps["ours"], steps["bare"], steps["tokens"]
    times = cpu / bare_cpu
    print(f"step, CPU seconds: {cpu:.3f}, bare loop {bare_cpu:.3f}; by the clock {clock:.3f} and {bare_clock:.3f}")
    print(f"MFU over the measured peak, by the clock: {mfu_of(steps['config'], clock):.2f}; GPU: {gpu or 'none here'}")
    checks = {
        "CPU time of a step over that of a bare loop": [round(times, 3), f"≤ {SLOWEST}", times <= SLOWEST],
        "losses apart from the bare loop's": [float(f"{steps['apart']:.1e}"), "≤ 1e-3", steps["apart"] <= 1e-3],
    }
    peers = {"bare JAX loop": round(tokens / bare_cpu)}
    return {"ours": round(tokens / cpu), "peers": peers, "ratio": round(1 / times, 3), "gpu": gpu}, checks


def cost_check(size: str) -> dict[str, Any]:
    """Return the check of what strict mode costs."""
    cost = strict_cost(size)
    return {"CPU time of a strict step over psum's": [round(cost, 3), "≤ 1.3", cost <= 1.3]}


def states_check(size: str) -> dict[str, Any]:
    """Return the check that strict states are equal."""
    states = strict_states(CASES if size == "full" else SMALL_CASES)
    equal = sum(len(digests) == 1 for digests in states.values())
    return {f"strict cases of {len(states)} equal on 1, 2, 4, 8": [equal, f"= {len(states)}", equal == len(states)]}


def mfu_of(config: Config, seconds: float) -> float:
    """Return the MFU of steps that take `seconds`, over the peak measured here."""
    flop = flop_per_token(config.model, config.length) * config.batch * config.length
    return flop / seconds / measure_peak(config.compute).flops


def on_gpu() -> dict[str, float]:
    """Return tokens a second and MFU of 110 M parameters in bfloat16; nothing where there is no GPU."""
    if jax.default_backend() != "gpu":
        return {}
    config = recipe(768, 30 * 32 * 1024, vocabulary=32_768, length=1024, batch=32)
    config = replace(config, compute="bfloat16")
    _, seconds, _ = ours(config, batches_of(config))
    return {"tokens_per_second": config.batch * config.length / seconds, "mfu": mfu_of(config, seconds)}


def main(arguments: list[str] | None = None) -> int:
    """Print rates, checks and one line of JSON; return 1 if a check failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--size", choices=sorted(SIZES), default="small", help="how much (default: %(default)s)")
    parser.add_argument("--only", choices=PARTS, action="append", help="this part, may be repeated (default: all)")
    parser.add_argument("--peers", action="store_true", help="nothing more: the bare loop is always measured")
    options = parser.parse_args(arguments)
    parts = options.only or PARTS
    measured, checks = {"ours": None, "peers": {}, "ratio": None}, dict[str, Any]()
    if "step" in parts:
        measured, checks = step_report(options.size)
    checks |= states_check(options.size) if "states" in parts else {}
    checks |= cost_check(options.size) if "cost" in parts else {}
    for name, (found, bound, holds) in checks.items():
        print(f"{name:45} {found:9} {bound:9} {'holds' if holds else 'FAILS'}")
    report = {
        "name": "trainer",
        "unit": "tokens per CPU second",
        **measured,
        "checks": checks,
        "versions": {"python": platform.python_version(), **{package: version(package) for package in PACKAGES}},
    }
    print(json.dumps(report, ensure_ascii=False))
    return int(not all(holds for _, _, holds in checks.values()))


if __name__ == "__main__":
    sys.exit(main())
