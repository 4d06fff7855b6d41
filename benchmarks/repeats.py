"""What it costs to find what a corpus repeats: MB of text per CPU-second of one process, by operation.

    python -m benchmarks.repeats [--size BYTES]

The corpus is that of `benchmarks.dedup_corpora.write_speed_corpus`: texts that come again with words replaced. Each
operation is a run of its own over documents that are there already, with kernels compiled; a run reads, regroups, cuts,
writes and commits. The first one also joins small shards. Peak memory is that of the process so far.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from benchmarks.dedup_corpora import write_speed_corpus
from curate import Dataset, Outputs, deduplicate, deduplicate_parts, deduplicate_spans, read_parquet
from curate.run import run

OPERATIONS: Final[Mapping[str, Callable[[Dataset], Dataset]]] = {
    "equal texts": lambda documents: deduplicate(documents),
    "lines": lambda documents: deduplicate_parts(documents, unit="line"),
    "paragraphs": lambda documents: deduplicate_parts(documents),
    "spans of 50 words": lambda documents: deduplicate_spans(documents),
}


def measure(folder: Path, size: int) -> dict[str, Any]:
    """Return MB per CPU-second and what was cut, by operation."""
    (folder / "raw").mkdir()
    texts, bytes_ = write_speed_corpus(folder / "raw" / "speed.parquet", size)
    documents = read_parquet(folder / "raw", source="speed").keep("documents")
    found: dict[str, Any] = {"documents": texts, "bytes": bytes_}
    run(Outputs(documents=documents), folder / "store", runner="local")
    for name, operation in OPERATIONS.items():
        began = time.process_time()
        made = run(Outputs(documents=documents, unique=operation(documents)), folder / "store", runner="local")
        seconds = time.process_time() - began
        (step,) = made.outputs["unique"].statistics["steps"].values()
        flow = step["sources"]["speed"]
        found[name] = {
            "MB/CPU-s": round(bytes_ / 1e6 / seconds, 1),
            "characters left": round(flow["characters_out"] / flow["characters_in"], 3),
            "documents left": round(flow["documents_out"] / flow["documents_in"], 3),
            "peak MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        }
    return found


def main(arguments: list[str] | None = None) -> int:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=64 << 20, help="bytes of text")
    options = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="curate-repeats-"))
    try:
        for name, size in (("warm", 1 << 20), ("measured", options.size)):
            (folder / name).mkdir()
            found = measure(folder / name, size)
        print(json.dumps(found, indent=1))
    finally:
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
