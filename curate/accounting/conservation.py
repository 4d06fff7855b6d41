"""Conservation: what went into a task equals what came out, was dropped, cut or is a recorded gap."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from curate.accounting.accountant import ConservationError
from curate.accounting.statistics import Statistics
from curate.receipts import Receipt

FLOWS: Final = ("documents_in", "documents_out", "characters_in", "characters_out", "payload_bytes_in")


def check_documents(receipt: Receipt, label: str) -> None:
    """Raise unless documents and code points of a receipt add up: read = kept + dropped, step by step.

    Raises:
        ConservationError: they do not; the message has both sides.
    """
    statistics = receipt.statistics
    for source, counts in statistics.get("reading", {}).items():
        _check_reading(source, counts, label)
    steps = [statistics["steps"][index] for index in sorted(statistics["steps"], key=int)]
    part = receipt.files.get("part.parquet")
    out = (part.rows or 0) if part else 0
    flow = [_totals(step) for step in steps]
    for step, totals in zip(steps, flow, strict=True):
        _check_step(step["name"], totals, label)
    for before, after in pairwise(flow):
        if before["documents_out"] != after["documents_in"] or before["characters_out"] != after["characters_in"]:
            raise ConservationError(f"{label}: {before} went out of one step, {after} into the next")
    _check_read(statistics, flow[0]["documents_in"] if flow else out, label)
    if flow and flow[-1]["documents_out"] != out:
        raise ConservationError(
            f"{label}: {flow[-1]['documents_out']} documents left the last step, {out} were written"
        )


def _check_reading(source: str, counts: Statistics, label: str) -> None:
    """Raise unless records, refused and structural records and gaps add up to the file, in each unit."""
    sums = dict.fromkeys(counts.get("total", {}), 0)
    for group in ("records", "refused", "structural", "gaps"):
        for counted in counts.get(group, {}).values():
            for place, length in counted.items():
                if place != "count":
                    sums[place] = sums.get(place, 0) + length
    if sums != counts.get("total", {}):
        raise ConservationError(f"{label}, {source}: records and gaps add up to {sums}, the file has {counts['total']}")


def _check_read(statistics: Statistics, entered: int, label: str) -> None:
    """Raise unless the records read are the documents that entered the first step, but for quarantined ones."""
    if "reading" not in statistics:
        return
    read = sum(counts.get("records", {}).get("read", {}).get("count", 0) for counts in statistics["reading"].values())
    kept_back = _totals(statistics["quarantine"])["dropped"] if "quarantine" in statistics else 0
    if read != entered + kept_back:
        raise ConservationError(f"{label}: {read} records were read, {entered} entered, {kept_back} are quarantined")


def _totals(step: Statistics) -> dict[str, int]:
    totals = dict.fromkeys((*FLOWS, "dropped", "dropped_characters", "cut", "inserted"), 0)
    for source in step["sources"].values():
        for name in FLOWS:
            totals[name] += source.get(name, 0)
        for reasons in source.get("dropped", {}).values():
            for counted in reasons.values():
                totals["dropped"] += counted["documents"]
                totals["dropped_characters"] += counted["characters"]
        for edit in source.get("edits", {}).values():
            totals["cut"] += edit["cut"]
            totals["inserted"] += edit["inserted"]
    return totals


def _check_step(name: str, totals: dict[str, int], label: str) -> None:
    if totals["documents_in"] != totals["documents_out"] + totals["dropped"]:
        raise ConservationError(
            f"{label}, {name}: {totals['documents_in']} documents in, {totals['documents_out']} out, "
            f"{totals['dropped']} dropped"
        )
    if totals["payload_bytes_in"]:
        return  # text starts here: bytes in, characters out
    left = totals["characters_in"] + totals["inserted"]
    right = totals["characters_out"] + totals["dropped_characters"] + totals["cut"]
    if left != right:
        raise ConservationError(f"{label}, {name}: code points in + inserted = {left}, out + dropped + cut = {right}")
