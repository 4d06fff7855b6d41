"""The loader and its arithmetic on one core: plan to batches of 8 sequences of 4,096 tokens, from caches on disk.

Run `python -m benchmarks.loader [--size small|full] [--peers]`. Components of uneven size and weight are compressed
caches on disk, warm, of which next to nothing is kept unpacked; batches carry segment ids, positions and loss masks.
Rates are the best of several runs, in million tokens per CPU second, one thread, nothing prefetched; with caches in
memory they are those of the loader's own work. Arithmetic is measured on a plan of 10^12 sequences of 200 components, a
restart on 200 caches of 5 G tokens each. The last line is JSON; the exit status is 1 when a check fails. Small reads
1.3 M tokens, a mapped cache in 4 ms, and may run beside other work: it shows the rate of mapped caches and the seconds
of a restart by the clock, whose bounds are checked at full size alone.

`--peers`: litdata, MosaicML streaming and Grain on the same tokens and core (`benchmarks.loader_peers`), and random
windows of 4,096 tokens of one mapped file, widened to int32. They read uncompressed files, as our mapped caches are, so
that is the comparison; none has an exact order or segment ids.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from benchmarks.loader_caches import restart_seconds, stored_caches
from benchmarks.loader_peers import peer_rates
from curate.caches.layout import MAPPED
from curate.digests import digest_bytes
from mixtures import Cache, Chunks, Loader, Mixture, Phase, Plan
from mixtures.plan_fields import Component, Segment
from mixtures.schedule import DRIFT, Schedule

SEQUENCE: Final = 4096
BATCH: Final = 8
TOKENS: Final = {"small": 8_000_000, "full": 100_000_000}
STEPS: Final = {"small": 40, "full": 400}
LEAST_RATE: Final = 50.0
LEAST_MAPPED: Final = 330.0
LONGEST_RESTART: Final = 2.0  # s
LONGEST: Final = 1.0  # ms
PACKAGES: Final = ("numpy", "numba", "blake3")


@dataclass(frozen=True, slots=True)
class MemoryCache:
    """A token cache whose stream is an array."""

    name: str
    stream: npt.NDArray[np.uint16]
    starts: npt.NDArray[np.int64]
    digest: str
    tokenizer: str = "none"
    vocabulary: int = 50_000
    eos: int | None = 0

    @property
    def tokens(self) -> int:
        """Number of tokens."""
        return len(self.stream)

    @property
    def documents(self) -> int:
        """Number of documents."""
        return len(self.starts)

    def read(self, start: int, stop: int) -> npt.NDArray[Any]:
        """Return tokens [start, stop)."""
        return self.stream[start:stop]

    def read_many(self, ranges: list[tuple[int, int]]) -> list[npt.NDArray[Any]]:
        """Return the tokens of each range."""
        return [self.read(start, stop) for start, stop in ranges]

    def read_untrained(self, ranges: list[tuple[int, int]]) -> None:
        """Return None: all tokens are targets."""
        return

    def borders(self, start: int, stop: int) -> npt.NDArray[np.int64]:
        """Return the starts of documents in [start, stop)."""
        low, high = self.starts.searchsorted((start, stop))
        return self.starts[low:high]

    def text_digests(self) -> npt.NDArray[np.uint8]:
        """Return no digests: nothing is held out here."""
        return np.zeros((0, 16), np.uint8)


def best(function: Callable[[], object], runs: int = 5) -> float:
    """Return the least CPU seconds that `function` took."""
    times = []
    for _ in range(runs):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return min(times)


def make_caches(stream: npt.NDArray[np.uint16], components: int) -> dict[str, Cache]:
    """Return `components` caches of uneven sizes that share out `stream`."""
    generator = np.random.default_rng(components)
    cuts = np.sort(generator.choice(len(stream), components - 1, replace=False))
    caches: dict[str, Cache] = {}
    for number, part in enumerate(np.split(stream, cuts)):
        starts = np.concatenate([[0], np.cumsum(generator.geometric(1 / 800, len(part) // 800 + 1))])
        name = f"cell{number:04}"
        caches[name] = MemoryCache(name, part, starts[starts < len(part)], digest_bytes(part.tobytes()))
    return caches


def make_loader(caches: Mapping[str, Cache], steps: int) -> Loader:
    """Return a loader of an uneven mixture of `caches`."""
    weights = {name: (1 + number) ** 2 for number, name in enumerate(caches)}
    phase = Phase("main", tokens=steps * BATCH * SEQUENCE, weights=weights)
    mixture = Mixture(None, phase, sequences=Chunks(SEQUENCE), repeats=None, rare="round up", batch=BATCH)
    return Loader(mixture.compile(caches), caches)


def rate(loader: Loader, steps: int) -> float:
    """Return million tokens per CPU second of the first `steps` batches."""

    def read() -> None:
        for step in range(steps):
            loader.batch(step)

    read()
    return steps * BATCH * SEQUENCE / best(read) / 1e6


def mapped_windows(stream: npt.NDArray[np.uint16], steps: int) -> float:
    """Return million tokens per CPU second of plain random windows of a mapped file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tokens.bin"
        stream.tofile(path)
        mapped = np.memmap(path, np.uint16, "r")
        starts = np.random.default_rng(0).integers(0, len(stream) - SEQUENCE, (steps, BATCH))

        def read() -> None:
            for step in starts:
                np.stack([mapped[start : start + SEQUENCE].astype(np.int32) for start in step.tolist()])

        read()
        return steps * BATCH * SEQUENCE / best(read) / 1e6


