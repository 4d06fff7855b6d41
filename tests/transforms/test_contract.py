"""What every transform promises, run over all of them: add a new transform to `MEMBERS` and its golden digest below.

A golden digest may also come from a golden recipe (`tests/curate/test_golden.py`, which asks for one of the two).
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from datatrove.pipeline.filters import RegexFilter
from datatrove.pipeline.formatters import SymbolLinesFormatter
from hypothesis import given, settings
from hypothesis import strategies as st

import transforms
from curate.configuration import describe
from tests.transforms.documents import batch_of
from tests.transforms.test_foreign_formats import pdf, raw
from transforms.added_columns import AddColumns
from transforms.benchmark_items import Benchmark
from transforms.c4_rules import C4Documents, C4Lines, MC4Paragraphs
from transforms.canonical import canonical_json
from transforms.code_rules import CodeQuality, GeneratedCode
from transforms.contamination import Decontaminate
from transforms.count_by import CountBy
from transforms.datatrove_steps import Datatrove
from transforms.extraction import ExtractText
from transforms.fineweb_rules import FineWebQuality
from transforms.fitted_filter import FittedFilter
from transforms.foreign_formats import ExtractPdf, ExtractWikitext
from transforms.gopher_rules import GopherQuality, GopherRepetition
from transforms.gopher_stop_words import GERMAN
from transforms.language import Language
from transforms.language_model import default_model
from transforms.mojibake import RepairMojibake
from transforms.normalise import NormalizeText
from transforms.optout import RespectOptOut
from transforms.outcome import DROPPED, EDITS, Outcome, Transform
from transforms.paragraph_language import CutOtherLanguages, MainLanguageShare, ParagraphLanguages
from transforms.pii import MaskPII
from transforms.quality import Level, Quality, ScoreAtLeast, score_field
from transforms.refinedweb_rules import RefinedWebLines
from transforms.sample import Sample
from transforms.schema import NOT_CHECKED, OPTOUT, records
from transforms.second_opinion import SecondOpinion
from transforms.switch import Switch
from transforms.topics import AssignTopic
from transforms.url_lists import URLList, WordList
from transforms.url_rules import URLAllowList, URLDenyList, URLDomain, URLWords
from transforms.user_function import EditText, KeepIf
from transforms.where import Where, field
from transforms.withdraw import WithdrawList

TABLES = ("kept", "dropped", "edits", "near")
LANGUAGE = pa.field("language", pa.large_string())

HARD_TEXTS = (
    "",
    "The cat sat.",
    "\n\n \t\n\r\n",
    "\ufeffNull \x00 and \x1b[0m, a\u0301 and \u200d\n\n\n\n\nend   \r",
    "Write to a.b@example.org or see 93.184.216.34, version 1.2.3.4 of it…\n- one\n- two...\n• three",
    "The harbour lay quiet and nobody of the town would be there to open the gates. " * 9,
    "Der Hafen lag still, und die Boote waren von den Stürmen der Jahre gezeichnet. " * 9,
    "same line\n" * 40,
    "中文字符測試 これはテストです ภาษาไทย " * 20,
    "a " * 500 + " " * 3000 + "b" * 5000,
    "# # | | -- 1 2 3 4 5 " * 30,
    "😀👍🏽 \u2028 \U0010ffff \ue000 ﷽ \u202e",
)
LANGUAGES = ("en", "de", None, "fr")


def least_words(row: dict[str, Any]) -> bool:
    return len(row["text"].split(" ")) >= 2


def shortened(text: str) -> str:
    return text.replace("the", "")[:2000]


def counted(row: dict[str, Any]) -> dict[str, Any]:
    return {"words": len(row["text"].split(" "))}


@dataclass(frozen=True)
class Member:
    """A transform, what makes rows that it can be applied to from texts, and which of their columns it may change."""

    transform: Transform
    rows: Callable[[list[str]], pa.RecordBatch]
    changes: frozenset[str] = frozenset({"text"})


def with_language(texts: list[str]) -> pa.RecordBatch:
    return batch_of(texts, {LANGUAGE: [LANGUAGES[len(text) % len(LANGUAGES)] for text in texts]})


URL = pa.field("url", pa.large_string())
URLS = (
    "http://bad.example/a",
    None,
    "https://www.SHOP.example:443/private/b?c=d",
    "http://10.0.0.1/",
    "x",
    "http://a.zz/",
)
LISTED = URLList(Path(__file__).parent / "listed_urls.txt")


def misread(texts: list[str]) -> pa.RecordBatch:
    """Texts of which every other one was read as windows-1252 once too often."""
    wrong = [text.encode().decode("cp1252", "ignore") for text in texts]
    return batch_of([text if row % 2 else wrong[row] for row, text in enumerate(texts)])


def with_score(texts: list[str]) -> pa.RecordBatch:
    return batch_of(texts, {score_field("quality"): [None if not text else len(text) % 21 - 10 for text in texts]})


def with_url(texts: list[str]) -> pa.RecordBatch:
    return batch_of(texts, {URL: [URLS[len(text) % len(URLS)] for text in texts]})


OPTOUTS = ("yes", "no", "not checked")
SIGNALS = ('["meta robots: noindex"]', None, "[]", '["tdm-reservation header: 1"]')


def with_optout(texts: list[str]) -> pa.RecordBatch:
    said = pa.field("optout_signals", pa.large_string())
    batch = batch_of(texts, {said: [SIGNALS[len(text) % len(SIGNALS)] for text in texts]})
    answers = [{**NOT_CHECKED, "tdm": OPTOUTS[len(text) % len(OPTOUTS)]} for text in texts]
    place = batch.schema.get_field_index("optout")
    return batch.set_column(place, batch.schema.field(place), pa.array(answers, OPTOUT))


def records_of(texts: list[str]) -> pa.RecordBatch:
    """Pages of a paragraph each; every third is plain text."""
    batch = batch_of(texts, schema=records())
    kinds = ["text/plain" if len(text) % 3 == 0 else "text/html" for text in texts]
    pages = [f"<html><body><article><h1>Page</h1><p>{text}</p></article></body></html>".encode() for text in texts]
    columns = {
        "payload": [
            text.encode() if kind == "text/plain" else page
            for kind, text, page in zip(kinds, texts, pages, strict=True)
        ],
        "content_type": kinds,
    }
    arrays = [
        pa.array(columns[field.name], field.type) if field.name in columns else batch.column(field.name)
        for field in batch.schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=batch.schema)


def wiki_pages(texts: list[str]) -> pa.RecordBatch:
    """Wikitext with a template and a heading before each text."""
    return raw([f"{{{{t|a}}}}\n== Page ==\n'''{text}'''".encode() for text in texts], "text/x-wiki")


def pdf_files(texts: list[str]) -> pa.RecordBatch:
    """PDF files of the letters and digits of each text."""
    lines = ["".join(c for c in text if c.isascii() and c.isalnum())[:40].encode() for text in texts]
    return raw([pdf(line) for line in lines], "application/pdf")


CONSUMED = frozenset(
    {"payload", "content_type", "http_charset", "optout_headers", "optout", "licence", "licence_basis"}
)
"""Columns that extraction makes text and the page's licence of."""

