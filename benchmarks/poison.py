"""Poison: pages that crash a parser, hang it or exhaust memory cost themselves, and what isolation costs otherwise.

    python -m benchmarks.poison [--size small|full] [--runner local|ray]

An archive of made-up pages goes through an extractor that does what its marked pages say: one is killed by SIGSEGV, one
waits for ever in C holding the interpreter, one allocates without end. Everything else must come out, with a verdict
for each; a run in another store that is given the list, and one in the same store that lost its shards, must give the
same bytes without meeting the poison. Then nasty but honest pages (nested 100,000 deep, a table of 300,000 cells, a
colspan of 2^53) go through the extractor with its bounds taken away. Last, what isolation costs clean documents: pages
through trafilatura, and texts through a user's function of about 5 µs, in a child and in the worker itself, by turns.
Checked is CPU time, of worker and child together: a machine that others use, too, has no steady clock.
The last line is JSON; the exit status is 1 when a check fails.
"""

from __future__ import annotations

import argparse
import ctypes
import gzip
import json
import os
import platform
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any, ClassVar, Final

import pyarrow as pa

from curate import Outputs, read_warc
from curate.accounting.accountant import Step
from curate.accounting.quarantine import all_lists
from curate.digests import digest_file
from curate.isolation.crew import dismiss
from curate.isolation.guard import GuardedShard, Isolation
from curate.isolation.step import Isolated
from curate.run import Result, run
from curate.store import Store
from curate.upkeep.verify import verify
from transforms.extraction import ExtractText
from transforms.outcome import Outcome
from transforms.schema import NOT_CHECKED, documents, records
from transforms.user_function import EditText

WORDS: Final = [a + b for a in ("ka", "lo", "mi", "su", "te", "vo", "ra") for b in ("ren", "tal", "mos", "bik", "dun")]
MARK: Final = b"<!-- poison: "
POISON: Final = {"segfault": 0.31, "hang": 0.62, "eat": 0.87}
"""What a marked page does, and at which part of the archive it stands."""

REASONS: Final = {"crashed": 1, "hung": 1, "out of memory": 1}
MOST_SECONDS: Final = 90.0
MOST_MORE: Final = {"extraction": 0.03, "a user's function": 0.20}
"""Largest share of CPU time that isolation may add."""

PACKAGES: Final = ("pyarrow", "trafilatura", "lxml", "ray")


@dataclass(frozen=True, slots=True)
class Size:
    """Pages of the archive; pages and texts of the measurement of cost, and its turns."""

    pages: int
    clean: int
    texts: int
    turns: int


SIZES: Final = {"small": Size(200, 60, 20_000, 7), "full": Size(1000, 200, 40_000, 9)}


@dataclass(frozen=True, slots=True)
class PoisonedExtract:
    """`ExtractText`, but a marked page is obeyed as a parser obeys the page that exploits it."""

    inner: ExtractText = field(default_factory=ExtractText)

    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ("trafilatura", "lxml")
    isolated: ClassVar[bool] = True
    name: ClassVar[str] = "ExtractText"

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return that of `ExtractText`."""
        return self.inner.output_schema(schema)

    def ready(self) -> None:
        """Load the extractor."""
        self.inner.ready()

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        """Extract, but obey first."""
        for payload in batch.column("payload").to_pylist():
            deed = payload.partition(MARK)[2].partition(b" ")[0]
            if deed == b"segfault":
                os.kill(os.getpid(), signal.SIGSEGV)
            elif deed == b"hang":
                ctypes.PyDLL(None).pause()
            elif deed == b"eat":
                held = []
                while True:
                    held.append(b"x" * (16 << 20))
        return self.inner.apply(batch)


# --- an archive ------------------------------------------------------------------------------------------------------


def page(number: int, draw: random.Random) -> bytes:
    """Return a made-up page of some 20 kB."""
    sentences = [" ".join(draw.choices(WORDS, k=14)).capitalize() + "." for _ in range(60)]
    paragraphs = [f"<p>{' '.join(sentences[n : n + 4])}</p>" for n in range(0, 60, 4)]
    links = "".join(
        f'<li class="nav-{n}"><a href="/{n}/{draw.random()}">{draw.choice(WORDS)}</a></li>' for n in range(90)
    )
    head = f"<head><title>Page {number}</title><style>{'.a{color:red}' * 200}</style></head>"
    article = f"<article><h1>Page {number}</h1>{''.join(paragraphs)}</article>"
    return f"<html>{head}<body><nav><ul>{links}</ul></nav>{article}<footer>{links}</footer></body></html>".encode()


def write_archive(path: Path, pages: Sequence[bytes]) -> Path:
    """Write `pages` as a WARC file, each response compressed on its own, and return its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        for number, content in enumerate(pages):
            http = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n" + content
            head = (
                "WARC/1.0\r\nWARC-Type: response\r\n"
                f"WARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-{number:012x}>\r\n"
                f"WARC-Target-URI: http://example.org/{number}\r\nWARC-Date: 2024-01-01T00:00:00Z\r\n"
                f"Content-Type: application/http; msgtype=response\r\nContent-Length: {len(http)}\r\n\r\n"
            )
            file.write(gzip.compress(head.encode() + http + b"\r\n\r\n", 1, mtime=0))
    return path.parent


