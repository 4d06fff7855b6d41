from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from tests.transforms.documents import batch_of, kept_texts, reasons
from transforms.filters import Filter, Measure
from transforms.gopher_rules import GopherQuality, GopherRepetition
from transforms.gopher_stop_words import ENGLISH, GERMAN

SENTENCES = (
    "The harbour lay quiet in the morning and nobody had come to open the gates.",
    "We walked along that wall with our coats drawn close, for the wind was bitter.",
    "Boats would be mended there once winter had passed, or so the keeper told us.",
    "None of them have sailed since, and the ropes hang grey from every mast.",
)
GOOD = "\n".join(SENTENCES)


def reason(transform: Filter, text: str) -> str | None:
    outcome = transform.apply(batch_of([text]))
    return next(iter(reasons(outcome)), None)


def measure(transform: Filter, text: str, name: str) -> tuple[int, int]:
    (found,) = {(int(m.numerator[0]), int(m.denominator[0])) for m in measures(transform, text) if m.name == name}
    return found


def measures(transform: Filter, text: str) -> list[Measure]:
    return transform.measures(batch_of([text]))


@pytest.mark.parametrize("transform", [GopherQuality(), GopherRepetition()])
def test_gopher_plain_prose_is_kept(transform: Filter) -> None:
    assert reason(transform, GOOD) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "too few words"),
        ("The cat sat.", "too few words"),
        ("the a of " * 17, "words too short"),
        ("incomprehensibilities the " * 25, "words too long"),
        (GOOD + " #" * 7, "too many hashes"),
        (GOOD + " ..." * 7, "too many ellipses"),
        ("\n".join(f"- {line}" for line in (SENTENCES * 3)), "too many bulleted lines"),
        ("\n".join(f"{line}..." for line in SENTENCES[:2]) + "\n" + GOOD, "too many lines end with an ellipsis"),
        (GOOD + " 1234" * 20, "too few alphabetic words"),
        (GOOD + " |" * 20, "too few alphabetic words"),
        ("Cold water runs downhill towards green fields. " * 9, "too few stop words"),
    ],
)
def test_quality_each_rule_drops_under_its_reason(text: str, expected: str) -> None:
    assert reason(GopherQuality(), text) == expected


def test_quality_thresholds_are_inclusive() -> None:
    fifty = "word and with " + "nice " * 47
    assert measure(GopherQuality(), fifty, "words") == (50, 1)
    assert reason(GopherQuality(), fifty) is None
    assert reason(GopherQuality(), fifty.removesuffix("nice ")) == "too few words"
    tenth = fifty + " #" * 5
    assert measure(GopherQuality(), tenth, "hashes per word") == (5, 50)
    assert reason(GopherQuality(), tenth) is None
    assert reason(GopherQuality(), tenth + " #") == "too many hashes"


def test_quality_measures_of_hand_counted_text() -> None:
    text = "- Don't go… | 42 trees\n\nThe end of it..."
    assert measure(GopherQuality(), text, "words") == (8, 1)  # Don't go 42 trees The end of it
    assert measure(GopherQuality(), text, "mean word length") == (24, 8)
    assert measure(GopherQuality(), text, "ellipses per word") == (2, 8)
    assert measure(GopherQuality(), text, "bulleted lines") == (1, 2)
    assert measure(GopherQuality(), text, "lines ending with an ellipsis") == (1, 2)
    assert measure(GopherQuality(), text, "alphabetic words") == (7, 10)  # "-" and "|" stand alone
    assert measure(GopherQuality(), text, "stop words") == (2, 1)


def test_quality_ledger_states_measure_and_threshold() -> None:
    dropped = GopherQuality().apply(batch_of(["a b"])).dropped.to_pylist()[0]
    assert (dropped["transform"], dropped["measure"], dropped["numerator"], dropped["denominator"]) == (
        "GopherQuality", "words", 2, 1,
    )  # fmt: skip
    assert dropped["threshold"] == "≥ 50"


def test_quality_german_stop_words_are_found_in_german() -> None:
    text = "Der Hafen lag still, und die Boote waren von den Stürmen gezeichnet. " * 6
    assert measure(GopherQuality(stop_words=GERMAN), text, "stop words") == (4, 1)
    assert reason(GopherQuality(stop_words=GERMAN), text) is None
    assert reason(GopherQuality(), text) == "too few stop words"
    assert len(set(ENGLISH)) == 8


