"""A process that makes the shards of one source and says what memory that took: run by `test_memory`.

Arguments: format, folder of the input, `max_record_bytes`, name of the step, folder of the store. Prints JSON: bytes
above what the process had before it began, bytes that the task declares, and the rows that were kept.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from curate import Outputs, read_jsonl, read_parquet
from curate.recipes.compiling import compile_stages
from curate.recipes.stages import DocumentStage
from curate.run import run
from curate.running.documents import WORKER_BYTES, DocumentJob
from curate.running.warm import warm
from curate.store import Store
from transforms.outcome import Transform
from transforms.predicates import field
from transforms.where import Where

STEPS: dict[str, Transform] = {
    "keeps": Where(field("text") != "", "empty"),
    "drops": Where(field("text") == "", "has text"),
}


def resident(what: str) -> int:
    """Return a figure of this process in bytes: "VmHWM", the peak since it began, or "VmRSS"."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (found,) = [line for line in lines if line.startswith(what)]
    return int(found.split()[1]) << 10


def main(format_: str, folder: str, limit: str, step: str, store: str) -> None:
    """Measure one run in this process."""
    read = read_parquet if format_ == "parquet" else read_jsonl
    outputs = Outputs(read(folder, source="s", max_record_bytes=int(limit)).apply(STEPS[step], name="out"))
    stages = compile_stages(outputs.products)
    warm(stages)
    before = resident("VmRSS")
    result = run(outputs, Path(store), runner="local")
    (stage,) = stages.ordered
    assert isinstance(stage, DocumentStage)
    job = DocumentJob(Store(Path(store)), "out", stage.reader, stage.steps, stage.schema, stage.forbids)
    taken = {"peak": resident("VmHWM") - before, "declared": job.resources.memory - WORKER_BYTES}
    print(json.dumps({**taken, "rows": result.stages[0].rows}))


if __name__ == "__main__":
    main(*sys.argv[1:])
