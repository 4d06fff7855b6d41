"""ExtractText: kept or dropped with one reason, whatever the page, whatever came before."""

from __future__ import annotations

import hashlib
import json
import logging
import pickle
from typing import Any

import pyarrow as pa
import pytest
import trafilatura
from hypothesis import given, settings
from hypothesis import strategies as st

from transforms import extraction
from transforms.extraction import ExtractText
from transforms.outcome import DROPPED, Outcome, SchemaError
from transforms.schema import NOT_CHECKED, documents, records

WORDS = (
    "Grass grows on the hill and the sheep eat it every day of the long summer, said the farmer to the men.",
    "In winter the same hill lies under snow, and the animals stand in the barn behind the house and wait.",
    "Nobody knows how old the barn is; the oldest beam in it was cut before the village had its own church.",
)
ARTICLE = "".join(f"<p>{words}</p>" for words in WORDS)
PAGE = (
    "<!doctype html><html><head><title>The hill</title></head><body><nav><ul><li><a href=/>Home</a><li><a href=/x>News"
    f"</a></ul></nav><article><h1>The hill</h1>{ARTICLE}</article><footer>Imprint</footer></body></html>"
)
EXTRACTORS = ("blocks", "trafilatura", "resiliparse")


def batch(*rows: dict[str, Any] | bytes | str) -> pa.RecordBatch:
    """Records with the given columns; a bytes or str row is a payload of HTML."""
    values = []
    for number, row in enumerate(rows):
        given_ = row if isinstance(row, dict) else {"payload": row}
        payload = given_.get("payload", b"")
        values.append(
            {
                "id": number.to_bytes(16, "big"),
                "source": "web",
                "origin": {"uri": "a.warc", "place": "stored", "offset": number, "length": 1, "part": 0},
                "licence": "unknown",
                "licence_basis": "unknown",
                "crawled_at": 1000 * number,
                "optout": NOT_CHECKED,
                "content_type": "text/html",
                "http_charset": None,
                "url": f"http://example.org/{number}",
                "extra": None,
                **given_,
                "payload": payload.encode() if isinstance(payload, str) else payload,
            }
        )
    return pa.RecordBatch.from_pylist(values, schema=records())


def extract(*rows: dict[str, Any] | bytes | str, **settings_: Any) -> Outcome:
    """Apply `ExtractText` and check what holds for every outcome."""
    transform, given_ = ExtractText(**settings_), batch(*rows)
    outcome = transform.apply(given_)
    assert outcome.kept.schema == transform.output_schema(given_.schema) == outcome.kept.schema
    assert outcome.dropped.schema == DROPPED
    assert outcome.edits.num_rows == 0
    outcome.kept.validate(full=True)
    ids = sorted(outcome.kept["id"].to_pylist() + outcome.dropped["id"].to_pylist())
    assert ids == given_["id"].to_pylist()
    return outcome


def reasons(outcome: Outcome) -> list[tuple[str, str | None, int | None]]:
    return [(row["reason"], row["measure"], row["numerator"]) for row in outcome.dropped.to_pylist()]


def test_opt_out_of_header_and_page_becomes_answers_and_signals() -> None:
    reserved = PAGE.replace("<head>", '<head><meta name="tdm-reservation" content="1">')
    assert reserved != PAGE
    rows = extract(
        {"payload": reserved, "optout_headers": "[]"},
        {"payload": PAGE, "optout_headers": '["x-robots-tag: noai"]'},
        {"payload": PAGE},
        {"payload": b"Plain words.", "content_type": "text/plain", "optout_headers": "[]"},
        {"payload": b"Plain words.", "content_type": "text/plain", "optout": {**NOT_CHECKED, "robots_txt": "yes"}},
    ).kept.to_pylist()
    found = [(*row["optout"].values(), row["optout_signals"]) for row in rows]
    assert found == [
        ("not checked", "no", "yes", '["tdm-reservation meta: 1"]'),
        ("not checked", "yes", "no", '["x-robots-tag: noai"]'),
        ("not checked", "not checked", "not checked", "[]"),
        ("not checked", "no", "no", "[]"),
        ("yes", "not checked", "not checked", None),
    ]


@pytest.mark.parametrize("extractor", EXTRACTORS)
def test_page_becomes_a_document_with_its_main_text(extractor: str) -> None:
    (row,) = extract(PAGE, extractor=extractor).kept.to_pylist()
    assert [line for line in row["text"].splitlines() if len(line) > 30] == list(WORDS)
    assert "Imprint" not in row["text"]
    assert (row["encoding"], row["url"], row["licence"]) == ("us-ascii", "http://example.org/0", "unknown")


