"""The language of documents: a BCP 47 subtag, the script, the model's own label and score; thresholds per language.

    language          "en", "zh", "gsw": the shortest code of the language (`transforms.language_tags`)
    language_script   "Latn", "Hant", "Jpan": of most letters (`transforms.scripts`); with a hyphen between them the two
                      are a BCP 47 tag: "zh-Hant", "sr-Cyrl"
    language_label    what the model said: "als", "eng_Latn"
    language_score    its probability, 0.0000 to 1.0000
    language_certain  whether there are letters enough to tell by

All five are null where the text has no letter. A text is *certain* if its letters weigh at least `least_letters`; an
ideograph, kana or Hangul syllable weighs four. The default, 50, is where lid.176 is right in 98 % of cut-out pieces of
the Universal Declaration of Human Rights in 40 languages of the web; below it is in 95 % or less, below 20 in 82 %.

Invariants: see `transforms.language_model`, which also states the cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, cast

import numpy as np
import pyarrow as pa

from transforms.canonical import canonical_json
from transforms.exact_numbers import Number, decimal_text, exact
from transforms.language_model import (
    DEFAULT_MODEL_SHA256,
    UNIT,
    Answers,
    Model,
    ModelError,
    classify,
    default_model,
    digest_of,
    languages_known,
    load,
)
from transforms.language_tags import WIKIPEDIA, range_of
from transforms.outcome import Outcome, kept, require
from transforms.schema import set_columns, with_columns
from transforms.spread import Spread, counts_of

LANGUAGE: Final = pa.field("language", pa.large_string())
"""BCP 47 subtag of the language; null without letters."""

LANGUAGE_SCRIPT: Final = pa.field("language_script", pa.large_string())
"""ISO 15924 code of the script of most letters; null without letters."""

LANGUAGE_LABEL: Final = pa.field("language_label", pa.large_string())
"""Label of the model, as it is; null without letters."""

LANGUAGE_SCORE: Final = pa.field("language_score", pa.decimal128(5, 4))
"""Probability of `language_label` according to the model, 0.0000 to 1.0000; null without letters."""

LANGUAGE_CERTAIN: Final = pa.field("language_certain", pa.bool_())
"""Whether there are letters enough to tell by; null without letters."""

COLUMNS: Final = (LANGUAGE, LANGUAGE_SCRIPT, LANGUAGE_LABEL, LANGUAGE_SCORE, LANGUAGE_CERTAIN)

SCORE: Final = "language score"
"""What a threshold bounds, and the reason of what is below it."""

Thresholds = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of a document: the reason to drop it or None, whether it is near, and the ledger's columns."""

    reason: str | None
    near: bool
    columns: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Language:
    """Writes the columns of the module; with thresholds, drops what is in another language.

    A document whose language is not among the thresholds is dropped for "language"; one whose score is below its
    language's threshold for "language score", numerator in ten-thousandths. A kept score within 5 % of its threshold
    is a near miss. Without thresholds nothing is dropped.

    Args:
        thresholds: least score per language, as ``{"en": 0.65, "zh-Hant": "0.70", "zh": 0.8}``; decimals between 0 and
            1, taken as they print. One with a script holds for texts in that script and goes before one without.
            Kept as a sorted tuple of (language, decimal).
        model: file of a fastText classifier; None is the pinned lid.176.ftz in the user's data folder.
        characters: code points from the beginning of the text that are classified.
        least_letters: weight of letters from which on a text is certain.
        uncertain: what thresholds do with texts that are not: "judge" them as the others, "drop" them for "language
            uncertain", or "keep" them. A text without letters is never kept.
        digest: not an argument: SHA-256 of the model file, which together with the other fields is the identity
            (where the file lies is none, so `model` takes no part in comparison).

    Raises:
        ValueError: a threshold is no decimal between 0 and 1, no language is named, or a number is not positive.
        ModelError: `model` is not there.
    """

    thresholds: Mapping[str, Number | str] | Thresholds | None = None
    model: Path | None = field(default=None, compare=False, metadata={"key": False})
    characters: int = 2000
    least_letters: int = 50
    uncertain: Literal["judge", "drop", "keep"] = "judge"
    digest: str = field(default=DEFAULT_MODEL_SHA256, init=False)

    version: ClassVar[int] = 2
    libraries: ClassVar[tuple[str, ...]] = ("fasttext-community",)

    def __post_init__(self) -> None:
        if self.characters < 1 or self.least_letters < 1:
            raise ValueError(f"characters={self.characters}, least_letters={self.least_letters}: must be positive")
        if self.uncertain not in ("judge", "drop", "keep"):
            raise ValueError(f"uncertain={self.uncertain!r}: choose judge, drop or keep")
        if self.thresholds is not None:
            object.__setattr__(self, "thresholds", ordered_thresholds(dict(self.thresholds)))
        object.__setattr__(self, "digest", digest_of(self.model))

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return `schema` with the five columns; `text` is needed."""
        require(schema, "Language", text=pa.large_string())
        return with_columns(schema, *COLUMNS)

    def ready(self) -> None:
        """Raise `ModelError` where the model cannot be used: asked before any work is done."""
        self._model()

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        """Classify the texts of `batch`.

        Raises:
            ModelError: the model is not there or not the one with this digest, or it does not know a language of
                the thresholds.
        """
        self.output_schema(batch.schema)
        answers = classify(self._model(), batch.column("text"), self.characters)
        languages, scripts = answers.languages(), answers.scripts.names()
        tagged = set_columns(batch, self._columns(answers, languages, scripts))
        if self.thresholds is None:
            return kept(tagged)
        stays: list[bool] = []
        dropped: list[dict[str, Any]] = []
        near: list[dict[str, Any]] = []
        judged_by: dict[str, list[int]] = {}
        weights = answers.scripts.weight.tolist()
        for row, judged in enumerate(zip(languages, scripts, answers.scores, weights, strict=True)):
            verdict = self._judge(*judged)
            stays.append(verdict.reason is None)
            if verdict.columns["measure"] == SCORE:
                judged_by.setdefault(verdict.columns["threshold"], []).append(verdict.columns["numerator"])
            if verdict.reason is not None or verdict.near:
                entry = {"id": batch.column("id")[row].as_py(), "reason": verdict.reason or SCORE}
                (near if verdict.reason is None else dropped).append(entry | verdict.columns)
        spreads = tuple(_spread(threshold, scores) for threshold, scores in sorted(judged_by.items()))
        return kept(tagged.filter(pa.array(stays, pa.bool_())), dropped=dropped, near=near, spreads=spreads)

    def _columns(
        self, answers: Answers, languages: list[str | None], scripts: list[str | None]
    ) -> dict[pa.Field[Any], pa.Array[Any]]:
        scores = [None if score is None else Decimal(score).scaleb(-4) for score in answers.scores]
        enough = (answers.scripts.weight >= self.least_letters).tolist()
        certain = [None if score is None else letters for score, letters in zip(scores, enough, strict=True)]
        values: tuple[list[Any], ...] = (languages, scripts, answers.labels, scores, certain)
        return {column: pa.array(value, column.type) for column, value in zip(COLUMNS, values, strict=True)}

    def _judge(self, language: str | None, script: str | None, score: int | None, weight: int) -> Verdict:
        bounds = dict(cast(Thresholds, self.thresholds))
        found = {"transform": "Language", "evidence": canonical_json({"language": language})}
        if score is not None and weight < self.least_letters and self.uncertain != "judge":
            measure = {"measure": "letters", "numerator": weight, "denominator": 1}
            threshold = {"threshold": f"≥ {self.least_letters}"}
            reason = "language uncertain" if self.uncertain == "drop" else None
            return Verdict(reason, False, found | measure | threshold)
        bound = bounds.get(f"{language}-{script}", bounds.get(language or ""))
        if bound is None or score is None:
            return Verdict("language", False, found | {"measure": "language", "threshold": ", ".join(bounds)})
        least = exact(bound) * UNIT
        found |= {"measure": SCORE, "threshold": f"≥ {bound}"}
        near = (score - least) * 20 <= least and least > 0
        reason = None if score >= least else SCORE
        return Verdict(reason, near, found | {"numerator": score, "denominator": UNIT})

    def _model(self) -> Model:
        """Return the model, which knows the languages of the thresholds."""
        model = load(self.model or default_model(), self.digest)
        check_languages(model, () if self.thresholds is None else dict(self.thresholds))
        return model


def _spread(threshold: str, scores: list[int]) -> Spread:
    """Return how `scores` lie around `threshold`, as "≥ 0.65"."""
    numerators = np.array(scores, np.int64)
    sense, _, bound = threshold.partition(" ")
    counts = counts_of(numerators, np.full(len(scores), UNIT, np.int64), sense, exact(bound))
    return Spread("Language", SCORE, SCORE, threshold, counts)


def check_languages(model: Model, tags: Mapping[str, Any] | tuple[str, ...]) -> None:
    """Raise `ModelError` where `model` lacks a language of `tags`."""
    known = languages_known(model)
    unknown = sorted(tag for tag in tags if tag not in known and tag.partition("-")[0] not in known)
    if unknown:
        raise ModelError(f"the model has no language {', '.join(unknown)}; it has {', '.join(sorted(known))}")


def ordered_thresholds(thresholds: Mapping[str, Number | str]) -> Thresholds:
    """Return thresholds as a sorted tuple of (language, shortest decimal).

    Raises:
        ValueError: a threshold is no decimal between 0 and 1, or no language is named.
    """
    if not thresholds:
        raise ValueError("thresholds name no language, so every document would be dropped")
    for code in sorted(set(thresholds) & set(WIKIPEDIA)):
        raise ValueError(f"{code!r} is {WIKIPEDIA[code]!r} to lid.176 and another language to ISO 639: write which")
    return tuple(sorted((range_of(language), _decimal(language, value)) for language, value in thresholds.items()))


def _decimal(language: str, value: Number | str) -> str:
    try:
        number = exact(value)
    except ValueError as error:
        raise ValueError(f"language {language!r}: {error}") from None
    if not 0 <= number <= 1:
        raise ValueError(f"the threshold of {language!r} must lie between 0 and 1, got {value!r}")
    return decimal_text(number)