def poisoned(pages: Sequence[bytes]) -> list[bytes]:
    """Return `pages` with three of them marked."""
    marked = list(pages)
    for deed, share in POISON.items():
        number = int(share * len(pages))
        marked[number] = MARK + deed.encode() + b" -->" + marked[number]
    return marked


@contextmanager
def work_folder() -> Iterator[Path]:
    """Yield a temporary folder, in memory where that is possible."""
    shared = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="curate-poison-", dir=shared if shared.is_dir() else None))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def tree(store: Path) -> dict[str, str]:
    """Return name -> digest of every file of a store but what nothing hashes."""
    names = {path.relative_to(store).as_posix(): path for path in sorted(store.rglob("*")) if path.is_file()}
    return {name: digest_file(path) for name, path in names.items() if not name.startswith(("runs/", "spool/"))}


# --- runs ------------------------------------------------------------------------------------------------------------


def timed_run(archive: Path, store: Path, runner: str, quarantine: Sequence[Path] = ()) -> tuple[float, Result]:
    """Run the recipe and return seconds and result."""
    outputs = Outputs(pages=read_warc(archive, source="pages").apply(PoisonedExtract(), name="extract"))
    began = time.perf_counter()
    with open("/dev/null", "w") as nowhere, redirect_stderr(nowhere):
        result = run(outputs, store, runner=runner, workers=2, quarantine=quarantine)
    return time.perf_counter() - began, result


def measure_poison(work: Path, size: Size, runner: str) -> dict[str, Any]:
    """Return times, documents and verdicts of runs over clean and over poisoned pages."""
    draw = random.Random(1)
    pages = [page(number, draw) for number in range(size.pages)]
    clean = write_archive(work / "clean" / "a.warc.gz", pages)
    archive = write_archive(work / "poisoned" / "a.warc.gz", poisoned(pages))
    without, plain = timed_run(clean, work / "plain", runner)
    seconds, result = timed_run(archive, work / "store", runner)
    lists = work / "verdicts.jsonl"
    lists.write_bytes(all_lists(Store(work / "store")))
    listed, _ = timed_run(archive, work / "listed", runner, [lists])
    made = tree(work / "store")
    for folder in (work / "store").iterdir():
        if folder.name not in ("quarantine", "runs"):
            shutil.rmtree(folder)
    again, _ = timed_run(archive, work / "store", runner)
    return {
        "documents": result.outputs["pages"].rows,
        "of": plain.outputs["pages"].rows,
        "verdicts": [json.loads(line) for line in lists.read_text().splitlines()],
        "seconds": {"clean": without, "poisoned": seconds, "given the list": listed, "again": again},
        "equal": {"given the list": tree(work / "listed") == made, "again": tree(work / "store") == made},
        "problems": verify(work / "store").problems,
    }


# --- nasty pages -----------------------------------------------------------------------------------------------------


