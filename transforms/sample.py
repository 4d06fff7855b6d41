"""A sample of documents by digest of id: the same documents whatever the order, and a part of any larger sample."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pyarrow as pa
from blake3 import blake3

from transforms.outcome import Outcome, kept


@dataclass(frozen=True, slots=True)
class Sample:
    """Keep a share of all documents, chosen by BLAKE3 of their ids; others go with the reason "not in the sample".

    Attributes:
        share: 0 < share ≤ 1, as an exact decimal ("0.01").
    """

    share: Fraction
    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise ValueError(f"a sample of {float(self.share):g}: give a share above 0 and at most 1")

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of kept rows: the input's."""
        return schema

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        """Keep the documents whose digest lies in the lowest `share` of all digests."""
        bound = (self.share.numerator << 64) // self.share.denominator
        digests = [int.from_bytes(blake3(identity).digest(8), "big") for identity in batch.column("id").to_pylist()]
        stays = np.array([digest < bound for digest in digests], bool)
        dropped = [
            {"id": identity, "transform": "Sample", "reason": "not in the sample"}
            for identity, stay in zip(batch.column("id").to_pylist(), stays, strict=True)
            if not stay
        ]
        return kept(batch.filter(pa.array(stays, pa.bool_())), dropped=dropped)
