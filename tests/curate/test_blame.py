"""An error of a step names the step and the document."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from curate.accounting.blame import blaming
from curate.recipes.recipe import Outputs
from curate.run import run
from curate.running.jobs import TaskError
from tests.curate.corpus import read_web, write_corpus
from tests.curate.raising import RaiseOn

ROWS = pa.RecordBatch.from_pydict(
    {
        "id": pa.array([bytes([n] * 16) for n in range(3)], pa.binary(16)),
        "text": pa.array(["a", "bad", "c"], pa.large_string()),
    }
)


def test_error_of_a_batch_names_the_one_document_that_raises() -> None:
    with pytest.raises(ValueError, match="no bad") as error, blaming("strict", RaiseOn("bad"), ROWS):
        RaiseOn("bad").apply(ROWS)
    assert error.value.__notes__ == [f"in step 'strict', document {'01' * 16}"]


def test_error_of_a_batch_that_no_document_raises_alone_names_the_batch() -> None:
    with pytest.raises(KeyError) as error, blaming("strict", RaiseOn("worse"), ROWS):
        raise KeyError("all together")
    assert error.value.__notes__[0].startswith("in step 'strict', a batch of 3 documents from 0000")


def test_run_that_fails_names_stage_shard_step_document_and_place(tmp_path: Path) -> None:
    web = read_web(write_corpus(tmp_path / "in"))
    with pytest.raises(
        TaskError, match=r"web, .*\.jsonl: ValueError: no .*; in step 'RaiseOn', document [0-9a-f]{32} \("
    ):
        run(Outputs(web.apply(RaiseOn(""), name="web")), tmp_path / "store", runner="local")
