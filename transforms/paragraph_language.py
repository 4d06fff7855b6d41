"""The languages of a document's paragraphs: as columns, as a filter on the main one's share, or cutting out the others.

    ParagraphLanguages()                  adds the main language, its share, and what each language has
    MainLanguageShare(least=0.8)          drops documents of mixed languages; `.tag()` for columns
    CutOtherLanguages(keep=("en",))       cuts out paragraphs in other languages than the main one

A paragraph here is a line, as extractors write one for each block of a page; or, with ``unit="paragraphs"``, a run of
lines that are not blank, for texts that are wrapped. One is *judged* if it is certain (its letters weigh
`least_letters`, see `transforms.language`) and the model's score is `least_score` at least; what is not judged
(headings, tables, names) has no language, counts for none, and is never cut. The *main* language is that with the most
letters in judged paragraphs, ties by code; its share is of the letters in judged paragraphs, all exact integers. A
document without any has no main language and passes the filter.

Invariants: see `transforms.language_model`. Cost: some 60 µs per judged paragraph, of its first `characters` code
points.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar, Final, Literal

import numpy as np
import pyarrow as pa

from transforms.canonical import canonical_json
from transforms.cutting import Pieces, cut_outcome
from transforms.exact_numbers import Number, exact
from transforms.filters import MEASURED, Filter, Measure, at_least
from transforms.language_model import (
    DEFAULT_MODEL_SHA256,
    UNIT,
    classify,
    default_model,
    digest_of,
    load,
)
from transforms.lines import find_lines
from transforms.outcome import Outcome, kept, require
from transforms.schema import set_columns, with_columns
from transforms.scripts import find_scripts
from transforms.segmentation import Bytes, Positions, text_buffers

MAIN: Final = pa.field("paragraph_language", pa.large_string())
"""Main language of the paragraphs; null where none is judged."""

SHARE: Final = pa.field("paragraph_language_share", MEASURED)
"""Letters in judged paragraphs of the main language, of those in all judged paragraphs."""

LANGUAGES: Final = pa.field(
    "paragraph_languages",
    pa.large_list(
        pa.field(
            "item",
            pa.struct(
                [
                    pa.field("language", pa.large_string(), nullable=False),
                    pa.field("paragraphs", pa.int64(), nullable=False),
                    pa.field("letters", pa.int64(), nullable=False),
                ]
            ),
            nullable=False,
        )
    ),
)
"""Judged paragraphs and their letters by language, most letters first."""

REASON: Final = "other language"

Unit = Literal["lines", "paragraphs"]


@dataclass(frozen=True, slots=True)
class JudgeParagraphs:
    """How paragraphs are judged: fields and errors as in the module and in `transforms.language.Language`."""

    unit: Unit = "lines"
    least_letters: int = 50
    least_score: Number | str = "0.5"
    characters: int = 500
    model: Path | None = field(default=None, compare=False, metadata={"key": False})
    digest: str = field(default=DEFAULT_MODEL_SHA256, init=False)

    def __post_init__(self) -> None:
        if self.unit not in ("lines", "paragraphs"):
            raise ValueError(f"unit={self.unit!r}: choose lines or paragraphs")
        if self.characters < 1 or self.least_letters < 1:
            raise ValueError(f"characters={self.characters}, least_letters={self.least_letters}: must be positive")
        if not 0 <= exact(self.least_score) <= 1:
            raise ValueError(f"least_score={self.least_score}: must lie between 0 and 1")
        object.__setattr__(self, "digest", digest_of(self.model))

    def ready(self) -> None:
        """Load the model.

        Raises:
            ModelError: it is not there, or is another file than before.
        """
        load(self.model or default_model(), self.digest)

    def judge(self, texts: pa.LargeStringArray) -> Judged:
        """Return the judged paragraphs of `texts`."""
        data, units = _units(texts, self.unit)
        letters = find_scripts(data, units.starts, units.ends).weight
        rows = np.flatnonzero(letters >= self.least_letters)
        if not len(rows):
            return Judged(units, letters, {}, {})
        view = data.data
        spans = zip(units.starts[rows].tolist(), units.ends[rows].tolist(), strict=True)
        pieces = pa.array([str(view[start:end], "utf-8") for start, end in spans], pa.large_string())
        answers = classify(load(self.model or default_model(), self.digest), pieces, self.characters)
        least = exact(self.least_score) * UNIT
        found = zip(rows.tolist(), answers.languages(), answers.scores, strict=True)
        judged = {row: (name, score) for row, name, score in found if name and score is not None and score >= least}
        languages = {row: name for row, (name, _) in judged.items()}
        return Judged(units, letters, languages, {row: score for row, (_, score) in judged.items()})


@dataclass(frozen=True, slots=True)
class Units:
    """The paragraphs of n texts: text d owns documents[d]:documents[d + 1]; each is [start, end) of the buffer.

    `stops` is where what is between it and the next ends: cutting [start, stop) leaves no empty line.
    """

    documents: Positions
    starts: Positions
    ends: Positions
    stops: Positions


@dataclass(frozen=True, slots=True)
class Judged:
    """Paragraphs, the weight of the letters of each, and of those that are judged language and ten-thousandths."""

    units: Units
    letters: Positions
    languages: dict[int, str]
    scores: dict[int, int]

    def __len__(self) -> int:
        return len(self.units.documents) - 1

    def by_language(self) -> list[list[tuple[str, int, int]]]:
        """Return per text (language, paragraphs, letters), most letters first, ties by language."""
        counts = [(Counter[str](), Counter[str]()) for _ in range(len(self))]
        rows = np.array(list(self.languages), np.int64)
        owners = np.searchsorted(self.units.documents, rows, "right") - 1
        for row, owner in zip(rows.tolist(), owners.tolist(), strict=True):
            language = self.languages[row]
            counts[owner][0][language] += 1
            counts[owner][1][language] += int(self.letters[row])
        return [
            sorted(
                ((name, paragraphs[name], letters[name]) for name in paragraphs),
                key=lambda found: (-found[2], found[0]),
            )
            for paragraphs, letters in counts
        ]

    def shares(self) -> tuple[Positions, Positions]:
        """Return per text the letters of the main language and of all judged paragraphs."""
        found = self.by_language()
        main = [languages[0][2] if languages else 0 for languages in found]
        total = [sum(letters for _, _, letters in languages) for languages in found]
        return np.array(main, np.int64), np.array(total, np.int64)


@dataclass(frozen=True, slots=True)
class ParagraphLanguages:
    """Adds `paragraph_language`, `paragraph_language_share` and `paragraph_languages`; drops nothing."""

    judging: JudgeParagraphs = JudgeParagraphs()

    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ("fasttext-community",)

    def ready(self) -> None:
        """Load the model."""
        self.judging.ready()

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return `schema` with the three columns; `text` is needed."""
        require(schema, "ParagraphLanguages", text=pa.large_string())
        return with_columns(schema, MAIN, SHARE, LANGUAGES)

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        """Return all rows with the three columns.

        Raises:
            ModelError: the model is not there, or not the one with this digest.
        """
        self.output_schema(batch.schema)
        judged = self.judging.judge(batch.column("text"))
        found = judged.by_language()
        shares = pa.StructArray.from_arrays(list(map(pa.array, judged.shares())), fields=list(MEASURED))
        lists = [[dict(zip(("language", "paragraphs", "letters"), row, strict=True)) for row in rows] for rows in found]
        main = pa.array([rows[0][0] if rows else None for rows in found], MAIN.type)
        return kept(set_columns(batch, {MAIN: main, SHARE: shares, LANGUAGES: pa.array(lists, LANGUAGES.type)}))


