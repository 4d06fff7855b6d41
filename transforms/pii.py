"""Masking of e-mail addresses and public IP addresses in text.

Invariants: a mask is a constant, so the output for a document depends on that document alone; masking is
idempotent (a mask is never part of a match); only validated matches are replaced. All character classes are ASCII
ones and every pattern looks at a bounded neighbourhood, so the time is linear in the text whatever it holds.

Rules, and where they differ from FineWeb's (Penedo et al. 2024, section 3.6, and datatrove's `PIIFormatter`):

- *e-mail address*: up to 64 letters, digits or ``. _ % + -`` before the ``@`` (RFC 5321, section 4.5.3.1: the last
  64 of a longer run), then labels of at most 63 characters ending in a top-level domain of letters. The rarer
  characters that RFC 5322 permits (``! # $ & ' * / = ?`` …) are left outside: they would swallow the path and query
  of a URL. ``icon@2x.png`` and ``package@1.2.3-beta.rc`` are no addresses. Addresses written with non-ASCII letters
  or as "name at example" are not found; ``git@example.org:`` and code like ``self.a@self.b`` are masked.
- *IPv4 address*: four numbers 0-255 without leading zeros that stand alone: no ASCII letter, digit, ``_``, ``-`` or
  ``.`` directly before, and none that continues it after. So nothing is found in ``1.2.3.4.5``, ``12.34.56.789``,
  ``v1.2.3.4`` or ``tool-1.2.3.4``, nor in ``Chrome/120.0.0.0``, after a comparison (``==1.2.3.4``), or after a word
  as "version" or "section". A bare ``1.2.3.4`` remains ambiguous and is masked.
- *IPv6 address*: global unicast only (2000::/3, RFC 4291), in any valid spelling.
- As in FineWeb only *public* addresses are masked: private, loopback, link-local, documentation and other special
  addresses identify nobody. The table is IANA's special-purpose registries as of 2024 (RFC 6890 and its updates),
  kept here because `ipaddress.is_global` changed between Python 3.12.3 and 3.12.4. Unlike there, multicast
  addresses are not masked.

Cost: one pass of a linear regular expression over the batch (0.8 GB/s here); documents in which it finds
something are then searched one by one (1 GB/s each for the three kinds).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final, cast

import pyarrow as pa
import pyarrow.compute as pc

from transforms.outcome import Outcome, canonical_json, kept, require

Span = tuple[int, int]

EVIDENCE_SPANS: Final = 50
"""At most so many spans of a document are written as evidence; the counts are of all."""

CANDIDATE: Final = (
    r"[A-Za-z0-9._%+-]@[A-Za-z0-9]"
    r"|[0-9]\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]"
    r"|[23][0-9A-Fa-f]{3}:[0-9A-Fa-f:]"
)
"""What a text without any address lacks (RE2 syntax): the test of whole batches."""

DIGITS: Final = "0123456789"
LOCAL: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._%+-"
AT: Final = re.compile(r"@[A-Za-z0-9]")
DOMAIN: Final = re.compile(
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+(?:xn--[A-Za-z0-9-]{0,58}[A-Za-z0-9]|[A-Za-z]{2,63})"
)
NO_DOMAIN: Final = re.compile(r"[0-9]+\.[0-9]|[0-9]+x\.(?:avif|gif|jpe?g|png|svg|webp)\Z")
LOCAL_LENGTH: Final = 64
DOMAIN_LENGTH: Final = 253

FIRST_DOT: Final = re.compile(r"\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]")
IPV4: Final = re.compile(
    r"(?<![0-9A-Za-z_.-])[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}(?![0-9A-Za-z_])(?![.-][0-9A-Za-z])"
)
FIRST_COLON: Final = re.compile(r":[0-9A-Fa-f:]")
IPV6: Final = re.compile(
    r"(?:(?<![0-9A-Za-z_.:-])|(?<=[G-Zg-z]:))[23][0-9A-Fa-f]{3}:[0-9A-Fa-f:.]{1,48}+(?![0-9A-Za-z_:.])"
)
VERSION: Final = re.compile(
    r"(?:[A-Za-z]/|[=!~<>]=[ ]?|[~^]"
    r"|(?<![A-Za-z])(?:v|ver|version|release|build|rev|revision|sec|section|chapter|clause|table|figure)[.:=]?[ ]?)\Z",
    re.ASCII | re.IGNORECASE,
)
VERSION_LENGTH: Final = 16

MASK: Final = re.compile(r"<[A-Za-z]{1,20}>")


def _networks(*networks: str) -> tuple[tuple[int, int], ...]:
    """Return (first address, last address) of each network, as integers."""
    parsed = [ipaddress.ip_network(network) for network in networks]
    return tuple((int(network.network_address), int(network.broadcast_address)) for network in parsed)


SPECIAL_V4: Final = _networks(
    "0.0.0.0/8",  # this network
    "10.0.0.0/8",  # private use
    "100.64.0.0/10",  # shared address space
    "127.0.0.0/8",  # loopback
    "169.254.0.0/16",  # link-local
    "172.16.0.0/12",  # private use
    "192.0.0.0/24",  # protocol assignments
    "192.0.2.0/24",  # documentation
    "192.168.0.0/16",  # private use
    "198.18.0.0/15",  # benchmarking
    "198.51.100.0/24",  # documentation
    "203.0.113.0/24",  # documentation
    "224.0.0.0/4",  # multicast
    "240.0.0.0/4",  # reserved, with netmasks as 255.255.255.0
)
"""IPv4 networks whose addresses are left as they are."""

SPECIAL_V6: Final = _networks(
    "2001::/23",  # protocol assignments
    "2001:db8::/32",  # documentation
    "3fff::/20",  # documentation
)
"""Networks inside the global unicast range 2000::/3 whose addresses are left as they are."""


@dataclass(frozen=True, slots=True)
class MaskPII:
    """Replaces e-mail addresses and public IP addresses by constant masks; the rules stand in the module docstring.

    Edits have the reasons "e-mail" and "ip address"; their evidence is the list of [start, end] code points in the
    input text, the first `EVIDENCE_SPANS` of them.

    Args:
        email: the mask of e-mail addresses, ``<letters>``.
        ip: the mask of IP addresses, ``<letters>``.

    Raises:
        ValueError: a mask is not of the form ``<letters>``, which is what keeps masking idempotent.
    """

    email: str = "<email>"
    ip: str = "<ip>"

    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for mask in (self.email, self.ip):
            if not MASK.fullmatch(mask):
                raise ValueError(f"a mask has the form <letters>, as <email>; got {mask!r}")

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return `schema` unchanged; `text` is needed."""
        require(schema, "MaskPII", text=pa.large_string())
        return schema

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        """Mask the texts of `batch`; every row is kept."""
        self.output_schema(batch.schema)
        texts = cast(pa.LargeStringArray, batch.column("text"))
        replaced: dict[int, str] = {}
        edits: list[dict[str, Any]] = []
        for row in _candidates(texts):
            text = texts[row].as_py()
            masked, found = self._mask(text)
            if masked != text:
                replaced[row] = masked
                edits.extend(self._edit(batch.column("id")[row].as_py(), *item) for item in found if item[1])
        if not replaced:
            return kept(batch)
        position = batch.schema.get_field_index("text")
        return kept(batch.set_column(position, batch.schema.field("text"), _with_rows(texts, replaced)), edits=edits)

    def _mask(self, text: str) -> tuple[str, list[tuple[str, list[Span], str]]]:
        """Return the masked text, and (reason, spans in the input, mask) of the two kinds."""
        emails = list(find_emails(text))
        text = _replace(text, emails, self.email)
        long = [span for span in find_ipv6(text) if not _has_masked_tail(text, span[1], self.ip)]
        shorter = _replace(text, long, self.ip)
        masks = (self.email, self.ip)
        short = [span for span in find_ipv4(shorter) if not _is_version(shorter, span[0], masks)]
        ips = sorted([*long, *_before_replacement(short, long, len(self.ip))])
        spans = _before_replacement(ips, emails, len(self.email))
        return _replace(shorter, short, self.ip), [("e-mail", emails, self.email), ("ip address", spans, self.ip)]

    def _edit(self, document: bytes, reason: str, spans: list[Span], mask: str) -> dict[str, Any]:
        return {
            "id": document,
            "transform": "MaskPII",
            "reason": reason,
            "cut": sum(end - start for start, end in spans),
            "inserted": len(spans) * len(mask),
            "evidence": canonical_json([list(span) for span in spans[:EVIDENCE_SPANS]]),
        }


