"""The engine's books of a chain of filters that share what they find in the texts."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from curate.accounting.accountant import Accountant, Step
from curate.accounting.samples import Samples
from tests.transforms.documents import batch_of
from transforms.chain import run_chain, unique_names
from transforms.outcome import Outcome
from transforms.presets import c4, fineweb, refinedweb

PROSE = (
    "The harbour lay quiet in the morning and nobody had come to open the gates.",
    "We walked along that wall with our coats drawn close, for the wind was bitter.",
    "Boats would be mended there once winter had passed, or so the keeper told us.",
    "None of them have sailed since, and the ropes hang grey from every mast.",
    "It is what they did with the ferry, which carries people to the islands now.",
)
PAGE = "\n".join(PROSE)
TEXTS = [PAGE, "", PAGE + "\nmenu\n", "same line\n" * 40, PAGE + "\n\nIt ends here. [1]\n{ x }", PAGE + "\n3 likes"] * 3


def test_books_of_a_chain_that_shares_findings_are_those_of_its_transforms() -> None:
    batch = batch_of(TEXTS)
    for chain in (fineweb(), c4(), refinedweb()):
        steps = [Step(name, one) for name, one in zip(unique_names(chain), chain, strict=True)]
        passed = Accountant(steps, Samples(), lambda source: True).run(batch, np.arange(len(TEXTS)))
        expected = run_chain(chain, batch)
        assert passed.rows.to_pylist() == expected.kept.to_pylist()
        assert passed.ordinals.tolist() == [row for row in range(len(TEXTS)) if TEXTS[row] in _kept(expected, batch)]
        dropped = [row for part in passed.ledger for row in part.rows.to_pylist() if row["kind"] == "dropped"]
        assert len(dropped) == expected.dropped.num_rows > 0


def _kept(outcome: Outcome, batch: pa.RecordBatch) -> set[str]:
    kept = set(outcome.kept.column("id").to_pylist())
    return {text for identity, text in zip(batch.column("id").to_pylist(), TEXTS, strict=True) if identity in kept}
