"""Measurements kept with where and how they were made, and the page that shows them: docs/comparisons.md.

    python -m benchmarks.comparisons run NAME [OPTION …]   run benchmarks.NAME with these options, keep its last line
    python -m benchmarks.comparisons write                 write the page anew from what is kept

docs/comparisons.jsonl holds a line per command: benchmark, options, day, kind of machine (cores, architecture, memory;
never a name), its load when the run began, exit status, and the benchmark's last line as it was printed. Running a
command again replaces its line; docs/log.md and the history keep the older ones. The page is made of that file and of
the pins in benchmarks/peers alone; a test checks that it is. The estimate in docs/deduplication.md is made of it, too.
A comparison that we lose is shown and marked, as is a check that fails.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks import dedup_estimate
from benchmarks.contract import NAMES, faults_of
from benchmarks.install_peers import environments

ROOT: Final = Path(__file__).parents[1]
KEPT: Final = ROOT / "docs" / "comparisons.jsonl"
PAGE: Final = ROOT / "docs" / "comparisons.md"

Record = dict[str, Any]

HEAD: Final = """\
# Comparisons

Written by `python -m benchmarks.comparisons write` from `docs/comparisons.jsonl`; do not edit it by hand. Each table is
one run: the same input, the same core, one after the other, rates of CPU time unless said. The ratio is ours over the
best of the others. **lost** marks where another tool is ahead, **missed** where a bound of ours is not met.

To repeat one: `python -m benchmarks.NAME --size full --peers`, which makes the environments of the other tools where
they are missing (`python -m benchmarks.install_peers NAME`); `python -m benchmarks.comparisons run NAME --size full
--peers` keeps what it finds and writes this page. Input is in `../shared/data`; a benchmark says so where it is absent.
On a machine whose load is above its cores, rates fall by a third and more; ratios of one run hold better.
"""


def records() -> list[Record]:
    """Return what is kept, benchmarks in the order of `benchmarks.contract.NAMES`, others after them."""
    found = [json.loads(line) for line in KEPT.read_text("utf-8").splitlines()]
    order = {name: number for number, name in enumerate(NAMES)}
    return sorted(found, key=lambda it: (order.get(it["benchmark"], len(order)), it["benchmark"], it["options"]))


def machine() -> str:
    """Return the kind of machine: cores, architecture, memory, system; nothing that names one."""
    flags = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    wide = " with AVX-512" if " avx512f" in flags else " with AVX2" if " avx2" in flags else ""
    return f"{os.cpu_count()} cores of {platform.machine()}{wide}, {memory:.0f} GiB, {platform.system()}"


def keep(benchmark: str, options: Sequence[str], status: int, load: float, line: Mapping[str, Any]) -> None:
    """Keep the last line of a run in place of an earlier one of the same command.

    Raises:
        ValueError: the line breaks the contract of `benchmarks.contract`.
    """
    if faults := faults_of(line):
        raise ValueError(f"benchmarks.{benchmark}: {'; '.join(faults)}")
    made = {
        "benchmark": benchmark,
        "options": list(options),
        "date": time.strftime("%Y-%m-%d"),
        "machine": machine(),
        "load": round(load, 1),
        "status": status,
        "result": dict(line),
    }
    others = records() if KEPT.exists() else []
    others = [it for it in others if (it["benchmark"], it["options"]) != (benchmark, list(options))]
    lines = [json.dumps(it, ensure_ascii=False, sort_keys=True) for it in (*others, made)]
    KEPT.write_text("\n".join(sorted(lines)) + "\n", "utf-8")


def run(benchmark: str, options: Sequence[str]) -> int:
    """Run a benchmark, keep what it found, and return its exit status.

    Raises:
        ValueError: it printed no JSON object at its end, or one that breaks the contract.
    """
    load = os.getloadavg()[0]
    command = [sys.executable, "-m", f"benchmarks.{benchmark}", *options]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        last = ""
        for last in child.stdout:
            print(last, end="", flush=True)
    try:
        line = json.loads(last)
    except ValueError:
        raise ValueError(f"benchmarks.{benchmark} ended with status {child.returncode} and no JSON line") from None
    keep(benchmark, options, child.returncode, load, line)
    write()
    return child.returncode


def page() -> str:
    """Return the page that `records` make."""
    kept = records()
    parts = [HEAD, "\n".join(_summary(kept)), *("\n".join(_section(it)) for it in kept), "\n".join(_peers())]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def write() -> None:
    """Write the page, and the guide's estimate for deduplication."""
    PAGE.write_text(page(), "utf-8")
    if (figures := dedup_estimate.Figures.kept(records())) is not None:
        dedup_estimate.record(figures)


