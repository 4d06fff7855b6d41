"""Evidence: comparisons that find what they said they would, a search that foretells, ladders that hold.

    python -m benchmarks.evidence [--size small|full] [--only power|search|ladder] [--workers N]

Text comes from ../shared/data (`benchmarks.evidence_data`); where it is absent it says so and ends. small takes some
CPU-minutes and asks the same questions of a few runs: its checks can fail by chance. full makes about 640 small runs
and the own ladder: a quarter of an hour on one core. The last line is one JSON object; the exit status is 1 when a
check fails.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Final

THREADS: Final = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
PARTS: Final = ("power", "search", "ladder")


def main() -> int:
    """Print what was stated and found, and one line of JSON; return 1 when a check fails."""
    from benchmarks import evidence_ladder, evidence_power, evidence_search
    from benchmarks.evidence_data import DATA, make_corpora

    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--size", choices=("small", "full"), default="small")
    parser.add_argument("--only", choices=PARTS, help="one part (default: all)")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes (default: %(default)s)")
    options = parser.parse_args()
    if not DATA.exists():
        print(f"{DATA} is not there: nothing is measured")
        return 0
    checks: evidence_power.Checks = {}
    with tempfile.TemporaryDirectory() as place, evidence_power.processes(options.workers) as pool:
        folder = Path(place)
        parts = PARTS if options.only is None else (options.only,)
        ladder = pool.submit(evidence_ladder.checks, options.size, options.workers) if "ladder" in parts else None
        if {"power", "search"} & {*parts}:
            make_corpora(folder)
        for part in parts:
            told: list[str] = []
            if part == "power":
                found, told = evidence_power.checks(folder, evidence_power.SIZES[options.size], pool)
            elif part == "search":
                found, told = evidence_search.checks(folder, options.size, pool)
            elif ladder is not None:
                found = ladder.result()
            checks |= found
            print("\n".join([*told, *(f"{name}: {value}, asked {bound}" for name, (value, bound, _) in found.items())]))
            sys.stdout.flush()
    minutes = checks.get("CPU-minutes of a comparison")
    report = {
        "name": "evidence",
        "unit": "CPU-minutes of a comparison",
        "ours": None if minutes is None else minutes[0],
        "peers": {},
        "ratio": None,
        "checks": {name: list(check) for name, check in checks.items()},
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("jax", "numpy", "scipy")},
        },
    }
    print(json.dumps(report, ensure_ascii=False))
    return int(not all(holds for _, _, holds in checks.values()))


if __name__ == "__main__":
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {THREADS}".strip()
    sys.exit(main())
