"""Masking of excerpts and evidence: each as alone, and JSON stays JSON."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from transforms.pii import mask_evidence, mask_evidences, mask_excerpt


def test_excerpt_lone_surrogate_is_survived() -> None:
    assert mask_excerpt("\ud800 a@b.org") == "\ud800 <email>"


def test_excerpts_are_masked_together_as_each_alone() -> None:
    texts = [
        "write to ann@example.org",
        None,
        "",
        "no address: 1.2 and a:b",
        "at 93.184.216.34 or 2a00:1450:4001::200e",
    ]
    texts += [
        "plain",
        '{"band":3,"survivor":"00ff10aa"}',
        '{"detail":"bob@example.com said"}',
        '{"a":"x\\n030 1234567"}',
    ]
    expected = [None if text is None else mask_evidence(text) for text in texts]
    for first in (0, 2):
        column = pa.array(texts, pa.large_string()).slice(first)
        assert mask_evidences(column).to_pylist() == expected[first:]
    assert expected[4] == "at <ip> or <ip>" and expected[6] == texts[6]
    assert expected[8] == '{"a":"x\\n<phone>"}'


@pytest.mark.parametrize(
    ("evidence", "masked"),
    [
        ('{"count":4111111111111111,"who":"a@b.org"}', '{"count":4111111111111111,"who":"<email>"}'),
        ('[[0,7],[11,18]]', '[[0,7],[11,18]]'),
        ('{"phone":"5550143"}', '{"phone":"<phone>"}'),
        ('{"deep":[{"x":"tel\\t030 1234567"}],"n":null}', '{"deep":[{"x":"tel\\t<phone>"}],"n":null}'),
        ("no JSON: a@b.org", "no JSON: <email>"),
    ],
)  # fmt: skip
def test_evidence_strings_are_masked_and_numbers_stay(evidence: str, masked: str) -> None:
    assert mask_evidence(evidence) == masked
    if evidence.startswith(("{", "[")):
        json.loads(masked)
