from __future__ import annotations

import time
from typing import Any

import pyarrow as pa
import pytest

from tests.transforms.documents import batch_of
from transforms.optout import (
    MOST_SIGNALS,
    RespectOptOut,
    answers,
    header_signals,
    page_signals,
    parse_signals,
    write_signals,
)
from transforms.outcome import SchemaError
from transforms.schema import BASE, NOT_CHECKED, OPTOUT
from transforms.withdraw import withholds

SIGNALS = pa.field("optout_signals", pa.large_string())


@pytest.mark.parametrize(
    ("fields", "signals"),
    [
        ({b"x-robots-tag": [b"NoAI, noindex,nofollow"]}, ("x-robots-tag: noai", "x-robots-tag: noindex")),
        ({b"x-robots-tag": [b"GPTBot: noai, noindex"]}, ("x-robots-tag gptbot: noai", "x-robots-tag gptbot: noindex")),
        ({b"x-robots-tag": [b"*: noml", b"all"]}, ("x-robots-tag: noml",)),
        (
            {b"x-robots-tag": [b"unavailable_after: 25 Jun 2010 15:00:00 PST, max-snippet:-1, noarchive"]},
            ("x-robots-tag: noarchive",),
        ),
        ({b"x-robots-tag": [b"", b"\xff\xfe: noai", b"a b: noai"]}, ()),
        (
            {b"tdm-reservation": [b" 1 "], b"tdm-policy": [b"https://Example.org/P.json"]},
            ("tdm-reservation header: 1", "tdm-policy header: https://Example.org/P.json"),
        ),
        ({}, ()),
    ],
)
def test_header_signals_are_directives_with_their_agent(
    fields: dict[bytes, list[bytes]], signals: tuple[str, ...]
) -> None:
    assert header_signals(fields) == signals


@pytest.mark.parametrize(
    ("html", "signals"),
    [
        ('<meta name="robots" content="noai, NOIMAGEAI">', ("meta robots: noai", "meta robots: noimageai")),
        ("<META CONTENT='noml' NAME=Robots />", ("meta robots: noml",)),
        ("<meta name=robots content=noai>", ("meta robots: noai",)),
        ('<meta name="GPTBot" content="noindex"><meta name="description" content="noai">', ("meta gptbot: noindex",)),
        ('<meta name="google-extended" content="noai">', ("meta google-extended: noai",)),
        ('<!-- <meta name="robots" content="noai"> --><meta name="robots" content="none">', ("meta robots: none",)),
        ("<script>'<meta name=robots content=noai>'</script><meta name=robots content=noml>", ("meta robots: noml",)),
        ('<body><meta name="robots" content="noai">', ()),
        ('<!-- never closed <meta name="robots" content="noai">', ()),
        ('<meta name="tdm-reservation" content="1">', ("tdm-reservation meta: 1",)),
        ('<meta name="tdm-policy" content="https://e.org/P">', ("tdm-policy meta: https://e.org/P",)),
        ('<meta title="a > b" name="robots" content="noai">', ("meta robots: noai",)),
        ("<metadata name=robots content=noai>", ()),
        ('<meta name="robots" content="nöai noai\u00a0"', ()),
        ("", ()),
    ],
)
def test_page_signals_are_those_of_the_head(html: str, signals: tuple[str, ...]) -> None:
    assert page_signals(html) == signals


@pytest.mark.parametrize(
    "hostile",
    [
        "<!--" * 200_000,
        "<meta " * 200_000,
        "<meta name='" * 100_000,
        '<meta content="' + "x" * 1_000_000,
        "<script>" * 150_000,
        "<meta name=robots content=noai>" * 50_000,
        "<meta " + "a=b " * 250_000 + ">",
        "<meta" + "=" * 1_000_000,
    ],
    ids=range(8),
)
def test_page_signals_of_hostile_pages_are_bounded(hostile: str) -> None:
    begin = time.process_time()
    assert len(page_signals(hostile)) <= MOST_SIGNALS
    assert time.process_time() - begin < 2


