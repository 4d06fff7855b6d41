"""A transform that loses count stops the run before any manifest; the quarantine list is part of the input."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from curate import Outputs, deduplicate, read_jsonl
from curate.accounting.accountant import ConservationError
from curate.accounting.conservation import check_documents
from curate.accounting.quarantine import Verdict, quarantine_name, read_quarantine, write_quarantine
from curate.cluster.runner import RayRunner
from curate.digests import digest_file
from curate.receipts import FileEntry, Receipt, read_receipt
from curate.run import Result
from curate.running.jobs import TaskError
from curate.store import Store, StoreError
from tests.curate.corpus import ledger, read_web, run_on, sentence, small, staged, tasks, texts, write_lines
from transforms.outcome import Outcome, kept
from transforms.schema import set_columns

TEXT = pa.field("text", pa.large_string(), nullable=False)


@dataclass(frozen=True, slots=True)
class Lying:
    """Applies `how`, and claims to be a transform."""

    how: Callable[[pa.RecordBatch], Outcome] = field(metadata={"key": False})
    name: str = "Lying"

    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ()

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        return schema

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        return self.how(batch)


def with_text(batch: pa.RecordBatch, text: list[str]) -> pa.RecordBatch:
    return set_columns(batch, {TEXT: pa.array(text, pa.large_string())})


def edit(batch: pa.RecordBatch, row: int, cut: int, inserted: int) -> dict[str, Any]:
    identity = batch.column("id")[row].as_py()
    return {"id": identity, "transform": "Lying", "reason": "r", "cut": cut, "inserted": inserted}


def drop(batch: pa.RecordBatch, row: int) -> dict[str, Any]:
    return {"id": batch.column("id")[row].as_py(), "transform": "Lying", "reason": "r"}


def drops_silently(batch: pa.RecordBatch) -> Outcome:
    return kept(batch.slice(1))


def keeps_twice(batch: pa.RecordBatch) -> Outcome:
    return kept(batch.take(pa.array([0, *range(batch.num_rows)])))


def keeps_and_drops(batch: pa.RecordBatch) -> Outcome:
    return kept(batch, dropped=[drop(batch, 1)])


def drops_twice(batch: pa.RecordBatch) -> Outcome:
    return kept(batch.slice(1), dropped=[drop(batch, 0), drop(batch, 0)])


def reorders(batch: pa.RecordBatch) -> Outcome:
    return kept(batch.take(pa.array([1, 0, *range(2, batch.num_rows)])))


def invents(batch: pa.RecordBatch) -> Outcome:
    strange = pa.array([b"s" * 16, *batch.column("id").to_pylist()[1:]], pa.binary(16))
    return kept(set_columns(batch, {pa.field("id", pa.binary(16), nullable=False): strange}))


def edits_a_stranger(batch: pa.RecordBatch) -> Outcome:
    return kept(batch, edits=[{**edit(batch, 0, 0, 0), "id": b"s" * 16}])


def cuts_without_an_edit(batch: pa.RecordBatch) -> Outcome:
    text = batch.column("text").to_pylist()
    return kept(with_text(batch, [text[0][:-1], *text[1:]]))


def cuts_more_than_its_edit_says(batch: pa.RecordBatch) -> Outcome:
    text = batch.column("text").to_pylist()
    return kept(with_text(batch, [text[0][:-2], *text[1:]]), edits=[edit(batch, 0, 1, 0)])


def edits_another_document_than_it_says(batch: pa.RecordBatch) -> Outcome:
    text = batch.column("text").to_pylist()
    return kept(with_text(batch, [text[0][:-1], *text[1:]]), edits=[edit(batch, 1, 1, 0)])


def rewrites_without_an_edit(batch: pa.RecordBatch) -> Outcome:
    return kept(with_text(batch, [text.swapcase() for text in batch.column("text").to_pylist()]))


def adds_a_column(batch: pa.RecordBatch) -> Outcome:
    return kept(set_columns(batch, {pa.field("more", pa.int64()): pa.nulls(batch.num_rows, pa.int64())}))


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (drops_silently, "came in once, left 0 times"),
        (keeps_twice, "not in the order in which they came in|left 2 times"),
        (keeps_and_drops, "came in once, left 2 times"),
        (drops_twice, "came in once, left 2 times"),
        (reorders, "not in the order in which they came in"),
        (invents, "kept document 7373.* did not come in"),
        (edits_a_stranger, "edited document 7373.* did not come in"),
        (cuts_without_an_edit, r"its edits say \+0"),
        (cuts_more_than_its_edit_says, r"its edits say -1"),
        (edits_another_document_than_it_says, r"its edits say \+0"),
        (rewrites_without_an_edit, "changed without an edit"),
        (adds_a_column, "the stage declares"),
    ],
)
def test_transform_that_loses_count_stops_the_run_before_any_manifest(
    raw: Path, tmp_path: Path, how: Callable[[pa.RecordBatch], Outcome], message: str
) -> None:
    outputs = Outputs(texts=read_web(raw).apply(Lying(how), name="lies"))
    with pytest.raises(TaskError, match=rf"(?s)lies, x\.jsonl: ConservationError: .*({message})"):
        run_on(outputs, tmp_path)
    assert not list(tmp_path.glob("*/manifest.json"))
    assert not list(tmp_path.glob("shards/*/receipt.json"))


def test_receipt_whose_steps_lose_a_document_is_refused() -> None:
    source = {"documents_in": 3, "documents_out": 2, "characters_in": 9, "characters_out": 9}
    files = {"part.parquet": FileEntry(1, "d", 2)}

    def receipt(**further: Any) -> Receipt:
        steps = {"00": {"name": "Step", "sources": {"s": {**source, **further}}}}
        return Receipt("k", "t", {}, files, {"steps": steps})

    dropped = {"Step": {"r": {"documents": 1, "characters": 4}}}
    with pytest.raises(ConservationError, match="here, Step: 3 documents in, 2 out, 0 dropped"):
        check_documents(receipt(), "here")
    with pytest.raises(ConservationError, match=r"code points in \+ inserted = 9, out \+ dropped \+ cut = 13"):
        check_documents(receipt(dropped=dropped), "here")
    check_documents(receipt(dropped=dropped, characters_out=5), "here")
    edits = {"r": {"documents": 1, "cut": 1, "inserted": 3}}
    check_documents(receipt(dropped=dropped, characters_out=7, edits=edits), "here")
    with pytest.raises(ConservationError, match="1 documents left the last step, 2 were written"):
        two = {"Step": {"r": {"documents": 2, "characters": 4}}}
        check_documents(receipt(dropped=two, documents_out=1, characters_out=5), "here")


def test_receipt_whose_steps_do_not_follow_each_other_is_refused() -> None:
    def step(name: str, came: int, left: int) -> dict[str, Any]:
        lost = {"t": {"r": {"documents": came - left, "characters": 0}}}
        counts = {"documents_in": came, "documents_out": left, "characters_in": 0, "characters_out": 0}
        return {"name": name, "sources": {"s": {**counts, "dropped": lost}}}

    files = {"part.parquet": FileEntry(1, "d", 1)}
    receipt = Receipt("k", "t", {}, files, {"steps": {"00": step("a", 3, 2), "01": step("b", 1, 1)}})
    with pytest.raises(ConservationError, match="went out of one step"):
        check_documents(receipt, "here")


# --- transforms that raise -------------------------------------------------------------------------------------------


def raises_on_number_34(batch: pa.RecordBatch) -> Outcome:
    if pc.any(pc.match_substring(batch.column("text"), "number34")).as_py():
        raise ValueError("cannot bear this text")
    return kept(batch)


def test_transform_that_raises_stops_the_run_naming_the_shard_and_what_is_done_stays(raw: Path, tmp_path: Path) -> None:
    def outputs(how: Callable[[pa.RecordBatch], Outcome]) -> Outputs:
        return Outputs(texts=read_web(raw).apply(Lying(how), name="step"))

    with pytest.raises(TaskError, match=r"step, y\.jsonl: ValueError: cannot bear this text"):
        run_on(outputs(raises_on_number_34), tmp_path)
    assert not list(tmp_path.glob("*/manifest.json"))
    (finished,) = tmp_path.glob("shards/*/receipt.json")
    before = finished.stat().st_mtime_ns
    result = run_on(outputs(kept), tmp_path)
    assert tasks(tmp_path) == {"step": ["y.jsonl"]}
    assert result.outputs["texts"].rows == 9
    assert finished.stat().st_mtime_ns == before
    assert not list((tmp_path / "spool").iterdir())


@pytest.mark.ray
def test_transform_that_raises_on_ray_stops_the_run_naming_the_shard(
    raw: Path, tmp_path: Path, ray_of_two: RayRunner
) -> None:
    outputs = Outputs(texts=read_web(raw).apply(Lying(raises_on_number_34), name="step"))
    with pytest.raises(
        TaskError, match=r"^step, y\.jsonl: ValueError: cannot bear this text; in step 'Lying', document \w{32} "
    ):
        run_on(outputs, tmp_path, ray_of_two)
    assert not list(tmp_path.glob("*/manifest.json"))


# --- quarantine ------------------------------------------------------------------------------------------------------


def shard_and_ids(result: Result, stage: str = "apply web") -> tuple[str, list[bytes]]:
    """Return the key of the first shard of a stage, and the ids of its documents."""
    dataset = staged(result, stage)
    ids = next(iter(dataset.batches(["id"]))).column("id").to_pylist()
    return dataset.shards()[0]["key"], ids


def test_quarantined_document_is_dropped_by_the_step_that_its_verdict_names(
    raw: Path, undisturbed: Result, tmp_path: Path
) -> None:
    key, ids = shard_and_ids(undisturbed)
    store = Store(tmp_path)
    hung, crashed = Verdict(ids[0], "hung", "EditText"), Verdict(ids[2], "crashed", "MaskPII", '{"signal":"SIGSEGV"}')
    write_quarantine(store, key, [crashed, hung])
    result = run_on(small(raw), tmp_path)
    web = staged(result, "apply web")
    rows = [row for row in ledger(web) if row["reason"].startswith("quarantined")]
    assert [(row["id"], row["reason"], row["transform"], row["evidence"]) for row in rows] == [
        (ids[0], "quarantined: hung", "EditText", None),
        (ids[2], "quarantined: crashed", "MaskPII", '{"signal":"SIGSEGV"}'),
    ]
    before = staged(undisturbed, "apply web")
    assert web.rows == before.rows - 2
    digest = digest_file(tmp_path / quarantine_name(key))
    receipt = read_receipt(store, key)
    assert receipt is not None and receipt.quarantine == digest
    assert (web.manifest["quarantine"] is None, result.stages[0].manifest["quarantine"]) == (False, None)
    assert before.manifest["quarantine"] is None
    assert result.digest != undisturbed.digest


def test_quarantine_list_that_names_nobody_of_the_shard_drops_nobody(
    raw: Path, undisturbed: Result, tmp_path: Path
) -> None:
    key, _ = shard_and_ids(undisturbed)
    write_quarantine(Store(tmp_path), key, [Verdict(b"x" * 16, "out of memory", "MaskPII")])
    assert run_on(small(raw), tmp_path).digest == undisturbed.digest


def test_quarantine_list_with_a_step_that_the_shard_has_not_is_an_error(
    raw: Path, undisturbed: Result, tmp_path: Path
) -> None:
    key, ids = shard_and_ids(undisturbed)
    write_quarantine(Store(tmp_path), key, [Verdict(ids[0], "hung", "ExtractText")])
    with pytest.raises(
        TaskError, match="verdict on the step 'ExtractText'; the steps of the shard are Where, EditText, Switch"
    ):
        run_on(small(raw), tmp_path)


@pytest.mark.parametrize(
    "line",
    [
        b"not json",
        b'{"id":"00","reason":"crashed","transform":"t","evidence":null}',
        b'{"id":"' + b"00" * 16 + b'","reason":"bored","transform":"t","evidence":null}',
        b'{"id":"' + b"00" * 16 + b'","reason":"hung"}',
        b"[]",
    ],
)
def test_quarantine_list_with_a_line_that_is_no_verdict_is_an_error(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / quarantine_name("k" * 64)
    path.parent.mkdir()
    path.write_bytes(line + b"\n")
    with pytest.raises(StoreError, match="line 1 is not a quarantine verdict"):
        read_quarantine(Store(tmp_path), "k" * 64)


def test_second_quarantine_list_of_a_shard_must_be_the_same(tmp_path: Path) -> None:
    store, verdict = Store(tmp_path), Verdict(b"x" * 16, "hung", "t")
    write_quarantine(store, "k" * 64, [verdict])
    write_quarantine(store, "k" * 64, [verdict])
    with pytest.raises(StoreError, match="two attempts"):
        write_quarantine(store, "k" * 64, [Verdict(b"x" * 16, "crashed", "t")])


# --- the guard rail of deduplication ---------------------------------------------------------------------------------


def test_source_that_loses_more_than_max_removed_stops_the_run(tmp_path: Path) -> None:
    write_lines(tmp_path / "in" / "a.jsonl", [{"text": sentence(n)} for n in (1, 1, 1, 2)])
    source = read_jsonl(tmp_path / "in", source="s")
    with pytest.raises(ConservationError, match=r"source 's' would lose 2 of 4 documents, more than the share 0\.4 of"):
        run_on(Outputs(texts=deduplicate(source, max_removed={"s": 0.4})), tmp_path / "store")
    assert not list((tmp_path / "store").glob("deduplicate*/manifest.json"))
    result = run_on(Outputs(texts=deduplicate(source, max_removed={"s": 0.5})), tmp_path / "store")
    assert texts(result.outputs["texts"]) == [sentence(1), sentence(2)]
