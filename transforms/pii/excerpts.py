"""Masking of what is shown of texts: samples, evidence, messages.

Mask before cutting an excerpt out of a longer text: half an address is no longer found.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc

from transforms.canonical import canonical_json
from transforms.pii.mask import MaskPII, masked_bytes, with_rows
from transforms.pii.scan import scan
from transforms.segmentation import text_buffers


@cache
def _every_kind() -> MaskPII:
    """Return the default masks of every kind. Making them searches the masks themselves, which loads compiled code."""
    return MaskPII()


def mask_excerpt(text: str) -> str:
    """Return `text` with the default masks."""
    encoded = text.encode("utf-8", "surrogatepass")
    masked, found = masked_bytes(encoded, _every_kind())
    return masked.decode("utf-8", "surrogatepass") if found else text


def mask_evidence(evidence: str) -> str:
    """Return canonical JSON with the default masks in its strings, still JSON; other text as `mask_excerpt` does."""
    try:
        value = json.loads(evidence)
    except ValueError:
        return mask_excerpt(evidence)
    if "\\" in evidence:  # an n before a number would be the end of a word
        evidence = canonical_json(_in_strings(value))
    masked = mask_excerpt(evidence)
    try:
        json.loads(masked)
    except ValueError:  # a number outside of strings, such as a count, reads like one of a card
        return canonical_json(_in_strings(value))
    return masked


def _in_strings(value: Any) -> Any:
    if isinstance(value, str):
        return mask_excerpt(value)
    if isinstance(value, list):
        return [_in_strings(item) for item in value]
    if isinstance(value, dict):
        return {name: _in_strings(item) for name, item in value.items()}
    return value


def mask_evidences(evidence: pa.LargeStringArray) -> pa.LargeStringArray:
    """Return each of `evidence` as `mask_evidence` gives it; nulls stay. Only where something may be costs anything."""
    suspected = set(scan(*text_buffers(evidence)).texts.tolist())
    escaped = pc.fill_null(pc.match_substring(evidence, "\\"), False)
    suspected.update(pc.indices_nonzero(escaped).to_pylist())
    rows = sorted(row for row in suspected if evidence[row].is_valid)
    masked = {row: mask_evidence(cast(str, evidence[row].as_py())).encode() for row in rows}
    return with_rows(evidence, masked) if masked else evidence
