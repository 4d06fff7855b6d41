"""The fast backend: the reference's ids or none, and what it does where it differs, fails or grows."""

from __future__ import annotations

import json
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.transforms.test_token_conversion import MODELS, trained
from tests.transforms.test_tokens import END, PROSE, bpe, encoder_of, hostile, unigram
from transforms import fast_tokens
from transforms.adversarial_texts import LARGE_BLOCKS, adversarial_texts, around, block_of, points_to_try, probe
from transforms.fast_tokens import FastEncoder, NoFastBackendError, backend_name, is_sampled
from transforms.rare_characters import rows_with
from transforms.token_conversion import from_sentencepiece
from transforms.tokens import Encoder, joined, longest_gap

RARE = "\u1acf"
"""A character that Unicode has since version 17."""

pytest.importorskip("gigatoken", reason="the extra fast is not installed")


@cache
def fast() -> FastEncoder:
    made = FastEncoder(encoder_of(bpe(), "<|turn|>", END))
    made.try_out()
    return made


def column(texts: list[str]) -> pa.Array:
    return pa.array(texts, pa.large_string())


class Odd:
    """A library that gives other ids for texts that hold some bytes, or raises."""

    def __init__(self, inner: Any, needle: str, error: BaseException | None = None) -> None:
        self.inner, self.needle, self.error = inner, needle.encode(), error

    def encode_batch(self, documents: list[bytes], parallel: bool) -> Any:
        assert parallel is False  # in the calling thread: engines count cores
        if self.error and any(self.needle in document for document in documents):
            raise self.error
        return self.inner.encode_batch(
            [document.replace(self.needle, b"?") for document in documents], parallel=parallel
        )


def odd(needle: str, error: BaseException | None = None) -> FastEncoder:
    made = FastEncoder(encoder_of(bpe(), None, END))
    made._model = Odd(made._model, needle, error)
    return made


@given(texts=st.lists(hostile, max_size=6))
@settings(max_examples=80)
def test_any_texts_have_the_ids_offsets_and_counts_of_the_reference(texts: list[str]) -> None:
    found, expected = fast().encode_column(column(texts)), fast().reference.encode_batch(texts)
    assert found.ids.tolist() == expected.ids.tolist() and found.ids.dtype == expected.ids.dtype
    assert found.offsets.tolist() == expected.offsets.tolist()
    assert found.special_text == expected.special_text


def test_sliced_column_is_encoded_from_its_first_row() -> None:
    whole = column(["night", "lamp", "", "灯 lamp"])
    assert fast().encode_column(whole.slice(1)).document(2).tolist() == fast().reference.encode("灯 lamp").tolist()


def test_character_classed_otherwise_is_left_to_the_reference() -> None:
    made = odd(RARE)
    made.try_out()
    assert made.left_out is not None and ord(RARE) in made.left_out and len(made.left_out) < 10_000
    texts = ["lamp", f"a{RARE}b lamp", END, RARE, "night"]
    found = made.encode_column(column(texts))
    assert [found.document(row).tolist() for row in range(5)] == [made.reference.encode(t).tolist() for t in texts]


def test_character_that_only_a_rare_merge_would_show_is_found_by_the_probe() -> None:
    """U+328F6 is a letter since Unicode 17: two libraries differ before a Han letter, if bytes of both are merged."""
    assert fast().left_out is not None and 0x328F6 in fast().left_out


def test_probe_shows_every_border_between_words() -> None:
    def cut(pattern: str, text: str) -> list[int]:
        value = json.loads(bpe())
        value["pre_tokenizer"]["pretokenizers"][0]["pattern"] = {"Regex": pattern}
        made = tokenizers.Tokenizer.from_str(probe(json.dumps(value)) or "")
        return list(made.encode(text, add_special_tokens=False).ids)

    for letter in ("é", "\u0301"):
        text = around(ord(letter))
        ids = {pattern: cut(pattern, text) for pattern in (r"\p{L}+", r"[\p{L}\p{M}]+", r"[^\s]+", r" ?\p{L}+")}
        assert len(set(map(tuple, ids.values()))) == 3 if letter == "é" else 4
    assert probe(unigram().decode()) is None


def test_model_of_characters_with_bytes_for_the_rest_is_compared_as_it_is() -> None:
    content = from_sentencepiece(trained(**MODELS["bytes"]))
    made = FastEncoder(encoder_of(content, "<s>", "</s>"))
    assert probe(made._content) is None
    made.try_out()
    texts = [*PROSE, "<s> 灯 \U000328f6桡", ""]
    assert made.encode_column(column(texts)).ids.tolist() == made.reference.encode_batch(texts).ids.tolist()


def test_what_another_process_found_is_not_looked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made = odd(RARE)
    monkeypatch.setattr(FastEncoder, "_learn", lambda self: pytest.fail("looked for"))
    made.try_out((ord(RARE),))
    assert made.encode_column(column([RARE])).ids.tolist() == made.reference.encode(RARE).tolist()


@pytest.mark.parametrize("needle", ["return", "  \n", "漢"])
def test_backend_with_other_ids_is_refused(needle: str) -> None:
    with pytest.raises(NoFastBackendError, match=r"other ids than the tokenizers library"):
        odd(needle).try_out()


