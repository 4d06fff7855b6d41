"""Which items of benchmarks stand in texts: counts per benchmark and split, and lists for scoring evaluations.

An item is *dirty* if a leak or a variant of it was found, *clean* if it can be found and was not, *unchecked* if it is
too short or too plain to be found; what only has its passage quoted is clean, for the question was not seen. Items of
the same words share their fate.

Invariants: an audit is a sum over documents: no order or number of threads reaches it. Cost: that of `Decontaminate`;
memory: a portion of texts per thread, and the items found.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow.compute as pc

from curate.contamination.texts import Portion
from curate.datasets import Dataset
from transforms.contamination import CONTAMINATION, Decontaminate, Protection
from transforms.contamination_findings import LEAK, VARIANT, VERDICTS, Finding, numbers_in

DIRTY: Final = (LEAK, VARIANT)
CLEAN: Final = "clean"
UNCHECKED: Final = "unchecked"
NAMED: Final = 5
"""Documents of an item that are named."""


@dataclass(slots=True)
class Seen:
    """Where an item was found: how often with which verdict, in which sources, and some documents by name."""

    verdicts: Counter[str] = field(default_factory=Counter)
    sources: Counter[str] = field(default_factory=Counter)
    names: list[str] = field(default_factory=list)

    @property
    def verdict(self) -> str:
        """The gravest."""
        return min(self.verdicts, key=VERDICTS.index)


@dataclass(slots=True)
class Audit:
    """What was found of benchmarks, which `protection` describes, in `documents` documents by source."""

    protection: tuple[Protection, ...]
    documents: Counter[str] = field(default_factory=Counter)
    characters: int = 0
    seen: dict[tuple[str, int], Seen] = field(default_factory=dict)
    """(benchmark, item) → where."""
    found_in: dict[tuple[str, str], Counter[str]] = field(default_factory=dict)
    """(benchmark, verdict) → documents by source."""

    def add(self, name: str, source: str, items: Mapping[str, Mapping[str, Iterable[int]]]) -> None:
        """Count a document with `items`: benchmark → verdict → numbers of items."""
        for benchmark, verdicts in items.items():
            for verdict, numbers in verdicts.items():
                self.found_in.setdefault((benchmark, verdict), Counter())[source] += 1
                for number in numbers:
                    seen = self.seen.setdefault((benchmark, number), Seen())
                    seen.verdicts[verdict] += 1
                    seen.sources[source] += 1
                    seen.names = sorted([*seen.names, name])[:NAMED]

    @property
    def is_clean(self) -> bool:
        """Whether no leak and no variant was found."""
        return not any(verdict in DIRTY for _, verdict in self.found_in)

    def status(self, protection: Protection, number: int) -> str:
        """Return what item `number` of a benchmark is: leak, variant, clean or unchecked."""
        seen = self.seen.get((protection.benchmark, number))
        if seen is not None and seen.verdict in DIRTY:
            return seen.verdict
        return UNCHECKED if number in (*protection.short, *protection.plain) else CLEAN

    def statuses(self, protection: Protection) -> list[str]:
        """Return the status of every item of a benchmark."""
        hidden = {*protection.short, *protection.plain}
        result = [UNCHECKED if number in hidden else CLEAN for number in range(protection.items)]
        for (benchmark, number), seen in self.seen.items():
            if benchmark == protection.benchmark and seen.verdict in DIRTY:
                result[number] = seen.verdict
        return result

    def described(self) -> dict[str, Any]:
        """Return the counts as JSON values: per benchmark items by status, documents by verdict and source."""
        benchmarks = {}
        for protection in self.protection:
            name, count = protection.benchmark, Counter(self.statuses(protection))
            documents = {verdict: dict(sorted(self.found_in.get((name, verdict), {}).items())) for verdict in VERDICTS}
            benchmarks[name] = {
                "items": protection.items,
                **{status: count[status] for status in (*DIRTY, CLEAN, UNCHECKED)},
                "unchecked because": {"short": len(protection.short), "plain": len(protection.plain)},
                "found only with choices or answer": len(protection.joined),
                "documents": {verdict: where for verdict, where in documents.items() if where},
            }
        checked = {"documents": dict(sorted(self.documents.items())), "characters": self.characters}
        return {"benchmarks": benchmarks, "checked": checked}

    def lines(self, protection: Protection) -> Iterator[dict[str, Any]]:
        """Yield for every item of a benchmark its number and status, and where it was found."""
        for number, status in enumerate(self.statuses(protection)):
            line: dict[str, Any] = {"item": number, "status": status}
            if (seen := self.seen.get((protection.benchmark, number))) is not None:
                line["documents"] = dict(sorted(seen.verdicts.items()))
                line["sources"] = dict(sorted(seen.sources.items()))
                line["among them"] = seen.names
            yield line

    def write(self, folder: Path) -> list[Path]:
        """Write `contamination.json`, and for each benchmark its items: all, clean, dirty, unchecked; return the paths.

        `NAME.items.jsonl` says of every item what it is and where it was found; `NAME.clean.txt`, `NAME.dirty.txt` and
        `NAME.unchecked.txt` hold numbers of items (from 0, in the order of the benchmark's file), one a line.
        """
        folder.mkdir(parents=True, exist_ok=True)
        files = {"contamination.json": json.dumps(self.described(), ensure_ascii=False, indent=1) + "\n"}
        for protection in self.protection:
            name = protection.benchmark.replace("/", "-")
            lines = list(self.lines(protection))
            files[f"{name}.items.jsonl"] = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
            for kind, statuses in (("clean", (CLEAN,)), ("dirty", DIRTY), (UNCHECKED, (UNCHECKED,))):
                numbers = [line["item"] for line in lines if line["status"] in statuses]
                files[f"{name}.{kind}.txt"] = "".join(f"{number}\n" for number in numbers)
        for name, content in files.items():
            (folder / name).write_text(content, "utf-8")
        return [folder / name for name in files]


def audit_texts(portions: Iterable[Portion], decontaminate: Decontaminate, threads: int = 1) -> Audit:
    """Look for the benchmarks of `decontaminate` in texts, whatever its action is.

    Args:
        portions: the texts.
        decontaminate: benchmarks and thresholds.
        threads: that look at portions at once; changes no outcome.

    Raises:
        BenchmarkError: a benchmark's file changed or is gone.
    """
    result = Audit(decontaminate.protection())
    with ThreadPoolExecutor(threads) as pool:
        ahead: deque[tuple[Portion, Future[dict[int, list[Finding]]]]] = deque()
        for portion in portions:
            ahead.append((portion, pool.submit(decontaminate.findings, portion.texts)))
            if len(ahead) > 2 * threads:
                _count(result, decontaminate, *ahead.popleft())
        for portion, found in ahead:
            _count(result, decontaminate, portion, found)
    return result


def _count(
    result: Audit, decontaminate: Decontaminate, portion: Portion, found: Future[dict[int, list[Finding]]]
) -> None:
    result.documents.update(portion.sources)
    result.characters += pc.sum(pc.utf8_length(portion.texts)).as_py() or 0
    for row, findings in found.result().items():
        result.add(portion.names[row], portion.sources[row], decontaminate.found_items(findings))


def found_in_run(stages: Iterable[Dataset], decontaminate: Decontaminate) -> Audit:
    """Return what stages of a run dropped, cut or tagged for the benchmarks of `decontaminate`, from their ledgers.

    Quotations and near misses that a run left are counted in its statistics, and not by item. Stages that look for no
    benchmarks are passed over; a document that comes to several counts in each.
    """
    result = Audit(decontaminate.protection())
    name = type(decontaminate).__name__
    for dataset in stages:
        if f'"class": "{name}"' not in json.dumps(dataset.manifest["operation"]):
            continue
        for batch in dataset.ledger():
            for row in batch.select(["id", "kind", "source", "transform", "evidence"]).to_pylist():
                result.documents[row["source"]] += row["kind"] == "dropped"
                if row["transform"].rpartition("/")[2].partition("#")[0] == name and row["evidence"]:
                    _add_evidence(result, row["id"], row["source"], row["evidence"])
        _add_tagged(result, dataset)
    return result


def _add_tagged(result: Audit, dataset: Dataset) -> None:
    """Count the documents that stayed, and what they are tagged with."""
    is_tagged = CONTAMINATION.name in [column[0] for column in dataset.manifest["schema"]]
    for batch in dataset.batches(["id", "source", *([CONTAMINATION.name] if is_tagged else [])]):
        result.documents.update(batch.column("source").to_pylist())
        tagged = batch.filter(pc.is_valid(batch.column(CONTAMINATION.name))).to_pylist() if is_tagged else []
        for row in tagged:
            _add_evidence(result, row["id"], row["source"], row[CONTAMINATION.name])


def _add_evidence(result: Audit, identity: bytes, source: str, evidence: str) -> None:
    items = json.loads(evidence).get("items", {})
    numbers = {name: {verdict: numbers_in(text) for verdict, text in mine.items()} for name, mine in items.items()}
    result.add(identity.hex(), source, numbers)