def test_plain_text_is_decoded_and_left_as_it_is() -> None:
    payload = "<b>  Größe \r\n".encode("cp1252")
    row = {"payload": payload, "content_type": "text/plain", "http_charset": "iso-8859-1"}
    assert extract(row).kept.to_pylist()[0]["text"] == "<b>  Größe \r\n"


@pytest.mark.parametrize("extractor", EXTRACTORS)
def test_page_in_another_encoding_is_decoded_first(extractor: str) -> None:
    page = PAGE.replace("Grass", "Graß wächst:")
    row = {"payload": page.encode("cp1252"), "http_charset": "iso-8859-1"}
    (document,) = extract(row, extractor=extractor).kept.to_pylist()
    assert "Graß wächst:" in document["text"]
    assert document["encoding"] == "windows-1252"


@pytest.mark.parametrize("extractor", EXTRACTORS)
def test_each_kind_of_failure_has_its_own_reason(extractor: str) -> None:
    outcome = extract(
        {"payload": b"\x89PNG", "content_type": "image/png"},
        PAGE + "x" * 20_000,
        "<b>" * 300 + ARTICLE,
        PAGE + "<br>" * 600,
        PAGE + ("<i>" * 45 + "</i>" * 45) * 10,
        bytes(range(256)) * 9,
        "<html><body><script>main()</script><noscript></noscript></body></html>",
        {"payload": b" \n", "content_type": "text/plain"},
        extractor=extractor,
        max_bytes=10_000,
        max_elements=500,
        max_nesting=10_000,
    )
    of_trees = {("too deep", "depth", 201), ("too large", "nesting", 10409)}  # the block engine builds none
    expected = [
        ("media type", None, None),
        ("too large", "payload bytes", len(PAGE) + 20_000),
        ("too deep", "depth", 201),
        ("too large", "elements", 616),
        ("too large", "nesting", 10409),
        ("undecodable", "bad characters", 306),
        ("empty extraction", "visible characters", 0),
        ("empty extraction", "visible characters", 0),
    ]
    assert reasons(outcome) == [row for row in expected if extractor != "blocks" or row not in of_trees]


def test_exception_of_an_extractor_costs_its_page_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(html: str, _: ExtractText) -> str:
        if "bad" in html:
            raise RecursionError(f"too much at {object()!r}")
        return html

    monkeypatch.setitem(extraction._EXTRACTORS, "trafilatura", fails)
    outcome = extract("<p>good", "<p>bad", "<p>good", extractor="trafilatura")
    assert outcome.kept["text"].to_pylist() == ["<p>good", "<p>good"]
    assert reasons(outcome) == [("extractor raised", None, None)]
    evidence = json.loads(outcome.dropped["evidence"][0].as_py())
    assert evidence == {"type": "RecursionError", "message": "too much at <object object at 0x…>"}


def test_lack_of_memory_is_no_verdict_on_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(html: str, _: ExtractText) -> str:
        raise MemoryError

    monkeypatch.setitem(extraction._EXTRACTORS, "trafilatura", fails)
    with pytest.raises(MemoryError):
        extract(PAGE, extractor="trafilatura")


@pytest.mark.parametrize("extractor", EXTRACTORS)
def test_documents_do_not_depend_on_what_came_before(extractor: str) -> None:
    pages = [
        PAGE,
        PAGE,  # the same again: nothing is taken for a duplicate
        PAGE.replace("sheep", "goats"),
        f"<html><body>{ARTICLE * 5}</body></html>",
        "<html><body><table>" + f"<tr><td>{WORDS[0]}</td><td>{WORDS[1]}</td></tr>" * 9 + "</table></body></html>",
        "<html><body><ul>" + "".join(f"<li><span>{words}</span></li>" for words in WORDS) + "</ul></body></html>",
        "<html><body><div>short</div></body></html>",
    ]
    together = extract(*pages, extractor=extractor).kept["text"].to_pylist()
    assert together[0] == together[1]
    backwards = extract(*pages[::-1], extractor=extractor).kept["text"].to_pylist()
    assert backwards == together[::-1]
    for _ in range(4):
        alone = [text for page in pages for text in extract(page, extractor=extractor).kept["text"].to_pylist()]
        assert alone == together


