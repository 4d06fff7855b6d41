"""Languages of paragraphs, with a small model of two languages trained here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.transforms.documents import batch_of
from tests.transforms.test_language import ENGLISH, GERMAN, model
from transforms.outcome import SchemaError
from transforms.paragraph_language import CutOtherLanguages, JudgeParagraphs, MainLanguageShare, ParagraphLanguages

__all__ = ["model"]  # the fixture

EN, DE = " ".join(ENGLISH), " ".join(GERMAN)
MIXED = f"Title\n{EN}\n\n{DE}\n{EN}\n12 + 3"


def judging(model: Path, **fields: Any) -> JudgeParagraphs:
    return JudgeParagraphs(model=model, **fields)


def test_paragraph_languages_are_counted_with_their_letters(model: Path) -> None:
    transform = ParagraphLanguages(judging(model))
    rows = batch_of([MIXED, DE, "short", ""])
    kept = transform.apply(rows).kept
    assert kept.schema == transform.output_schema(rows.schema)
    assert kept.column("paragraph_language").to_pylist() == ["en", "de", None, None]
    (first, second, *others) = kept.column("paragraph_languages").to_pylist()
    english, german = (sum(character.isalpha() for character in text) for text in (EN, DE))
    assert first == [
        {"language": "en", "paragraphs": 2, "letters": 2 * english},
        {"language": "de", "paragraphs": 1, "letters": german},
    ]
    assert second == [{"language": "de", "paragraphs": 1, "letters": german}] and others == [[], []]
    assert kept.column("paragraph_language_share").to_pylist() == [
        {"numerator": 2 * english, "denominator": 2 * english + german},
        {"numerator": german, "denominator": german},
        {"numerator": 0, "denominator": 0},
        {"numerator": 0, "denominator": 0},
    ]


def test_main_language_share_drops_mixed_documents_with_the_exact_ratio(model: Path) -> None:
    outcome = MainLanguageShare(0.8, judging(model)).apply(batch_of([MIXED, DE, "short", ""]))
    assert outcome.kept.column("text").to_pylist() == [DE, "short", ""]
    (entry,) = outcome.dropped.to_pylist()
    assert (entry["reason"], entry["measure"], entry["threshold"]) == (
        "mixed languages",
        "main language",
        "≥ 0.8",
    )
    tagged = MainLanguageShare(0.8, judging(model)).tag().apply(batch_of([MIXED])).kept
    share = {name: entry[name] for name in ("numerator", "denominator")}
    assert tagged.column("main_language_share_main_language").to_pylist() == [share]


def test_cut_other_languages_cuts_whole_lines_and_says_which(model: Path) -> None:
    outcome = CutOtherLanguages(least_score=0, judging=judging(model)).apply(batch_of([MIXED, DE, "", EN]))
    assert outcome.kept.column("text").to_pylist() == [f"Title\n{EN}\n\n{EN}\n12 + 3", DE, "", EN]
    (edit,) = outcome.edits.to_pylist()
    assert (edit["transform"], edit["reason"], edit["cut"]) == ("CutOtherLanguages", "other language", len(DE) + 1)
    assert edit["evidence"] == '{"languages":{"de":1},"main":"en"}'


def test_cut_other_languages_leaves_kept_languages_and_low_scores(model: Path) -> None:
    rows = batch_of([MIXED])
    assert CutOtherLanguages(("de",), 0, judging(model)).apply(rows).edits.num_rows == 0
    assert CutOtherLanguages((), "1.1", judging(model)).apply(rows).edits.num_rows == 0
    with pytest.raises(TypeError, match="tuple"):
        CutOtherLanguages("de")  # type: ignore[arg-type]


def test_paragraphs_are_runs_of_lines_where_asked_for(model: Path) -> None:
    wrapped = "\n".join(GERMAN) + "\n\n" + "\n".join([*ENGLISH, *ENGLISH])
    by_line = ParagraphLanguages(judging(model)).apply(batch_of([wrapped])).kept
    assert by_line.column("paragraph_languages").to_pylist() == [[]]
    whole = ParagraphLanguages(judging(model, unit="paragraphs")).apply(batch_of([wrapped])).kept
    counts = [(row["language"], row["paragraphs"]) for row in whole.column("paragraph_languages").to_pylist()[0]]
    assert counts == [("en", 1), ("de", 1)]
    cut = CutOtherLanguages((), 0, judging(model, unit="paragraphs")).apply(batch_of([wrapped]))
    assert cut.kept.column("text").to_pylist() == ["\n" + "\n".join([*ENGLISH, *ENGLISH])]


@pytest.mark.parametrize("unit", ["lines", "paragraphs"])
def test_paragraph_languages_of_any_batching_are_equal(model: Path, unit: str) -> None:
    rows = batch_of([MIXED, DE, "", "\n\n", f"{DE}\r\n{EN}", EN + "\n"])
    for transform in (
        ParagraphLanguages(judging(model, unit=unit)),
        CutOtherLanguages((), 0, judging(model, unit=unit)),
        MainLanguageShare(0.9, judging(model, unit=unit)),
    ):
        whole, parts = transform.apply(rows), [transform.apply(part) for part in (rows.slice(0, 2), rows.slice(2))]
        for table in ("kept", "dropped", "edits", "near"):
            joined = [row for part in parts for row in getattr(part, table).to_pylist()]
            assert getattr(whole, table).to_pylist() == joined


@pytest.mark.parametrize("wrong", [{"unit": "words"}, {"least_letters": 0}, {"characters": 0}, {"least_score": 2}])
def test_judging_fields_out_of_range_are_errors(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        JudgeParagraphs(**wrong)


def test_schema_of_a_tag_needs_no_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    schema = MainLanguageShare().tag().output_schema(batch_of([]).schema)
    assert "main_language_share_reason" in schema.names


def test_paragraph_languages_without_text_are_an_error() -> None:
    with pytest.raises(SchemaError, match="text"):
        ParagraphLanguages().output_schema(pa.schema([("id", pa.binary(16))]))
