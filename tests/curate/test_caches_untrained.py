"""Tokens that are not trained on: from a column of documents through caches of any layout to the loss mask."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curate import Outputs, read_jsonl
from curate.caches import TokenCache
from curate.caches.layout import LAYOUT, UNTRAINED, Layout
from mixtures import Chunks, FillInTheMiddle, Loader, Mixture, Packed, Phase
from tests.curate.corpus import run_on, write_lines
from tests.curate.token_corpus import END, SMALL, build, lines, write_tokenizer
from transforms.not_trained import not_trained
from transforms.tokens import Tokenizer

TEXTS = sorted({line["text"] for line in lines()} - {""})


def spans_of(text: str) -> list[list[int]]:
    """Return every other word of the text, and nothing of every third text."""
    if len(text) % 3 == 0:
        return []
    places, at = [], 0
    for number, word in enumerate(text.split(" ")):
        places += [[at, at + len(word)]] if number % 2 and word else []
        at += len(word) + 1
    return places


def made(folder: Path, tokenizer: Tokenizer, layout: Layout = LAYOUT, files: int = 1, change: str = "") -> TokenCache:
    documents: list[dict[str, Any]] = [{"key": f"d{n}", "text": text + change} for n, text in enumerate(TEXTS)]
    for text, document in zip(TEXTS, documents, strict=True):
        if spans := spans_of(text):
            document["not_trained"] = not_trained(spans, text)
    for number in range(files):
        write_lines(folder / "raw" / f"f{number}.jsonl", documents[number::files])
    columns = {"key": "key", "not_trained": "not_trained"}
    texts = read_jsonl(folder / "raw", source="notes", columns=columns)
    dataset = run_on(Outputs(texts=texts), folder / "store").outputs["texts"]
    return build(dataset, tokenizer, layout=layout).caches["all"]


@pytest.fixture(scope="module")
def tokenizer(memory: Path) -> Tokenizer:
    return Tokenizer(write_tokenizer(memory), eos=END)


@pytest.fixture(scope="module")
def cache(memory: Path, tokenizer: Tokenizer) -> TokenCache:
    return made(memory / "one", tokenizer)


def untrained(cache: TokenCache) -> np.ndarray:
    found = cache.read_untrained([(0, cache.tokens)])
    assert found is not None
    return found[0]


def test_untrained_tokens_are_those_whose_characters_lie_in_spans(cache: TokenCache, tokenizer: Tokenizer) -> None:
    encoder, marks = tokenizer.encoder(), untrained(cache)
    by_ids = {tuple(encoder.encode(text).tolist()): text for text in TEXTS}
    seen = 0
    for document in range(len(cache)):
        start, stop = int(cache.starts[document]), int(cache.starts[document + 1])
        text = by_ids[tuple(cache[document].tolist())]
        places = encoder.encode_with_offsets(text)
        for token, (first, last) in enumerate(zip(places.starts.tolist(), places.ends.tolist(), strict=True)):
            inside = any(first < end and last > begin and last > first for begin, end in spans_of(text))
            assert marks[start + token] == inside
            seen += inside
        assert stop - start == len(places.ids)
    assert 100 < seen == cache.description.statistics["untrained"]
    assert not cache.verify()


def test_caches_of_other_layouts_and_files_hold_the_same_marks(
    memory: Path, tokenizer: Tokenizer, cache: TokenCache
) -> None:
    small, cut = made(memory / "small", tokenizer, SMALL), made(memory / "cut", tokenizer, files=5)
    assert untrained(small).tolist() == untrained(cut).tolist() == untrained(cache).tolist()
    assert cut.digest == cache.digest and not small.verify()


def test_flipped_mark_is_found(memory: Path, tokenizer: Tokenizer) -> None:
    damaged = made(memory / "damaged", tokenizer, SMALL)
    path = damaged.store.path(f"{UNTRAINED}/c/0")
    content = bytearray(path.read_bytes())
    content[9] ^= 1
    path.write_bytes(content)
    assert any(UNTRAINED in problem for problem in TokenCache.open(damaged.store).verify())


@pytest.mark.parametrize("sequences", [Chunks(16), Packed(40)])
def test_loss_mask_leaves_out_untrained_tokens_wherever_they_stand(
    cache: TokenCache, sequences: Chunks | Packed
) -> None:
    phase = Phase("main", tokens=cache.tokens * 3, weights={"all": 1})
    plain = Mixture(None, phase, sequences=sequences, repeats=None, batch=1)
    view = Mixture(None, phase, sequences=sequences, repeats=None, batch=1, views={"all": FillInTheMiddle(1, 2, 3, 1)})
    left, total = 0, int(untrained(cache).sum())
    for mixture in (plain, view):
        plan = mixture.compile({"all": cache})
        loader = Loader(plan, {"all": cache})
        for step in range(plan.components[0].sequences):
            batch = loader.batch(step)
            real = batch.segments[0] > 0
            starts = np.diff(batch.segments[0], prepend=0) != 0
            masked = real & ~starts & ~batch.loss_mask[0]
            left += int(masked.sum())
            assert not batch.loss_mask[0][starts | ~real].any()
        if mixture is plain:
            assert 0.8 * total < left <= total  # those at the start of a row or document are no targets anyway
            left = 0
    assert 0.5 * total < left <= total


def test_text_that_was_changed_after_masking_stops_the_run(memory: Path, tokenizer: Tokenizer) -> None:
    with pytest.raises(Exception, match="mask after the last transform that edits texts"):
        made(memory / "changed", tokenizer, change=" more")
