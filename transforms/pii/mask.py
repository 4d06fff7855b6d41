"""`MaskPII`: personal data in texts replaced by constant masks.

Invariants: a mask is a constant, so the output for a document depends on that document alone; masking is idempotent;
nothing outside the spans that are recorded changes. All character classes are ASCII ones, on the bytes of UTF-8.

What is found, and what is left: `transforms.pii.addresses` (e-mail, IP), `transforms.pii.phones`,
`transforms.pii.accounts` (payment cards, IBAN), `transforms.pii.secrets`. How well: `transforms.pii.measured`.

Cost: one pass of a kernel over the batch, then 1 to 5 µs per candidate; linear in any text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transforms.canonical import canonical_json
from transforms.outcome import Outcome, kept, require
from transforms.pii.found import REASONS, Found
from transforms.pii.scan import scan
from transforms.pii.search import search
from transforms.schema import set_columns
from transforms.segmentation import text_buffers

EVIDENCE_SPANS: Final = 50
"""At most so many spans of a document are written as evidence; the counts are of all."""

MASK: Final = re.compile(r"<[A-Za-z]{1,20}>")


@dataclass(frozen=True, slots=True)
class MaskPII:
    """Replaces personal data by constant masks, one for each kind; None leaves a kind as it is.

    Edits have the reasons "e-mail", "phone number", "ip address", "payment card", "iban" and "secret"; their evidence
    is the list of [start, end] code points in the input text, the first `EVIDENCE_SPANS` of them. What an edit
    inserted, divided by the length of its mask, is how many were masked: statistics hold it by source and kind.

    Args:
        email: the mask of e-mail addresses, ``<letters>``, or None.
        phone: the mask of telephone numbers.
        ip: the mask of public IPv4 and IPv6 addresses.
        payment_card: the mask of payment card numbers.
        iban: the mask of international bank account numbers.
        secret: the mask of credentials: tokens, keys, passwords in URLs and assignments.

    Raises:
        ValueError: a mask is not of the form ``<letters>``, which is what keeps masking idempotent, or would be
            masked itself; or no kind has a mask.
    """

    email: str | None = "<email>"
    phone: str | None = "<phone>"
    ip: str | None = "<ip>"
    payment_card: str | None = "<card>"
    iban: str | None = "<iban>"
    secret: str | None = "<secret>"

    version: ClassVar[int] = 2
    libraries: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        if not self.masks:
            raise ValueError("MaskPII without a mask does nothing: give one of its kinds a mask, as email='<email>'")
        for mask in self.masks.values():
            if not MASK.fullmatch(mask):
                raise ValueError(f"a mask has the form <letters>, as <email>; got {mask!r}")
            if masked_bytes(mask.encode(), self)[1]:
                raise ValueError(f"the mask {mask!r} reads like what it stands for: take other letters")

    @classmethod
    def only(cls, *kinds: str) -> MaskPII:
        """Return the transform that masks these `kinds` with their default masks and leaves the others.

        `MaskPII.only("email", "ip")` masks what FineWeb does (Penedo et al. 2024, section 3.6).

        Raises:
            ValueError: a kind is not a field of `MaskPII`, or there is none.
        """
        unknown = [kind for kind in kinds if kind not in REASONS]
        if unknown:
            raise ValueError(f"MaskPII has no kind {unknown[0]!r}; the kinds are {', '.join(REASONS)}")
        return cls(**{kind: None for kind in REASONS if kind not in kinds})

    @property
    def masks(self) -> dict[str, str]:
        """The masks of the kinds that are masked, by kind."""
        given = {kind: getattr(self, kind) for kind in REASONS}
        return {kind: mask for kind, mask in given.items() if mask is not None}

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return `schema` unchanged; `text` is needed."""
        require(schema, "MaskPII", text=pa.large_string())
        return schema

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        """Mask the texts of `batch`; every row is kept."""
        self.output_schema(batch.schema)
        texts = cast(pa.LargeStringArray, batch.column("text"))
        replaced: dict[int, bytes] = {}
        edits: list[dict[str, Any]] = []
        for row, text, found in found_in(texts, self):
            replaced[row] = rendered(text, found, _encoded(self))
            edits.extend(self._edits(batch.column("id")[row].as_py(), text, found))
        if not replaced:
            return kept(batch)
        return kept(set_columns(batch, {batch.schema.field("text"): with_rows(texts, replaced)}), edits=edits)

    def _edits(self, document: bytes, text: bytes, found: list[Found]) -> list[dict[str, Any]]:
        spans = _code_points(text, found)
        edits = []
        for kind, mask in self.masks.items():
            mine = [span for span, item in zip(spans, found, strict=True) if item.kind == kind]
            if mine:
                edits.append(
                    {
                        "id": document,
                        "transform": "MaskPII",
                        "reason": REASONS[kind],
                        "cut": sum(end - start for start, end in mine),
                        "inserted": len(mine) * len(mask),
                        "evidence": canonical_json(mine[:EVIDENCE_SPANS]),
                    }
                )
        return edits