HERE = Path(__file__).parent
ITEMS = Benchmark.jsonl("items", Path(__file__).parent / "items.jsonl", question="question", answer="answer")

MEMBERS: dict[str, Member] = {
    "ExtractText": Member(ExtractText(), records_of, CONSUMED),
    "ExtractText by trafilatura": Member(ExtractText("trafilatura"), records_of, CONSUMED),
    "ExtractText by resiliparse": Member(ExtractText("resiliparse"), records_of, CONSUMED),
    "ExtractWikitext": Member(ExtractWikitext(), wiki_pages, CONSUMED),
    "ExtractPdf": Member(ExtractPdf(), pdf_files, CONSUMED),
    "Language": Member(Language(), batch_of),
    "Language with thresholds": Member(Language({"en": 0.65, "de": 0.70}, characters=500), batch_of),
    "Sample": Member(Sample(Fraction(1, 2)), batch_of),
    "GopherQuality": Member(GopherQuality(), batch_of),
    "GopherQuality of German": Member(GopherQuality(min_words=2, stop_words=GERMAN), batch_of),
    "GopherQuality.tag": Member(GopherQuality().tag(), batch_of),
    "GopherRepetition": Member(GopherRepetition(), batch_of),
    "GopherQuality with all reasons": Member(GopherQuality().all_reasons(), batch_of),
    "GopherRepetition.tag": Member(GopherRepetition().tag(), batch_of),
    "C4Lines": Member(C4Lines(), batch_of),
    "C4Lines without end marks": Member(C4Lines(end_marks=None, min_words=2), batch_of),
    "C4Lines.tag": Member(C4Lines().tag(), batch_of),
    "C4Documents": Member(C4Documents(banned=("gates",)), batch_of),
    "MC4Paragraphs": Member(MC4Paragraphs(min_lines=1, min_line_length=9), batch_of),
    "FineWebQuality": Member(FineWebQuality(), batch_of),
    "RefinedWebLines": Member(RefinedWebLines(), batch_of),
    "RefinedWebLines of all texts": Member(RefinedWebLines(suffixes=("three",), max_removed_words=None), batch_of),
    "CodeQuality": Member(CodeQuality(), batch_of),
    "GeneratedCode": Member(GeneratedCode(), batch_of),
    "NormalizeText": Member(NormalizeText(), batch_of),
    "NormalizeText with caps": Member(NormalizeText(max_trailing_spaces=2, max_blank_lines=0), batch_of),
    "RepairMojibake": Member(RepairMojibake(), batch_of),
    "RepairMojibake of misread texts": Member(RepairMojibake(), misread),
    "MaskPII": Member(MaskPII(), batch_of),
    "Where": Member(Where((field("language") == "en") | field("language").is_null(), "language"), with_language),
    "KeepIf": Member(KeepIf(least_words, "one word", version=1), batch_of),
    "EditText": Member(EditText(shortened, "shortened", version=1), batch_of),
    "Decontaminate": Member(Decontaminate(ITEMS), batch_of),
    "Decontaminate by cuts": Member(Decontaminate(ITEMS, action="cut"), batch_of),
    "Decontaminate by masks": Member(Decontaminate(ITEMS, action="mask"), batch_of),
    "SecondOpinion": Member(SecondOpinion(ITEMS, similarity="0.5"), batch_of),
    "FittedFilter": Member(FittedFilter(GopherQuality(), HERE / "thresholds.json", "language"), with_language),
    "Quality": Member(Quality(HERE / "classifier.bin", levels=(-1000, 0, 1000)), batch_of),
    "Level": Member(Level((-5, 0, 5)), with_score),
    "ScoreAtLeast": Member(ScoreAtLeast(0), with_score),
    "CountBy": Member(CountBy("source"), batch_of),
    "AddColumns": Member(AddColumns(counted, {"words": pa.int64()}, version=1), batch_of),
    "Datatrove filter": Member(Datatrove(RegexFilter("the")), batch_of),
    "Datatrove formatter": Member(Datatrove(SymbolLinesFormatter(symbols_to_remove=["…"])), batch_of),
    "AssignTopic": Member(AssignTopic(Path(__file__).parent / "small_topics.model"), batch_of),
    "WithdrawList": Member(WithdrawList(Path(__file__).parent / "withdrawn.jsonl"), batch_of),
    "Languages of paragraphs": Member(ParagraphLanguages(), batch_of),
    "Languages cut": Member(CutOtherLanguages(), batch_of),
    "Language share": Member(MainLanguageShare(), batch_of),
    "URLDenyList": Member(URLDenyList(LISTED), with_url),
    "URLDenyList.tag": Member(URLDenyList(LISTED).tag(), with_url),
    "URLAllowList": Member(URLAllowList(LISTED), with_url),
    "URLWords": Member(URLWords(WordList(Path(__file__).parent / "url_words.txt")), with_url),
    "URLDomain": Member(URLDomain(), with_url),
    "RespectOptOut": Member(RespectOptOut(also=("noindex",)), with_optout),
    "Switch": Member(
        Switch(
            "language",
            en=[NormalizeText(), GopherQuality(min_words=2)],
            de=[EditText(shortened, "shortened", version=1), NormalizeText(), NormalizeText(max_blank_lines=0)],
            others=[Where(field("text") != "", "empty")],
        ),
        with_language,
    ),
}