@pytest.mark.parametrize("extractor", EXTRACTORS)
@pytest.mark.parametrize(
    "page",
    [
        "<div>" * 100_000 + ARTICLE,
        "<b>" * 3_400_000 + ARTICLE,
        f"<table><tr><td colspan=9007199254740991>{WORDS[0]}<td rowspan=9007199254740991>{WORDS[1]}</table>" + ARTICLE,
        "<html><body>" + "<" * 100_000 + ARTICLE,
        "<html><body>" + "&" * 100_000 + ARTICLE,
        "<html><body>" + "&#x110000;&#0;&#xD800;&#xDFFF;&#x80;&nosuch;" * 20 + ARTICLE,
        "<html><body><!--" + ARTICLE,
        "<html><body><div " + "a=1 " * 50_000 + ">" + ARTICLE,
        "<html><body><p>" + " " * 500_000 + ARTICLE,
        "\0" + PAGE.replace("sheep", "she\0ep"),
        "<?xml version='1.0' encoding='utf-16'?>" + PAGE,
        "<html><body>\ud800</body>".encode("utf-8", "surrogatepass") * 3,
        b"\xff\xfe\x00\xd8" + PAGE.encode("utf-16-le"),
    ],
    ids=range(13),
)
def test_hostile_pages_end_in_a_document_or_a_reason(page: str | bytes, extractor: str) -> None:
    outcome = extract(page, PAGE, extractor=extractor)
    assert outcome.kept.num_rows >= 1
    for text in outcome.kept["text"].to_pylist():
        text.encode("utf-8")
        assert WORDS[1] in text or "\0" not in text


@settings(max_examples=60)
@given(
    pieces=st.lists(
        st.one_of(
            st.sampled_from(
                ["<p>", "</p>", "<table>", "<td>", "<ul><li>", "<br>", "<a href=x>", "<pre>", "&#1;", "\r", "]]>"]
            ),
            st.sampled_from(
                [ARTICLE, "<h2>Head</h2>", "<blockquote>", "<code>", "<img alt=x>", "<form><input>", "🩷&#x1FAE8;"]
            ),
            st.text(max_size=20),
        ),
        max_size=20,
    ),
    extractor=st.sampled_from(EXTRACTORS),
)
def test_any_markup_ends_in_a_document_or_a_reason(pieces: list[str], extractor: str) -> None:
    page = "".join(pieces).encode("utf-8", "surrogatepass")
    first, second = extract(page, PAGE, extractor=extractor), extract(PAGE, page, extractor=extractor)
    assert first.kept["text"].to_pylist() == second.kept["text"].to_pylist()[::-1]


@pytest.mark.parametrize("extractor", EXTRACTORS)
def test_blocks_are_neither_glued_nor_doubled(extractor: str) -> None:
    page = (
        f"<html><body><article>{ARTICLE}<p>Squished</p><p>There</p><ul><li><span>one item of it</span></li>"
        f"<li><a href=x>another item of it</a></li></ul><p>{WORDS[0].replace('sheep', 'goats')}</p>"
    )
    (text,) = extract(page, extractor=extractor).kept["text"].to_pylist()
    assert "SquishedThere" not in text
    assert [text.count(part) for part in (*WORDS, "Squished", "There", "goats")] == [1] * 6
    items = [text.count("one item of it"), text.count("another item of it")]
    short_lists = {"blocks": [1, 1], "trafilatura": [1, 1], "resiliparse": [0, 0]}  # which are taken for menus
    assert items == short_lists[extractor]


def test_characters_of_recent_unicode_stay_under_every_python() -> None:
    page = PAGE.replace("sheep", "\U0001fae8 sheep &#x1FA77; &#129768; \u31ef \U000323af")
    (text,) = extract(page, extractor="trafilatura").kept["text"].to_pylist()
    assert "the \U0001fae8 sheep \U0001fa77 \U0001fae8 \u31ef \U000323af eat" in text


def test_dates_are_never_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise AssertionError("the default maximum of a date is today")

    monkeypatch.setattr("trafilatura.metadata.find_date", fails)
    assert extract(PAGE.replace("<head>", "<head><meta name=date content=2030-01-01>"), extractor="trafilatura").kept


def test_trafilatura_logs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        extract("<html></html>", "x", "<b>" * 9, extractor="trafilatura")
    assert [record.name for record in caplog.records if record.name.startswith("trafilatura")] == []
    assert trafilatura.__name__ == "trafilatura"


LINK = '<a rel="license" href="https://creativecommons.org/licenses/by-sa/4.0/">CC</a>'


def test_licence_declared_in_the_page_is_taken_where_the_source_says_none() -> None:
    page = PAGE.replace("Imprint", LINK)
    outcome = extract(page, {"payload": page, "licence": "MIT", "licence_basis": "user"}, PAGE)
    assert [(row["licence"], row["licence_basis"]) for row in outcome.kept.to_pylist()] == [
        ("CC-BY-SA-4.0", "page"),
        ("MIT", "user"),
        ("unknown", "unknown"),
    ]


def test_measures_near_a_bound_are_told() -> None:
    outcome = extract(PAGE, max_bytes=len(PAGE.encode()))
    assert [(r["measure"], r["numerator"], r["threshold"]) for r in outcome.near.to_pylist()] == [
        ("payload bytes", len(PAGE), f"≤ {len(PAGE)}")
    ]


