"""From a token to its document and its raw record, and what is said when the record is no longer what it was."""

from __future__ import annotations

import gzip
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from curate import ConfigurationError, Outputs, read_jsonl, tokenize, train_tokenizer
from curate.digests import text_digest
from curate.recipes.compiling import compile_stages
from curate.run import Result, open_result
from curate.store import Store, StoreError
from curate.upkeep.trace import TokenTrace, read_row, replay, trace_token
from tests.road.corpus import documents, road, run_road, write_raw
from transforms.user_function import EditText, KeepIf

CELLS = ("letters", "notes", "pages")


@dataclass(frozen=True)
class Place:
    """A corpus, and the result of the road over it; nobody writes to either."""

    raw: Path
    result: Result

    def trace(self, cell: str, token: int = 100) -> TokenTrace:
        return trace_token(self.result.caches["training"], cell, token)


@pytest.fixture(scope="module")
def place(memory: Path) -> Place:
    raw = write_raw(memory / "traced")
    return Place(raw, run_road(raw, memory / "traced store"))


@pytest.fixture
def raw(place: Place, tmp_path: Path) -> Path:
    """A copy of the corpus, to change."""
    shutil.copytree(place.raw, tmp_path / "raw")
    return tmp_path / "raw"


def replayed(root: Path, trace: TokenTrace) -> str:
    return replay(compile_stages(road(root=root).products), trace)


@pytest.mark.parametrize("cell", CELLS)
def test_trace_of_a_token_names_document_record_and_characters(place: Place, cell: str) -> None:
    cache = place.result.caches["training"].open()[cell]
    draw = random.Random(cell)
    for token in sorted(draw.sample(range(cache.tokens), 8)):
        trace = place.trace(cell, token)
        assert (trace.cell, trace.token, trace.token_id) == (cell, token, cache.read(token, token + 1)[0])
        assert cache.document_at(token) == trace.document
        assert trace.row["source"] == cell and (place.raw / cell / trace.row["origin"]["uri"]).is_file()
        assert trace.row["id"] == bytes(cache.ids(trace.document, trace.document + 1)[0])
        assert trace.digest == text_digest(trace.row["text"]).hex()
        assert trace.characters == trace.row["text"][trace.start : trace.end]
        assert f"⟦{trace.characters}⟧" in trace.context() and len(trace.context()) <= 2 * 60 + 2 + len(trace.characters)


def test_trace_of_the_end_of_a_document_stands_for_no_characters(place: Place) -> None:
    cache = place.result.caches["training"].open()["notes"]
    trace = place.trace("notes", int(cache.starts[1]) - 1)
    assert trace.token_id == cache.eos and trace.characters == ""
    assert trace.start == trace.end == len(trace.row["text"])


def test_trace_of_control_text_in_a_document_is_its_characters_and_no_control_token(place: Place) -> None:
    cache = place.result.caches["training"].open()["letters"]
    document = next(
        number
        for number in range(len(cache))
        if "<|endoftext|>" in place.trace("letters", int(cache.starts[number])).row["text"]
    )
    first, last = int(cache.starts[document]), int(cache.starts[document + 1]) - 1
    assert cache.eos not in cache.read(first, last).tolist()
    text = place.trace("letters", first).row["text"]
    found = text.index("<|endoftext|>")
    traces = [place.trace("letters", token) for token in range(first, last)]
    inside = [trace for trace in traces if found < trace.end and trace.start < found + 13]
    assert len(inside) > 1 and "<|endoftext|>" in "".join(trace.characters for trace in inside)


def test_trace_of_a_token_that_is_not_there_says_how_many_there_are(place: Place) -> None:
    tokens = place.result.caches["training"].open()["notes"].tokens
    for token in (-1, tokens):
        with pytest.raises(IndexError, match=r"notes.*[0-9]"):
            place.trace("notes", token)


def test_row_that_a_shard_does_not_have_is_refused(place: Place) -> None:
    dataset = place.result.outputs["train"]
    with pytest.raises(StoreError, match="no such row"):
        read_row(dataset, 0, 10_000)


@pytest.mark.parametrize("cell", CELLS)
def test_replay_gives_the_text_that_was_tokenized(place: Place, cell: str) -> None:
    trace = place.trace(cell)
    assert replayed(place.raw, trace) == trace.row["text"]


def test_replay_from_another_root_gives_the_text_that_was_tokenized(place: Place, raw: Path) -> None:
    trace = place.trace("letters")
    assert replayed(raw, trace) == trace.row["text"]


