"""Withdrawn documents: what a list names goes, and nothing of it is shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curate.configuration import describe
from curate.digests import text_digest
from tests.transforms.documents import batch_of, kept_texts
from transforms.outcome import SchemaError
from transforms.schema import records
from transforms.withdraw import WithdrawError, WithdrawList, normalised_url

URL = pa.field("url", pa.large_string())
TEXTS = ["one", "two", "three", "four"]
URLS = ["https://a.example/1", "http://A.example:80/%7Etwo#top", None, "https://a.example/4"]


def _list(folder: Path, *lines: Any) -> WithdrawList:
    path = folder / "withdrawn.jsonl"
    rows = [
        line if isinstance(line, str) else json.dumps({"reason": "r", "date": "2026-11-30", **line}) for line in lines
    ]
    path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    return WithdrawList(path)


def _batch() -> pa.RecordBatch:
    return batch_of(TEXTS, {URL: URLS})


def test_withdraw_by_id_url_and_text_digest(tmp_path: Path) -> None:
    first = _batch().column("id")[0].as_py().hex()
    named = _list(
        tmp_path, {"id": first.upper()}, {"url": "https://a.example/~two"}, {"text_digest": text_digest("three").hex()}
    )
    outcome = named.apply(_batch())
    assert kept_texts(outcome) == ["four"]
    assert outcome.dropped.column("reason").to_pylist() == ["withdrawn: r"] * 3
    evidence = [json.loads(text) for text in outcome.dropped.column("evidence").to_pylist()]
    assert evidence == [
        {"line": n, "by": by, "date": "2026-11-30"} for n, by in ((1, "id"), (2, "url"), (3, "text_digest"))
    ]


def test_withdraw_evidence_has_the_line_and_nothing_of_the_document(tmp_path: Path) -> None:
    outcome = _list(tmp_path, {"url": URLS[0], "reason": "court order"}).apply(_batch())
    (row,) = outcome.dropped.to_pylist()
    assert (row["transform"], row["reason"]) == ("WithdrawList", "withdrawn: court order")
    assert not any(shown in str(row) for shown in ("https", "a.example", "text_digest"))


def test_withdraw_document_named_twice_goes_for_the_first_line(tmp_path: Path) -> None:
    lines = [{"text_digest": text_digest("one").hex(), "reason": "b"}, {"url": URLS[0], "reason": "a"}]
    (row,) = _list(tmp_path, *lines).apply(_batch()).dropped.to_pylist()
    assert row["reason"] == "withdrawn: b"


def test_withdraw_with_an_empty_list_keeps_everything(tmp_path: Path) -> None:
    assert kept_texts(_list(tmp_path, "", "  ").apply(_batch())) == TEXTS


def test_withdraw_of_records_works_by_id_and_url_before_there_is_text(tmp_path: Path) -> None:
    batch = batch_of(["x", "y"], schema=records())
    named = _list(tmp_path, {"id": batch.column("id")[1].as_py().hex()})
    assert named.output_schema(batch.schema) == batch.schema
    assert named.apply(batch).kept.num_rows == 1


def test_withdraw_by_text_digest_before_there_is_text_is_an_error_with_the_line(tmp_path: Path) -> None:
    named = _list(tmp_path, {"url": "https://a.example/"}, {"text_digest": "0" * 32})
    with pytest.raises(SchemaError, match=r"line 2 of .*withdrawn.jsonl names a text .* right after ExtractText"):
        named.output_schema(records())


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2: Expecting property name"),
        ("[1]", "line 2: not a JSON object"),
        ({}, "names a document by nothing: give one of id, url, text_digest"),
        ({"id": "0" * 32, "url": "x"}, "by id and url"),
        ({"id": "0" * 31}, "must have 32 hex digits, as `curate where` prints them"),
        ({"id": "g" * 32}, "must have 32 hex digits"),
        ({"id": 7}, "'id' must be a text that is not empty"),
        ({"url": " "}, "'url' must be a text that is not empty"),
        ({"url": "x", "reason": ""}, "'reason' must be"),
        ({"url": "x", "date": "30.11.2026"}, "write it as 2026-11-30"),
        ({"url": "x", "date": "2026-13-01"}, "write it as 2026-11-30"),
        ({"url": "x", "because": "y"}, "the field 'because' is unknown"),
    ],
)
def test_withdraw_malformed_line_is_an_error_with_its_number_before_any_work(
    tmp_path: Path, line: Any, message: str
) -> None:
    with pytest.raises(WithdrawError, match="line 2: ") as caught:
        _list(tmp_path, {"url": "https://a.example/"}, line)
    assert message in str(caught.value)


def test_withdraw_without_its_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(WithdrawError, match="needs its list, which may be empty"):
        WithdrawList(tmp_path / "none.jsonl")


def test_withdraw_key_follows_the_content_and_not_the_place(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first = _list(tmp_path / "a", {"url": "https://a.example/"})
    assert describe(first) == describe(_list(tmp_path / "b", {"url": "https://a.example/"}))
    assert describe(first) != describe(_list(tmp_path / "b", {"url": "https://b.example/"}))


def test_withdraw_list_that_changed_meanwhile_is_refused(tmp_path: Path) -> None:
    named = _list(tmp_path, {"url": "https://a.example/"})
    named.path.write_text("", encoding="utf-8")
    with pytest.raises(WithdrawError, match="was changed while the recipe ran"):
        named.apply(_batch())


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("HTTP://Example.COM", "https://example.com/"),
        ("https://example.com:443/a", "http://example.com:80/a"),
        ("https://example.com/a#b", " https://example.com/a\n"),
        ("https://example.com/%41%2fb", "https://example.com/A%2Fb"),
        ("https://user@Example.com/a?B=c", "https://user@example.com/a?B=c"),
        ("https://example.com?x", "https://example.com/?x"),
    ],
)
def test_url_same_page_has_one_normalised_form(left: str, right: str) -> None:
    assert normalised_url(left) == normalised_url(right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("https://example.com/a", "https://example.com/A"),
        ("https://example.com/a", "https://example.com/a/"),
        ("https://example.com/a?x", "https://example.com/a"),
        ("https://example.com:8080/a", "https://example.com/a"),
        ("https://www.example.com/a", "https://example.com/a"),
        ("ftp://example.com/a", "https://example.com/a"),
    ],
)
def test_url_other_page_has_another_normalised_form(left: str, right: str) -> None:
    assert normalised_url(left) != normalised_url(right)


@given(
    st.text(max_size=40) | st.from_regex(r"https?://[a-zA-Z.]{1,9}(:80|:443)?/[%0-9a-fA-F/?#@~]{0,20}", fullmatch=True)
)
def test_url_with_any_fragment_has_one_normalised_form(url: str) -> None:
    assert normalised_url(url.partition("#")[0] + "#x") == normalised_url(url)
