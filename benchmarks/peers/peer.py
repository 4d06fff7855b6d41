"""What the scripts in this folder share: each runs in an environment of its own, which has neither curate nor numba.

A script takes a Parquet file of documents ("id", "text"), an empty folder, a variant and a number of turns, does what
its tool is made for, from that file to a file of what stays, and prints one JSON object; those that deduplicate do it
so many times, and tell of the turn that took least. The clock runs from opening the file to the end of writing;
importing libraries and loading models come before it, the list of ids that stay (`kept.txt`) after.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

NGRAM: Final = 5
ROWS_AT_ONCE: Final = 2048

_words: Final = re.compile(r"\w+").findall


def shingles(text: str) -> list[str]:
    """Return the 5-grams of lower-case words: the plainest Python that gives them, and the fastest that we found."""
    return grams(_words(text.lower()))


def grams(words: list[str]) -> list[str]:
    """Return the 5-grams of `words`; fewer words are one."""
    found = list(map(" ".join, zip(words, words[1:], words[2:], words[3:], words[4:])))  # noqa: B905
    return found or [" ".join(words)]


def batches(path: Path) -> Iterator[Any]:
    """Yield the rows of a Parquet file, some at a time."""
    import pyarrow.parquet as pq

    yield from pq.ParquetFile(path).iter_batches(ROWS_AT_ONCE)


@dataclass(frozen=True)
class Report:
    """What was measured: seconds of CPU of this process, its threads and children that have ended, and of the clock."""

    cpu: float
    wall: float

    def write(self, folder: Path, kept: list[str], settings: str, *packages: str) -> None:
        """Write the ids that stay and print what was measured."""
        (folder / "kept.txt").write_text("\n".join(kept))
        versions = {name: version(name) for name in packages}
        print(json.dumps({"cpu": self.cpu, "wall": self.wall, "settings": settings, "versions": versions}))


class Clock:
    """Measures from when it is made."""

    def __init__(self) -> None:
        self._cpu, self._wall = _cpu(), time.perf_counter()

    def stop(self) -> Report:
        """Return what was measured."""
        return Report(_cpu() - self._cpu, time.perf_counter() - self._wall)


def least(folder: Path, once: Callable[[Path], None]) -> tuple[Report, Path]:
    """Call `once` as often as the script is asked to, each time with an empty folder of its own below `folder`.

    Return what the turn took that took least CPU time, and the last one's folder, which alone is left.
    """
    reports: list[Report] = []
    count = int(sys.argv[4])
    for turn in range(count):
        mine = folder / f"turn{turn}"
        mine.mkdir()
        clock = Clock()
        once(mine)
        reports.append(clock.stop())
        if turn < count - 1:
            shutil.rmtree(mine)
    return min(reports, key=lambda report: report.cpu), mine


def _cpu() -> float:
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def arguments() -> tuple[Path, Path, str]:
    """Return the corpus, the folder to write to and the variant."""
    corpus, folder, variant = sys.argv[1:4]
    return Path(corpus), Path(folder), variant
