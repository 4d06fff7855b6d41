"""Searching again where masks changed what their neighbours stand beside, against searching all again; linear time."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.transforms.pii.test_mask import TEXTS
from transforms.pii import MaskPII, mask_excerpt
from transforms.pii.found import Found, disjoint
from transforms.pii.mask import masked_bytes

FILLER = st.sampled_from(["", "x" * 700, " word" * 140, "é" * 300, "a@b.org " * 60, "030 1234567 0171 7654321 " * 20])


def masked_again_and_again(text: str) -> str:
    """Mask all of the text until nothing changes: what searching neighbourhoods must equal."""
    while (masked := mask_excerpt(text)) != text:
        text = masked
    return text


@settings(max_examples=80)
@given(st.lists(st.one_of(TEXTS, FILLER), max_size=6).map("".join))
def test_search_long_text_once_equals_searching_until_nothing_is_new(text: str) -> None:
    assert mask_excerpt(text) == masked_again_and_again(text)


@pytest.mark.parametrize("around", ["", "x " * 400, "jane@example.org, " * 60])
def test_search_match_freed_by_a_mask_is_masked_in_its_place(around: str) -> None:
    text = f"{around}030 1234567 2a@b.org; a@b.version 93.184.216.34 {around}"
    masked, found = masked_bytes(text.encode(), MaskPII())
    masks = around.replace("jane@example.org", "<email>")
    assert masked.decode() == f"{masks}<phone> <email>; <email> <ip> {masks}"
    first = len(around)
    assert Found(first, first + 11, "phone") in found and Found(first + 34, first + 47, "ip") in found


def test_disjoint_overlapping_matches_become_one_of_the_first_kind() -> None:
    found = [Found(4, 9, "phone"), Found(0, 5, "email"), Found(9, 12, "ip"), Found(8, 9, "secret")]
    assert disjoint(found) == [Found(0, 9, "secret"), Found(9, 12, "ip")]


HOSTILE = [
    *("1", "@", ":", "A", "0", "-", "_", "=", "é", "a@", "a.", "a@a.", "1.", "1.1.1.1.", "2a00:", "2a00::1 ", "a-"),
    *(">=1.1.1.1 ", "a@" + "b." * 120, "(1", "+1", "+4", "0 1", "030 1234567 ", "4111 1111 ", "4111111111111111 "),
    *(
        "-----BEGIN PRIVATE KEY-----",
        "-----END PRIVATE KEY-----",
        "-----END PRIVATE KEY-----\n" + "aB3d" * 20 + "\n",
        "eyJ",
        "eyJhbGciOiJIUzI1NiJ9.",
        "ghp_",
        "sk-",
        "token=",
        "password=aB3",
        "DE89 ",
    ),
    *("202-555-0143 ", "://a:", "://a:b@c", "a@b.org", "93.184.216.34-", "<email>", "(030) ", "tel: 1"),
    *("030 1234567 2a@b.org ", "a@b.version 93.184.216.34 "),
]


def test_mask_hostile_repetitions_take_bounded_time() -> None:
    for unit in HOSTILE:
        text = unit * (50_000 // len(unit.encode()))
        start = time.process_time()
        masked = mask_excerpt(text)
        assert time.process_time() - start < 1, (
            f"{unit[:30]!r} repeated to 50 kB is slow: twenty seconds to the megabyte"
        )
        assert len(masked) <= 2 * len(text)
