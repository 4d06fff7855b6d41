"""Whether the whole way from archives to token caches costs the same per page however many there are, and its memory.

Once, four and sixteen times as many pages, each run in a process of its own on one core. A file holds every `STEP`th
page of ../shared/data/extraction with a third of its longer words in another order, another one in each file: files
have pages of the same kinds and sizes, and texts that do not resemble each other, so only what grows faster than the
pages would show. What is done once per run counts for more on few pages, so cost per page may fall, not rise.

Memory is the largest resident memory of the process during any task, and of the child in which pages are extracted.
"""

from __future__ import annotations

import os
import random
import re
import resource
import shutil
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stderr
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

from benchmarks.dedup_runs import jobs_of, keep_to_core
from benchmarks.end_to_end_recipe import SETS, outputs, pages_of, size_of, write_inputs
from benchmarks.processor_time import cpu_seconds
from curate.isolation.crew import dismiss
from curate.run import run
from curate.store import Store
from examples.web_archive import encode_page, gzip_member, response_record

Check = list[Any]

STEP: Final = {"tiny": 200, "small": 40, "full": 8}
TIMES: Final = (1, 4, 16)
MORE: Final = 0.1
"""How much more a page may cost, and memory may take, on sixteen times as many pages."""

_STRETCH: Final = re.compile(rb">[^<>]{40,}<")
_WORD: Final = re.compile(rb"[A-Za-z]{4,}")


@dataclass(frozen=True, slots=True)
class Cost:
    """What so many files took: microseconds of CPU a page, and MB of memory."""

    times: int
    pages: int
    megabytes: float
    cpu: float
    task_mb: int
    child_mb: int

    @property
    def microseconds(self) -> float:
        """CPU time per page."""
        return self.cpu / self.pages * 1e6


def another(page: bytes, number: int) -> bytes:
    """Return `page` with a third of the longer words between its tags in another order, which `number` chooses."""
    places = [
        (found.start() + word.start() + 1, word.end() - word.start())
        for found in _STRETCH.finditer(page)
        for word in _WORD.finditer(found[0][1:])
    ][number % 3 :: 3]
    words = [page[start : start + length] for start, length in places]
    random.Random(number).shuffle(words)
    parts, last = [], 0
    for (start, length), word in zip(places, words, strict=True):
        parts += [page[last:start], word]
        last = start + length
    return b"".join([*parts, page[last:]])


def records(size: str, number: int) -> Iterator[bytes]:
    """Yield the records of file `number`."""
    for name in SETS:
        for place, (url, page) in enumerate(pages_of(name, 1_000)):
            if place % STEP[size] == 0 and not url.endswith("#again"):
                body, content_type = encode_page(another(page, number))
                yield gzip_member(response_record(f"{name} {place} {number}", f"{url}?{number}", content_type, body))


def measure(root: Path, work: Path, times: int) -> Cost:
    """Run the way over the files below `root` in a process of its own."""
    context = get_context("forkserver")
    context.set_forkserver_preload([__name__])
    with ProcessPoolExecutor(1, context) as pool:
        return pool.submit(_measure, root, work, times).result()


def _measure(root: Path, work: Path, times: int) -> Cost:
    keep_to_core()
    with open(os.devnull, "w") as nowhere, redirect_stderr(nowhere):
        run(outputs(write_inputs(work / f"few {times}", 1)), work / f"few store {times}", runner="local")
        began = cpu_seconds()
        run(outputs(root), work / f"store {times}", runner="local")
        cpu = cpu_seconds() - began
    pages, megabytes = size_of(root)
    dismiss()
    child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
    task = max(spent.peak_mb for spent in jobs_of(Store(work / f"store {times}")).values())
    return Cost(times, pages, megabytes, cpu, task, child)


def scaling(work: Path, size: str) -> dict[str, Any]:
    """Measure each size, print the table, and return what the last line says."""
    print("times   pages      MB    CPU s   us/page  task MB  child MB")
    found: list[Cost] = []
    (work / "files").mkdir()
    for times in TIMES:
        root = work / f"crawl {times}"
        root.mkdir()
        for number in range(times):
            path = work / "files" / f"{number:02}.warc.gz"
            if not path.exists():
                path.write_bytes(b"".join(records(size, number)))
            (root / path.name).hardlink_to(path)
        cost = measure(root, work, times)
        print(
            f"{times:5} {cost.pages:7,} {cost.megabytes:7.1f} {cost.cpu:8.2f} {cost.microseconds:9.0f} "
            f"{cost.task_mb:8,} {cost.child_mb:9,}",
            flush=True,
        )
        found.append(cost)
        shutil.rmtree(work / f"store {times}")
    return {
        "ours": round(found[-1].megabytes / found[-1].cpu, 3),
        "peers": {},
        "ratio": None,
        "scaling": {cost.times: [cost.pages, round(cost.microseconds), cost.task_mb, cost.child_mb] for cost in found},
        "checks": checks_of(found, size),
    }


def checks_of(found: list[Cost], size: str) -> dict[str, Check]:
    """Return what must hold; memory only at full size, where buffers are full on the smallest input."""
    first, middle, last = found
    costs = {"once": last.microseconds / first.microseconds, "4 times": last.microseconds / middle.microseconds}
    checks: dict[str, Check] = {
        f"CPU per page, 16 times over {name}, more by": [round(ratio - 1, 3), f"≤ {MORE}", ratio - 1 <= MORE]
        for name, ratio in costs.items()
    }
    for what, less, more in (
        ("a task", middle.task_mb, last.task_mb),
        ("the extracting child", middle.child_mb, last.child_mb),
    ):
        grown = more / less - 1
        holds = size != "full" or grown <= MORE
        checks[f"memory of {what}, 16 times over 4 times, more by"] = [round(grown, 3), f"≤ {MORE}", holds]
    return checks
