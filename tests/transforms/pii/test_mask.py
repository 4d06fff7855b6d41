"""The transform: rows, edits, spans, masks of one's own, kinds left out."""

from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.transforms.documents import batch_of, kept_texts
from transforms.outcome import EDITS, SchemaError, Transform
from transforms.pii import MaskPII, mask_excerpt
from transforms.pii.found import REASONS
from transforms.pii.mask import EVIDENCE_SPANS

MARKS = [".", "..", ":", "::", "@", "-", "_", "=", ">", ">=", "/", "<", " ", "\n", "(", ")", "+", '"', " = "]
WORDS = ["a", "7", "9", "1.2", "1450", "2a00", "v", "version ", "x:", "é", "东", "2x.png", "b.org", "030", "tel ", "0"]
PARTS = ["93.184.216.34", "2a00:1450::", "a@b.org", "<email>", "<ip>", "<phone>", "202-555-0143", "(030) 1234567"]
MORE = ["4111 1111 1111 1111", "DE89370400440532013000", "AKIAIOSFODNN7ABCDEFG", "+49 30 1234567", "token", "\xa0"]
LONG = ["://u:p4ssw0rd@", "aB3dE5gH7jK9mN1pQ3rS", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcdefghijklmnop"]
TEXTS = st.lists(st.sampled_from([*MARKS, *WORDS, *PARTS, *MORE, *LONG]), max_size=12).map("".join)

MIXED = "é a@b.org, tel 030 1234567 or 2a00:1450::1, 4111111111111111, DE89370400440532013000, AKIAIOSFODNN7ABCDEFG"


def spans_of(batch: pa.RecordBatch, mask: MaskPII) -> list[tuple[int, int, str]]:
    words = {REASONS[kind]: word for kind, word in mask.masks.items()}
    edits = mask.apply(batch).edits.to_pylist()
    return sorted((*span, words[edit["reason"]]) for edit in edits for span in json.loads(edit["evidence"]))


def test_mask_is_a_transform() -> None:
    assert isinstance(MaskPII(), Transform)


def test_apply_batch_keeps_rows_and_counts_edits() -> None:
    texts = ["nothing", "a@b.org or c@d.org via 93.184.216.34", "", MIXED]
    rows = batch_of(texts)
    outcome = MaskPII().apply(rows.slice(1))
    masked = ["<email> or <email> via <ip>", "", "é <email>, tel <phone> or <ip>, <card>, <iban>, <secret>"]
    assert kept_texts(outcome) == masked
    assert outcome.kept.schema == MaskPII().output_schema(rows.schema) == rows.schema
    assert outcome.dropped.num_rows == outcome.near.num_rows == 0
    assert outcome.edits.schema == EDITS
    ids = rows.column("id").to_pylist()
    edits = [(ids.index(edit["id"]), edit["reason"], edit["evidence"]) for edit in outcome.edits.to_pylist()]
    assert edits == [
        (1, "e-mail", "[[0,7],[11,18]]"),
        (1, "ip address", "[[23,36]]"),
        (3, "e-mail", "[[2,9]]"),
        (3, "phone number", "[[15,26]]"),
        (3, "ip address", "[[30,42]]"),
        (3, "payment card", "[[44,60]]"),
        (3, "iban", "[[62,84]]"),
        (3, "secret", "[[86,106]]"),
    ]


def test_apply_many_addresses_bounds_evidence_not_counts() -> None:
    outcome = MaskPII().apply(batch_of(["a@b.org " * (EVIDENCE_SPANS + 7)]))
    (edit,) = outcome.edits.to_pylist()
    assert len(json.loads(edit["evidence"])) == EVIDENCE_SPANS
    assert edit["cut"] == 7 * (EVIDENCE_SPANS + 7)
    assert edit["inserted"] // len("<email>") == EVIDENCE_SPANS + 7


def test_mask_own_words_are_used_and_none_leaves_a_kind() -> None:
    mask = MaskPII(email="<mail>", phone=None, ip="<address>", payment_card=None, iban=None, secret="<key>")
    (text,) = kept_texts(mask.apply(batch_of([MIXED])))
    assert text.startswith("é <mail>, tel 030 1234567 or <address>, 4111") and text.endswith("<key>")


def test_mask_only_some_kinds_leaves_the_others() -> None:
    assert MaskPII.only("email", "ip") == MaskPII(phone=None, payment_card=None, iban=None, secret=None)
    assert MaskPII.only(*REASONS) == MaskPII()
    with pytest.raises(ValueError, match="no kind 'mail'; the kinds are email, phone, ip"):
        MaskPII.only("mail")


@pytest.mark.parametrize("mask", ["", "someone@example.org", "<1>", "8.8.8.8", "<email"])
def test_mask_that_could_match_again_is_refused(mask: str) -> None:
    with pytest.raises(ValueError, match="<letters>"):
        MaskPII(email=mask)


def test_mask_that_reads_like_a_secret_is_refused() -> None:
    with pytest.raises(ValueError, match="other letters"):
        MaskPII(email="<AKIAABCDEFGHIJKLMNOP>")


def test_mask_without_a_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="does nothing"):
        replace(MaskPII.only("email"), email=None)


def test_output_schema_without_text_is_an_error() -> None:
    with pytest.raises(SchemaError, match="text"):
        MaskPII().output_schema(pa.schema([("id", pa.binary(16))]))


@settings(max_examples=400)
@given(TEXTS)
def test_mask_twice_changes_nothing_and_no_character_outside_masks_is_lost(text: str) -> None:
    batch = batch_of([text])
    (masked,) = kept_texts(MaskPII().apply(batch))
    assert mask_excerpt(text) == masked
    assert mask_excerpt(masked) == masked
    rebuilt, last = "", 0
    for start, end, mask in spans_of(batch, MaskPII()):
        assert last <= start < end
        rebuilt += text[last:start] + mask
        last = end
    assert rebuilt + text[last:] == masked


@settings(max_examples=60)
@given(st.text(max_size=80))
def test_mask_any_unicode_text_has_an_answer(text: str) -> None:
    assert mask_excerpt(mask_excerpt(text)) == mask_excerpt(text)


@settings(max_examples=50)
@given(st.lists(TEXTS, max_size=6), st.integers(0, 6))
def test_apply_any_batching_gives_the_same_rows(texts: list[str], cut: int) -> None:
    rows = batch_of(texts)
    whole, parts = MaskPII().apply(rows), [MaskPII().apply(part) for part in (rows.slice(0, cut), rows.slice(cut))]
    assert whole.kept.to_pylist() == [row for part in parts for row in part.kept.to_pylist()]
    assert whole.edits.to_pylist() == [row for part in parts for row in part.edits.to_pylist()]
