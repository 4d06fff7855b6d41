"""Deduplication through the engine: whether it is right, how fast, how it grows, and what hurts it.

    python -m benchmarks.dedup [--size small|full] [--peers [NAME …]] [--only PART …]

Every run is that of a recipe of `benchmarks.dedup_recipe` as `curate run` makes it, in a process of its own, on one
core. Where ../shared is absent it says so and ends. The parts:

spdx         713 licence texts, the longest first, against the sequential rule over all pairs
passages     33,375 passages with injected edits (small: a twelfth), likewise; recall of candidates beside the curve
speed        200 MB (small: 12) from Parquet to what stays; with --peers datatrove, text-dedup, rensa and datasketch on
             the same file and core, with what each loses: documents without a survivor, similar pairs that stay
scaling      48 MB, 4 and 16 times (small: 1.5): CPU time per document, memory per task
repeats      equal texts, lines, paragraphs and spans of 50 words over 50 MB (small: 3)
adversarial  ten cases of 100,000 documents (small: 1,200) that are known to hurt: time and memory of each

The last line is one JSON object; the exit status is 1 when a check fails, and those of quality fail it however fast the
rest is. From the part "scaling" of a full run, kept by `benchmarks.comparisons`, docs/deduplication.md has its estimate
for ten billion documents. Rates are of CPU time; a busy machine still lowers them by a third.
"""

from __future__ import annotations

import argparse
import json
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from benchmarks import dedup_adversarial, dedup_quality, dedup_repeats, dedup_scaling, dedup_speed
from benchmarks.dedup_corpora import CORPUS, PAGES, passages
from benchmarks.dedup_estimate import MEASURED, figures_of
from benchmarks.dedup_peers import PEERS
from benchmarks.dedup_quality import LICENCES, Check
from benchmarks.dedup_scaling import Scale
from benchmarks.dedup_speed import Speed

PACKAGES: Final = ("numpy", "numba", "pyarrow", "blake3")
RATIO_TO: Final = "rensa"
"""The fastest other tool, of those with the same words."""


@dataclass
class Report:
    """What the parts found so far."""

    work: Path
    options: argparse.Namespace
    checks: dict[str, Check] = field(default_factory=dict)
    speed: Speed | None = None
    scales: list[Scale] = field(default_factory=list)
    repeats: dict[str, float] = field(default_factory=dict)
    cases: dict[str, dict[str, float]] = field(default_factory=dict)

    @cached_property
    def passages(self) -> pa.Table:
        """Passages and edited copies, of which three parts make their texts."""
        return passages()

    def run_spdx(self) -> None:
        """Licence texts."""
        self.checks |= dedup_quality.spdx(self.work)

    def run_passages(self) -> None:
        """Passages with edited copies."""
        self.checks |= dedup_quality.passage_checks(self.work, self.options.size, self.passages)

    def run_speed(self) -> None:
        """The speed corpus, and other tools."""
        named = self.options.peers
        peers = [peer.name for peer in PEERS if named is not None and (not named or peer.name in named)]
        self.speed = dedup_speed.speed(self.work, self.options.size, self.passages, peers, self.options.profile)
        self.checks |= self.speed.checks

    def run_scaling(self) -> None:
        """One, four and sixteen times."""
        self.scales = dedup_scaling.scaling(self.work, self.options.size, self.passages)
        self.checks |= dedup_scaling.checks_of(self.scales, self.options.size)

    def run_repeats(self) -> None:
        """Equal texts, lines, paragraphs, spans."""
        checks, self.repeats = dedup_repeats.repeats(self.work, self.options.size, self.passages)
        self.checks |= checks

    def run_adversarial(self) -> None:
        """Cases that hurt."""
        checks, self.cases = dedup_adversarial.adversarial(self.work, self.options.size)
        self.checks |= checks

    def as_json(self) -> dict[str, Any]:
        """Return the last line."""
        rows = self.speed.rows if self.speed else ()
        peers = {row.name: row for row in rows[1:]}
        first = peers.pop(RATIO_TO, None)
        ours = first.ours if first else rows[0].rate if rows else None
        versions = {"python": platform.python_version(), **{package: version(package) for package in PACKAGES}}
        return {
            "name": f"dedup, {self.options.size}",
            "unit": "MB per CPU second",
            "ours": None if ours is None else round(ours, 1),
            "peers": {first.name: round(first.rate, 2)} if first else {},
            "ratio": round(first.ratio, 2) if first else None,
            "rows": [
                {"what": f"beside {name}", "ours": round(row.ours, 1), "peers": {name: round(row.rate, 2)}}
                for name, row in peers.items()
            ],
            "left and lost": [asdict(row) for row in rows],
            "scaling": {scale.times: round(scale.microseconds, 1) for scale in self.scales},
            **({MEASURED: asdict(figures_of(self.scales))} if self.scales and self.options.size == "full" else {}),
            "repeats": {name: round(rate, 1) for name, rate in self.repeats.items()},
            "adversarial": self.cases,
            "checks": self.checks,
            "versions": dict(self.speed.versions if self.speed else {}) | versions,
        }


PARTS: Final[dict[str, Callable[[Report], None]]] = {
    "spdx": Report.run_spdx,
    "passages": Report.run_passages,
    "speed": Report.run_speed,
    "scaling": Report.run_scaling,
    "repeats": Report.run_repeats,
    "adversarial": Report.run_adversarial,
}


@contextmanager
def work_folder(parent: Path | None) -> Iterator[Path]:
    """Yield a temporary folder, in memory unless told where: a slow disk is not what is measured."""
    shared = Path("/dev/shm")
    parent = shared if parent is None and shared.is_dir() else parent
    folder = Path(tempfile.mkdtemp(prefix="curate-dedup-", dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def options_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--size", choices=["small", "full"], default="small", help="default: %(default)s")
    names = [peer.name for peer in PEERS]
    parser.add_argument(
        "--peers", nargs="*", metavar="NAME", help=f"other tools too, all or those of {', '.join(map(repr, names))}"
    )
    parser.add_argument("--only", action="append", choices=list(PARTS), help="this part; may be given again")
    parser.add_argument("--folder", type=Path, help="where to work: some GB at full size (default: in memory)")
    parser.add_argument("--profile", type=Path, help="where to write a profile of the speed run, which it slows down")
    options = parser.parse_args(arguments)
    if unknown := sorted(set(options.peers or ()) - set(names)):
        parser.error(f"--peers: no tool is called {unknown[0]!r}, but {', '.join(map(repr, names))}")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the parts, print their tables, the checks and one line of JSON; return 1 if a check failed."""
    options = options_of(arguments)
    if absent := [path for path in (CORPUS, LICENCES, *PAGES) if not path.exists()]:
        print(f"nothing was measured: {absent[0]} is not there")
        return 0
    with work_folder(options.folder) as work:
        report = Report(work, options)
        for name in options.only or PARTS:
            print(f"\n{name}")
            PARTS[name](report)
    print()
    for name, (value, bound, holds) in report.checks.items():
        print(f"{name:75} {value:10,} {bound:22} {'holds' if holds else 'FAILS'}")
    print(json.dumps(report.as_json(), ensure_ascii=False))
    return int(not all(holds for _, _, holds in report.checks.values()))


if __name__ == "__main__":
    sys.exit(main())
