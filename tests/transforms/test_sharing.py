from __future__ import annotations

import pyarrow as pa
import pytest

from tests.transforms.documents import batch_of
from transforms import sharing
from transforms.findings import Findings
from transforms.gopher_rules import GopherQuality, GopherRepetition
from transforms.normalise import NormalizeText
from transforms.outcome import Outcome, Transform
from transforms.predicates import field
from transforms.sharing import Sharing
from transforms.where import Where

PROSE = (
    "The harbour lay quiet and nobody of the town would be there to open the gates.",
    "We walked along that wall with our coats drawn close, for the wind was bitter.",
    "Boats would be mended there once winter had passed, or so the keeper told us.",
)
TEXTS = ["\n".join(PROSE), "", PROSE[0] + "  \n" + PROSE[1], "same line\n" * 40, "中文字符 " * 9, "\r\n".join(PROSE)]
CHAIN: tuple[Transform, ...] = (
    GopherRepetition(),
    GopherQuality(min_words=10),
    Where(field("text") != TEXTS[4], "chinese"),
    GopherQuality(min_words=20).tag(),
    NormalizeText(),
    GopherQuality(min_words=30),
    GopherRepetition(),
)


def outcomes(batch: pa.RecordBatch, apart: bool) -> list[Outcome]:
    found, shared = [], Sharing()
    for transform in CHAIN:
        outcome = transform.apply(batch) if apart else shared.apply(transform, batch)
        found.append(outcome)
        batch = outcome.kept
    return found


def test_sharing_chain_gives_the_outcomes_of_each_transform_alone() -> None:
    batch = batch_of(TEXTS * 3)
    for shared, alone in zip(outcomes(batch, apart=False), outcomes(batch, apart=True), strict=True):
        for table in ("kept", "dropped", "edits", "near"):
            assert getattr(shared, table).to_pylist() == getattr(alone, table).to_pylist()
            assert getattr(shared, table).schema == getattr(alone, table).schema


def test_sharing_words_of_filters_in_a_row_are_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Findings] = []

    class Counted(Findings):
        def __init__(self, text: pa.LargeStringArray) -> None:
            super().__init__(text)
            made.append(self)

    monkeypatch.setattr(sharing, "Findings", Counted)
    batch, shared = batch_of(TEXTS[:1] * 9 + TEXTS[3:4]), Sharing()
    for transform in (GopherRepetition(), GopherQuality(min_words=1), GopherQuality(min_words=1).tag()):
        batch = shared.apply(transform, batch).kept
    assert (batch.num_rows, len(made)) == (9, 1)
    shared.apply(GopherQuality(), batch_of(TEXTS))  # other rows: nothing is known of them
    assert len(made) == 2


def test_sharing_findings_of_texts_mostly_dropped_are_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    class Counted(Findings):
        def __init__(self, text: pa.LargeStringArray) -> None:
            super().__init__(text)
            sizes.append(len(text))

    monkeypatch.setattr(sharing, "Findings", Counted)
    batch, shared = batch_of(TEXTS[:1] + TEXTS[3:4] * 9), Sharing()
    for transform in (GopherRepetition(), GopherQuality(min_words=1)):
        batch = shared.apply(transform, batch).kept
    assert sizes == [10, 1]
