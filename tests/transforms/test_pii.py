"""Masking of addresses: what is one, what is not, idempotence, accounting, hostile strings."""

from __future__ import annotations

import json
import time

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transforms import pii
from transforms.outcome import EDITS, SchemaError, Transform
from transforms.pii import EVIDENCE_SPANS, MaskPII, mask_excerpt, mask_excerpts

ADDRESSES = {
    "write to jane.doe+news@mail.example.co.uk.": "write to <email>.",
    "mailto:a_b%c@example.org?subject=x": "mailto:<email>?subject=x",
    "https://example.org/?to=jane@example.org&x=1": "https://example.org/?to=<email>&x=1",
    "<jane@example.org>": "<<email>>",
    "o'brien@example.ie": "o'<email>",
    "请联系jane@example.cn。": "请联系<email>。",
    "jane@xn--bcher-kva.example, joe@mail.xn--p1ai": "<email>, <email>",
    "jane@example.com--next": "<email>--next",
    "a" * 70 + "@example.org": "a" * 6 + "<email>",
    "8.8.8.8": "<ip>",
    "(8.8.4.4)": "(<ip>)",
    "host 8.8.8.8.": "host <ip>.",
    "http://8.8.8.8:80/path and 8.8.8.8/24": "http://<ip>:80/path and <ip>/24",
    "?ip=8.8.8.8&x": "?ip=<ip>&x",
    "root@8.8.8.8": "root@<ip>",
    "地址8.8.8.8的": "地址<ip>的",
    "::ffff:8.8.8.8": "::ffff:<ip>",
    "[2a00:1450:4001:81b::200e]:443": "[<ip>]:443",
    "2a00:1450:4001:081b:0000:0000:0000:200E": "<ip>",
    "from 2a00:1450::1: reply": "from <ip>: reply",
    "addr:2a00:1450::1.": "addr:<ip>.",
    "2a00:1450::8.8.8.8": "<ip>",
    "jane@example.org8.8.8.8": "<email><ip>",
    "jane@example.org=8.8.8.8": "<email>=<ip>",
    "2222:8.8.8.8:22": "2222:<ip>:22",
}

FALSE_FRIENDS = [
    "icon@2x.png and tile@3x.webp",
    "package@1.2.3-beta.rc",
    "a@b, @user, foo@, foo@bar, foo.@example.org, jane@1.2",
    "12.34.56.789",
    "1.2.3.4.5",
    "0.1.2.3.4",
    "256.8.8.8",
    "08.8.8.8",
    "v1.2.3.4, tool-1.2.3.4, 1.2.3.4-beta, 1.2.3.4a, lib_1.2.3.4",
    "version 11.2.3.4, Version: 11.2.3.4, ver. 11.2.3.4, release 11.2.3.4, Section 11.2.3.4",
    "Chrome/120.0.0.0 Safari/9.9.9.9",
    "tool==11.2.3.4, tool >= 11.2.3.4, ^11.2.3.4, ~11.2.3.4, ~=11.2.3.4",
    "10.1.2.3 172.16.0.1 192.168.1.1 127.0.0.1 169.254.1.1 100.64.0.1 0.0.0.0 255.255.255.0",
    "192.0.2.1 198.51.100.7 203.0.113.9 198.18.0.1 192.0.0.9 224.0.0.251",
    "::1 fe80::1 fc00::1 2001:db8::1 3fff::1 ff02::1 ::",
    "12:30:45 00:1a:2b:3c:4d:5e 20:01:48:60:48:60:88:88 std::vector a::b dead::beef",
    "2001:4860:zz 2a00:1450::1xyz 2a00::1::2 2a00:1:2:3:4:5:6:7:8 x2a00:1450::1 1:2a00:1450::1",
    "8.8.8.8-8.8.8.9",
]


def batch(*texts: str) -> pa.RecordBatch:
    ids = pa.array([number.to_bytes(16, "big") for number in range(len(texts))], pa.binary(16))
    return pa.record_batch({"id": ids, "text": pa.array(texts, pa.large_string()), "n": pa.array(range(len(texts)))})


@pytest.mark.parametrize("text", ADDRESSES)
def test_mask_addresses_are_replaced_by_constants(text: str) -> None:
    assert mask_excerpt(text) == ADDRESSES[text]


@pytest.mark.parametrize("text", FALSE_FRIENDS)
def test_mask_false_friends_stay(text: str) -> None:
    assert mask_excerpt(text) == text


@pytest.mark.parametrize("text", [*ADDRESSES, *FALSE_FRIENDS])
def test_apply_one_text_equals_excerpt(text: str) -> None:
    assert MaskPII().apply(batch(text)).kept.column("text").to_pylist() == [mask_excerpt(text)]