GOLDEN: dict[str, str] = {
    "ExtractWikitext": "1 7e3f3c2caee086df",
    "ExtractPdf": "1 db1257fbaa56e7fd",
    "RespectOptOut": "1 2ef4c58e7c54236a",
    "C4Lines": "1 24a42779f02c0585",
    "C4Lines without end marks": "1 f085fa097122a83e",
    "C4Lines.tag": "1 ea0aa14ad95ca5fb",
    "C4Documents": "1 93e88677dd76e878",
    "MC4Paragraphs": "1 54ce321d512f2b11",
    "FineWebQuality": "1 8e712af7bc753c6f",
    "RefinedWebLines": "1 b0bd0314cd28ee63",
    "RefinedWebLines of all texts": "1 cf48e0e7edb2e1d1",
    "CodeQuality": "1 89bef9182c6cd0e7",
    "GeneratedCode": "1 59feccab6b52325a",
    "URLDenyList": "1 28c3232fc4858384",
    "URLDenyList.tag": "1 1bdc6a0200498d38",
    "URLAllowList": "1 a98e335d01c194e3",
    "URLWords": "1 a5de2bc5d75c7dbc",
    "URLDomain": "1 a11d5f7bfbb56e95",
    "AssignTopic": "1 2fd2e1f170573952",
    "WithdrawList": "1 4d460e967b3bd62c",
    "Datatrove filter": "1 67dee28b0678c201",
    "Datatrove formatter": "1 d2214f30a9d4f6c5",
    "GopherQuality with all reasons": "1 1e97e431a2b477a7",
    "FittedFilter": "2 16a4ebc3945fccdf",
    "Quality": "1 eb96d89e95e8c96a",
    "Level": "1 99cc4eb7f329bad2",
    "ScoreAtLeast": "1 d36fb1bc7a7323c8",
    "CountBy": "1 59feccab6b52325a",
    "AddColumns": "1 194e6110f050421b",
    "Decontaminate": "3 24f6ea9fca731905",
    "Decontaminate by masks": "3 266994447bace1ea",
    "SecondOpinion": "1 ebbb5d32402164bc",
    "Decontaminate by cuts": "3 b2223b4c691ca145",
    "Sample": "1 abbaf45011e4fe3f",
    "GopherQuality": "1 665d78bba47a0acf",
    "GopherQuality of German": "1 4917afdfd37859aa",
    "GopherQuality.tag": "1 6a28c77c6a153741",
    "GopherRepetition": "1 15f1bc9c313136c3",
    "GopherRepetition.tag": "1 59db7ebfda752d3d",
    "NormalizeText": "2 336a4656fe94229e",
    "NormalizeText with caps": "2 d3120e107db991b4",
    "RepairMojibake": "1 59feccab6b52325a",
    "RepairMojibake of misread texts": "1 8e0389674d755ae8",
    "MaskPII": "2 f5f82f1030faacee",
    "Where": "1 37870beece6e9aab",
    "KeepIf": "1 410a977cca2e8da5",
    "EditText": "1 599d3c1a58b1f154",
    "Switch": "1 9f63d2049c7e41e4",
}
"""Digests of what the members make of `HARD_TEXTS`. One that changes means: raise that transform's `version`, then
write the new digest here; never one without the other. Not here: `ExtractText`, in a golden recipe under the versions
of its libraries; `Language`, whose scores are promised for one CPU family only."""

