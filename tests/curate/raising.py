"""A transform that raises on documents with a word."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from transforms.outcome import Outcome, kept


@dataclass(frozen=True, slots=True)
class RaiseOn:
    """Raises ValueError where a text holds `word`."""

    word: str
    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ()

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        return schema

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        if any(self.word in text for text in batch.column("text").to_pylist()):
            raise ValueError(f"no {self.word}")
        return kept(batch)
