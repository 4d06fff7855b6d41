"""The report of a large run: how large its page is, how long it takes, and whether it grows with the corpus.

    python -m benchmarks.report [--size small|full]

Made-up statistics (`benchmarks.report_shape`) of 200 cells, 50 stages and 1,000 reasons ("small": a tenth of each) go
through the code that writes real pages. Measured: bytes of `report.html` with its samples and without, of
`report.json`, seconds of CPU to make both, best of three. Checks, each of which can fail: bytes within 3 MB without
samples, samples within 3 MB, the same bytes twice, and as many for a corpus a million times as large, digits left out
and within .05, for more groups stand out where chance explains less. The last line is one JSON object; the exit status
is 1 when a check fails. No peer makes such a page.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import sys
import time
from importlib.metadata import version
from typing import Any, Final

from benchmarks.report_shape import shape
from viewers.loading import Report
from viewers.report import Composed, compose

SIZES: Final = {"small": (20, 5, 100), "full": (200, 50, 1000)}
MB: Final = 1_000_000
LARGER: Final = 1_000_000
"""How many times larger the second corpus is."""


def main(arguments: list[str] | None = None) -> int:
    """Measure, print the figures as one JSON object, and return the exit status."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--size", choices=tuple(SIZES), default="small")
    chosen = options.parse_args(arguments)
    cells, stages, reasons = SIZES[chosen.size]
    figures, checks = measure(cells, stages, reasons)
    for name, value in figures.items():
        print(f"{value:>12,}  {name}")
    versions = {"python": platform.python_version(), "numpy": version("numpy")}
    print(
        json.dumps(
            {"name": "report", "unit": "s", "ours": figures["seconds"], "peers": {}, "ratio": None}
            | {"figures": figures, "checks": checks, "versions": versions}
        )
    )
    return 0 if all(check[2] for check in checks.values()) else 1


def measure(cells: int, stages: int, reasons: int) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """Return figures and checks of a report of this shape."""
    report = shape(cells, stages, reasons)
    made, seconds = timed(report)
    again, larger = compose(shape(cells, stages, reasons)), compose(shape(cells, stages, reasons, LARGER))
    samples = bytes_of_samples(made.page)
    without = len(made.page) - samples
    grown = abs(bare(larger) - bare(made)) / bare(made)
    figures = {
        "seconds": round(seconds, 2),
        "bytes of the page without samples": without,
        "bytes of samples": samples,
        "bytes of report.json": len(made.data),
        "bytes of the page, corpus a million times as large": len(larger.page),
    }
    checks = {
        "page without samples, MB": [round(without / MB, 3), "≤ 3", without <= 3 * MB],
        "samples, MB": [round(samples / MB, 3), "≤ 3", samples <= 3 * MB],
        "same bytes twice": [made == again, "= true", made == again],
        "grows with the corpus, digits left out": [round(grown, 4), "≤ .05", grown <= 0.05],
        "seconds": [round(seconds, 2), "≤ 20", seconds <= 20],
    }
    return figures, checks


def timed(report: Report) -> tuple[Composed, float]:
    """Return the page and the CPU seconds that it takes, best of three."""
    best = float("inf")
    for _ in range(3):
        begin = time.process_time()
        made = compose(report)
        best = min(best, time.process_time() - begin)
    return made, best


def bytes_of_samples(page: bytes) -> int:
    """Return the bytes of the cards of samples and pairs."""
    return sum(len(card) for card in re.findall(rb"<article.*?</article>", page, re.DOTALL))


def bare(made: Composed) -> int:
    """Return the length of the page without its digits, what groups them, and drawings, whose numbers are sizes."""
    text = re.sub(r"<svg.*?</svg>", "", made.page.decode(), flags=re.DOTALL)
    return len(re.sub(r"\d|\u202f|%[0-9A-F]{2}|\.", "", text))


if __name__ == "__main__":
    sys.exit(main())
