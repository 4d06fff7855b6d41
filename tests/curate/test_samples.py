"""Samples are the documents with the lowest digests, whatever came first; what they show is masked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from blake3 import blake3
from hypothesis import given
from hypothesis import strategies as st

from curate import read_jsonl
from curate.accounting import samples as samples_module
from curate.accounting.ledger import SAMPLES
from curate.accounting.samples import HEAD, PER_REASON, TAIL, WHOLE, Samples, edit_excerpt, excerpt, excerpt_of
from curate.recipes.recipe import Outputs
from tests.curate.corpus import run_on, sentence, write_lines
from transforms.gopher_rules import GopherQuality

PLACE = {"uri": "a", "place": "stored", "offset": 0, "length": 1, "part": 0}


def row(digest: int, kind: str = "kept", reason: str = "") -> dict[str, Any]:
    values: dict[str, Any] = dict.fromkeys(SAMPLES.names)
    return {
        **values,
        "kind": kind,
        "transform": "",
        "reason": reason,
        "text_digest": digest.to_bytes(16, "big"),
        "id": (digest * 7 % 1000).to_bytes(16, "big"),
        "source": "s",
        "origin": PLACE,
        "characters": 1,
        "excerpt": "x",
    }


def held(samples: Samples) -> list[tuple[str, str, int]]:
    return [(r["kind"], r["reason"], int.from_bytes(r["text_digest"], "big")) for r in samples.batch().to_pylist()]


@given(digests=st.lists(st.integers(0, 60), max_size=40), data=st.data())
def test_samples_are_the_lowest_digests_in_any_order_and_any_parts(digests: list[int], data: Any) -> None:
    shuffled = data.draw(st.permutations(digests))
    cut = data.draw(st.integers(0, len(digests)))
    whole, first, second = Samples(), Samples(), Samples()
    for number, digest in enumerate(shuffled):
        for samples in (whole, first if number < cut else second):
            if samples.wants(("kept", "", ""), row(digest)["text_digest"], row(digest)["id"]):
                samples.offer(row(digest))
    merged = Samples()
    merged.merge(second.batch())
    merged.merge(first.batch())
    expected = [("kept", "", digest) for digest in sorted(set(digests))[:PER_REASON]]
    assert held(whole) == held(merged) == expected


def test_cells_have_few_samples_and_those_of_the_lowest_names_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples_module, "MOST_CELLS", 5)
    whole, parts = Samples(), [Samples() for _ in range(3)]
    for digest in range(200):
        for samples in (whole, parts[digest % 3]):
            key, entry = ("cell", "", f"c{digest % 40}"), row(digest, "cell", f"c{digest % 40}")
            if samples.wants(key, entry["text_digest"], entry["id"]):
                samples.offer(entry)
    merged = Samples()
    for part in reversed(parts):
        merged.merge(part.batch())
    names = sorted((f"c{n}" for n in range(40)), key=lambda name: blake3(f"cell\0\0{name}".encode()).digest(16))[:5]
    expected = sorted(("cell", name, int(name[1:]) + more) for name in names for more in (0, 40))
    assert held(whole) == held(merged) == expected


def test_each_kind_transform_and_reason_has_samples_of_its_own() -> None:
    samples = Samples()
    for digest in range(30):
        samples.offer(row(digest, "dropped", "short" if digest % 2 else "long"))
    long, short = (
        [("dropped", reason, n) for n in range(first, 16, 2)] for first, reason in ((0, "long"), (1, "short"))
    )
    assert held(samples) == [*long, *short]


def test_excerpt_shows_a_short_text_whole_and_a_long_one_by_its_ends() -> None:
    assert excerpt("a" * WHOLE) == "a" * WHOLE
    long = "a" * 5000 + "b" * 5000
    assert excerpt(long) == "a" * HEAD + " […] " + "b" * TAIL


@given(
    parts=st.lists(st.text("aé漢😀 @.\n", min_size=1, max_size=9), min_size=1, max_size=9), times=st.integers(1, 400)
)
def test_excerpt_of_a_text_in_a_batch_is_that_of_the_text(parts: list[str], times: int) -> None:
    text = "".join(part * times for part in parts)
    column = pa.array(["before", text], pa.large_string()).slice(1)
    assert excerpt_of(column[0], len(text)) == excerpt(text)


@pytest.mark.parametrize("place", range(HEAD - 40, HEAD + 3))
def test_address_across_the_cut_of_an_excerpt_is_masked(place: int) -> None:
    address = "some.body@mail.example.net"
    text = "x " * (place // 2) + address + " y" * 3000
    assert "some.body" not in excerpt(text) and "@mail" not in excerpt(text)
    text = "y " * 3000 + address + " x" * ((TAIL - (HEAD - place)) // 2)
    assert "some.body" not in excerpt(text) and "@mail" not in excerpt(text)


def test_excerpt_of_an_edit_shows_both_sides_around_the_first_difference_masked() -> None:
    before = "a" * 1000 + " some.body@mail.example.net CUT " + "b" * 3000
    shown = edit_excerpt(before, before.replace(" CUT", ""))
    assert "CUT" in shown[0] and "CUT" not in shown[1]
    assert all("some.body" not in side and len(side) <= HEAD for side in shown)
    assert edit_excerpt("same", "same") == ("same", "same")


def test_source_that_forbids_excerpts_has_samples_that_show_nothing(tmp_path: Path) -> None:
    secret = [{"text": f"secret {sentence(n)}"} for n in range(3)] + [{"text": "secret but short"}]
    write_lines(tmp_path / "in" / "a.jsonl", secret)
    low = GopherQuality(min_words=8, min_stop_words=1, max_mean_word_length=20)
    for excerpts in (True, False):
        source = read_jsonl(tmp_path / "in", source="s", excerpts=excerpts).apply(low)
        result = run_on(Outputs(texts=source), tmp_path / f"store {excerpts}")
        samples = result.outputs["texts"].samples()
        assert {sample["kind"] for sample in samples} == {"kept", "dropped"}
        assert all(("secret" in sample["excerpt"]) == excerpts for sample in samples)
        receipt_files = [path.read_bytes() for path in (tmp_path / f"store {excerpts}").rglob("receipt.json")]
        assert not any(b"secret" in content for content in receipt_files)