def long_plan(components: int, sequences: int) -> Plan:
    """Return a plan of 10^12 sequences or so over `components` components of up to 10^9 sequences."""
    sizes = [1 + (number * 7919 * 104_729) % 1_000_000_007 for number in range(components)]
    whole = sum(sizes)
    counts = [1 + size * (sequences - components) // whole for size in sizes]
    counts[-1] += -sum(counts) % 1024
    named = {f"cell{number:04}": count for number, count in enumerate(counts)}
    parts = tuple(Component(name, "", size * SEQUENCE, size) for name, size in zip(named, sizes, strict=True))
    length = sum(counts)
    segment = Segment("main", length * SEQUENCE, named, named, length, length)
    return Plan(7, 1024, Chunks(SEQUENCE), "", 50_000, 0, parts, (segment,))


def worst_drift(components: int, length: int) -> float:
    """Return the largest drift of any component over all prefixes of an uneven schedule."""
    raw = [Fraction(1, 1 + number) for number in range(components)]
    counts = tuple(max(1, int(length * share / sum(raw))) for share in raw)
    schedule = Schedule(counts)
    drawn, _ = schedule.draw(np.arange(len(schedule)))
    ideal = np.arange(1, len(schedule) + 1) / len(schedule)
    return max(float(np.abs(np.cumsum(drawn == number) - ideal * count).max()) for number, count in enumerate(counts))


def differing_batches(loader: Loader, steps: int) -> int:
    """Return how many batches differ between iteration, random access and eight hosts."""
    differing = 0
    for step, batch in enumerate(loader.batches(0, steps)):
        parts = [loader.slice(step, process, 8) for process in range(8)]
        for other in (loader.batch(step).tokens, np.concatenate([part.tokens for part in parts])):
            differing += not np.array_equal(batch.tokens, other)
    return differing


@dataclass(frozen=True, slots=True)
class Measures:
    """What was measured."""

    few: float
    many: float
    mapped: float
    in_memory: float
    restart: float
    planned: int
    grown: float
    lookup: float
    build: float
    drift: float
    differing: int

    def checks(self, size: str) -> dict[str, tuple[float, str, bool]]:
        """Return name → (value, what it must be, whether it is)."""
        return self.checks_of_any() | (self.checks_of_full() if size == "full" else {})

    def checks_of_full(self) -> dict[str, tuple[float, str, bool]]:
        """Return the checks that need many tokens and a machine of their own."""
        return {
            "Mtok/s, 200 components, mapped": (
                round(self.mapped, 1),
                f"≥ {LEAST_MAPPED}",
                self.mapped >= LEAST_MAPPED,
            ),
            f"s from restart to batch, {self.planned / 1e12:.2f} T tokens": (
                round(self.restart, 2),
                f"< {LONGEST_RESTART}",
                self.restart < LONGEST_RESTART,
            ),
        }

    def checks_of_any(self) -> dict[str, tuple[float, str, bool]]:
        """Return the checks that hold at any size."""
        ratio = self.many / self.few
        return {
            "Mtok/s, 200 components": (round(self.many, 1), f"≥ {LEAST_RATE}", self.many >= LEAST_RATE),
            "200 components against 20": (round(ratio, 2), "≥ 0.8", ratio >= 0.8),
            "ms for the indices of 1,024 sequences": (round(self.lookup, 3), f"< {LONGEST}", self.lookup < LONGEST),
            "largest drift in sequences": (round(self.drift, 3), f"< {DRIFT}", self.drift < DRIFT),
            "batches that differ by way of access": (self.differing, "= 0", self.differing == 0),
            "MB that memory grew while reading": (round(self.grown, 1), "< 8", self.grown < 8),
        }


def measure(stream: npt.NDArray[np.uint16], steps: int) -> Measures:
    """Measure everything of ours."""
    in_memory = make_loader(make_caches(stream, 200), steps)
    memory_rate = rate(in_memory, steps)
    with stored_caches(20, len(stream)) as caches:
        few = rate(make_loader(caches, steps), steps)
    with stored_caches(200, len(stream)) as caches:
        loader = make_loader(caches, steps)
        many = rate(loader, steps)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        rate(loader, steps)
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        differing = differing_batches(loader, min(steps, 40))
    with stored_caches(200, len(stream), MAPPED) as caches:
        mapped = rate(make_loader(caches, steps), steps)
    restart, planned = restart_seconds(200, SEQUENCE, BATCH)
    plan = long_plan(200, 10**12)
    indices = np.random.default_rng(1).integers(0, len(plan), 1024)
    plan.draw(indices)
    return Measures(
        few=few,
        many=many,
        mapped=mapped,
        in_memory=memory_rate,
        restart=restart,
        planned=planned,
        grown=grown,
        lookup=best(lambda: plan.draw(indices), 50) * 1e3,
        build=best(lambda: long_plan(2000, 10**12), 2) * 1e3,
        drift=worst_drift(200, 200_000),
        differing=differing,
    )


def main(arguments: list[str] | None = None) -> int:
    """Print rates, checks and one line of JSON; return 1 if a check failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--size", choices=sorted(TOKENS), default="small", help="how many tokens (default: %(default)s)"
    )
    parser.add_argument("--peers", action="store_true", help="measure litdata, MosaicML, Grain, numpy, too")
    options = parser.parse_args(arguments)
    tokens, steps = TOKENS[options.size], STEPS[options.size]
    stream = np.random.default_rng(0).integers(0, 50_000, tokens, dtype=np.uint16)
    measures = measure(stream, steps)
    peers, versions = peer_rates(stream, steps) if options.peers else ({}, {})
    peers |= {"numpy memmap, plain windows": mapped_windows(stream, steps)} if options.peers else {}
    rates = {"20 components": measures.few, "200 components": measures.many}
    rates |= {"200 components, mapped": measures.mapped, "200 components in memory": measures.in_memory, **peers}
    for name, value in rates.items():
        print(f"{name:40} {value:9.1f} Mtok per CPU second")
    print(f"{'plan of 2,000 components made ready':40} {measures.build:9.1f} ms")
    if options.size != "full":
        print(
            f"{f'restart to batch, {measures.planned / 1e12:.2f} T tokens':40} {measures.restart:9.2f} s by the clock"
        )
        print(f"checked at full size only: {', '.join(measures.checks_of_full())}")
    checks = measures.checks(options.size)
    for name, (found, bound, holds) in checks.items():
        print(f"{name:40} {found:9} {bound:9} {'holds' if holds else 'FAILS'}")
    report = {
        "name": f"mapped caches, 200 components, {options.size}",
        "unit": "Mtok per CPU second",
        "ours": round(measures.mapped, 1),
        "peers": (others := {name: round(value, 1) for name, value in peers.items()}),
        "ratio": round(measures.mapped / max(peers.values()), 2) if peers else None,
        "rows": [
            {"what": "compressed caches, 200 components", "ours": round(measures.many, 1), "peers": others},
            {"what": "compressed caches, 20 components", "ours": round(measures.few, 1), "peers": {}},
            {"what": "caches in memory, 200 components", "ours": round(measures.in_memory, 1), "peers": {}},
        ],
        "checks": {name: list(check) for name, check in checks.items()},
        "versions": {"python": platform.python_version(), **{package: version(package) for package in PACKAGES}}
        | versions,
    }
    print(json.dumps(report, ensure_ascii=False))
    return int(not all(holds for _, _, holds in checks.values()))


if __name__ == "__main__":
    sys.exit(main())
