"""`curate audit`: the report page about somebody else's Parquet, from the files alone."""

from __future__ import annotations

import argparse
import sys
import tempfile
from contextlib import ExitStack, redirect_stdout
from dataclasses import replace
from pathlib import Path

from curate.configuration import ConfigurationError


def add_audit(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `audit`."""
    command.set_defaults(command=audit_command)
    command.add_argument("folder", type=Path, metavar="DIR", help="folder that the Parquet files are below")
    command.add_argument("--text", metavar="COLUMN", help="column of texts (default: found by name, or the largest)")
    command.add_argument("--licence", metavar="SPDX", help="licence of all files, where no column says it")
    command.add_argument(
        "--benchmark",
        action="append",
        default=[],
        metavar="NAME=FILE[,question=FIELD,answer=FIELD]",
        help="benchmark to look for, as gsm8k=test.jsonl; without fields NAME is one that curate knows",
    )
    command.add_argument("--out", type=Path, default=Path("audit.html"), metavar="FILE", help="page to write")
    command.add_argument("--store", type=Path, metavar="DIR", help="store to work in and keep (default: one that goes)")
    command.add_argument("--sample", metavar="SHARE", help="look at a share of the documents only, as 0.01")
    command.add_argument("--runner", choices=("local", "ray"), default="local", help="default: local")
    command.add_argument("--workers", type=int, metavar="N", help="CPUs for Ray (default: all)")


def audit_command(options: argparse.Namespace) -> int:
    """Look at the files and write the page beside its values."""
    from curate.contamination.files import benchmark_of
    from curate.recipes.audit import ALL, audit_recipe, look_into
    from curate.run import run
    from viewers.frame import write_whole
    from viewers.loading import load_report
    from viewers.report import compose

    if not options.folder.is_dir():
        raise ConfigurationError(f"{options.folder} is no folder: give one that Parquet files are below")
    audit = look_into(options.folder, options.text)
    benchmarks = [benchmark_of(given) for given in options.benchmark]
    with ExitStack() as opened, redirect_stdout(sys.stderr):
        room = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="curate-audit-")))
        outputs = audit_recipe(
            audit, room / "files", licence=options.licence, benchmarks=benchmarks, sample=options.sample
        )
        result = run(
            outputs,
            options.store or room / "store",
            name=f"audit of {options.folder.resolve().name}",
            runner=options.runner,
            workers=options.workers,
            sample=options.sample,
        )
        report = load_report(result.store, result.name)
        everything = {name: stage for name, stage in report.outputs.items() if name.startswith(ALL)}
        made = compose(replace(report, outputs=everything))
    write_whole(options.out.with_suffix(".json"), made.data)
    write_whole(options.out, made.page)
    print(options.out)
    return 0