def mask_excerpt(text: str) -> str:
    """Return `text` with the default masks, for samples and evidence.

    Mask before cutting an excerpt out of a longer text: half an address is no longer found.
    """
    return MaskPII()._mask(text)[0]


def mask_excerpts(texts: pa.LargeStringArray) -> pa.LargeStringArray:
    """Return `texts`, each as `mask_excerpt` gives it; nulls stay. Only what may hold an address costs anything."""
    masked = {row: mask_excerpt(texts[row].as_py()) for row in _candidates(texts)}
    return _with_rows(texts, masked) if masked else texts


def find_emails(text: str) -> Iterator[Span]:
    """Yield the spans of e-mail addresses, disjoint, in order."""
    last = 0
    for match in AT.finditer(text):
        at = match.start()
        head = text[max(last, at - LOCAL_LENGTH) : at]
        local = head[len(head.rstrip(LOCAL)) :].lstrip(".")
        domain = DOMAIN.match(text, at + 1, at + 1 + DOMAIN_LENGTH)
        if local and not local.endswith(".") and domain and not NO_DOMAIN.match(domain[0]):
            last = domain.end()
            yield at - len(local), last


def find_ipv4(text: str) -> Iterator[Span]:
    """Yield the spans of public IPv4 addresses that stand alone, in order."""
    for dot in FIRST_DOT.finditer(text):
        head = text[max(0, dot.start() - 3) : dot.start()]
        match = IPV4.match(text, dot.start() - len(head) + len(head.rstrip(DIGITS)))
        if match and _is_public(match[0], ipaddress.IPv4Address, SPECIAL_V4):
            yield match.span()


