"""What a benchmark's last line holds, and which benchmarks there are: what `benchmarks.comparisons` relies on.

A benchmark is `python -m benchmarks.NAME [--size small|full] [--peers]`. Its last line is one JSON object:

    name, unit   what was measured, in what
    ours         our rate, or null where only checks were asked for
    peers        tool → its rate in the same unit, measured in the same run; {} where there is none, or none was asked
    ratio        ours over the best peer's, or over the one that an issue names; null without peers
    rows         more comparisons of the same run: [{what, ours, peers, where they differ unit, less}]; may be absent
    checks       name → [value, bound in words, whether it holds]
    versions     package → version, Python included

More is larger is better, unless a row says `"less": true`. The exit status is 1 when a check fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

NAMES: Final = (
    *("readers", "extraction", "filters", "language", "minhash", "dedup", "decontamination", "tokens", "windows"),
    *("loader", "engine", "chaos", "report", "trainer", "evidence", "end_to_end"),
)
"""The benchmarks of a part each; others beside them look at one question only."""

KEYS: Final = ("name", "unit", "ours", "peers", "ratio", "checks", "versions")


def faults_of(line: Mapping[str, Any]) -> list[str]:
    """Return in words where a last line breaks the contract; none where it obeys it."""
    faults = [f"no {key}" for key in KEYS if key not in line]
    if faults:
        return faults
    faults += [f"{key} is no text" for key in ("name", "unit") if not isinstance(line[key], str)]
    faults += [f"{key} is no number" for key in ("ours", "ratio") if not _is_number(line[key], or_none=True)]
    faults += _faults_of_peers(line["peers"], "peers")
    if not isinstance(line["checks"], Mapping) or not line["checks"]:
        faults.append("there are no checks")
    else:
        faults += [f"check {name!r} is not [value, bound, holds]" for name, it in line["checks"].items() if _is_bad(it)]
    if not isinstance(line["versions"], Mapping) or "python" not in line["versions"]:
        faults.append("versions do not say which Python")
    for row in line.get("rows", []):
        if not isinstance(row.get("what"), str) or not _is_number(row.get("ours")):
            faults.append(f"row {row!r} needs what and ours")
        faults += _faults_of_peers(row.get("peers"), f"peers of {row.get('what')!r}")
    return faults


def _faults_of_peers(peers: Any, what: str) -> list[str]:
    if not isinstance(peers, Mapping):
        return [f"{what} is no mapping"]
    return [f"{what}: {name!r} has no number" for name, rate in peers.items() if not _is_number(rate)]


def _is_number(value: Any, *, or_none: bool = False) -> bool:
    return (value is None and or_none) or (isinstance(value, (int, float)) and not isinstance(value, bool))


def _is_bad(check: Any) -> bool:
    return not (
        isinstance(check, list) and len(check) == 3 and isinstance(check[1], str) and isinstance(check[2], bool)
    )
