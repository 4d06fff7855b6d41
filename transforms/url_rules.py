"""Rules on the column `url`: lists that drop or keep, words in addresses, and whose name a page lies under.

    URLDenyList(URLList("bad.txt.gz"))             drops what a list names, as "url list: bad"
    URLAllowList(URLList("trusted.txt"))           drops what no list names
    URLWords.of_datatrove()                        drops by words in the address, as FineWeb does
    URLDomain()                                    adds the columns `url_host` and `url_domain`; drops nothing

Each is usable alone; behind `.tag()` the first three drop nothing and write what they found as columns.
`datatrove_lists` names the lists of FineWeb (Penedo et al. 2024, section 3.1; RefinedWeb, Penedo et al. 2023, appendix
G.1): 4.6 million domains and 20,000 pages of Toulouse's blacklists and others, read where the package datatrove is
installed.

Invariants: a verdict depends on the URL and the configuration, digests of files included; URLs that mean the same page
get the same verdict, as lists and URLs are compared in normal form. Cost: see `transforms.url_places`,
`transforms.url_lists`; 4 to 6 µs per URL for two lists, 2 µs for words, 3 µs for domains.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from blake3 import blake3

from transforms.canonical import canonical_json
from transforms.many_digests import short_span_digests
from transforms.outcome import Outcome, SchemaError, kept, name_of, require
from transforms.public_suffixes import Rules, read_suffixes, suffix_file, suffix_rules
from transforms.schema import set_columns, with_columns
from transforms.url_lists import ListError, URLList, WordList, halves
from transforms.url_places import hosts_of, places_of, span_text, spans_of

HOST: Final = pa.field("url_host", pa.large_string())
DOMAIN: Final = pa.field("url_domain", pa.large_string())


@dataclass(frozen=True, slots=True)
class Finding:
    """Why a URL is to go: the reason, and the evidence by name."""

    reason: str
    evidence: dict[str, Any]


class URLRule(ABC):
    """Base of rules: a rule is a frozen dataclass that says what it finds in each URL of a batch."""

    __slots__ = ()

    version: ClassVar[int]
    libraries: ClassVar[tuple[str, ...]] = ()
    finds: ClassVar[tuple[str, ...]]
    """Names of its evidence."""
    prefix: ClassVar[str]
    """What the columns of its tag begin with."""

    @abstractmethod
    def findings(self, urls: pa.LargeStringArray) -> dict[int, Finding]:
        """Return row → finding of the URLs that are to go."""

    @abstractmethod
    def ready(self) -> None:
        """Load the lists; raise a RuntimeError where one cannot be used."""

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return `schema`.

        Raises:
            SchemaError: there is no column `url`.
        """
        require(schema, name_of(self), url=pa.large_string())
        return schema

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        """Drop the rows in whose URLs something is found."""
        found = self.findings(batch.column("url"))
        if not found:
            return kept(batch)
        dropped = [
            {
                "id": batch.column("id")[row].as_py(),
                "transform": name_of(self),
                "reason": found[row].reason,
                "evidence": canonical_json(found[row].evidence),
            }
            for row in sorted(found)
        ]
        stays = np.ones(batch.num_rows, np.bool_)
        stays[list(found)] = False
        return kept(batch.filter(pa.array(stays)), dropped=dropped)

    def tag(self, prefix: str = "") -> URLTag:
        """Return the transform that keeps every row and writes what this rule finds as columns.

        `prefix` starts the names of the columns: "url_deny_list", "url_allow_list" or "url_words" where none is given.
        """
        return URLTag(self, prefix or self.prefix)


