"""Chaos: runs that are killed, starved and moved about, resumed, and compared byte for byte with an undisturbed one.

    python -m benchmarks.chaos [--size tiny|small|full] [--seed N] [--seconds S] [--every N] [--only PART …]

Parts, each over the reduced demo of `benchmarks.chaos_recipe`, which has every kind of stage:

    points        SIGKILL at each kind of published file and each moment of its publishing (before and after its link);
                  small: at one in 16 of these
    drivers       SIGKILL to drivers at seeded times, several in one store
    ray           SIGKILL to workers and drivers on a Ray of their own
    nodes         whole Ray nodes killed while others join
    disks         disks that run full
    objects       an S3 server, undisturbed and behind a proxy that spoils requests that write
    surroundings  clock, locale, time zone, user, home folder

Afterwards every hashed file of the store must equal the undisturbed run's, no finished task may have been done again,
and nothing temporary be left. The last line is one JSON object; the exit status is 1 when a check fails. Linux only
(/proc). What cannot be done here (a disk needs the right to mount, a clock libfaketime, another user root) is said and
not counted.
"""

from __future__ import annotations

import argparse
import json
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from benchmarks.chaos_look import Outcome, tree
from benchmarks.chaos_points import kill_everywhere, record_points
from benchmarks.chaos_ray import kill_drivers, kill_on_ray, lose_nodes
from benchmarks.chaos_recipe import Amount, write_inputs
from benchmarks.chaos_storage import compare_with_objects, fill_disks, spoil_requests
from benchmarks.chaos_surroundings import run_elsewhere
from curate.store import Store

PACKAGES: Final = ("pyarrow", "ray", "moto")


@dataclass(frozen=True, slots=True)
class Size:
    """What is read, and how many disturbances of each kind there are; points: one in `every` of their kinds."""

    amount: Amount
    every: int
    drivers: int
    ray: int
    nodes: int
    disks: int
    objects: int


SIZES: Final = {
    "tiny": Size(Amount(1, 24), every=1, drivers=1, ray=1, nodes=1, disks=1, objects=2),
    "small": Size(Amount(2, 24), every=16, drivers=3, ray=1, nodes=1, disks=1, objects=2),
    "full": Size(Amount(3, 120), every=1, drivers=40, ray=25, nodes=10, disks=15, objects=40),
}


@contextmanager
def work_folder() -> Iterator[Path]:
    """Yield a temporary folder, in memory where that is possible: every published file is synced twice."""
    shared = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="curate-chaos-", dir=shared if shared.is_dir() else None))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def parts_of(
    size: Size, work: Path, expected: Mapping[str, str], passed: Sequence[str], seed: int, until: float, every: int
) -> dict[str, Callable[[], Outcome]]:
    """Return the parts by name."""
    place = (work / "in", work, expected)
    return {
        "points": partial(kill_everywhere, *place, passed, seed, every),
        "drivers": partial(kill_drivers, *place, size.drivers, seed, until),
        "ray": partial(kill_on_ray, *place, size.ray, seed, until),
        "nodes": partial(lose_nodes, *place, size.nodes, seed, until),
        "disks": partial(fill_disks, *place, size.disks, seed, until),
        "server": partial(compare_with_objects, *place),
        "objects": partial(spoil_requests, *place, size.objects, seed, until),
        "surroundings": partial(run_elsewhere, *place),
    }


def checks_of(outcomes: Mapping[str, Outcome]) -> dict[str, tuple[int, str, bool]]:
    """Return name → (value, what it must be, whether it is)."""
    checks: dict[str, tuple[int, str, bool]] = {}
    for part, outcome in outcomes.items():
        for what, value in (
            ("stores that differ", outcome.different),
            ("finished tasks done again", outcome.again),
            ("temporary files and processes left", outcome.left),
            ("runs that did not survive", outcome.failed),
        ):
            checks[f"{part}: {what}"] = (value, "= 0", value == 0)
        checks[f"{part}: disturbances"] = (outcome.hit, "≥ 1", outcome.hit >= 1 or bool(outcome.missed))
    if "points" in outcomes:
        points = outcomes["points"]
        checks["points: that no process reached"] = (len(points.missed), "= 0", not points.missed)
        checks["points: killed"] = (points.hit, f"= {points.tried}", points.hit == points.tried)
    return checks


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the chaos and print its report; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--seconds", type=float, default=3600.0, help="begin no further random disturbance after this time"
    )
    parser.add_argument("--every", type=int, metavar="N", help="kill at one in N kinds of points")
    parser.add_argument("--only", action="append", default=[], metavar="PART", help="run this part; repeatable")
    given = parser.parse_args(arguments)
    until = time.monotonic() + given.seconds
    size = SIZES[given.size]
    every = given.every or size.every
    outcomes: dict[str, Outcome] = {}
    with work_folder() as work:
        write_inputs(work / "in", size.amount, given.seed)
        passed = record_points(work / "in", work / "undisturbed", work / "log")
        expected = tree(Store(work / "undisturbed"))
        for name, part in parts_of(size, work, expected, passed, given.seed, until, every).items():
            if given.only and name not in given.only:
                continue
            began = time.monotonic()
            outcomes[name] = outcome = part()
            seconds = time.monotonic() - began
            print(f"{name}: {outcome.hit} of {outcome.tried} took place, {seconds:.0f} s", flush=True)
            for text in outcome.missed:
                print(f"  {text}", flush=True)
    checks = checks_of(outcomes)
    report: dict[str, Any] = {
        "name": f"chaos, {given.size}, seed {given.seed}",
        "unit": "disturbances survived",
        "ours": sum(outcome.hit for outcome in outcomes.values()),
        "peers": {},
        "ratio": None,
        "checks": checks,
        "versions": {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}},
    }
    print(json.dumps(report))
    return 0 if all(right for _, _, right in checks.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
