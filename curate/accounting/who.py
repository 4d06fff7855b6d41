"""Who loses: of each step, how many documents came in and were dropped, by what they are.

By language, script, topic, page type, country domain, crawl month and length, by the columns that `CountBy` names, and
by host.

- Language, script, topic and page type are the columns `language`, `language_script`, `topic` and `page_type` as they
  come into the step. Of a step that writes `language` itself, as `Language`, it is the one that the step found: kept
  documents have it in their column, dropped ones in their evidence.
- While there is no column of scripts, the script is that of the first `SEEN` bytes of the text as it first came in.
- The crawl month is that of `crawled_at` as it came into the chain.
- Country domain and host are those of `url` as it came into the chain, host names in Punycode.

Invariants: integers that add; per step and attribute the `MOST` values with the lowest digest of their name are counted
(of named columns `MOST_NAMED`, of hosts `MOST_HOSTS`), so what is counted does not depend on the cut into shards and
batches, and each count is exact; what all values have together stands in the steps' own counts.
Cost: a dictionary encoding per column and step, one pass over the first bytes of each text; memory: eight times `MOST`
entries per step and attribute at most.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa

from curate.accounting.attributes import NAME_LENGTH
from curate.accounting.hosts import country_of
from curate.accounting.measures import Coded, Integers, coded
from curate.accounting.months import months_in
from curate.accounting.statistics import LENGTH_BINS, LENGTH_EDGES, Statistics, least, lowest
from transforms.count_by import CountBy
from transforms.outcome import Outcome, Transform
from transforms.scripts import CODES, find_scripts
from transforms.segmentation import text_buffers
from transforms.url_places import hosts_of, places_of

MOST: Final = 256
MOST_NAMED: Final = 64
MOST_HOSTS: Final = 256
SEEN: Final = 512
"""Bytes of a text by which its script is told while no column says it."""

MONTH: Final = "crawl month"

COLUMNS: Final[Mapping[str, str]] = {
    "language": "language",
    "script": "language_script",
    "topic": "topic",
    "page type": "page_type",
}
"""Attributes that a column says, and the column."""

Columns = dict[str, Coded]


@dataclass(frozen=True, slots=True)
class Origins:
    """What stays with a document along the chain: its host, country domain and script; None while it is not known."""

    hosts: Coded | None
    countries: Coded | None
    scripts: Coded | None
    months: Coded | None = None

    def take(self, rows: Integers) -> Origins:
        """Return those of these rows."""
        columns = (self.hosts, self.countries, self.scripts, self.months)
        return Origins(*(None if column is None else column.take(rows) for column in columns))


def origins_of(batch: pa.RecordBatch) -> Origins:
    """Return what stays with the documents of `batch`."""
    return replace(with_scripts(hosts_in(batch), batch), months=months_in(batch))


def hosts_in(batch: pa.RecordBatch) -> Origins:
    """Return what the URLs of the documents of `batch` say, without scripts."""
    if batch.schema.get_field_index("url") < 0:
        return Origins(None, None, None)
    hosts = coded(hosts_of(places_of(batch.column("url"))))
    countries = _over(hosts, [country_of(host) if host else None for host in hosts.values])
    return Origins(hosts, countries, None)


def with_scripts(origins: Origins, batch: pa.RecordBatch) -> Origins:
    """Return `origins` with the scripts of the texts of `batch`, unless they are known or a column says them."""
    names = batch.schema.names
    if origins.scripts is not None or "text" not in names or COLUMNS["script"] in names:
        return origins
    data, bounds = text_buffers(batch.column("text"))
    ends = np.minimum(bounds[1:], bounds[:-1] + SEEN)  # a letter that is cut there counts as none
    found = find_scripts(data, bounds[:-1], ends).script
    return replace(origins, scripts=Coded([None, *CODES[1:]], found.astype(np.int64)))


def _over(column: Coded, names: Sequence[str | None]) -> Coded:
    """Return `column` with `names` in the place of its values; equal ones become one."""
    renamed = coded(pa.array(names, pa.large_string()))
    return Coded(renamed.values, renamed.codes[column.codes])


class Who:
    """Counts of one shard by what documents are."""

    def __init__(self, transforms: Sequence[Transform]) -> None:
        named = [column for transform in transforms if isinstance(transform, CountBy) for column in transform.columns]
        self.named = tuple(dict.fromkeys(named))
        self.counts = bool(transforms)
        self.steps: dict[str, dict[tuple[str, str], _Values]] = {}
        self.hosts = _Hosts()

    def enter(self, batch: pa.RecordBatch) -> Origins:
        """Count the documents that come into the chain, and return what stays with them."""
        origins = origins_of(batch) if self.counts else hosts_in(batch)  # without steps nobody asks for scripts
        if origins.hosts is not None:
            self.hosts.count("documents", origins.hosts)
        return origins

    def count(
        self, step: str, origins: Origins, batch: pa.RecordBatch, lengths: Integers, dropped: Integers, outcome: Outcome
    ) -> None:
        """Count one batch through one step; `dropped` are the rows of what `outcome` drops, in its order."""
        if not batch.num_rows:
            return
        node = self.steps.setdefault(step, {})
        for name, column in self._columns(origins, batch, lengths).items():
            node.setdefault(("by", name), _Values(MOST)).count(column, column.take(dropped))
        if "language" in outcome.kept.schema.names and "language" not in batch.schema.names:
            found = coded(outcome.kept.column("language"))
            lost = _found(outcome.dropped.column("evidence"))
            node.setdefault(("by", "language"), _Values(MOST)).count_apart(found, lost)
        for name in self.named:
            if name in batch.schema.names:
                column = coded(batch.column(name))
                node.setdefault(("columns", name), _Values(MOST_NAMED)).count(column, column.take(dropped))
        if origins.hosts is not None and len(dropped):
            self.hosts.count(step, origins.hosts.take(dropped))

    def _columns(self, origins: Origins, batch: pa.RecordBatch, lengths: Integers) -> Columns:
        there = {name: c for name, c in COLUMNS.items() if c in batch.schema.names}
        columns = {name: coded(batch.column(column)) for name, column in there.items()}
        if origins.scripts is not None:
            columns.setdefault("script", origins.scripts)
        if origins.countries is not None:
            columns["country domain"] = origins.countries
        if origins.months is not None:
            columns[MONTH] = origins.months
        if "text" in batch.schema.names:
            columns["length"] = Coded(list(LENGTH_BINS), np.searchsorted(LENGTH_EDGES, lengths, side="right"))
        return columns

    def statistics(self) -> Statistics:
        """Return the counts: by step, attribute and value, and of the hosts with the lowest digests."""
        steps: Statistics = {}
        for step, node in self.steps.items():
            for (group, name), values in node.items():
                steps.setdefault(step, {}).setdefault(group, {})[name] = values.statistics()
        hosts = self.hosts.statistics()
        return {**({"steps": steps} if steps else {}), **({"hosts": hosts} if hosts["least"] else {})}


def _found(evidence: pa.Array) -> Coded:
    """Return the language that each evidence says: null where it says none."""
    told = coded(evidence)
    return _over(told, [_language(value) for value in told.values])


def _language(evidence: str | None) -> str | None:
    if evidence is None or '"language"' not in evidence:
        return None
    try:
        value = json.loads(evidence)
    except ValueError:
        return None
    language = value.get("language") if isinstance(value, dict) else None
    return language if isinstance(language, str) else None


class _Values:
    """Documents that came into a step, and those dropped, by value; and those without one."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.values: dict[str, list[int]] = {}
        self.without = [0, 0]

    def count(self, came: Coded, dropped: Coded) -> None:
        self._add(came, 0)
        self._add(dropped, 1)
        self._forget()

    def count_apart(self, kept: Coded, dropped: Coded) -> None:
        self._add(kept, 0)
        self.count(dropped, dropped)

    def _add(self, column: Coded, place: int) -> None:
        for value, documents in zip(column.values, column.counts(), strict=True):
            if documents and value is None:
                self.without[place] += documents
            elif documents:
                self.values.setdefault(str(value)[:NAME_LENGTH], [0, 0])[place] += documents

    def _forget(self) -> None:
        if len(self.values) > 8 * self.most:  # one that is not among the lowest now never will be
            self.values = {name: self.values[name] for name in lowest(self.values, self.most)}

    def statistics(self) -> Statistics:
        values = least({name: _counts(counts) for name, counts in self.values.items()}, self.most)
        return {"values": values, **({"without": _counts(self.without)} if any(self.without) else {})}


def _counts(counts: Sequence[int]) -> Statistics:
    return {"documents": counts[0], **({"dropped": counts[1]} if counts[1] else {})}


class _Hosts:
    """Documents by host: how many came into the chain, and how many each step dropped."""

    def __init__(self) -> None:
        self.counts: dict[str, dict[str, int]] = {}

    def count(self, what: str, hosts: Coded) -> None:
        for host, documents in zip(hosts.values, hosts.counts(), strict=True):
            if documents and host:
                counts = self.counts.setdefault(host, {})
                counts[what] = counts.get(what, 0) + documents
        if len(self.counts) > 8 * MOST_HOSTS:
            self.counts = {host: self.counts[host] for host in lowest(self.counts, MOST_HOSTS)}

    def statistics(self) -> Statistics:
        return least(
            {
                host: {
                    "documents": counts.get("documents", 0),
                    **({"dropped": lost} if (lost := {s: n for s, n in counts.items() if s != "documents"}) else {}),
                }
                for host, counts in self.counts.items()
            },
            MOST_HOSTS,
        )