def found_in(texts: pa.LargeStringArray, mask: MaskPII) -> list[tuple[int, bytes, list[Found]]]:
    """Return row, UTF-8 and findings of the `texts` in which something is found."""
    data, bounds = text_buffers(texts)
    candidates = scan(data, bounds)
    rows, firsts = np.unique(candidates.texts, return_index=True)
    ends = np.append(firsts[1:], len(candidates.texts))
    result = []
    for row, first, end in zip(rows.tolist(), firsts.tolist(), ends.tolist()[: len(rows)], strict=True):
        text = data[bounds[row] : bounds[row + 1]].tobytes()
        places, codes = candidates.places[first:end].tolist(), candidates.codes[first:end].tolist()
        found = search(text, list(zip(places, codes, strict=True)), _encoded(mask))
        if found:
            result.append((row, text, found))
    return result


def masked_bytes(text: bytes, mask: MaskPII) -> tuple[bytes, list[Found]]:
    """Return UTF-8 `text` masked, and what was found in it."""
    data = np.frombuffer(text, np.uint8) if text else np.zeros(0, np.uint8)
    bounds = np.array([0, len(text)], np.int64)
    for array in (data, bounds):
        array.flags.writeable = False
    candidates = scan(data, bounds)
    found = search(text, list(zip(candidates.places.tolist(), candidates.codes.tolist(), strict=True)), _encoded(mask))
    return rendered(text, found, _encoded(mask)), found


def rendered(text: bytes, found: list[Found], masks: Mapping[str, bytes]) -> bytes:
    """Return `text` with each of `found` replaced by its mask."""
    parts, last = [], 0
    for start, end, kind in found:
        parts += [text[last:start], masks[kind]]
        last = end
    return b"".join([*parts, text[last:]])


def with_rows(texts: pa.LargeStringArray, replaced: Mapping[int, bytes]) -> pa.LargeStringArray:
    """Return `texts` with the rows in `replaced` (UTF-8, rows ascending)."""
    rows = np.zeros(len(texts), np.bool_)
    rows[list(replaced)] = True
    values = pa.array(list(replaced.values()), pa.large_string())
    return cast(pa.LargeStringArray, pc.replace_with_mask(texts, pa.array(rows), values))


def _encoded(mask: MaskPII) -> dict[str, bytes]:
    return {kind: word.encode() for kind, word in mask.masks.items()}


def _code_points(text: bytes, found: list[Found]) -> list[list[int]]:
    """Return the spans of `found` in code points."""
    if text.isascii():
        return [[item.start, item.end] for item in found]
    spans, last, count = [], 0, 0
    for start, end, _ in found:
        first = count + len(text[last:start].decode("utf-8"))
        count = first + len(text[start:end].decode("utf-8"))
        spans.append([first, count])
        last = end
    return spans
