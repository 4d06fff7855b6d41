"""Mergeable statistics: nested dictionaries of integers, and four leaves that merge by their own rule.

Merging is commutative and associative, so the statistics of a dataset do not depend on the order in which its shards
finished. Leaves:

- an integer adds;
- {"sum": hex} adds modulo 2^256 (a multiset of texts);
- {"hll": hex} takes register-wise maxima (HyperLogLog, Flajolet et al. 2007, 2^12 registers, error 1.6 %);
- {"bits": hex} is a set of numbers, bit n set for n: it takes the union;
- {"least": {digest: {…}}, "k": k} keeps the k entries with the lowest digest and merges the values of equal ones: what
  is kept of an entry is exact, because the k lowest of a union are among the k lowest of the parts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

from blake3 import blake3

from curate.digests import add_sums, sum_digests

Statistics = dict[str, Any]

HLL_BITS: Final = 12
LEAST: Final = 1024
LENGTH_EDGES: Final = tuple(2**power for power in range(4, 25))
"""Edges of the histogram of text lengths, in code points: a bin holds the lengths below its edge."""


def merge(left: Mapping[str, Any], right: Mapping[str, Any]) -> Statistics:
    """Return the statistics of the union.

    Raises:
        ValueError: a value has another shape on the other side.
    """
    if isinstance(left.get("sum"), str):  # by type: a licence or language may be called "sum"
        return {"sum": add_sums(left["sum"], right["sum"])}
    if isinstance(left.get("hll"), str):
        registers = zip(bytes.fromhex(left["hll"]), bytes.fromhex(right["hll"]), strict=True)
        return {"hll": bytes(max(pair) for pair in registers).hex()}
    if isinstance(left.get("bits"), str):
        return {"bits": f"{int(left['bits'], 16) | int(right['bits'], 16):x}"}
    if isinstance(left.get("k"), int):
        if left["k"] != right["k"]:
            raise ValueError(f"cannot merge the {left['k']} lowest with the {right['k']} lowest")
        union = _merge_nested(left["least"], right["least"])
        return {"least": {digest: union[digest] for digest in sorted(union)[: left["k"]]}, "k": left["k"]}
    return _merge_nested(left, right)


def _merge_nested(left: Mapping[str, Any], right: Mapping[str, Any]) -> Statistics:
    result = dict(left)
    for name, value in right.items():
        result[name] = _merge_values(name, result[name], value) if name in result else value
    return result


def _merge_values(name: str, left: Any, right: Any) -> Any:
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return merge(left, right)
    if isinstance(left, int) and isinstance(right, int):
        return left + right
    if isinstance(left, str) and left == right:  # labels, as the name of a step
        return left
    raise ValueError(f"cannot merge {name!r}: {left!r} and {right!r}")


def merge_all(parts: Iterable[Statistics]) -> Statistics:
    """Return the statistics of the union of `parts`, merged pairwise in a tree.

    Memory: a part, and the merged statistics of the last 2^k parts for a few k.
    """
    pending: list[tuple[int, Statistics]] = []  # how many parts, falling, and what they say together
    for part in parts:
        count = 1
        while pending and pending[-1][0] == count:
            part = merge(pending.pop()[1], part)
            count *= 2
        pending.append((count, part))
    merged = pending.pop()[1] if pending else {}
    while pending:
        merged = merge(pending.pop()[1], merged)
    return merged


def add(statistics: Statistics, path: Iterable[str], amount: int) -> None:
    """Add `amount` to the counter at `path`, made where it is not there yet."""
    *folders, name = path
    node = statistics
    for folder in folders:
        node = node.setdefault(folder, {})
    node[name] = node.get(name, 0) + amount


def text_sum(digests: Iterable[bytes]) -> Statistics:
    """Return the leaf that names the multiset of these text digests."""
    return {"sum": sum_digests(digests)}


def distinct(values: Iterable[bytes]) -> Statistics:
    """Return the HyperLogLog leaf of `values`."""
    registers = bytearray(1 << HLL_BITS)
    observe(registers, values)
    return {"hll": registers.hex()}


def observe(registers: bytearray, values: Iterable[bytes]) -> None:
    """Add `values` to the `registers` of a HyperLogLog leaf."""
    for value in values:
        number = int.from_bytes(blake3(value).digest(8), "big")
        index, rest = number >> (64 - HLL_BITS), number & ((1 << (64 - HLL_BITS)) - 1)
        registers[index] = max(registers[index], 64 - HLL_BITS - rest.bit_length() + 1)


def estimate_distinct(leaf: Mapping[str, str]) -> int:
    """Return the estimated number of distinct values of a HyperLogLog leaf (linear counting when few)."""
    registers = bytes.fromhex(leaf["hll"])
    count = len(registers)
    raw = 0.7213 / (1 + 1.079 / count) * count**2 / sum(2.0**-register for register in registers)
    empty = registers.count(0)
    return round(count * math.log(count / empty) if raw <= 2.5 * count and empty else raw)


def least(entries: Mapping[str, Statistics], k: int = LEAST) -> Statistics:
    """Return the leaf that keeps the `k` entries with the lowest digest of their name; names stay in the entry."""
    named = {blake3(name.encode()).hexdigest(16): {"name": name, **values} for name, values in entries.items()}
    return {"least": {digest: named[digest] for digest in sorted(named)[:k]}, "k": k}


def lowest(names: Iterable[str], k: int = LEAST) -> list[str]:
    """Return the `k` of `names` that `least` keeps."""
    return sorted(names, key=lambda name: blake3(name.encode()).digest(16))[:k]


def length_bin(characters: int) -> str:
    """Return the name of the histogram bin of a text of this many code points: its exclusive upper edge."""
    for edge in LENGTH_EDGES:
        if characters < edge:
            return str(edge)
    return "more"


LENGTH_BINS: Final = tuple(length_bin(edge) for edge in (0, *LENGTH_EDGES))
"""Names of the bins of the histogram of lengths, by how many edges lie at or below a length."""
