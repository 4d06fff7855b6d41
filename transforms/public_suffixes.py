"""Public suffixes: under which names anybody can register one ("com", "co.uk"), by the Public Suffix List.

The list is data of Mozilla's (publicsuffix.org), which changes weekly; it is read from the installed package `tld`,
which ships a copy, or from a file that the user names, and its digest is part of what it decides. A host's suffix is
that of the longest rule that fits; of exceptions ("!city.kobe.jp") the rule without its first label; where none fits,
the last label. The *registered domain* is the suffix and one label more: what one owner holds. The list has two
sections: suffixes of registries ("ICANN"), and of companies that give names below theirs away ("github.io"), which
`private` adds.

Invariants: hosts and rules are compared in lower case and Punycode; no network. Cost: 20 ms and 3 MB once per process;
1 to 2 µs per host.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from blake3 import blake3

from transforms.urls import normal_host

PACKAGE: Final = "tld"
PRIVATE: Final = "===BEGIN PRIVATE DOMAINS==="


class SuffixError(RuntimeError):
    """A suffix list that cannot be used: it is not there, or was changed while the recipe ran."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of one list: whole names, names of which every child is a suffix, and exceptions from these."""

    names: frozenset[str]
    parents: frozenset[str]
    exceptions: frozenset[str]

    def suffix(self, host: str) -> str:
        """Return the public suffix of `host`, a name in lower case without a full stop at its end."""
        last = host
        for name in _endings(host):
            if name in self.exceptions:
                return name.partition(".")[2]
            if name in self.names or name.partition(".")[2] in self.parents:
                return name
            last = name
        return last

    def registered(self, host: str) -> str | None:
        """Return the registered domain of `host`, None where it is a suffix itself or an address."""
        suffix = self.suffix(host)
        label = host[: -len(suffix) - 1].rpartition(".")[2] if len(suffix) < len(host) else ""
        return f"{label}.{suffix}" if label and not is_address(host) else None

    def are_suffixes(self, hosts: pa.LargeStringArray) -> pa.BooleanArray:
        """Return which of `hosts` are public suffixes themselves."""
        parent = pc.replace_substring_regex(hosts, r"^[^.]*\.", "")
        known = pc.is_in(hosts, value_set=_set(self.names))
        starred = pc.and_(pc.is_in(parent, value_set=_set(self.parents)), pc.not_equal(parent, hosts))
        listed = pc.and_not(pc.or_(known, starred), pc.is_in(hosts, value_set=_set(self.exceptions)))
        return pc.or_(listed, pc.invert(pc.match_substring(hosts, ".")))


def is_address(host: str) -> bool:
    """Return whether `host` is an IP address: in brackets, or with a last label of digits (WHATWG URL, 3.5)."""
    last = host.rpartition(".")[2]
    return host.startswith("[") or (bool(last) and set(last) <= set("0123456789"))


def suffix_file() -> Path:
    """Return the list that the installed package `tld` ships.

    Raises:
        SuffixError: the package is not installed, or ships no list.
    """
    found = find_spec(PACKAGE)
    path = Path(found.origin).parent / "res" / "effective_tld_names.dat.txt" if found and found.origin else None
    if path is None or not path.is_file():
        raise SuffixError(f"the package {PACKAGE} with its public suffix list is not there: pip install {PACKAGE}")
    return path


@lru_cache(maxsize=4)
def suffix_rules(path: Path, digest: str, private: bool) -> Rules:
    """Return the rules of the list at `path`, read once per process; `private`: of companies, too.

    Raises:
        SuffixError: it cannot be read, or its BLAKE3 is not `digest`.
    """
    content = read_suffixes(path)
    if blake3(content).hexdigest() != digest:
        raise SuffixError(f"{path} was changed while the recipe ran: run it again")
    names, parents, exceptions = set[str](), set[str](), set[str]()
    for rule in _rules(content.decode("utf-8", "replace"), private):
        if rule.startswith("*."):
            parents.add(normal_host(rule[2:]))
        elif rule.startswith("!"):
            exceptions.add(normal_host(rule[1:]))
        else:
            names.add(normal_host(rule))
    return Rules(frozenset(names), frozenset(parents), frozenset(exceptions))


def read_suffixes(path: Path) -> bytes:
    """Return the content of a suffix list.

    Raises:
        SuffixError: it cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise SuffixError(f"{path}: {error.strerror}: a public suffix list is needed here") from None


def _rules(content: str, private: bool) -> Iterator[str]:
    for line in content.split("\n"):
        if PRIVATE in line and not private:
            return
        rule = line.strip(" \t\r").partition(" ")[0]
        if rule and not rule.startswith("//"):
            yield rule


def _endings(host: str) -> Iterator[str]:
    """Yield `host` and what follows each of its full stops, longest first."""
    yield host
    while "." in host:
        host = host.partition(".")[2]
        yield host


def _set(names: frozenset[str]) -> pa.LargeStringArray:
    return pa.array(sorted(names), pa.large_string())
