"""Pages that are hard on parsers, through the extractor in its child: whatever becomes of them, the others come out."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from curate.accounting.accountant import Step
from curate.isolation.guard import GuardedShard, Isolation, is_isolated
from curate.isolation.limits import Limits
from curate.store import Store
from tests.curate.isolation.poison import KEY, Poison
from transforms.extraction import ExtractText
from transforms.gopher_rules import GopherQuality
from transforms.language import Language
from transforms.outcome import Outcome
from transforms.schema import NOT_CHECKED, records
from transforms.switch import Switch
from transforms.user_function import EditText, KeepIf

TEXT = b"<p>Some honest text of a page, which has more than a few words, so that it is kept by an extractor.</p>"
HONEST = b"<html><body><article>" + TEXT * 5 + b"</article></body></html>"
NASTY = {
    "nested 100,000 deep": b"<html><body>" + b"<div>" * 100_000 + TEXT + b"</div>" * 100_000 + b"</body></html>",
    "tables in tables": b"<html><body>" + b"<table><tr><td>" * 3000 + TEXT + b"</body></html>",
    "100,000 cells": b"<html><body>"
    + TEXT
    + b"<table>"
    + b"<tr>" * 99
    + b"<td>cell</td>" * 100_000
    + b"</body></html>",
    "colspan of 2^53": b'<html><body><table><tr><td colspan="9007199254740991">' + TEXT + b"</table></body></html>",
    "30,000 unclosed": b"<html><body>" + b"<b><i><a href=x>" * 10_000 + TEXT + b"</body></html>",
}


def extracted(store: Path, transform: ExtractText, limits: Limits, pages: list[bytes]) -> Outcome:
    """Return the outcome of pages; the id of each is its number."""
    rows = [
        {
            "id": number.to_bytes(16, "big"),
            "source": "pages",
            "origin": {"uri": "pages.warc", "place": "stored", "offset": number, "length": 1, "part": 0},
            "licence": "unknown",
            "licence_basis": "unknown",
            "optout": NOT_CHECKED,
            "payload": page,
            "content_type": "text/html",
        }
        for number, page in enumerate(pages)
    ]
    steps = [Step("ExtractText", transform)]
    shard = GuardedShard(Store(store), KEY, "pages", steps, Isolation(limits).guard(steps), lambda _: True)
    return shard.steps[0].transform.apply(pa.RecordBatch.from_pylist(rows, schema=records()))


@pytest.mark.parametrize("extractor", ["blocks", "trafilatura", "resiliparse"])
def test_nasty_pages_are_kept_or_dropped_with_a_reason_and_honest_ones_between_them_stay(
    extractor: str, tmp_path: Path
) -> None:
    pages = [page for nasty in NASTY.values() for page in (HONEST, nasty)] + [HONEST]
    found = extracted(tmp_path, ExtractText(extractor), Limits(), pages)  # type: ignore[arg-type]
    kept = [int.from_bytes(key, "big") for key in found.kept.column("id").to_pylist()]
    assert [number for number in kept if number % 2 == 0] == list(range(0, len(pages), 2))
    reasons = dict(zip(found.dropped.column("id").to_pylist(), found.dropped.column("reason").to_pylist(), strict=True))
    assert sorted([*kept, *(int.from_bytes(key, "big") for key in reasons)]) == list(range(len(pages)))
    assert reasons[(1).to_bytes(16, "big")] in ("too deep", "too large")


def test_page_that_keeps_an_unbounded_extractor_busy_is_ended_by_the_clock(tmp_path: Path) -> None:
    unbounded = ExtractText("trafilatura", max_elements=1 << 40, max_depth=200_000, max_nesting=1 << 60)
    found = extracted(tmp_path, unbounded, Limits(0.2, 1 << 30), [HONEST, NASTY["100,000 cells"], HONEST])
    assert found.dropped.column("reason").to_pylist() == ["quarantined: hung"]
    assert found.kept.num_rows == 2


def test_transforms_that_run_foreign_parsers_or_user_code_are_isolated_and_no_others() -> None:
    keep = KeepIf(bool, reason="any", version=1)
    assert all(map(is_isolated, (ExtractText(), keep, EditText(str.strip, reason="any", version=1), Poison())))
    assert not any(map(is_isolated, (GopherQuality(), Language())))
    assert is_isolated(Switch("language", en=[keep])) and not is_isolated(Switch("language", en=[GopherQuality()]))