needs_model = pytest.mark.skipif(
    not default_model().exists(), reason=f"{default_model()} is not there: `curate fetch lid` puts it there"
)
members = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[needs_model] if name.startswith("Language") else []) for name in MEMBERS]
)
hard_texts = st.lists(
    st.one_of(st.sampled_from(HARD_TEXTS), st.text(max_size=40), st.text("aThe \n.-#1…", max_size=120)), max_size=5
)


def characters(batch: pa.RecordBatch) -> dict[bytes, int]:
    lengths = pc.utf8_length(batch.column("text")).to_pylist()
    return dict(zip(batch.column("id").to_pylist(), lengths, strict=True))


def tables_of(outcome: Outcome) -> dict[str, list[dict[str, Any]]]:
    return {table: getattr(outcome, table).to_pylist() for table in TABLES}


def joined(outcomes: list[Outcome]) -> dict[str, list[dict[str, Any]]]:
    return {table: [row for outcome in outcomes for row in getattr(outcome, table).to_pylist()] for table in TABLES}


@members
def test_transform_is_frozen_hashable_and_survives_pickling(name: str) -> None:
    transform = MEMBERS[name].transform
    assert dataclasses.is_dataclass(transform)
    first = dataclasses.fields(transform)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(transform, first, None)
    copy = pickle.loads(pickle.dumps(transform))
    assert copy == transform
    assert hash(copy) == hash(transform)


