"""What a shard keeps in numbers: by source, language, licence, topic, rights, length, host, and its texts as a set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from curate.accounting import sample_row
from curate.samples import Samples
from curate.statistics import Statistics, add, distinct, least, length_bin, text_sum
from transforms.duplicates import text_digests

Key = TypeVar("Key", bound=Hashable)


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
        digests = text_digests(batch.column("text")).to_pylist()
        sizes = pc.utf8_length(batch.column("text")).to_pylist()
        self.digests.extend(digests)
        self._count_groups(batch, sizes)
        self._count_rights(batch, sizes)
        self._count_hosts(batch, sizes)
        for position, (digest, identity) in enumerate(zip(digests, batch.column("id").to_pylist(), strict=True)):
            if samples.wants(("kept", "", ""), digest, identity):
                samples.offer(sample_row("kept", {}, batch, position, digest, shows))

    def _count_groups(self, batch: pa.RecordBatch, sizes: list[int]) -> None:
        sources = batch.column("source").to_pylist()
        for name in ("source", "language", "licence", "topic"):
            if batch.schema.get_field_index(name) >= 0:
                for value, counted in totals(batch.column(name).to_pylist(), sizes).items():
                    group = ["nulls", name] if value is None else ["groups", name, str(value)]
                    self._add(group, counted)
        bins = [length_bin(size) for size in sizes]
        for (source, edge), count in Counter(zip(sources, bins, strict=True)).items():
            add(self.counts, ["lengths", source, edge], count)

    def _count_rights(self, batch: pa.RecordBatch, sizes: list[int]) -> None:
        columns = [batch.column(name).to_pylist() for name in ("source", "licence", "licence_basis")]
        for path, counted in totals(zip(*columns, strict=True), sizes).items():
            self._add(["rights", *path], counted)
        optout = batch.column("optout")
        for item, values in zip(optout.type, optout.flatten(), strict=True):
            for (source, value), count in Counter(zip(columns[0], values.to_pylist(), strict=True)).items():
                add(self.counts, ["optout", source, item.name, value], count)

    def _count_hosts(self, batch: pa.RecordBatch, sizes: list[int]) -> None:
        if batch.schema.get_field_index("url") < 0:
            return
        hosts = [None if url is None else host_of(url) for url in batch.column("url").to_pylist()]
        for host, (documents, characters) in totals(hosts, sizes).items():
            if host is not None:
                add(self.hosts, [host, "documents"], documents)
                add(self.hosts, [host, "characters"], characters)

    def _add(self, path: Sequence[str], counted: tuple[int, int]) -> None:
        add(self.counts, [*path, "documents"], counted[0])
        add(self.counts, [*path, "characters"], counted[1])

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


def totals(keys: Iterable[Key], sizes: Sequence[int]) -> dict[Key, tuple[int, int]]:
    """Return key → (how often it stands, the sum of its sizes)."""
    found: dict[Key, tuple[int, int]] = {}
    for key, size in zip(keys, sizes, strict=True):
        count, total = found.get(key, (0, 0))
        found[key] = (count + 1, total + size)
    return found


def host_of(url: str) -> str:
    """Return the host of `url` in lower case, without user, port or path; "" where there is none."""
    rest = url.partition("://")[2]
    for end in "/?#\\":
        rest = rest.partition(end)[0]
    host = rest.rpartition("@")[2]
    if not host.startswith("["):
        host = host.partition(":")[0]
    return "".join(chr(ord(c) + 32) if "A" <= c <= "Z" else c for c in host[:255])