@dataclass(frozen=True, slots=True)
class URLTag:
    """Keeps every row; writes `<prefix>_reason` (null: nothing found) and the evidence, `<prefix>_<name>`, as text."""

    rule: URLRule
    prefix: str

    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ()

    @property
    def name(self) -> str:
        """The name in ledgers and pages: "URLDenyList.tag"."""
        return f"{name_of(self.rule)}.tag"

    def ready(self) -> None:
        """Load the lists of the rule."""
        self.rule.ready()

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return `schema` with the columns of the tag.

        Raises:
            SchemaError: there is no column `url`, or a column of the tag is there already.
        """
        schema = self.rule.output_schema(schema)
        for column in self._columns():
            if schema.get_field_index(column.name) >= 0:
                raise SchemaError(f"the column {column.name!r} is there already; give the tag another prefix")
        return with_columns(schema, *self._columns())

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        """Return all rows with the columns of the tag."""
        found = self.rule.findings(batch.column("url"))
        values: dict[str, list[str | None]] = {name: [None] * batch.num_rows for name in ("reason", *self.rule.finds)}
        for row, finding in found.items():
            values["reason"][row] = finding.reason
            for name, value in finding.evidence.items():
                values[name][row] = value if isinstance(value, str) else canonical_json(value)
        arrays = [pa.array(column, pa.large_string()) for column in values.values()]
        return kept(set_columns(batch, dict(zip(self._columns(), arrays, strict=True))))

    def _columns(self) -> list[pa.Field[Any]]:
        return [pa.field(f"{self.prefix}_{name}", pa.large_string()) for name in ("reason", *self.rule.finds)]


@dataclass(frozen=True, slots=True, init=False)
class URLDenyList(URLRule):
    """Drops the documents whose URL a list names, as "url list: NAME" with the entry and its line; no URL: it stays."""

    lists: tuple[URLList, ...]

    version: ClassVar[int] = 1
    finds: ClassVar[tuple[str, ...]] = ("list", "entry", "line")
    prefix: ClassVar[str] = "url_deny_list"

    def __init__(self, *lists: URLList) -> None:
        """Take `lists`; where several name a URL, the first says why."""
        object.__setattr__(self, "lists", _checked(lists))

    def ready(self) -> None:
        """Make or map the indexes."""
        for listed in self.lists:
            listed.index()

    def findings(self, urls: pa.LargeStringArray) -> dict[int, Finding]:
        """Return what the lists name."""
        return {
            row: Finding(f"url list: {name}", {"list": name, "entry": entry, "line": line})
            for row, (name, entry, line) in look_up(self.lists, urls).items()
        }


@dataclass(frozen=True, slots=True, init=False)
class URLAllowList(URLRule):
    """Drops the documents whose URL no list names, as "not in url list"; also those without a URL."""

    lists: tuple[URLList, ...]

    version: ClassVar[int] = 1
    finds: ClassVar[tuple[str, ...]] = ("lists",)
    prefix: ClassVar[str] = "url_allow_list"

    def __init__(self, *lists: URLList) -> None:
        """Take `lists`: a document stays if one of them names its URL."""
        object.__setattr__(self, "lists", _checked(lists))

    def ready(self) -> None:
        """Make or map the indexes."""
        for listed in self.lists:
            listed.index()

    def findings(self, urls: pa.LargeStringArray) -> dict[int, Finding]:
        """Return what no list names."""
        named = look_up(self.lists, urls)
        names = [listed.name for listed in self.lists]
        finding = Finding("not in url list", {"lists": names})
        return {row: finding for row in range(len(urls)) if row not in named}


@dataclass(frozen=True, slots=True)
class URLWords(URLRule):
    """Drops by words in the URL: one of `banned`, `least_soft` different ones of `soft`, or a part out of `parts`.

    Words are runs of letters a-z and digits, in any case; parts are looked for in all letters and digits of the URL put
    together, so that "s-e-x" is found by "sex". Reasons: "banned word", "soft words", "part of a word".

    datatrove, whose lists `of_datatrove` takes, tells words apart by case ("Porn" is none of its words, but is one
    here).
    """

    banned: WordList | None = None
    soft: WordList | None = None
    parts: WordList | None = None
    least_soft: int = 2

    version: ClassVar[int] = 1
    finds: ClassVar[tuple[str, ...]] = ("words",)
    prefix: ClassVar[str] = "url_words"

    def __post_init__(self) -> None:
        if self.banned is None and self.soft is None and self.parts is None:
            raise ValueError("URLWords needs a list: banned=, soft= or parts=")
        if self.least_soft < 1:
            raise ValueError(f"least_soft={self.least_soft}: at least one soft word is needed to drop a document")

    @classmethod
    def of_datatrove(cls, least_soft: int = 2) -> URLWords:
        """Return the rule with the three lists of the installed package datatrove.

        Raises:
            ListError: it is not installed, or has no such lists.
        """
        folder = _datatrove()
        names = ("banned_words", "soft_banned_words", "banned_subwords")
        banned, soft, parts = (WordList(folder / f"{name}.txt") for name in names)
        return cls(banned, soft, parts, least_soft)

    def ready(self) -> None:
        """Read the lists."""
        for listed in (self.banned, self.soft, self.parts):
            if listed is not None:
                listed.words()

    def findings(self, urls: pa.LargeStringArray) -> dict[int, Finding]:
        """Return the words found, most telling rule first."""
        lower = pc.ascii_lower(pc.fill_null(urls, ""))
        found: dict[int, Finding] = {}
        for row, words in _whole_words(lower, self.banned):
            found[row] = Finding("banned word", {"words": words})
        for row, words in _whole_words(lower, self.soft):
            if len(words) >= self.least_soft:
                found.setdefault(row, Finding("soft words", {"words": words}))
        for row, words in _parts(lower, self.parts):
            found.setdefault(row, Finding("part of a word", {"words": words}))
        return found


@dataclass(frozen=True, slots=True)
class URLDomain:
    """Adds `url_host` and `url_domain`, the registered domain: what one owner holds ("example.co.uk").

    Both are null without a URL; `url_domain` also for addresses and public suffixes themselves. `private`: names below
    those of companies that give names away ("someone.github.io") are domains of their own.
    """

    private: bool = True
    public_suffixes: Path | None = field(default=None, compare=False, metadata={"key": False})
    digest: str = field(init=False, default="")

    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        content = read_suffixes(self.public_suffixes or suffix_file())
        object.__setattr__(self, "digest", blake3(content).hexdigest())

    def ready(self) -> None:
        """Read the public suffix list."""
        self._rules()

    def _rules(self) -> Rules:
        return suffix_rules(self.public_suffixes or suffix_file(), self.digest, self.private)

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return `schema` with the two columns.

        Raises:
            SchemaError: there is no column `url`.
        """
        require(schema, "URLDomain", url=pa.large_string())
        return with_columns(schema, HOST, DOMAIN)

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        """Return all rows with the two columns."""
        hosts, rules = hosts_of(places_of(batch.column("url"))), self._rules()
        coded = hosts.dictionary_encode()
        domains = [rules.registered(host) for host in coded.dictionary.to_pylist()]
        known = pc.if_else(pc.equal(hosts, ""), pa.scalar(None, pa.large_string()), hosts)
        of_hosts = pa.array(domains, pa.large_string()).take(coded.indices)
        return kept(set_columns(batch, {HOST: known, DOMAIN: of_hosts}))