@dataclass(frozen=True, slots=True)
class MainLanguageShare(Filter):
    """Keeps documents whose main language has at least `least` of the letters in judged paragraphs."""

    least: Number = 0.8
    judging: JudgeParagraphs = JudgeParagraphs()

    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ("fasttext-community",)

    def __post_init__(self) -> None:
        exact(self.least)

    def ready(self) -> None:
        """Load the model."""
        self.judging.ready()

    def measures(self, batch: pa.RecordBatch) -> list[Measure]:
        """Return the share of the main language, under the reason "mixed languages"."""
        main, total = self.judging.judge(batch.column("text")).shares()
        return [Measure("mixed languages", "main language", main, total, at_least(self.least))]


@dataclass(frozen=True, slots=True)
class CutOtherLanguages:
    """Cuts judged paragraphs in another language than the main one and those of `keep`, as "other language".

    Only those that score `least_score` or more go: kin languages (Bulgarian and Russian, Malay and Indonesian) are
    taken for each other in single lines. On the demo's pages 39 of 50 cuts were right at .8, 35 of 38 at .9. The
    evidence of an edit has the main language and how many paragraphs of which language went.
    """

    keep: tuple[str, ...] = ()
    least_score: Number | str = "0.9"
    judging: JudgeParagraphs = JudgeParagraphs()

    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ("fasttext-community",)

    def __post_init__(self) -> None:
        if not isinstance(self.keep, tuple):
            raise TypeError(f'keep is a tuple of languages, as ("en", "fr"), got {self.keep!r}')
        exact(self.least_score)

    def ready(self) -> None:
        """Load the model."""
        self.judging.ready()

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return `schema`; `text` is needed."""
        require(schema, "CutOtherLanguages", text=pa.large_string())
        return schema

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        """Cut the texts of `batch`; every row is kept, as its main language stays.

        Raises:
            ModelError: the model is not there, or not the one with this digest.
        """
        self.output_schema(batch.schema)
        judged = self.judging.judge(batch.column("text"))
        main = [rows[0][0] if rows else "" for rows in judged.by_language()]
        rows, owners = self._others(judged, main)
        if not len(rows):
            return kept(batch)
        offsets = np.searchsorted(owners, np.arange(len(judged) + 1)).astype(np.int64)
        pieces = Pieces(offsets, judged.units.starts[rows], judged.units.stops[rows])
        outcome = cut_outcome(batch, pieces, "CutOtherLanguages", REASON)
        evidence = [
            canonical_json({"languages": dict(sorted(counts.items())), "main": main[owner]})
            for owner, counts in _counted(owners, [judged.languages[row] for row in rows.tolist()])
        ]
        place = outcome.edits.schema.get_field_index("evidence")
        column = pa.array(evidence, pa.large_string())
        edits = outcome.edits.set_column(place, outcome.edits.schema.field(place), column)
        return replace(outcome, edits=edits)

    def _others(self, judged: Judged, main: list[str]) -> tuple[Positions, Positions]:
        """Return the paragraphs that go, in order, and whose they are."""
        rows = np.array(sorted(judged.languages), np.int64)
        owners = np.searchsorted(judged.units.documents, rows, "right") - 1
        least = exact(self.least_score) * UNIT
        goes = [
            judged.languages[row] not in (main[owner], *self.keep) and judged.scores[row] >= least
            for row, owner in zip(rows.tolist(), owners.tolist(), strict=True)
        ]
        chosen = np.array(goes, np.bool_)
        return rows[chosen], owners[chosen]


def _counted(owners: Positions, languages: list[str]) -> list[tuple[int, Counter[str]]]:
    """Return, for each owner in order, how many of which language it has."""
    counts: dict[int, Counter[str]] = {}
    for owner, language in zip(owners.tolist(), languages, strict=True):
        counts.setdefault(owner, Counter())[language] += 1
    return list(counts.items())


def _units(texts: pa.LargeStringArray, unit: Unit) -> tuple[Bytes, Units]:
    """Return the buffer of `texts` and their lines that are not blank, or runs of these."""
    lines = find_lines(texts)
    owners = np.repeat(np.arange(len(lines.documents) - 1), np.diff(lines.documents))
    filled = np.flatnonzero(~lines.blank)
    if unit == "lines":
        firsts = lasts = filled
    else:
        joins = np.zeros(len(filled), np.bool_)
        joins[1:] = (filled[1:] == filled[:-1] + 1) & (owners[filled[1:]] == owners[filled[:-1]])
        firsts = filled[~joins]
        lasts = filled[np.append(~joins[1:], True)] if len(filled) else filled
    documents = np.searchsorted(owners[firsts], np.arange(len(lines.documents))).astype(np.int64)
    ends = text_buffers(texts)[1][1:]
    following = np.append(lines.starts, np.int64(0))[lasts + 1]
    is_last = np.append(owners, np.int64(-1))[lasts + 1] != owners[lasts]
    stops = np.where(is_last, ends[owners[lasts]], following)
    return lines.data, Units(documents, lines.starts[firsts], lines.ends[lasts], stops.astype(np.int64))
