"""Compiles kernels before the tests begin: `python -m tests.compiled`, all or a part, which `make test` runs at once.

The processes of a test run would each compile the same code. Called once, on little, are a recipe with every kind of
stage, our engine of extraction and the filters; other kernels are compiled by the tests that need them.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from benchmarks.chaos_recipe import Amount, outputs, write_inputs
from curate import Outputs, read_jsonl
from curate.run import run
from transforms import (
    C4Documents,
    C4Lines,
    FineWebQuality,
    GopherQuality,
    GopherRepetition,
    NormalizeText,
    RefinedWebLines,
)
from transforms.pages.engine import extract

PAGE = b"<html><head><title>A page</title></head><body><article><p>One line, with words.</p></article></body></html>"

FILTERS = (
    GopherRepetition(),
    GopherQuality(),
    C4Documents(),
    C4Lines(),
    FineWebQuality(),
    RefinedWebLines(),
    NormalizeText(),
)


def extraction() -> None:
    """Call our engine of extraction."""
    extract(PAGE)


def stages() -> None:
    """Run a recipe with every kind of stage, and the filters."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write_inputs(root / "in", Amount(1, 12), seed=0)
        run(outputs(root / "in"), root / "store", name="compiled", runner="local")
        filtered = read_jsonl(root / "in" / "pages", source="pages").apply(*FILTERS, name="filtered")
        run(Outputs(filtered=filtered), root / "store", name="filtered", runner="local")


PARTS = {"extraction": extraction, "stages": stages}


def main() -> None:
    """Call what compiles: the parts that the command names, else all."""
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()


if __name__ == "__main__":
    main()
