"""The chain Gopher repetition, Gopher quality, C4, FineWeb on one core: ours, datatrove's, and functions of others.

All get the same texts in memory, one after the other in one run; rates are MB (10^6 bytes) of UTF-8 per CPU second. In
a chain a document that one filter drops is not seen by the next. datatrove's filters are called as `.filter(document)`,
with its own words and sentences (spaCy); those of NeMo Curator, dolma and data-juicer in environments of their own
(`benchmarks/peers/filters.py` says which).

C4 is as FineWeb has it (no rule on end marks), so that there is text left for FineWeb's rules.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from benchmarks.install_peers import SCRIPTS, Environment
from transforms.c4_rules import C4Documents, C4Lines
from transforms.filters import Filter
from transforms.findings import Findings
from transforms.fineweb_rules import FineWebQuality
from transforms.gopher_rules import GopherQuality, GopherRepetition
from transforms.outcome import Transform
from transforms.presets import fineweb
from transforms.sharing import Sharing

Batches = Sequence[pa.RecordBatch]


def run_chain(batches: Batches, transforms: Sequence[Transform] = fineweb()) -> int:
    """Apply the chain as the engine does; return how many documents stay."""
    stays = 0
    for batch in batches:
        shared, left = Sharing(), batch
        for transform in transforms:
            left = shared.apply(transform, left).kept
        stays += left.num_rows
    return stays


def run_everything(batches: Batches) -> None:
    """Let every filter judge every document: what the chain costs where nothing is dropped."""
    before, after = (GopherRepetition(), GopherQuality()), (C4Documents(min_sentences=5), FineWebQuality())
    lines = C4Lines(end_marks=None, min_words=3)
    for batch in batches:
        found = Findings(batch.column("text"))
        _judge(before, found, batch)
        left = lines.edit(found, None, batch).kept
        _judge(after, Findings(left.column("text")), left)


def _judge(filters: Sequence[Filter], found: Findings, batch: pa.RecordBatch) -> None:
    for one in filters:
        one.decide(batch, one.judge(found))  # type: ignore[attr-defined]


def datatrove_chain() -> Callable[[Sequence[str]], int]:
    """Return what runs datatrove's chain over texts and returns how many stay."""
    from datatrove.data import Document
    from datatrove.pipeline.filters import (
        C4QualityFilter,
        FineWebQualityFilter,
        GopherQualityFilter,
        GopherRepetitionFilter,
    )

    chain = (
        GopherRepetitionFilter(),
        GopherQualityFilter(),
        C4QualityFilter(filter_no_terminal_punct=False),
        FineWebQualityFilter(),
    )

    def run(texts: Sequence[str]) -> int:
        documents = [Document(text=text, id="") for text in texts]
        return sum(all(_keeps(one, document) for one in chain) for document in documents)

    return run


def _keeps(one: Any, document: Any) -> bool:
    try:
        return one.filter(document) is True
    except ZeroDivisionError:
        return False


def datatrove_rate(texts: Sequence[str], size: float) -> tuple[float, int]:
    """Return MB/s of datatrove's chain on `texts` of `size` MB, its models loaded; and how many stay."""
    run = datatrove_chain()
    run(texts[:1])
    start = time.process_time()
    stays = run(texts)
    return size / (time.process_time() - start), stays


def tool_rate(tool: str, texts: Sequence[str], size: float) -> tuple[float, int, dict[str, str]]:
    """Return MB/s of another tool's functions in its environment, how many documents stay, and its version.

    Raises:
        RuntimeError: it failed; the message has the end of what it said.
    """
    environment = Environment(tool)
    environment.make()
    done = subprocess.run(
        [environment.interpreter, SCRIPTS / "filters.py", tool],
        input=json.dumps(list(texts)),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{tool}: {done.stderr.strip().splitlines()[-1:]}")
    found = json.loads(done.stdout.splitlines()[-1])
    return size / found["seconds"], found["stays"], found["versions"]