def test_quality_chinese_with_its_own_lengths_is_kept() -> None:
    text = "我们沿着海边的墙走了很久。" * 6
    chinese = GopherQuality(min_mean_word_length=1, stop_words=("的", "了"))
    assert reason(chinese, text) is None
    assert reason(GopherQuality(), text) == "words too short"


def test_quality_rules_set_to_none_are_off() -> None:
    off: dict[str, Any] = {
        field.name: None for field in dataclasses.fields(GopherQuality) if field.name not in ("stop_words", "bullets")
    }
    assert measures(GopherQuality(**off), "") == []
    assert reason(GopherQuality(**off), "") is None


def test_quality_impossible_fields_are_refused() -> None:
    with pytest.raises(ValueError, match="one character"):
        GopherQuality(bullets=("--",))
    with pytest.raises(TypeError, match="tuples"):
        GopherQuality(stop_words=["the"])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="number"):
        GopherQuality(min_words=float("nan"))
    with pytest.raises(ValueError, match="of the"):
        GopherQuality(stop_words=("of the",)).output_schema(batch_of([]).schema)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The cat sat.", None),
        ("", None),
        ("one\n\n\n\n\n\n\ntwo", None),
        ("ready\nset\nset", "too many duplicate lines"),
        ("a fox\n\na dog\n\na cow\n\na fox\n\na dog", "too many duplicate lines"),
        (
            "short\nlonger words follow here\nlonger words follow here\nx\ny\nz",
            "too many characters in duplicate lines",
        ),
        ("we do this and that, we do now, we do then, we do", "too many characters in the top 2-gram"),
    ],
)
def test_repetition_each_rule_drops_under_its_reason(text: str, expected: str | None) -> None:
    assert reason(GopherRepetition(), text) == expected


def test_repetition_paragraphs_are_judged_apart_from_lines() -> None:
    text = "alpha beta\ngamma\n\nalpha beta\ngamma\n\ndelta"
    rules = GopherRepetition(max_duplicate_lines=None, max_characters_in_duplicate_lines=None)
    assert measure(rules, text, "duplicate paragraphs") == (1, 3)
    assert measure(rules, text, "characters in duplicate paragraphs") == (15, 35)
    assert reason(rules, text) == "too many duplicate paragraphs"


def test_repetition_measures_of_hand_counted_text() -> None:
    text = "Rain fell.\nRain fell.\nSun came out"
    # lines: 10 + 10 + 12 characters; words: rain fell rain fell sun came out = 26 characters
    assert measure(GopherRepetition(), text, "duplicate lines") == (1, 3)
    assert measure(GopherRepetition(), text, "characters in duplicate lines") == (10, 32)
    assert measure(GopherRepetition(), text, "characters in the top 2-gram") == (16, 26)
    assert measure(GopherRepetition(), text, "characters in the top 3-gram") == (0, 26)


def test_repetition_duplicate_n_grams_are_judged_apart_from_frequent_ones() -> None:
    text = "first we open the old gate then rest; later we open the old gate then work"
    rules = GopherRepetition(max_characters_in_top_grams=())
    assert measure(rules, text, "characters in duplicate 5-grams") == (20, 58)
    assert reason(rules, text) == "too many characters in duplicate 5-grams"


def test_repetition_n_grams_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="n = 11"):
        GopherRepetition(max_characters_in_duplicate_grams=((11, 0.1),))
    with pytest.raises(ValueError, match="n = 1"):
        GopherRepetition(max_characters_in_top_grams=((1, 0.1),))


def test_gopher_tag_writes_each_measure_once() -> None:
    tagged = GopherQuality().tag().apply(batch_of([GOOD])).kept
    names = [name for name in tagged.schema.names if name.startswith("gopher_quality_")]
    assert names == [
        "gopher_quality_reason",
        "gopher_quality_words",
        "gopher_quality_mean_word_length",
        "gopher_quality_hashes_per_word",
        "gopher_quality_ellipses_per_word",
        "gopher_quality_bulleted_lines",
        "gopher_quality_lines_ending_with_an_ellipsis",
        "gopher_quality_alphabetic_words",
        "gopher_quality_stop_words",
    ]
    assert kept_texts(GopherQuality().tag().apply(batch_of(["", GOOD]))) == ["", GOOD]
