"""What a shard keeps in numbers: by source, language, licence, topic, rights, length, host, and its texts as a set."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from curate.accounting import sample_row
from curate.digests import text_digest
from curate.samples import Samples
from curate.statistics import Statistics, add, distinct, least, length_bin, text_sum


class Kept:
    """Statistics of the documents that a shard keeps."""

    def __init__(self) -> None:
        self.counts: Statistics = {}
        self.hosts: dict[str, Statistics] = {}
        self.digests: list[bytes] = []

    def count(self, batch: pa.RecordBatch, samples: Samples, shows: Any) -> None:
        """Add the documents of `batch`, and offer them as samples of what is kept."""
        if batch.schema.get_field_index("text") < 0:
            return
        names = set(batch.schema.names)
        groups = {
            name: batch.column(name).to_pylist() for name in ("source", "language", "licence", "topic") if name in names
        }
        self._count_rights(batch)
        urls = batch.column("url").to_pylist() if "url" in names else [None] * batch.num_rows
        for position, text in enumerate(batch.column("text").to_pylist()):
            digest = text_digest(text)
            self.digests.append(digest)
            size = len(text)
            for name, values in groups.items():
                group = ["nulls", name] if values[position] is None else ["groups", name, str(values[position])]
                add(self.counts, [*group, "documents"], 1)
                add(self.counts, [*group, "characters"], size)
            add(self.counts, ["lengths", groups["source"][position], length_bin(size)], 1)
            url = urls[position]
            if url is not None:
                host = self.hosts.setdefault(host_of(url), {"documents": 0, "characters": 0})
                host["documents"] += 1
                host["characters"] += size
            identity = batch.column("id")[position].as_py()
            if samples.wants(("kept", "", ""), digest, identity):
                samples.offer(sample_row("kept", {}, batch, position, digest, shows))

    def _count_rights(self, batch: pa.RecordBatch) -> None:
        columns = {name: batch.column(name).to_pylist() for name in ("source", "licence", "licence_basis", "optout")}
        sizes = pc.utf8_length(batch.column("text")).to_pylist()
        for source, licence, basis, optout, size in zip(*columns.values(), sizes, strict=True):
            add(self.counts, ["rights", source, licence, basis, "documents"], 1)
            add(self.counts, ["rights", source, licence, basis, "characters"], size)
            for signal, value in optout.items():
                add(self.counts, ["optout", source, signal, value], 1)

    def statistics(self) -> Statistics:
        """Return the counters, the hosts (exact for the lowest digests, and how many there are), and the texts."""
        if not self.digests:
            return {"texts": {"count": 0, "multiset": text_sum([])}}
        hosts = {"most": least(self.hosts), "distinct": distinct(host.encode() for host in self.hosts)}
        return {
            **self.counts,
            **({"hosts": hosts} if self.hosts else {}),  # 8 kB of registers in each receipt
            "texts": {"count": len(self.digests), "multiset": text_sum(self.digests)},
        }


def host_of(url: str) -> str:
    """Return the host of `url` in lower case, without user, port or path; "" where there is none."""
    rest = url.partition("://")[2]
    for end in "/?#\\":
        rest = rest.partition(end)[0]
    host = rest.rpartition("@")[2]
    if not host.startswith("["):
        host = host.partition(":")[0]
    return "".join(chr(ord(c) + 32) if "A" <= c <= "Z" else c for c in host[:255])