def test_every_public_transform_is_a_member() -> None:
    public = {name for name in transforms.__all__ if hasattr(getattr(transforms, name), "output_schema")} - {
        "Transform"
    }
    assert public <= {type(member.transform).__name__ for member in MEMBERS.values()}


@members
def test_transform_states_version_and_libraries(name: str) -> None:
    transform = MEMBERS[name].transform
    assert isinstance(transform, Transform)
    assert type(transform).version >= 1
    assert isinstance(type(transform).libraries, tuple)


@members
def test_transform_configuration_can_be_part_of_a_key(name: str) -> None:
    described = canonical_json(describe(MEMBERS[name].transform))
    assert described == canonical_json(describe(pickle.loads(pickle.dumps(MEMBERS[name].transform))))
    assert "0x" not in described  # no address in memory


@members
def test_transform_empty_batch_has_the_output_schema(name: str) -> None:
    member = MEMBERS[name]
    batch = member.rows([])
    outcome = member.transform.apply(batch)
    assert outcome.kept.schema == member.transform.output_schema(batch.schema)
    assert [getattr(outcome, table).num_rows for table in TABLES] == [0, 0, 0, 0]


@members
@given(hard_texts)
@settings(max_examples=8)
def test_transform_any_rows_are_all_accounted_for(name: str, texts: list[str]) -> None:
    member = MEMBERS[name]
    batch = member.rows(texts)
    outcome = member.transform.apply(batch)
    assert outcome.kept.schema == member.transform.output_schema(batch.schema)
    assert (outcome.dropped.schema, outcome.edits.schema, outcome.near.schema) == (DROPPED, EDITS, DROPPED)
    outcome.kept.validate(full=True)
    ids = batch.column("id").to_pylist()
    kept, dropped = outcome.kept.column("id").to_pylist(), outcome.dropped.column("id").to_pylist()
    assert kept == [identity for identity in ids if identity in set(kept)]
    assert sorted(kept + dropped) == sorted(ids)
    near = outcome.near.column("id").to_pylist()
    assert set(near) <= set(kept)
    edits = outcome.edits.to_pylist()
    assert len({(row["id"], row["transform"], row["reason"]) for row in edits}) == len(edits)
    if "text" not in batch.schema.names:  # extraction makes text of bytes: the count of characters starts after it
        assert not edits
        return
    before, after = characters(batch), characters(outcome.kept)
    for identity in kept:
        mine = [row for row in edits if row["id"] == identity]
        inserted, cut = sum(row["inserted"] for row in mine), sum(row["cut"] for row in mine)
        assert before[identity] + inserted == after[identity] + cut
        assert all(row["inserted"] >= 0 and row["cut"] >= 0 for row in mine)


@members
@given(hard_texts)
@settings(max_examples=8)
def test_transform_other_columns_are_untouched(name: str, texts: list[str]) -> None:
    member = MEMBERS[name]
    batch = member.rows(texts)
    kept = member.transform.apply(batch).kept
    stays = pa.array(np.isin(batch.column("id").to_pylist(), kept.column("id").to_pylist()), pa.bool_())
    for column in batch.schema.names:
        if column not in member.changes:
            assert kept.column(column).to_pylist() == batch.filter(stays).column(column).to_pylist()


@members
@given(hard_texts, st.integers(0, 5), st.integers(0, 5))
@settings(max_examples=8)
def test_transform_any_batching_gives_the_same_rows(name: str, texts: list[str], first: int, second: int) -> None:
    member = MEMBERS[name]
    batch = member.rows(texts)
    first, second = sorted((min(first, len(texts)), min(second, len(texts))))
    parts = [batch.slice(0, first), batch.slice(first, second - first), batch.slice(second)]
    whole = member.transform.apply(batch)
    assert tables_of(whole) == joined([member.transform.apply(part) for part in parts])


@pytest.mark.parametrize("name", GOLDEN)
def test_transform_golden_digest_changes_only_with_the_version(name: str) -> None:
    member = MEMBERS[name]
    tables = tables_of(member.transform.apply(member.rows(list(HARD_TEXTS))))
    content = json.dumps(
        tables, sort_keys=True, default=lambda value: value.hex() if isinstance(value, bytes) else str(value)
    )
    found = f"{member.transform.version} {hashlib.blake2b(content.encode(), digest_size=8).hexdigest()}"
    assert found == GOLDEN[name], f"{name}: the output changed; raise its version and write the digest to GOLDEN"