@pytest.mark.parametrize(
    ("header", "page", "kind", "robots", "tdm"),
    [
        ([], [], "text/html", "no", "no"),
        (None, [], "text/html", "not checked", "not checked"),
        (None, None, "text/plain", "not checked", "not checked"),
        ([], None, "text/plain", "no", "no"),
        (["x-robots-tag: noai"], [], "text/html", "yes", "no"),
        (None, ["meta robots: noml"], "text/html", "yes", "not checked"),
        (["x-robots-tag: noindex", "x-robots-tag gptbot: noai"], ["meta robots: noimageai"], "text/html", "no", "no"),
        (["tdm-reservation header: 1"], [], "text/html", "no", "yes"),
        (["tdm-reservation header: 1"], ["tdm-reservation meta: 0"], "text/html", "no", "no"),
        (["tdm-reservation header: 0"], ["tdm-reservation meta: 1"], "text/html", "no", "yes"),
        (["tdm-reservation header: 1"], ["tdm-reservation meta: yes"], "text/html", "no", "yes"),
        (["tdm-reservation header: 2"], [], "text/html", "no", "no"),
        (None, ["tdm-reservation meta: 0"], "text/html", "not checked", "no"),
    ],
)
def test_answers_are_no_only_where_both_places_were_looked_at(
    header: list[str] | None, page: list[str] | None, kind: str, robots: str, tdm: str
) -> None:
    assert answers(header, page, kind) == {"robots_meta": robots, "tdm": tdm}


def documents(*rows: dict[str, str], said: list[str | None] | None = None) -> pa.RecordBatch:
    batch = batch_of(["text"] * len(rows), {SIGNALS: said or [None] * len(rows)})
    optouts = pa.array([{**NOT_CHECKED, **row} for row in rows], OPTOUT)
    return batch.set_column(batch.schema.get_field_index("optout"), BASE.field("optout"), optouts)


def reasons(transform: RespectOptOut, batch: pa.RecordBatch) -> list[tuple[str, Any]]:
    outcome = transform.apply(batch)
    assert outcome.kept.num_rows + outcome.dropped.num_rows == batch.num_rows
    return [(row["reason"], row["evidence"]) for row in outcome.dropped.to_pylist()]


def test_respect_opt_out_drops_what_said_yes_with_its_signals() -> None:
    said = write_signals(["meta robots: noai"])
    batch = documents(
        {"robots_meta": "yes"}, {"tdm": "yes", "robots_meta": "no"}, {}, {"tdm": "no"}, said=[said, None, None, None]
    )
    found = reasons(RespectOptOut(), batch)
    assert found == [("opt-out: robots_meta", '["meta robots: noai"]'), ("opt-out: tdm", None)]
    assert reasons(RespectOptOut(signals=("tdm",)), batch) == [("opt-out: tdm", None)]
    assert parse_signals(said) == ["meta robots: noai"]
    assert withholds(RespectOptOut())


def test_respect_opt_out_counts_further_directives_addressed_to_all() -> None:
    said = [write_signals(["meta robots: noindex"]), write_signals(["x-robots-tag gptbot: noindex"]), None]
    batch = documents({}, {}, {}, said=said)
    assert reasons(RespectOptOut(also=("noindex",)), batch) == [("opt-out: noindex", said[0])]


def test_respect_opt_out_of_unchecked_documents_is_the_users_choice() -> None:
    batch = documents({}, {"robots_meta": "no", "tdm": "no"})
    assert reasons(RespectOptOut(), batch) == []
    assert reasons(RespectOptOut(("robots_meta", "tdm"), unchecked="drop"), batch) == [("opt-out not checked", None)]


@pytest.mark.parametrize(
    "wrong", [{"signals": ("ai.txt",)}, {"signals": ()}, {"also": ("nofollow",)}, {"unchecked": "x"}]
)
def test_respect_opt_out_unknown_words_are_errors(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        RespectOptOut(**wrong)


def test_respect_opt_out_without_signals_of_the_page_is_an_error() -> None:
    schema = batch_of(["x"]).schema
    assert RespectOptOut().output_schema(schema) == schema
    with pytest.raises(SchemaError, match="optout_signals"):
        RespectOptOut(also=("noindex",)).output_schema(schema)
