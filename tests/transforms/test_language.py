"""Language identification: a small model trained here; the pinned model where the shared folder has it."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import fasttext
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transforms.language import Language
from transforms.language_model import ModelError, classify, data_folder, default_model, load
from transforms.outcome import DROPPED, SchemaError, Transform

SHARED_MODEL = Path(__file__).parents[2].parent / "shared" / "data" / "lid" / "lid.176.ftz"

ENGLISH = ["the house stands on the hill", "we walk to the river and back", "this is what they said to us"]
GERMAN = ["das Haus steht auf dem Hügel", "wir gehen zum Fluss und zurück", "das ist was sie uns sagten"]


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier of two languages, trained on the sentences above: enough to test everything but quality."""
    folder = tmp_path_factory.mktemp("model")
    lines = [f"__label__en {text}" for text in ENGLISH] + [f"__label__de {text}" for text in GERMAN]
    (folder / "train.txt").write_text("\n".join(lines), encoding="utf-8")
    options = {"epoch": 300, "lr": 0.5, "dim": 8, "minn": 2, "maxn": 4, "bucket": 2000, "thread": 1, "verbose": 0}
    fasttext.train_supervised(str(folder / "train.txt"), **options).save_model(str(folder / "two.bin"))
    return folder / "two.bin"


