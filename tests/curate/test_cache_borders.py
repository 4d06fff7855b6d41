from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from curate.caches import TokenCache, cache
from curate.caches.borders import count_below
from tests.curate.token_corpus import END, SMALL, build, dataset_of, lines, write_tokenizer
from transforms.tokens import Tokenizer


@pytest.mark.parametrize("inner", [1, 7, 64, 5000])
@pytest.mark.parametrize("kind", ["even", "long first", "long last", "empty", "one"])
def test_count_is_that_of_all_offsets_and_few_chunks_are_looked_at(kind, inner):
    lengths = np.random.default_rng(3).geometric(1 / 50, 3000)
    lengths[:30] *= 1000 if kind == "long first" else 1
    lengths[-30:] *= 1000 if kind == "long last" else 1
    lengths[500:2500] *= kind != "empty"
    offsets = np.concatenate([[0], np.cumsum(lengths[: 1 if kind == "one" else None])])
    most, looks = 0, []

    def read(start, stop):
        looks.append(start)
        return offsets[start:stop]

    for token in {0, 1, int(offsets[-1]), *np.random.default_rng(4).integers(0, offsets[-1] + 1, 200).tolist()}:
        looks.clear()
        assert count_below(read, len(offsets), inner, token) == np.searchsorted(offsets, token)
        most = max(most, len(looks))
    assert most <= (8 if kind == "even" and inner > 1 else 36)


def test_offsets_that_do_not_ascend_are_an_error():
    offsets = np.array([9, 0, 5, 6, 30])
    with pytest.raises(ValueError, match="do not ascend"):
        count_below(lambda start, stop: offsets[start:stop], 5, 2, 4)


def test_documents_and_borders_of_a_large_cache_are_those_of_a_small_one(memory: Path, monkeypatch) -> None:
    tokenizer = Tokenizer(write_tokenizer(memory), eos=END)
    small = build(dataset_of(memory / "cached", lines()), tokenizer, layout=SMALL).caches["all"]
    expected = [small[document].tolist() for document in range(len(small))]
    places = [small.document_at(token) for token in range(small.tokens)]
    borders = [small.borders(start, start + 40).tolist() for start in range(0, small.tokens - 40, 3)]
    monkeypatch.setattr(cache, "LISTED", 0)
    large = TokenCache.open(small.store)
    assert [large[document].tolist() for document in range(len(large))] == expected
    assert [large.document_at(token) for token in range(large.tokens)] == places
    assert [large.borders(start, start + 40).tolist() for start in range(0, large.tokens - 40, 3)] == borders
    assert "starts" not in vars(large)