def edit_lines(path: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    packed = path.suffix == ".gz"
    content = gzip.decompress(path.read_bytes()) if packed else path.read_bytes()
    content = b"".join(change(content.splitlines(keepends=True)))
    path.write_bytes(gzip.compress(content, mtime=0) if packed else content)


def record_of(trace: TokenTrace) -> Path:
    return Path(trace.row["source"]) / str(trace.row["origin"]["uri"])


@pytest.mark.parametrize("cell", ["letters", "pages"])
def test_replay_after_the_record_was_changed_gives_another_text(place: Place, raw: Path, cell: str) -> None:
    trace = place.trace(cell)

    def shout(lines: list[bytes]) -> list[bytes]:
        return [line.replace(b"ren ", b"REN ") for line in lines]  # of the same length: places stay

    edit_lines(raw / record_of(trace), shout)
    text = replayed(raw, trace)
    assert text != trace.row["text"] and text == trace.row["text"].replace("ren ", "REN ")


def test_replay_after_records_moved_says_that_the_file_was_changed(place: Place, raw: Path) -> None:
    trace = next(t for token in range(100, 4000, 90) if (t := place.trace("pages", token)).row["origin"]["offset"])
    edit_lines(raw / record_of(trace), lambda lines: [b'{"text": "another first line"}\n', *lines])
    with pytest.raises(StoreError, match=r"has no record at .* the file was changed"):
        replayed(raw, trace)


def test_replay_after_the_record_became_empty_says_what_drops_it(place: Place, raw: Path) -> None:
    trace = place.trace("pages")
    edit_lines(raw / record_of(trace), lambda lines: [b" " * (len(line) - 1) + b"\n" for line in lines])
    with pytest.raises(StoreError, match="the file was changed"):
        replayed(raw, trace)


def test_replay_after_the_raw_file_is_gone_says_so(place: Place, raw: Path) -> None:
    trace = place.trace("notes")
    (raw / record_of(trace)).unlink()
    with pytest.raises(StoreError, match="is no longer there: give the root"):
        replayed(raw, trace)


def test_replay_by_a_recipe_that_drops_the_document_names_the_stage(place: Place) -> None:
    trace = place.trace("pages")
    nothing = documents(place.raw).apply(KeepIf(never, reason="never", version=1), name="train")
    with pytest.raises(StoreError, match=r"train drops .* its record or the recipe was changed"):
        replay(compile_stages(Outputs(nothing).products), trace)


def never(row: Any) -> bool:
    return False


def test_replay_by_a_recipe_that_edits_otherwise_gives_another_text(place: Place) -> None:
    trace = place.trace("pages")
    upper = documents(place.raw).apply(EditText(str.upper, reason="case", version=1), name="train")
    assert replay(compile_stages(Outputs(upper).products), trace) == trace.row["text"].upper()


def test_replay_with_several_stages_of_one_name_follows_the_one_that_is_tokenized(place: Place) -> None:
    trace, clean = place.trace("pages"), documents(place.raw)
    first = clean.apply(EditText(str.upper, reason="case", version=1), name="train").keep("train")
    second = first.apply(EditText(str.swapcase, reason="case", version=1), name="train").keep("train")
    third = second.apply(EditText(str.upper, reason="case", version=1), name="train")
    cells = tokenize(second, train_tokenizer(first, 300))
    stages = compile_stages(Outputs(third, cells=cells).products)
    assert [stage.name for stage in stages.ordered].count("train") == 3
    assert replay(stages, trace) == trace.row["text"].upper().swapcase()


def test_replay_by_a_recipe_without_the_stage_or_the_source_is_refused(place: Place) -> None:
    trace = place.trace("pages")
    clean = documents(place.raw)
    with pytest.raises(ConfigurationError, match="no stage 'train': give the recipe that made the store"):
        replay(compile_stages(Outputs(clean).products), trace)
    other = read_jsonl(place.raw / "letters", source="letters", columns={"key": "name"}).keep("train")
    with pytest.raises(ConfigurationError, match="reads nothing from the source 'pages'"):
        replay(compile_stages(Outputs(other).products), trace)


def test_trace_in_a_store_whose_documents_are_gone_names_the_file(place: Place, tmp_path: Path) -> None:
    shutil.copytree(place.result.folder.parent, tmp_path / "store")
    caches = open_result(Store(tmp_path / "store"), place.result.folder.name).caches["training"]
    assert trace_token(caches, "letters", 100).digest == place.trace("letters").digest
    for path in (tmp_path / "store" / "shards").glob("*/part.parquet"):
        path.unlink()
    with pytest.raises((StoreError, OSError), match=r"part\.parquet"):
        trace_token(caches, "letters", 100)