def test_language_of_a_model_with_scripts_in_its_labels_is_the_same_subtag(tmp_path: Path) -> None:
    lines = [f"__label__eng_Latn {text}" for text in ENGLISH] + [
        f"__label__zho_Hant {text}" for text in ("我們說漢語", "這裡")
    ]
    (tmp_path / "train.txt").write_text("\n".join(lines), encoding="utf-8")
    options = {"epoch": 200, "lr": 0.5, "dim": 4, "minn": 1, "maxn": 2, "bucket": 500, "thread": 1, "verbose": 0}
    fasttext.train_supervised(str(tmp_path / "train.txt"), **options).save_model(str(tmp_path / "other.bin"))
    transform = Language({"en": 0, "zh-Hant": 0}, model=tmp_path / "other.bin")
    kept = transform.apply(batch(ENGLISH[0], "我們說漢語")).kept
    assert kept.column("language").to_pylist() == ["en", "zh"]
    assert kept.column("language_script").to_pylist() == ["Latn", "Hant"]
    assert kept.column("language_label").to_pylist() == ["eng_Latn", "zho_Hant"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def batch(*texts: str) -> pa.RecordBatch:
    ids = pa.array([number.to_bytes(16, "big") for number in range(len(texts))], pa.binary(16))
    columns = {"id": ids, "text": pa.array(texts, pa.large_string()), "extra": pa.nulls(len(texts), pa.large_string())}
    return pa.record_batch(columns)


def test_language_without_thresholds_tags_and_keeps_all(model: Path) -> None:
    rows = batch(ENGLISH[0], GERMAN[1], "", "12 + 34 = 46 ☃")
    outcome = Language(model=model).apply(rows)
    assert outcome.kept.schema == Language(model=model).output_schema(rows.schema)
    names = ["language", "language_script", "language_label", "language_score", "language_certain"]
    assert outcome.kept.schema.names == ["id", "text", *names, "extra"]
    assert outcome.kept.column("language_script").to_pylist() == ["Latn", "Latn", None, None]
    assert outcome.kept.column("language_certain").to_pylist() == [False, False, None, None]
    assert outcome.kept.column("language").to_pylist() == ["en", "de", None, None]
    scores = outcome.kept.column("language_score").to_pylist()
    assert scores[2:] == [None, None] and all(Decimal("0.5") < score <= 1 for score in scores[:2])
    assert outcome.dropped.num_rows == outcome.near.num_rows == outcome.edits.num_rows == 0


def test_language_with_thresholds_drops_with_reason_and_measure(model: Path) -> None:
    rows = batch(ENGLISH[0], GERMAN[1], "?!")
    outcome = Language({"en": 0.5}, model=model).apply(rows)
    assert outcome.kept.column("text").to_pylist() == [ENGLISH[0]]
    assert outcome.dropped.schema == DROPPED
    entries = [
        (entry["reason"], entry["measure"], entry["threshold"], entry["evidence"])
        for entry in outcome.dropped.to_pylist()
    ]
    assert entries == [
        ("language", "language", "en", '{"language":"de"}'),
        ("language", "language", "en", '{"language":null}'),
    ]


def test_scores_are_spread_around_the_threshold_that_judged_them(model: Path) -> None:
    rows = batch(
        "the cat is on the mat and the dog in the house", "das ist ein Haus und der Hund ist im Garten", "1 2 3"
    )
    scores = Language(model=model).apply(rows).kept.column("language_score").to_pylist()
    spreads = Language({"en": 0.5, "de": 0.25}, model=model).apply(rows).spreads
    assert [(one.bound, one.counts) for one in spreads] == [
        (f"≥ {bound}", tuple(int(min(score / bound * 4, 8) // 1 == place) for place in range(10)))
        for bound, score in ((Decimal("0.25"), scores[1]), (Decimal("0.5"), scores[0]))
    ]


def judge(bound: str, score: int | None, name: str | None = "en") -> tuple[str | None, bool]:
    verdict = Language({"en": bound})._judge(name, "Latn", score, 1000)
    return verdict.reason, verdict.near and verdict.reason is None


def test_language_score_at_threshold_is_kept_and_near() -> None:
    assert judge("0.65", 6500) == (None, True)
    assert judge("0.65", 6499) == ("language score", False)
    assert judge("0.65", 6825) == (None, True)
    assert judge("0.65", 6826) == (None, False)
    assert judge("0.65005", 6500) == ("language score", False)
    assert judge("0", 0) == (None, False)
    assert judge("0", None, None) == ("language", False)


def test_language_score_below_threshold_states_exact_ratio(model: Path) -> None:
    rows = batch(ENGLISH[0] + " " + GERMAN[0])
    tagged = Language(model=model).apply(rows).kept
    name, score = tagged.column("language")[0].as_py(), tagged.column("language_score")[0].as_py()
    assert score < 1
    (entry,) = Language({name: 1}, model=model).apply(rows).dropped.to_pylist()
    assert (entry["reason"], entry["measure"]) == ("language score", "language score")
    assert Decimal(entry["numerator"]) / entry["denominator"] == score
    assert (entry["threshold"], entry["evidence"], entry["transform"]) == (
        "≥ 1",
        f'{{"language":"{name}"}}',
        "Language",
    )
    (near,) = Language({name: score}, model=model).apply(rows).near.to_pylist()
    assert near["threshold"] == f"≥ {score.normalize()}" and near["numerator"] == entry["numerator"]


@pytest.mark.parametrize("glue", ["\n", "\n\n", " </s> ", "\n</s>\n"])
def test_language_line_and_sentence_ends_are_spaces(model: Path, glue: str) -> None:
    words = GERMAN[0].split(" ")
    plain = Language(model=model).apply(batch(" ".join(words))).kept.to_pylist()
    assert [row["language_score"] for row in plain] == [
        row["language_score"] for row in Language(model=model).apply(batch(glue.join(words))).kept.to_pylist()
    ]


def test_language_looks_at_the_first_code_points_only(model: Path) -> None:
    english = ENGLISH[0] + "é" * 5
    transform = Language(model=model, characters=len(english))
    first, second = transform.apply(batch(english, english + " " + " ".join(GERMAN))).kept.to_pylist()
    assert (first["language"], first["language_score"]) == (second["language"], second["language_score"])


def test_language_configuration_is_hashable_and_ordered(model: Path) -> None:
    one = Language({"en": 0.65, "de": ".70"}, model=model)
    assert one.thresholds == (("de", "0.7"), ("en", "0.65"))
    assert (
        one == Language({"de": Decimal("0.7"), "en": "0.650"}, model=model) == replace(one)
        and len({one, replace(one)}) == 1
    )
    assert pickle.loads(pickle.dumps(one)) == one
    assert one != Language({"en": 0.65, "de": 0.7})
    with pytest.raises(FrozenInstanceError):
        one.characters = 3  # type: ignore[misc]
    assert isinstance(one, Transform)


def test_language_identity_follows_model_content_not_place(model: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.bin"
    copy.write_bytes(model.read_bytes())
    assert Language(model=copy) == Language(model=model)
    copy.write_bytes(model.read_bytes() + b"\0")
    assert Language(model=copy) != Language(model=model)


@pytest.mark.parametrize(
    ("thresholds", "message"),
    [
        ({"en": 1.5}, "between 0 and 1"),
        ({"en": "much"}, "'much'"),
        ({"en": float("nan")}, "nan"),
        ({}, "no language"),
        ({"als": 0.5}, "gsw"),
    ],
)
def test_language_bad_thresholds_are_errors_naming_them(thresholds: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Language(thresholds)


@pytest.mark.parametrize("wrong", [{"characters": 0}, {"least_letters": 0}, {"uncertain": "guess"}])
def test_language_fields_out_of_range_are_errors(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"positive|choose"):
        Language(**wrong)


def test_language_threshold_with_script_goes_before_one_without() -> None:
    transform = Language({"zh": 0.8, "zh-Hant": 0.4, "sr-Latn": 0.5})

    def reason(name: str, script: str, score: int) -> str | None:
        return transform._judge(name, script, score, 1000).reason

    assert reason("zh", "Hant", 5000) is None
    assert reason("zh", "Hans", 5000) == "language score"
    assert reason("sr", "Latn", 5000) is None
    assert reason("sr", "Cyrl", 9999) == "language"


def test_language_uncertain_texts_are_judged_dropped_or_kept(model: Path) -> None:
    rows = batch(ENGLISH[0], " ".join(ENGLISH), "?!", GERMAN[0])
    reasons = {
        policy: [
            row["reason"] for row in Language({"en": 0}, model=model, uncertain=policy).apply(rows).dropped.to_pylist()
        ]
        for policy in ("judge", "drop", "keep")
    }
    assert reasons == {
        "judge": ["language", "language"],
        "drop": ["language uncertain", "language", "language uncertain"],
        "keep": ["language"],
    }
    (short, *_) = Language({"en": 0}, model=model, uncertain="drop").apply(rows).dropped.to_pylist()
    assert (short["measure"], short["numerator"], short["threshold"]) == ("letters", 23, "≥ 50")
    certain = Language(model=model).apply(rows).kept.column("language_certain")
    assert certain.to_pylist() == [False, True, None, False]


def test_language_top_label_equals_fasttext_on_the_same_line(model: Path) -> None:
    texts = [*ENGLISH, *GERMAN, "the Haus steht on a hill", ENGLISH[0] + "\n" + GERMAN[0]]
    fasttext_model = load(model, Language(model=model).digest)
    answers = classify(fasttext_model, pa.array(texts, pa.large_string()), 2000)
    labels, probabilities = fasttext_model.predict([text.replace("\n", " ") for text in texts])
    assert answers.labels == [label[0].removeprefix("__label__") for label in labels]
    assert answers.scores == [min(10_000, int(float(found[0]) * 10_000 + 0.5)) for found in probabilities]


def test_language_unknown_to_the_model_is_an_error_naming_what_it_has(model: Path) -> None:
    with pytest.raises(ModelError, match="no language fr, zh-Hant; it has de, en"):
        Language({"fr": 0.5, "en-Cyrl": 0.5, "zho_Hant": 0.5}, model=model).apply(batch("text"))


def test_language_default_model_absent_names_the_command(home: Path) -> None:
    with pytest.raises(ModelError, match=r"curate fetch lid"):
        Language().apply(batch("text"))


def test_language_default_model_other_bytes_is_an_error(home: Path) -> None:
    data_folder().mkdir(parents=True)
    default_model().write_bytes(b"other")
    with pytest.raises(ModelError, match="expected 8f3472cf"):
        Language().apply(batch("text"))


def test_language_own_model_absent_or_changed_is_an_error(model: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"not there$"):
        Language(model=tmp_path / "none.bin")
    copy = tmp_path / "copy.bin"
    copy.write_bytes(model.read_bytes())
    transform = Language(model=copy)
    copy.write_bytes(b"other")
    with pytest.raises(ModelError, match="expected"):
        transform.apply(batch("text"))


def test_language_text_column_missing_is_an_error() -> None:
    with pytest.raises(SchemaError, match="text"):
        Language().output_schema(pa.schema([("id", pa.binary(16))]))


@given(st.lists(st.text() | st.sampled_from([*ENGLISH, *GERMAN, "</s>", "\0"]), max_size=8), st.integers(0, 8))
def test_language_any_batching_gives_the_same_rows(model: Path, texts: list[str], cut: int) -> None:
    transform, rows = Language({"en": 0.6, "de": 0.6}, model=model), batch(*texts)
    whole, parts = transform.apply(rows), [transform.apply(part) for part in (rows.slice(0, cut), rows.slice(cut))]
    for table in ("kept", "dropped", "near"):
        assert getattr(whole, table).to_pylist() == [row for part in parts for row in getattr(part, table).to_pylist()]
    assert whole.kept.num_rows + whole.dropped.num_rows == len(texts)


@pytest.mark.skipif(not SHARED_MODEL.is_file(), reason="shared/data/lid/lid.176.ftz is not there")
def test_language_pinned_model_knows_these_sentences(home: Path) -> None:
    data_folder().mkdir(parents=True)
    default_model().write_bytes(SHARED_MODEL.read_bytes())
    texts = [
        ENGLISH[0],
        GERMAN[0],
        "Nous allons à la rivière et nous revenons.",
        "これは私たちが言ったことです。",
        "2024-11-30",
    ]
    outcome = Language({"en": 0.5, "de": 0.5}).apply(batch(*texts))
    assert outcome.kept.column("language").to_pylist() == ["en", "de"]
    assert [entry["evidence"] for entry in outcome.dropped.to_pylist()] == [
        '{"language":"fr"}',
        '{"language":"ja"}',
        '{"language":null}',
    ]
    assert Language().apply(batch("</s> " + texts[2])).kept.column("language").to_pylist() == ["fr"]
