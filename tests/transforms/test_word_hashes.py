from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transforms.segmentation import find_words
from transforms.unicode_tables import LOWER
from transforms.word_hashes import hash_spans, hash_words

ALL = 2**64 - 1
FACTOR = 0x9E3779B97F4A7C15
TRICKY = "aZ@[`{zA_09'’ÄäßЖж中\u212aİ\u0301😀\U00010400"
tricky_texts = st.text(st.sampled_from(TRICKY), max_size=26)


def folded(word: str) -> str:
    return "".join("'" if character == "’" else chr(LOWER[ord(character)]) for character in word)


def mixed(value: int) -> int:
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        value = (value ^ value >> 33) * factor & ALL
    return value ^ value >> 33


def plain_hash(word: str) -> int:
    word, value = folded(word), 0xCBF29CE484222325
    raw = word.encode()
    is_ascii = len(raw) == len(word)
    whole = len(raw) // 8 * 8
    chunks = [int.from_bytes(raw[i : i + 8], "little") for i in range(0, whole, 8)]
    for number in chunks if is_ascii else map(ord, word):
        value = (value ^ number) * FACTOR & ALL
        value ^= value >> 32
    if is_ascii:
        value = (value ^ int.from_bytes(raw[whole:], "little")) * FACTOR & ALL ^ (len(raw) - whole)
    return mixed(value)


def hashes_of(pieces: list[bytes], before: bytes = b"", after: bytes = b"") -> list[int]:
    ends = np.cumsum([len(before), *map(len, pieces)])
    data = np.frombuffer(before + b"".join(pieces) + after, np.uint8)
    return hash_spans(data, ends[:-1], ends[1:]).tolist()


@given(st.lists(tricky_texts, max_size=6), st.binary(max_size=9), st.binary(max_size=9))
@settings(max_examples=500)
def test_hash_spans_any_words_in_any_buffer_equal_the_plain_function(
    words: list[str], before: bytes, after: bytes
) -> None:
    pieces = [word.encode() for word in words]
    assert hashes_of(pieces, before, after) == [plain_hash(word) for word in words]


@pytest.mark.parametrize("length", range(26))
def test_hash_spans_each_place_in_the_buffer_gives_the_same_hash(length: int) -> None:
    word = ("Don't STOP_Me9now " * 2)[:length]
    places = [
        hashes_of([word.encode()], b"\xff" * before, b"\xff" * after) for before in range(9) for after in range(9)
    ]
    assert places == [[plain_hash(word)]] * 81


def test_hash_spans_every_ascii_byte_is_folded_as_the_table_says() -> None:
    pieces = [bytes([byte]) * count for byte in range(128) for count in (1, 8, 9)]
    assert hashes_of(pieces, after=b"A" * 8) == [plain_hash(piece.decode()) for piece in pieces]
    assert hashes_of(pieces)[-1] == plain_hash(pieces[-1].decode())


@given(tricky_texts)
@settings(max_examples=200)
def test_hash_words_any_text_equals_the_plain_function(text: str) -> None:
    found = find_words(pa.array([text], pa.large_string()))
    assert hash_words(found).tolist() == [plain_hash(word) for word in found.strings()[0]]


def test_hash_words_case_and_apostrophe_are_folded_and_words_differ() -> None:
    text = "Straße STRASSE straße ÄB äb ab a b \u212a k don’t Don't dont"
    found = find_words(pa.array([text, "ab"], pa.large_string()))
    hashes = dict(zip((w for text in found.strings() for w in text), hash_words(found).tolist(), strict=True))
    assert hashes["Straße"] == hashes["straße"] != hashes["STRASSE"]
    assert hashes["ÄB"] == hashes["äb"] != hashes["ab"]
    assert hashes["\u212a"] == hashes["k"]
    assert hashes["don’t"] == hashes["Don't"] != hashes["dont"]
    assert len(set(hashes.values())) == 9


def test_hash_words_values_are_golden() -> None:
    """Shingles and buckets on disk rest on them: raise `MinHash.version` if this has to change."""
    found = find_words(pa.array(["Don’t Constitutional Größe"], pa.large_string()))
    assert hash_words(found).tolist() == [
        14492056913400887166,
        10793190677608555341,
        16787032721816482130,
    ]