def test_schema_keeps_declared_columns_and_misses_none() -> None:
    schema = ExtractText().output_schema(records().insert(8, pa.field("dump", pa.large_string())))
    said = ("title", "author", "published", "language_hint", "canonical_url", "page_type")
    words = [pa.field(name, pa.large_string()) for name in ("encoding", "url", "optout_signals", *said, "dump")]
    names = ("decode_confidence", "extraction_confidence", "extracted_ratio")
    confidence, *numbers = [pa.field(name, pa.decimal128(5, 4)) for name in names]
    assert schema == documents(words[0], confidence, *words[1:-1], *numbers, words[-1])
    with pytest.raises(SchemaError, match="payload"):
        ExtractText().output_schema(documents())


@pytest.mark.parametrize(
    "wrong",
    [
        {"extractor": "magic"},
        {"favour": "speed"},
        {"favour": "precision"},
        {"include": ("links",)},
        {"output": "html"},
        {"output": "markdown", "extractor": "resiliparse"},
        {"marks": ("bold",)},
    ],
)
def test_wrong_settings_are_refused_when_they_are_made(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        ExtractText(**wrong)


def test_empty_batch_gives_an_empty_outcome() -> None:
    assert extract().kept.num_rows == 0


TRICKY = (
    PAGE,
    PAGE.replace("Imprint", LINK).replace("sheep", "\U0001fae8&#x1FA77;\u00e9"),
    "<html><body>" + "<table>" + f"<tr><td>{WORDS[0]}<td>{WORDS[1]}" * 3 + "</table></body></html>",
    f"<html><body><ul><li>{'<li>'.join(WORDS * 3)}</ul><pre>a\n  b\n</pre></body></html>",
    f"<html><body><div>{'<br>'.join(WORDS)}</div><blockquote>{WORDS[2]}</blockquote></body></html>",
    "<html><body></body></html>",
    "<b>" * 300,
    b"\xff\xfe\x00\xd8" + PAGE.encode("utf-16-le"),
    PAGE.replace("Grass", "Gra\u00df").encode("cp1252"),
    bytes(range(256)),
)
GOLDEN = {
    "blocks": "5 978d275d6a1b812c",
    "trafilatura": "5 9773767e06e46100",
    "resiliparse": "5 d8bedcc3c36137bd",
}
"""Digests of what becomes of `TRICKY`. One that changes under the lock file means: raise `ExtractText.version`."""


@pytest.mark.parametrize("extractor", EXTRACTORS)
def test_outcome_changes_only_together_with_the_version(extractor: str) -> None:
    outcome = extract(*TRICKY, extractor=extractor)
    rows = [
        [(row["id"].hex(), row["text"], row["encoding"], row["licence"]) for row in outcome.kept.to_pylist()],
        [[row["id"].hex(), *map(str, list(row.values())[1:])] for row in outcome.dropped.to_pylist()],
    ]
    digest = hashlib.blake2b(json.dumps(rows).encode(), digest_size=8).hexdigest()
    assert f"{ExtractText.version} {digest}" == GOLDEN[extractor]


def test_settings_survive_pickling_and_are_hashable() -> None:
    transform = ExtractText("resiliparse", include=())
    assert pickle.loads(pickle.dumps(transform)) == transform
    assert hash(transform) != hash(ExtractText())


def test_what_a_page_says_of_itself_becomes_columns() -> None:
    head = (
        '<meta name=author content="A. Smith"><meta name=date content=2020-02-03><link rel=canonical '
        "href=https://example.org/hill><meta property=og:type content=article>"
    )
    page = PAGE.replace("<html>", "<html lang=en>").replace("<head>", "<head>" + head)
    (row,) = extract(page, extractor="blocks").kept.to_pylist()
    assert [row[name] for name in ("title", "author", "published", "language_hint", "canonical_url", "page_type")] == [
        *("The hill", "A. Smith", "2020-02-03", "en", "https://example.org/hill", "article")
    ]
    assert 0.5 < row["extraction_confidence"] <= 1
    assert 0.5 < row["extracted_ratio"] < 1


def test_other_extractors_say_how_much_they_took_and_nothing_else() -> None:
    (row,) = extract(PAGE, extractor="resiliparse").kept.to_pylist()
    assert 0.5 < row["extracted_ratio"] < 1
    assert row["title"] is row["extraction_confidence"] is None


def test_markdown_marks_what_it_is_asked_to() -> None:
    (row,) = extract(PAGE, extractor="blocks", output="markdown").kept.to_pylist()
    assert row["text"].split("\n\n")[-3:] == list(WORDS)
