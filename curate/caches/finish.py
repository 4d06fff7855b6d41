"""Last, per cell: the metadata of its arrays, then `cache.json`, which makes it a cache."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from curate.accounting.statistics import Statistics
from curate.caches.description import NAME, Description, content_of
from curate.caches.layout import ARRAYS, GROUP, UNTRAINED
from curate.caches.lengths import Lengths
from curate.caches.plan import Plan
from curate.caches.write import cell_array
from curate.receipts import Receipt, publish_receipt
from curate.running.jobs import Item
from curate.store import Store, json_line
from transforms.tokens import CANARY, library_version


@dataclass(frozen=True, slots=True)
class FinishJob:
    """Per cell: what is left of its cache when its shards are written."""

    plan: Plan
    lengths: tuple[Lengths, ...]
    statistics: Statistics
    dataset: Mapping[str, str]
    name: str = "tokenize: finish"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.store

    def run(self, item: Item) -> int:
        """Publish metadata, `cache.json` and the receipt of the cell `item.unit`; return its documents."""
        cell = item.unit
        folder = self.plan.cell_folder(cell)
        files, blocks = self._written(cell)
        metadata = {"zarr.json": GROUP}
        metadata |= {f"{name}/zarr.json": self._array(cell, name).metadata() for name in self._names()}
        for name, value in metadata.items():
            content = json_line(value)
            files[name] = {
                "bytes": len(content),
                "digest": self.store.publish_bytes(content, f"{folder}/{name}"),
            }
        description = self._description(cell, files, blocks)
        digest = self.store.publish_bytes(description.to_bytes(), f"{folder}/{NAME}")
        unit = {
            "cell": description.name,
            "folder": folder,
            "cache": digest,
            "content": description.content,
            "tokens": description.tokens,
            "documents": description.documents,
            "objects": len(description.files) + 1,
        }
        publish_receipt(self.store, Receipt(item.key, self.name, unit, {}, {}))
        return description.documents

    def _names(self) -> tuple[str, ...]:
        return (*ARRAYS, UNTRAINED) if self.plan.masked else ARRAYS

    def _array(self, cell: int, name: str) -> Any:
        return cell_array(self.plan, self.lengths, cell, name)

    def _written(self, cell: int) -> tuple[dict[str, Any], dict[str, list[str]]]:
        files: dict[str, Any] = {}
        blocks: dict[str, list[str]] = {"tokens": [], "offsets": []}
        if self.plan.masked:
            blocks[UNTRAINED] = []
        for task, unit in writers(self.plan, self.lengths, cell):
            written = json.loads(self.plan.file(task, unit, "written.json").read_bytes())
            files |= written["files"]
            for name, digests in written["blocks"].items():
                blocks[name] += digests
        return files, blocks

    def _description(self, cell: int, files: dict[str, Any], blocks: dict[str, list[str]]) -> Description:
        plan, tokenizer, encoder = self.plan, self.plan.tokenizer, self.plan.tokenizer.encoder()
        dtype = encoder.dtype.name
        tokens, documents = int(self.lengths[cell].tokens[-1]), int(self.lengths[cell].documents[-1])
        specs = [self._array(cell, name) for name in self._names()]
        return Description(
            name=plan.cells[cell].name,
            key=plan.cell_key(cell),
            dataset=self.dataset,
            tokenizer=tokenizer.digest,
            bos_text=tokenizer.bos,
            eos_text=tokenizer.eos,
            bos=encoder.bos,
            eos=encoder.eos,
            forbidden=encoder.forbidden,
            vocabulary=encoder.vocabulary,
            library=library_version(),
            canary_text=CANARY,
            canary=plan.canary,
            dtype=dtype,
            tokens=tokens,
            documents=documents,
            content=content_of(dtype, tokens, documents, blocks),
            blocks={name: plan.layout.block(name) for name in blocks},
            arrays={spec.name: spec.lengths for spec in specs},
            files=files,
            statistics=self.statistics[plan.cells[cell].name],
        )


def writers(plan: Plan, lengths: tuple[Lengths, ...], cell: int) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield (task, unit) of every task that writes zarr shards of a cell, in the order of rows."""
    for task, array in (("write tokens", "tokens"), ("write documents", "offsets")):
        for shard in range(cell_array(plan, lengths, cell, array).shards):
            yield task, (cell, shard)