def test_apply_batch_keeps_rows_and_counts_edits() -> None:
    texts = ["nothing", "a@b.org or c@d.org via 8.8.8.8", "", "2a00:1450::1 then jane@example.org, 8.8.4.4"]
    rows = batch(*texts)
    outcome = MaskPII().apply(rows.slice(1))
    assert outcome.kept.column("text").to_pylist() == ["<email> or <email> via <ip>", "", "<ip> then <email>, <ip>"]
    assert outcome.kept.schema == MaskPII().output_schema(rows.schema) == rows.schema
    assert outcome.kept.column("n").to_pylist() == [1, 2, 3]
    assert outcome.dropped.num_rows == outcome.near.num_rows == 0
    assert outcome.edits.schema == EDITS
    edits = [(edit["id"][-1], edit["reason"], edit["evidence"]) for edit in outcome.edits.to_pylist()]
    assert edits == [
        (1, "e-mail", "[[0,7],[11,18]]"),
        (1, "ip address", "[[23,30]]"),
        (3, "e-mail", "[[18,34]]"),
        (3, "ip address", "[[0,12],[36,43]]"),
    ]
    before, after = sum(map(len, texts)), sum(map(len, outcome.kept.column("text").to_pylist())) + len(texts[0])
    counts = outcome.edits.to_pylist()
    assert before + sum(edit["inserted"] for edit in counts) == after + sum(edit["cut"] for edit in counts)


def test_apply_many_addresses_bounds_evidence_not_counts() -> None:
    outcome = MaskPII().apply(batch("a@b.org " * (EVIDENCE_SPANS + 7)))
    (edit,) = outcome.edits.to_pylist()
    assert len(json.loads(edit["evidence"])) == EVIDENCE_SPANS
    assert edit["cut"] == 7 * (EVIDENCE_SPANS + 7)


def test_mask_own_words_are_used() -> None:
    mask = MaskPII(email="<mail>", ip="<address>")
    assert mask.apply(batch("a@b.org 8.8.8.8")).kept.column("text").to_pylist() == ["<mail> <address>"]


@pytest.mark.parametrize("mask", ["", "someone@example.org", "<1>", "8.8.8.8", "<email"])
def test_mask_that_could_match_again_is_refused(mask: str) -> None:
    with pytest.raises(ValueError, match="<letters>"):
        MaskPII(email=mask)


def test_output_schema_without_text_is_an_error() -> None:
    with pytest.raises(SchemaError, match="text"):
        MaskPII().output_schema(pa.schema([("id", pa.binary(16))]))


def test_mask_is_a_transform() -> None:
    assert isinstance(MaskPII(), Transform)


MARKS = [".", "..", ":", "::", "@", "-", "_", "=", ">", ">=", "==", "/", "<", " ", "\n"]
WORDS = ["a", "7", "9", "1.2", "1450", "2a00", "ffff", "v", "version ", "x:", "é", "东", "2x.png", "b.org"]
PARTS = ["8.8.8.8", "2a00:1450::", "a@b.org", "<email>", "<ip>"]
PIECES = st.sampled_from([*MARKS, *WORDS, *PARTS])
TEXTS = st.lists(PIECES, max_size=12).map("".join)


@settings(deadline=None, derandomize=True, max_examples=1500)
@given(TEXTS)
def test_mask_twice_changes_nothing_and_spans_lead_back(text: str) -> None:
    outcome = MaskPII().apply(batch(text))
    masked = outcome.kept.column("text")[0].as_py()
    assert mask_excerpt(text) == masked
    assert mask_excerpt(masked) == masked
    masks = {"e-mail": "<email>", "ip address": "<ip>"}
    spans = [
        (*span, masks[edit["reason"]]) for edit in outcome.edits.to_pylist() for span in json.loads(edit["evidence"])
    ]
    rebuilt, last = "", 0
    for start, end, mask in sorted(spans):
        rebuilt += text[last:start] + mask
        last = end
    assert rebuilt + text[last:] == masked


@settings(deadline=None, derandomize=True)
@given(st.lists(TEXTS, max_size=6), st.integers(0, 6))
def test_apply_any_batching_gives_the_same_rows(texts: list[str], cut: int) -> None:
    rows = batch(*texts)
    whole, parts = MaskPII().apply(rows), [MaskPII().apply(part) for part in (rows.slice(0, cut), rows.slice(cut))]
    assert whole.kept.to_pylist() == [row for part in parts for row in part.kept.to_pylist()]
    assert whole.edits.to_pylist() == [row for part in parts for row in part.edits.to_pylist()]


MEGABYTE = 1_000_000


@pytest.mark.parametrize(
    "unit", ["@", "a@", "a.", "a@a.", "1.", "1.1.1.1.", ":", "2a00:", "2a00::1 ", "a-", ">=1.1.1.1 ", "a@" + "b." * 120]
)
def test_mask_megabyte_of_hostile_text_takes_linear_time(unit: str) -> None:
    text = unit * (MEGABYTE // len(unit))
    start = time.process_time()
    masked = mask_excerpt(text)
    assert time.process_time() - start < 10
    assert len(masked) <= len(text) * 2


def test_special_networks_cover_what_the_registry_says() -> None:
    assert pii.SPECIAL_V4[1] == (10 << 24, (11 << 24) - 1)
    assert all(first <= last for first, last in (*pii.SPECIAL_V4, *pii.SPECIAL_V6))


def test_excerpts_are_masked_together_as_each_alone() -> None:
    texts = [
        "write to ann@example.org",
        None,
        "",
        "no address: 1.2 and a:b",
        "at 8.8.8.8 or 2a00:1450:4001:81b::200e",
        "plain",
    ]
    texts += ['{"band":3,"survivor":"00ff10aa"}', '{"detail":"bob@example.com said"}']
    expected = [None if text is None else mask_excerpt(text) for text in texts]
    for first in (0, 2):
        column = pa.array(texts, pa.large_string()).slice(first)
        assert mask_excerpts(column).to_pylist() == expected[first:]
    assert expected[4] == "at <ip> or <ip>" and expected[6] == texts[6]