def test_backend_that_fails_on_a_text_leaves_its_batch_to_the_reference() -> None:
    class PanicException(BaseException):  # what the library raises is no Exception
        pass

    made = odd("lamp", PanicException("attempt to add with overflow"))
    assert made.encode_column(column(["a lamp"])).ids.tolist() == made.reference.encode("a lamp").tolist()
    stopped = odd("lamp", KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        stopped.encode_column(column(["a lamp"]))


def test_control_token_that_the_backend_makes_of_text_is_spelled_out() -> None:
    made = fast()
    control = made.reference.controls[END]

    class Careless:
        def encode_batch(self, documents: list[bytes], parallel: bool) -> Any:
            layout = made._model.encode_batch(documents, parallel=parallel).layout
            layout.content.data[0] = control
            return type("Found", (), {"layout": layout})()

    careless = FastEncoder(made.reference)
    careless._model = Careless()
    found = careless.encode_column(column(["lamp", "night"]))
    assert found.ids.tolist() == made.reference.encode_batch(["lamp", "night"]).ids.tolist()


def test_tokenizer_that_the_backend_does_not_know_is_refused() -> None:
    with pytest.raises(NoFastBackendError, match=rf"{backend_name()} refuses the tokenizer"):
        FastEncoder(encoder_of(unigram(), "<s>", "</s>"))


def test_backend_that_is_not_installed_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast_tokens, "backend_name", lambda: None)
    with pytest.raises(NoFastBackendError, match=r"pip install 'curate\[fast\]'"):
        FastEncoder(encoder_of(bpe()))


def test_table_of_words_is_thrown_away_when_it_has_grown(monkeypatch: pytest.MonkeyPatch) -> None:
    made, loads = FastEncoder(encoder_of(bpe(), None, END)), []
    monkeypatch.setattr(FastEncoder, "_load", lambda self: loads.append(1) or self._model)
    sizes = iter(range(0, 1 << 40, fast_tokens.TABLE_BYTES // 4))
    monkeypatch.setattr(fast_tokens, "_resident", lambda: next(sizes))
    for _ in range(10):
        made.encode_column(column(["lamp"]))
    assert len(loads) == 2  # after five batches each
    monkeypatch.setattr(fast_tokens, "_resident", lambda: None)
    monkeypatch.setattr(fast_tokens, "TEXT_BYTES", 50)
    made.encode_column(column(["lamp" * 20]))
    assert len(loads) == 3


def test_sample_is_chosen_by_the_digest_alone() -> None:
    digests = np.random.default_rng(0).integers(0, 256, (100_000, 16), np.uint8)
    chosen = is_sampled(digests)
    assert 120 < chosen.sum() < 280 and is_sampled(digests[chosen]).all()
    assert is_sampled(np.zeros((1, 16), np.uint8)).all() and not is_sampled(np.full((1, 16), 255, np.uint8)).any()


@given(texts=st.lists(st.text(max_size=12), max_size=6), points=st.lists(st.integers(0x800, 0x10FFFF), max_size=4))
@settings(max_examples=60)
def test_rows_with_characters_are_those_by_definition(texts: list[str], points: list[int]) -> None:
    table = np.zeros(0x110000, np.bool_)
    points += [ord(letter) for text in texts for letter in text[1:2] if ord(letter) >= 0x800]
    table[points] = True
    expected = [any(ord(letter) in points for letter in text) for text in texts]
    assert rows_with(column(["x", *texts]).slice(1), table).tolist() == expected


@given(documents=st.lists(st.lists(st.integers(3, 9), max_size=4), max_size=5), bos=st.booleans(), eos=st.booleans())
@settings(max_examples=60)
def test_joined_puts_markers_around_each_document(documents: list[list[int]], bos: bool, eos: bool) -> None:
    ids = np.array([index for document in documents for index in document], np.uint32)
    offsets = np.cumsum([0, *map(len, documents)]).astype(np.int64)
    found, places = joined(ids, offsets, 1 if bos else None, 2 if eos else None)
    expected = [[1] * bos + document + [2] * eos for document in documents]
    assert [found[a:b].tolist() for a, b in pairwise(places)] == expected


@given(st.sets(st.integers(0, 30), max_size=6), st.lists(st.integers(0, 30), max_size=30))
@settings(max_examples=60)
def test_longest_gap_holds_no_forbidden_id(forbidden: set[int], ids: list[int]) -> None:
    first, length = longest_gap(np.array(sorted(forbidden), np.int64), 31)
    assert not forbidden & set(range(int(first), int(first) + int(length)))
    found = np.array(ids, np.uint32)
    assert {int(index) for index in found[found - first >= length]} >= set(ids) & forbidden


def test_forbidden_places_are_those_of_control_tokens() -> None:
    encoder: Encoder = encoder_of(bpe(), None, END)
    ids = np.arange(encoder.vocabulary, dtype=np.uint32)
    assert encoder.forbidden_places(ids).tolist() == sorted(encoder.controls.values())


def test_texts_and_points_that_are_tried_cover_unicode() -> None:
    points = points_to_try()
    assert len(points) > 30_000 and all(any(first <= p <= last for p in points) for first, last in LARGE_BLOCKS)
    assert {ord("a"), ord(RARE), 0x10FFFF & ~0xFFF} - set(points) <= {0x10F000} and not set(
        range(0xD800, 0xE000)
    ) & set(points)
    assert block_of(0x4E2D) == range(0x4E00, 0xA000) and block_of(0x41) == range(0x41, 0x42)
    texts = adversarial_texts(["<x>"])
    assert len(set(texts)) > 400 and any("<x" in text for text in texts) and "é" in around(ord("é"))