def _summary(kept: Sequence[Record]) -> Iterator[str]:
    yield "## All of them\n"
    yield "| benchmark | ours | unit | best of the others | ratio | checks | day |"
    yield "|---|---|---|---|---|---|---|"
    for it in kept:
        result = it["result"]
        held = [holds for _, _, holds in result["checks"].values()]
        checks = f"{sum(held)} of {len(held)}" + ("" if all(held) else ", **missed**")
        best = _best(result["peers"])
        beside = f"{best[0]} {_number(best[1])}" if best else "none"
        name = f"[{_title(it)}](#{_anchor(_title(it))})"
        ratio = _ratio(result["ours"], result["peers"], less=result.get("less", False))
        cells = (name, _number(result["ours"]), result["unit"], beside, ratio, checks, it["date"])
        yield f"| {' | '.join(cells)} |"
    if absent := [name for name in NAMES if name not in {it["benchmark"] for it in kept}]:
        yield f"\nNot kept yet: {', '.join(absent)}."


def _section(it: Record) -> Iterator[str]:
    result = it["result"]
    yield f"## {_title(it)}\n"
    yield f"    python -m benchmarks.{it['benchmark']}{''.join(f' {option}' for option in it['options'])}\n"
    yield f"{result['name']}; {it['date']}, {it['machine']}, load {it['load']} when it began.\n"
    first = {"what": result["name"], "ours": result["ours"], "peers": result["peers"]}
    rows = [row for row in (first, *result.get("rows", [])) if row["peers"] or row is not first]
    if rows:
        yield from _comparisons(rows, result["unit"])
    yield "| check | found | bound | |"
    yield "|---|---|---|---|"
    for name, (value, bound, holds) in result["checks"].items():
        yield f"| {_cell(name)} | {_number(value)} | {_cell(bound)} | {'' if holds else '**missed**'} |"
    versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
    yield f"\nVersions: {versions}."


def _comparisons(rows: Sequence[Mapping[str, Any]], unit: str) -> Iterator[str]:
    yield "| what | ours | other | its rate | ratio | unit |"
    yield "|---|---|---|---|---|---|"
    for row in rows:
        said, less = row.get("unit", unit), row.get("less", False)
        for number, (name, rate) in enumerate(row["peers"].items() or [("none", None)]):
            what, ours = (row["what"], _number(row["ours"])) if number == 0 else ("", "")
            ratio = _ratio(row["ours"], {name: rate} if rate is not None else {}, less=less)
            yield f"| {_cell(what)} | {ours} | {_cell(name)} | {_number(rate)} | {ratio} | {said} |"
    yield ""


def _peers() -> Iterator[str]:
    yield "## The other tools\n"
    yield "Each in an environment of its own (`.venv-peer-NAME`), every package pinned in `benchmarks/peers/NAME.txt`."
    yield "What cannot be installed or run here says so.\n"
    yield "| environment | Python | for | pinned | not here |"
    yield "|---|---|---|---|---|"
    for each in environments():
        versions = each.versions()
        named = [name for name in each.said("tools").split(", ") if name in versions]
        pinned = ", ".join(f"{name} {versions[name]}" for name in named) + f" and {len(versions) - len(named)} more"
        yield f"| {each.name} | {each.said('python')} | {each.said('why')} | {pinned} | {each.said('not')} |"


def _title(it: Record) -> str:
    options = [option.removeprefix("--") for option in it["options"] if option not in ("--size", "full", "--peers")]
    return str(it["benchmark"]).replace("_", " ") + (f" ({', '.join(options)})" if options else "")


def _anchor(title: str) -> str:
    return "".join(
        character for character in title.lower().replace(" ", "-") if character.isalnum() or character == "-"
    )


def _best(peers: Mapping[str, float], *, less: bool = False) -> tuple[str, float] | None:
    choose = min if less else max
    return choose(peers.items(), key=lambda item: item[1]) if peers else None


def _ratio(ours: float | None, peers: Mapping[str, float], *, less: bool = False) -> str:
    best = _best(peers, less=less)
    if best is None or ours is None or not (best[1] and ours):
        return ""
    ratio = best[1] / ours if less else ours / best[1]
    return f"{_number(ratio)} ×" + ("" if ratio >= 1 else ", **lost**")


def _number(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return _cell(str(value))
    if isinstance(value, int) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a benchmark and keep its figures, or write the page; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("write", help="write the page, and the guide's estimate, from what is kept")
    running = verbs.add_parser("run", help="run a benchmark and keep its last line")
    running.add_argument("name", help="a module of benchmarks/")
    running.add_argument("options", nargs=argparse.REMAINDER, help="of the benchmark")
    options = parser.parse_args(arguments)
    if options.verb == "run":
        return run(options.name, options.options)
    write()
    return 0


if __name__ == "__main__":
    sys.exit(main())
