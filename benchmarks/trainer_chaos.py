"""A strict run of the bundled trainer that is killed again and again, each time resumed on another number of devices.

`python -m benchmarks.trainer_chaos [--size small|full] [--case CASE…]`: an undisturbed run on one device, then the same
run killed by SIGKILL at 20 (small: 4) random moments and resumed on 4, 2, 8, 4 … forced devices of the CPU, to its end.
Every second kill falls inside a save. State and log, without clock and hosts, must be those of the undisturbed run. A
case is one of `benchmarks.trainer_strict`; those of `CASES` are run if none is named. All clip, accumulate and keep a
running average.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, replace
from importlib.metadata import version
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.trainer_strict import CASES as ALL_CASES
from benchmarks.trainer_strict import LENGTH, config_of
from trainers.batches import Sequences
from trainers.log import read_log, untimed

CASES: Final = {
    "small": ("bfloat16+experts+muon",),
    "full": ("float32+experts+muon", "bfloat16+experts+muon", "float32+dense+adamw", "bfloat16+dense+adamw"),
}
KILLS: Final = {"small": 4, "full": 20}
DEVICES: Final = (4, 2, 8)
UPDATES: Final = 120
EVERY: Final = 5
ROOT: Final = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class Random:
    """Batches of random tokens in documents of about twenty."""

    rows: int
    digest: str = "random tokens"

    def batch(self, step: int) -> Sequences:
        """Return the batch of `step`."""
        rng = np.random.Generator(np.random.Philox(key=[9, step]))
        shape = self.rows, LENGTH
        segments = 1 + np.cumsum(rng.random(shape) < 0.05, axis=1, dtype=np.int32)
        positions = np.broadcast_to(np.arange(LENGTH, dtype=np.int32), shape)
        return Sequences(rng.integers(0, 128, shape, dtype=np.int32), segments, positions, np.ones(shape, np.bool_))


def child(case: str, folder: str, devices: str, kill: str) -> None:
    """Train to the end, or die: after so many "seconds" from the first update on, or at a "point" of a save."""
    from trainers.mesh import make_mesh
    from trainers.train import train

    what, _, number = kill.partition(":")
    left = [float(number or 0)]

    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def failpoint(reached: str) -> None:
        if what == "seconds" and reached == "step" and left[0]:
            threading.Timer(left[0], die).start()
            left[0] = 0
        left[0] -= reached == what
        if reached == what and left[0] <= 0:
            die()

    mesh = make_mesh() if devices != "1" else None
    run = replace(config_of(case), steps=UPDATES)
    loader = Random(run.batch)
    held_out = {"random": [loader.batch(10**6)]}
    done = train(
        loader, run, Path(folder), validation=held_out, validate_every=20, checkpoint_every=EVERY, mesh=mesh,
        failpoint=failpoint,
    )  # fmt: skip
    print(done.digest)


def start(case: str, folder: Path, devices: int, kill: str) -> subprocess.CompletedProcess[str]:
    """Run a child on so many devices."""
    flags = f"--xla_force_host_platform_device_count={devices}"
    settings = {
        "XLA_FLAGS": flags,
        "JAX_PLATFORMS": "cpu",
        "JAX_COMPILATION_CACHE_DIR": str(folder.parent / "compiled"),
    }
    settings |= {"NPROC": "2"}  # as in `benchmarks.trainer_strict`
    settings |= {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    command = [sys.executable, "-m", "benchmarks.trainer_chaos", "child", case, str(folder), str(devices), kill]
    return subprocess.run(command, cwd=ROOT, env=os.environ | settings, capture_output=True, text=True, check=False)


def moments(count: int) -> list[str]:
    """Return `count` moments to die at, by turns within a save and anywhere."""
    rng = random.Random(12)
    points = ("begun", "arrays", "manifest", "synced", "renamed", "pruned")
    return [
        f"{rng.choice(points)}:{rng.randint(1, 2)}" if number % 2 else f"seconds:{rng.uniform(0.01, 1.5):.3f}"
        for number in range(count)
    ]


def told(folder: Path) -> list[list[dict[str, Any]]]:
    """Return what must be the same in every run."""
    log = read_log(folder)
    return [[untimed(line) for line in part] for part in (log.train, log.validation)]


def measure(case: str, kills: int) -> dict[str, Any]:
    """Return what a run of `case` came to, killed so often, beside the undisturbed one."""
    with tempfile.TemporaryDirectory() as work:
        calm, killed = Path(work) / "calm", Path(work) / "killed"
        first = start(case, calm, 1, "never")
        if first.returncode:
            raise RuntimeError(first.stderr)
        died = 0
        for kill, devices in zip(moments(kills), cycle(DEVICES), strict=False):
            ended = start(case, killed, devices, kill)
            died += ended.returncode == -signal.SIGKILL
            if ended.returncode not in (0, -signal.SIGKILL):
                raise RuntimeError(ended.stderr)
            print(
                f"{case}, {devices} devices, {kill}: {ended.returncode}, {len(read_log(killed).train)} steps",
                flush=True,
            )
        last = start(case, killed, next(islice(cycle(DEVICES), kills, None)), "never")
        log = read_log(killed)
        return {
            "died": died,
            "state": last.stdout.strip() == first.stdout.strip() != "",
            "log": told(killed) == told(calm),
            "repeated": log.repeated,
            "disagreed": len(log.disagreed),
            "error": last.stderr[-500:] if last.returncode else "",
        }


def main() -> int:
    """Print the last line; return 1 when a check fails."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--size", choices=KILLS, default="small")
    parser.add_argument("--case", choices=ALL_CASES, action="append", help="a case, may be repeated")
    options = parser.parse_args()
    cases, kills = tuple(options.case or CASES[options.size]), KILLS[options.size]
    begun = time.perf_counter()
    found = {case: measure(case, kills) for case in cases}
    died, repeated, disagreed = (
        sum(each[what] for each in found.values()) for what in ("died", "repeated", "disagreed")
    )
    states, logs = ([case for case, each in found.items() if each[what]] for what in ("state", "log"))
    checks = {
        f"kills of {', '.join(cases)}": [died, f"= {kills * len(cases)}", died == kills * len(cases)],
        "states equal to those of undisturbed runs": [len(states), f"= {len(cases)}", len(states) == len(cases)],
        "logs equal to those of undisturbed runs": [len(logs), f"= {len(cases)}", len(logs) == len(cases)],
        "steps made again with another loss": [disagreed, "0", disagreed == 0],
    }
    line = {
        "name": "trainer_chaos",
        "unit": "steps made again",
        "ours": repeated,
        "peers": {},
        "ratio": None,
        "checks": checks,
        "versions": {"python": platform.python_version(), **{name: version(name) for name in ("jax", "tensorstore")}},
    }
    print(f"{time.perf_counter() - begun:.0f} s {''.join(each['error'] for each in found.values())}")
    print(json.dumps(line, ensure_ascii=False))
    return 0 if all(check[2] for check in checks.values()) else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        child(*sys.argv[2:])
    else:
        sys.exit(main())