def datatrove_lists() -> tuple[URLList, URLList]:
    """Return the lists of domains and of pages that the installed package datatrove ships.

    Lines that are public suffixes ("xxx") are left out, as they name nothing to datatrove either.

    Raises:
        ListError: it is not installed, or has no such lists.
    """
    archives = sorted(_datatrove().glob("url_filterblacklists*.tar.gz"))
    if not archives:
        raise ListError(f"{_datatrove()} has no url_filterblacklists*.tar.gz: install datatrove 0.10")
    names = {"domains": "datatrove domains", "urls": "datatrove urls"}
    domains, urls = (URLList(archives[-1], names[member], member, "ignore") for member in names)
    return domains, urls


def look_up(lists: Sequence[URLList], urls: pa.LargeStringArray) -> dict[int, tuple[str, str, int]]:
    """Return row → (list, entry, line) of the first entry of the first list that names a URL."""
    data, rows, starts, ends = spans_of(places_of(urls))
    if not len(rows):
        return {}
    digests = halves(short_span_digests(data, starts, ends))
    found: dict[int, tuple[str, str, int]] = {}
    for listed in lists:
        lines = listed.index().lines(digests)
        for hit in np.flatnonzero(lines >= 0).tolist():
            entry = (listed.name, span_text(data, starts[hit], ends[hit]), int(lines[hit]))
            found.setdefault(int(rows[hit]), entry)
    return found


def _checked(lists: Sequence[URLList]) -> tuple[URLList, ...]:
    if not lists:
        raise ValueError('give a list, as URLDenyList(URLList("bad.txt"))')
    for listed in lists:
        if not isinstance(listed, URLList):
            raise TypeError(f"a list of URLs is a URLList, got {listed!r}")
    names = [listed.name for listed in lists]
    if len(set(names)) < len(names):
        raise ValueError(f"lists need different names, got {', '.join(names)}: URLList(…, name=…)")
    return tuple(lists)


def _datatrove() -> Path:
    """Return the folder of lists of the installed package datatrove, which is not imported."""
    found = find_spec("datatrove")
    folder = Path(found.origin).parent / "assets" if found and found.origin else None
    if folder is None or not (folder / "banned_words.txt").is_file():
        raise ListError("the package datatrove with its URL lists is not there: pip install datatrove")
    return folder


def _whole_words(lower: pa.LargeStringArray, listed: WordList | None) -> list[tuple[int, list[str]]]:
    """Return row and words, sorted, of the URLs that hold words of a list."""
    words = listed.words() if listed else ()
    if not words:
        return []
    chosen = frozenset(words)
    rows = _matching(lower, rf"(?:^|[^0-9a-z])(?:{'|'.join(words)})(?:$|[^0-9a-z])")
    return [(row, sorted(chosen.intersection(re.split("[^0-9a-z]+", lower[row].as_py())))) for row in rows]


def _parts(lower: pa.LargeStringArray, listed: WordList | None) -> list[tuple[int, list[str]]]:
    """Return row and parts, sorted, of the URLs whose letters and digits hold parts of a list."""
    words = listed.words() if listed else ()
    if not words:
        return []
    together = pc.replace_substring_regex(lower, "[^0-9a-z]+", "")
    found = [(row, together[row].as_py()) for row in _matching(together, "|".join(words))]
    return [(row, [word for word in words if word in text]) for row, text in found]


def _matching(texts: pa.LargeStringArray, pattern: str) -> list[int]:
    rows: list[int] = pc.indices_nonzero(pc.match_substring_regex(texts, pattern)).to_pylist()
    return rows
