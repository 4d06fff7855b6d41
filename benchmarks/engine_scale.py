"""How the engine's time and the driver's memory grow with the number of shards, from 10 to 10,000.

Run `python -m benchmarks.engine_scale [--most N] [--ray N]`. Shards are of one short document each, made by the
in-process runner, each number of them in a process of its own, whose peak memory is that of driver and worker together;
on Ray it is the driver's alone. CPU seconds are those of the process (on Ray of the driver); wall clock is shown, but a
busy machine stretches it. The last line is JSON; the exit status is 1 when a check fails.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from curate import Outputs, read_jsonl
from curate.run import Result, run

COUNTS: Final = (10, 100, 1_000, 10_000)
FLAT_FROM: Final = 100
MOST_SPREAD: Final = 0.15
MOST_MB: Final = 50.0
MOST_SECONDS_TO_REUSE: Final = 10.0


@dataclass(frozen=True, slots=True)
class Scale:
    """What one number of shards took: CPU and wall-clock milliseconds per shard, MB that memory grew, seconds.

    `reuse` is a run that finds all there, `finish` one that lacks the manifest only.
    """

    shards: int
    cpu_ms: float
    wall_ms: float
    grown_mb: float
    reuse_s: float
    finish_s: float


@contextmanager
def work_folder() -> Iterator[Path]:
    """Yield a temporary folder, in memory where that is possible: this measures the engine, not the disk."""
    shared = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="curate-scale-", dir=shared if shared.is_dir() else None))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def write_shards(root: Path, count: int) -> Path:
    """Write `count` files of one document each."""
    root.mkdir(parents=True)
    for number in range(count):
        text = f"{number} " + "karen losal mibik tedun ravo " * 4
        (root / f"{number:06d}.jsonl").write_text(json.dumps({"text": text}) + "\n")
    return root


def timed(work: Callable[[], Result]) -> tuple[Result, float, float]:
    """Return what `work` made, and the CPU and wall-clock seconds that it took."""
    with open("/dev/null", "w") as nowhere, redirect_stderr(nowhere):
        cpu, wall = time.process_time(), time.perf_counter()
        made = work()
        return made, time.process_time() - cpu, time.perf_counter() - wall


def peak_mb() -> float:
    """Return the peak memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(shards: int, work: Path, runner: str) -> Scale:
    """Run `shards` shards in this process, run again, and once more without the manifest."""
    run_once = partial(run, Outputs(read_jsonl(write_shards(work / "in", shards), source="s")), runner=runner)
    tiny = partial(run, Outputs(read_jsonl(write_shards(work / "tiny", 2), source="s")), runner=runner)
    timed(partial(tiny, work / "tiny-store"))  # what is loaded once is loaded
    before = peak_mb()
    made, cpu, wall = timed(partial(run_once, work / "store"))
    grown = peak_mb() - before
    _, _, reuse = timed(partial(run_once, work / "store"))
    shutil.rmtree(work / "store" / made.stages[0].folder)
    _, _, finish = timed(partial(run_once, work / "store"))
    return Scale(shards, cpu / shards * 1e3, wall / shards * 1e3, grown, reuse, finish)


def in_child(shards: int, runner: str) -> Scale:
    """Measure in a process of its own."""
    with work_folder() as work:
        command = [sys.executable, "-m", "benchmarks.engine_scale", "--one", str(shards), str(work), runner]
        done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=Path(__file__).parents[1])
    return Scale(**json.loads(done.stdout.splitlines()[-1]))


def checks_of(found: Sequence[Scale], on_ray: Sequence[Scale]) -> dict[str, Any]:
    """Return name → figure, limit, whether it holds."""
    flat = [scale for scale in found if scale.shards >= FLAT_FROM]
    rates = [scale.cpu_ms for scale in flat]
    middle = (max(rates) + min(rates)) / 2
    spread = (max(rates) - min(rates)) / 2 / middle
    grown = flat[-1].grown_mb - flat[0].grown_mb
    reuse = max(scale.reuse_s for scale in found)
    checks = {
        "CPU time per shard, ±": (round(spread, 3), f"≤ {MOST_SPREAD:g}", spread <= MOST_SPREAD),
        "MB that memory grows from fewest to most": (round(grown, 1), f"< {MOST_MB:g}", grown < MOST_MB),
        "seconds to reuse the most": (round(reuse, 2), f"≤ {MOST_SECONDS_TO_REUSE:g}", reuse <= MOST_SECONDS_TO_REUSE),
    }
    if on_ray:
        grown = on_ray[-1].grown_mb - on_ray[0].grown_mb
        checks["MB that a driver on Ray grows"] = (round(grown, 1), f"< {MOST_MB:g}", grown < MOST_MB)
    return checks


def scale_report(most: int = COUNTS[-1], ray: int = 0) -> dict[str, Any]:
    """Measure up to `most` shards, and from a tenth of `ray` to `ray` on Ray; print, and return the report."""
    found = [in_child(count, "local") for count in COUNTS if count <= most]
    on_ray = [in_child(count, "ray") for count in (ray // 10, ray)] if ray else []
    for name, scales in (("in this process", found), ("on Ray, 2 workers", on_ray)):
        for scale in scales:
            print(
                f"{scale.shards:>6,} shards {name}: {scale.cpu_ms:.1f} ms of CPU, {scale.wall_ms:.1f} ms a shard, "
                f"memory + {scale.grown_mb:.0f} MB; all reused {scale.reuse_s:.2f} s, finished {scale.finish_s:.2f} s"
            )
    return {
        "name": "engine, number of shards",
        "unit": "ms of CPU per shard",
        "ours": round(found[-1].cpu_ms, 2),
        "checks": checks_of(found, on_ray),
        "also": {f"{scale.shards} shards": asdict(scale) for scale in found},
        "versions": {"python": platform.python_version()},
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--most", type=int, default=COUNTS[-1], metavar="N", help="largest number of shards")
    parser.add_argument("--ray", type=int, default=0, metavar="N", help="this many shards on Ray too")
    parser.add_argument("--one", nargs=3, metavar=("N", "FOLDER", "RUNNER"), help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.one:
        shards, folder, runner = given.one
        print(json.dumps(asdict(measure(int(shards), Path(folder), runner))))
        return 0
    report = scale_report(given.most, given.ray)
    print(json.dumps(report))
    return 0 if all(right for _, _, right in report["checks"].values()) else 1


if __name__ == "__main__":
    sys.exit(main())
