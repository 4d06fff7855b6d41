"""The quarantine list of a shard: documents that a step could not be applied to, and what happened.

`<store>/quarantine/<shard key>.jsonl` holds one canonical JSON object a line: shard, id, reason, transform, evidence.
It is created once, before the shard's files; its digest stands in the receipt, because what it says is part of the
input: a task that finds a list drops its documents at the step that they fell in, and never tries them. Lists name
their shards, so the lists of one store, one after the other, are what another run is given (`--quarantine FILE`): a
shard key says which recipe, which input and which versions, and a verdict holds for these only.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from curate.accounting.statistics import Statistics
from curate.configuration import ConfigurationError
from curate.digests import digest_bytes, short
from curate.receipts import read_receipt
from curate.store import Store, StoreError, json_line

REASONS: Final = ("crashed", "hung", "out of memory", "raised")
"""What can happen to a document that is tried alone: its process ended by a signal or by itself, it was silent longer
than the limit, it took more memory than the limit, or the transform raised an exception."""

PREFIX: Final = "quarantined: "
"""How the reason begins under which a document with a verdict is dropped."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A document that must not reach the step `transform`, and why: one of `REASONS`.

    `evidence` is canonical JSON: the signal, the limit, or type and message of the exception.
    """

    id: bytes
    reason: str
    transform: str
    evidence: str | None = None


@dataclass(frozen=True, slots=True)
class Quarantine:
    """The verdicts on one shard, and the digest of the list (None when there is none)."""

    verdicts: Mapping[bytes, Verdict]
    digest: str | None

    def of_step(self, transform: str) -> Mapping[bytes, Verdict]:
        """Return the verdicts that stop documents at the step of that name."""
        return {identity: verdict for identity, verdict in self.verdicts.items() if verdict.transform == transform}


NO_QUARANTINE: Final = Quarantine({}, None)

Verdicts = Mapping[str, Mapping[bytes, Verdict]]
"""Verdicts by shard key and document."""


def quarantine_name(key: str) -> str:
    """Return the name of the quarantine list of the shard `key` within the store."""
    return f"quarantine/{short(key)}.jsonl"


def write_quarantine(store: Store, key: str, verdicts: Iterable[Verdict]) -> str:
    """Publish the quarantine list of the shard `key` and return its digest.

    Raises:
        StoreError: another list is published already.
    """
    return store.publish_bytes(quarantine_list(key, verdicts), quarantine_name(key))


def quarantine_list(key: str, verdicts: Iterable[Verdict]) -> bytes:
    """Return the quarantine list of the shard `key`, ordered by document."""
    lines = [
        {"shard": key, "id": v.id.hex(), "reason": v.reason, "transform": v.transform, "evidence": v.evidence}
        for v in sorted(verdicts, key=lambda verdict: verdict.id)
    ]
    return b"".join(map(json_line, lines))


def read_quarantine(store: Store, key: str) -> Quarantine:
    """Return the quarantine list of the shard `key`, empty when there is none.

    Raises:
        StoreError: a line is not a verdict on a document of this shard.
    """
    name = quarantine_name(key)
    if not store.exists(name):
        return NO_QUARANTINE
    content = store.read_bytes(name)
    try:
        verdicts = parsed_lists(content, key)
    except ValueError as error:
        raise StoreError(f"{store.url(name)} {error}") from error
    if strange := sorted(set(verdicts) - {key}):
        raise StoreError(f"{store.url(name)} has a verdict on the shard {strange[0]}, and belongs to {key}")
    return Quarantine(verdicts.get(key, {}), digest_bytes(content))


def read_lists(files: Sequence[str | Path]) -> Verdicts:
    """Return the verdicts of quarantine lists of other runs.

    Raises:
        ConfigurationError: a file is not there, a line is no verdict, or two say different things of a document.
    """
    verdicts: dict[str, dict[bytes, Verdict]] = {}
    for file in files:
        try:
            found = parsed_lists(Path(file).read_bytes())
        except OSError as error:
            raise ConfigurationError(f"{file}: {error.strerror}; --quarantine takes quarantine lists") from error
        except ValueError as error:
            raise ConfigurationError(f"{file} {error}") from error
        for key, listed in found.items():
            mine = verdicts.setdefault(key, {})
            for identity, verdict in listed.items():
                if mine.setdefault(identity, verdict) != verdict:
                    raise ConfigurationError(f"{file} says of document {identity.hex()} other than a list before it")
    return verdicts


def check_passed(store: Store, passed: Verdicts) -> None:
    """Raise where `store` has made a shard already, and with other verdicts than those that were passed in.

    Raises:
        ConfigurationError: the message names the shard and the remedy.
    """
    for key in sorted(passed):
        receipt = read_receipt(store, key)
        if receipt is None:
            continue
        if not set(passed[key].values()) <= set(read_quarantine(store, key).verdicts.values()):
            raise ConfigurationError(
                f"{store.url('')} has made the shard {short(key)} already, without the verdicts of the quarantine list "
                "that was passed in. Results are immutable: pass the list with a new store"
            )


def all_lists(store: Store) -> bytes:
    """Return the quarantine lists of `store`, one after the other, as `read_lists` takes them."""
    return b"".join(store.read_bytes(name) for name in store.names("quarantine"))


def quarantined(statistics: Statistics) -> dict[str, int]:
    """Return how many documents a dataset or shard with these statistics lost by verdicts, by reason."""
    counts: Counter[str] = Counter()
    for step in statistics.get("steps", {}).values():
        for flow in step["sources"].values():
            for reasons in flow.get("dropped", {}).values():
                for reason, counted in reasons.items():
                    if reason.startswith(PREFIX):
                        counts[reason.removeprefix(PREFIX)] += counted["documents"]
    return dict(sorted(counts.items()))


def parsed_lists(content: bytes, key: str | None = None) -> dict[str, dict[bytes, Verdict]]:
    """Return the verdicts of a list by shard; lines of the first format name none, and are of `key`.

    Raises:
        ValueError: a line is no verdict.
    """
    verdicts: dict[str, dict[bytes, Verdict]] = {}
    for number, line in enumerate(content.splitlines(), 1):
        try:
            value = json.loads(line)
            shard = value.get("shard", key)
            verdict = Verdict(bytes.fromhex(value["id"]), value["reason"], value["transform"], value["evidence"])
            if verdict.reason not in REASONS or len(verdict.id) != 16 or not isinstance(shard, str):
                raise ValueError(f"shard {shard!r}, reason {verdict.reason!r}, id {value['id']!r}")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"line {number} is not a quarantine verdict: {error}") from error
        verdicts.setdefault(shard, {})[verdict.id] = verdict
    return verdicts