def nasty_pages() -> dict[str, bytes]:
    """Return pages that are hard on parsers without any trick."""
    text = b"<p>Some honest text of a page, which has more than a few words, so that it is kept by an extractor.</p>"
    cell = b"<tr>" + b"<td>cell</td>" * 100 + b"</tr>"
    return {
        "honest": b"<html><body><article>" + text * 5 + b"</article></body></html>",
        "nested 100,000 deep": b"<html><body>" + b"<div>" * 100_000 + text + b"</div>" * 100_000 + b"</body></html>",
        "tables in tables": b"<html><body>" + b"<table><tr><td>" * 3000 + text + b"</body></html>",
        "300,000 cells": b"<html><body>" + text + b"<table>" + cell * 3000 + b"</table></body></html>",
        "colspan of 2^53": b'<html><body><table><tr><td colspan="9007199254740991">'
        + text
        + b"</td></tr></table></body></html>",
        "100,000 unclosed": b"<html><body>" + b"<b><i><a href=x>" * 33_000 + text + b"</body></html>",
    }


def raw(pages: Sequence[bytes]) -> pa.RecordBatch:
    """Return `pages` as raw records."""
    rows = [{**_base(number), "payload": page, "content_type": "text/html"} for number, page in enumerate(pages)]
    return pa.RecordBatch.from_pylist(rows, schema=records())


def _base(number: int) -> dict[str, Any]:
    return {
        "id": number.to_bytes(16, "big"),
        "source": "s",
        "origin": {"uri": "a", "place": "row", "offset": number, "length": 1, "part": 0},
        "licence": "unknown",
        "licence_basis": "unknown",
        "optout": NOT_CHECKED,
    }


def through_nasty(work: Path) -> dict[str, str]:
    """Return what became of each nasty page in an extractor whose bounds do not protect it."""
    unbounded = ExtractText(
        "trafilatura", max_elements=1 << 40, max_depth=200_000, max_nesting=1 << 60, max_bytes=1 << 40
    )
    pages = nasty_pages()
    outcome = guarded(work / "nasty", unbounded).apply(raw(list(pages.values())))
    found = dict.fromkeys(pages, "kept")
    for row in outcome.dropped.to_pylist():
        found[list(pages)[int.from_bytes(row["id"], "big")]] = row["reason"]
    return found


# --- cost ------------------------------------------------------------------------------------------------------------


def guarded(store: Path, transform: Any) -> Any:
    """Return `transform` as tasks apply it."""
    steps = [Step(type(transform).__name__, transform)]
    return (
        GuardedShard(Store(store), "0" * 64, "cost", steps, Isolation().guard(steps), lambda _: True).steps[0].transform
    )


def cpu_seconds(step: Any) -> float:
    """Return the CPU time of this process and of the child of `step`, if it has one."""
    child = step.crew().child if isinstance(step, Isolated) else None
    if child is None:
        return time.process_time()
    ticks = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return time.process_time() + sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Cost:
    """Microseconds per document in a child and in the worker, turn by turn: CPU time, or by the clock."""

    inside: list[float]
    bare: list[float]

    @property
    def more(self) -> float:
        """How much more it is in a child: the median over turns, each of which compares what ran side by side."""
        return median(inside / bare for inside, bare in zip(self.inside, self.bare, strict=True)) - 1


def by_turns(steps: Sequence[Any], batch: pa.RecordBatch, count: int, turns: int) -> dict[str, Cost]:
    """Return what both `steps`, in a child and in the worker, take by turns; the first turn warms up."""
    found = {"cpu": Cost([], []), "clock": Cost([], [])}
    for turn in range(turns + 1):
        for step, side in zip(steps, ("inside", "bare"), strict=True):
            cpu, clock = cpu_seconds(step), time.perf_counter()
            for _ in range(count):
                step.apply(batch)
            took = {"cpu": cpu_seconds(step) - cpu, "clock": time.perf_counter() - clock}
            for kind, seconds in took.items() if turn else ():
                getattr(found[kind], side).append(1e6 * seconds / count / batch.num_rows)
    return found


def five_microseconds(text: str) -> str:
    """Return `text` with its first word in capitals: about 5 µs."""
    first, blank, rest = text.partition(" ")
    return first.upper() + blank + rest.replace("\t", " ").rstrip() + " " * (len(rest) % 2)