def find_ipv6(text: str) -> Iterator[Span]:
    """Yield the spans of public IPv6 addresses that stand alone, in order."""
    for colon in FIRST_COLON.finditer(text):
        match = IPV6.match(text, max(0, colon.start() - 4))
        if match is None:
            continue
        address = match[0].rstrip(".")
        if address.endswith(":") and not address.endswith("::"):
            address = address[:-1]
        if _is_public(address, ipaddress.IPv6Address, SPECIAL_V6):
            yield match.start(), match.start() + len(address)


def _is_public(
    address: str,
    parse: Callable[[str], ipaddress.IPv4Address | ipaddress.IPv6Address],
    special: tuple[tuple[int, int], ...],
) -> bool:
    try:
        value = int(parse(address))
    except ValueError:
        return False
    return not any(first <= value <= last for first, last in special)


def _is_version(text: str, start: int, masks: tuple[str, ...]) -> bool:
    """Say whether what stands before `start` makes the number there a version or a section."""
    before = text[max(0, start - VERSION_LENGTH) : start]
    if before.removesuffix(" ").endswith(tuple(f"{mask}=" for mask in masks)):
        return False  # the > of the mask is no comparison
    return VERSION.search(before) is not None


def _has_masked_tail(text: str, end: int, mask: str) -> bool:
    """Say whether an earlier masking replaced the last part of what now looks like a whole IPv6 address."""
    return text.startswith((mask, f":{mask}"), end)


def _replace(text: str, spans: Iterable[Span], mask: str) -> str:
    parts, last = [], 0
    for start, end in spans:
        parts += [text[last:start], mask]
        last = end
    return "".join([*parts, text[last:]])


def _before_replacement(spans: Iterable[Span], replaced: list[Span], length: int) -> list[Span]:
    """Return ordered `spans` of a text as spans of the text before `replaced` became masks of `length`."""
    result, shift, index = [], 0, 0
    for start, end in spans:
        while index < len(replaced) and replaced[index][0] <= start + shift:
            shift += replaced[index][1] - replaced[index][0] - length
            index += 1
        result.append((start + shift, end + shift))
    return result


def _candidates(texts: pa.LargeStringArray) -> list[int]:
    """Return the rows in which an address may be."""
    found = pc.match_substring_regex(texts, CANDIDATE)
    return cast(list[int], pc.indices_nonzero(found).to_pylist())


def _with_rows(texts: pa.LargeStringArray, replaced: dict[int, str]) -> pa.LargeStringArray:
    rows = [False] * len(texts)
    for row in replaced:
        rows[row] = True
    values = pa.array(list(replaced.values()), pa.large_string())
    return cast(pa.LargeStringArray, pc.replace_with_mask(texts, pa.array(rows), values))
