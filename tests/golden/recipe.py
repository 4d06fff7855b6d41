"""The recipes whose results are written down in this folder."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from curate import Column, Outputs, decontaminate, deduplicate, field, read_jsonl, read_warc
from transforms import (
    Benchmark,
    Decontaminate,
    ExtractText,
    GopherQuality,
    GopherRepetition,
    KeepIf,
    MaskPII,
    MinHash,
    NormalizeText,
    Sample,
    Switch,
)

FOLDER: Final = Path(__file__).parent
LOW: Final[dict[str, Any]] = {"min_words": 8, "min_stop_words": 1}


def has_text(row: dict[str, Any]) -> bool:
    """Keep what holds more than white space."""
    return bool(row["text"].strip())


def whole() -> Outputs:
    """Return every format, every kind of stage, and nearly every transform over the inputs of this folder."""
    columns = {"key": "no", "language": "lang", "year": Column("year", "int64")}
    letters = read_jsonl(FOLDER / "inputs/letters", source="letters", columns=columns, licence="CC0-1.0")
    letters = letters.apply(
        NormalizeText(),
        KeepIf(has_text, reason="blank", version=1),
        Switch("language", en=[GopherQuality(**LOW), GopherRepetition()]),
        MaskPII(),
        name="letters",
    )
    tides = Benchmark.jsonl("tides", FOLDER / "inputs/benchmark/tides.jsonl", question="q", answer="a")
    notes = read_jsonl(FOLDER / "inputs/notes", source="notes").where(field("text") != "", reason="empty")
    items = FOLDER / "inputs/benchmark/items.jsonl"
    notes = decontaminate(notes, Benchmark.jsonl("Selm", items, question="question", answer="answer"), action="tag")
    notes = notes.apply(Decontaminate(tides), name="notes")
    pages = read_warc(FOLDER / "inputs/pages", "*.warc", source="pages").apply(ExtractText(), NormalizeText())
    unique = deduplicate(letters, notes, pages, method=MinHash(threshold="0.7"), prefer=("source", "-length"))
    return Outputs(texts=unique, half=unique.apply(Sample(Fraction(1, 2)), name="half"))


def small() -> Outputs:
    """Return one source through one filter: few files, which are kept in this folder as they were published."""
    notes = read_jsonl(FOLDER / "inputs/notes", source="notes", licence="CC0-1.0")
    return Outputs(notes=notes.apply(GopherQuality(**LOW), MaskPII(), name="notes"))