def measure_cost(work: Path, size: Size) -> dict[str, dict[str, Cost]]:
    """Return what clean pages, and texts in a user's function, cost in a child and in the worker."""
    draw = random.Random(2)
    pages = raw([page(number, draw) for number in range(size.clean)])
    texts = pa.RecordBatch.from_pylist(
        [{**_base(n), "text": " ".join(draw.choices(WORDS, k=300))} for n in range(4096)], schema=documents()
    )
    found = {}
    for name, transform, batch, count in (
        ("extraction", ExtractText("trafilatura"), pages, 1),
        ("a user's function", EditText(five_microseconds, reason="case", version=1), texts, size.texts // 4096),
    ):
        isolated = guarded(work / "cost", transform)
        if not isolated.apply(batch).kept.equals(transform.apply(batch).kept):
            raise RuntimeError(f"{name}: the child gives other rows than the worker")
        found[name] = by_turns([isolated, transform], batch, count, size.turns)
        dismiss()
    return found


def longer(poison: dict[str, Any]) -> float:
    """Return the seconds that the poison cost."""
    return float(poison["seconds"]["poisoned"] - poison["seconds"]["clean"])


def checks_of(
    poison: dict[str, Any], nasty: dict[str, str], cost: dict[str, dict[str, Cost]]
) -> dict[str, tuple[Any, str, bool]]:
    """Return what was found, what it must be, and whether it is."""
    reasons = dict(Counter(verdict["reason"] for verdict in poison["verdicts"]))
    checks: dict[str, tuple[Any, str, bool]] = {
        "documents": (poison["documents"], f"= {poison['of'] - 3}", poison["documents"] == poison["of"] - 3),
        "verdicts": (reasons, f"= {REASONS}", reasons == REASONS),
        "seconds more than without": (round(longer(poison), 1), f"< {MOST_SECONDS:g}", longer(poison) < MOST_SECONDS),
        "same bytes when given the list": (poison["equal"], "both", all(poison["equal"].values())),
        "problems": (poison["problems"], "none", not poison["problems"]),
        "honest page beside nasty ones": (nasty["honest"], "kept", nasty["honest"] == "kept"),
    }
    for name, most in MOST_MORE.items():
        more = cost[name]["cpu"].more
        checks[f"{name}, more"] = (round(more, 3), f"< {most:g}", more < most)
    return checks


def show(size: Size, poison: dict[str, Any], nasty: dict[str, str], cost: dict[str, dict[str, Cost]]) -> None:
    """Print what was found for people."""
    for name, taken in poison["seconds"].items():
        print(f"{size.pages:,} pages, {name}: {taken:.1f} s")
    for verdict in poison["verdicts"]:
        print(f"{verdict['transform']} {verdict['reason']}: {verdict['evidence']}")
    for name, became in nasty.items():
        print(f"{name}: {became}")
    for name, kinds in cost.items():
        for kind, found in kinds.items():
            inside, bare = median(found.inside), median(found.bare)
            said = f"{inside:.1f} in a child, {bare:.1f} in the worker, {found.more:+.1%}"
            print(f"{name}, µs a document ({kind}): {said}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--runner", choices=["local", "ray"], default="local")
    given = parser.parse_args(arguments)
    size = SIZES[given.size]
    with work_folder() as work:
        cost = measure_cost(work, size)
        nasty = through_nasty(work)
        dismiss()
        poison = measure_poison(work, size, given.runner)
    show(size, poison, nasty, cost)
    checks = checks_of(poison, nasty, cost)
    sides = {name: [round(median(side), 2) for side in (k["cpu"].inside, k["cpu"].bare)] for name, k in cost.items()}
    report = {
        "name": f"poison, {given.size}, {given.runner}",
        "unit": "seconds that three poisoned pages cost",
        "ours": round(longer(poison), 1),
        "peers": {},
        "ratio": None,
        "checks": checks,
        "also": {
            "seconds": {name: round(taken, 1) for name, taken in poison["seconds"].items()},
            "nasty": nasty,
            "µs of CPU a document, in a child and in the worker": sides,
        },
        "versions": {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}},
    }
    print(json.dumps(report))
    return 0 if all(right for _, _, right in checks.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
