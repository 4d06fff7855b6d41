"""E-mail addresses and public IP addresses: the verdict on a candidate.

- *e-mail address*: up to 64 letters, digits or ``. _ % + -`` before the ``@`` (RFC 5321, section 4.5.3.1: the last
  64 of a longer run), then labels of at most 63 characters ending in a top-level domain of letters. The rarer
  characters that RFC 5322 permits (``! # $ & ' * / = ?`` …) are left outside: they would swallow the path and query
  of a URL. ``icon@2x.png``, ``package@1.2.3-beta.rc`` and code such as ``a@b.sum(axis)`` are no addresses. Addresses
  written with non-ASCII letters or as "name at example" are not found; ``git@example.org:`` is masked.
- *IPv4 address*: four numbers 0-255 without leading zeros that stand alone: no ASCII letter, digit, ``_``, ``-`` or
  ``.`` directly before, and none that continues it after. So nothing is found in ``1.2.3.4.5``, ``12.34.56.789``,
  ``v1.2.3.4`` or ``tool-1.2.3.4``, nor in ``Chrome/120.0.0.0``, after a comparison (``==1.2.3.4``), after a word as
  "version" or "section" and lists of such numbers behind it, or beside a currency. Where the first three numbers are at
  most 30, or the two in the middle 0, as in one of 500 addresses and in most versions and sections, something must say
  that it is an address: a word as "ip", "host" or "from" or ``@`` or ``://`` before it, or a port or a network's length
  behind it.
- *IPv6 address*: global unicast only (2000::/3, RFC 4291), in any valid spelling of two groups or more.
- Only *public* addresses are masked: private, loopback, link-local, documentation and other special addresses
  identify nobody (as in FineWeb, Penedo et al. 2024, section 3.6; unlike there, multicast is special too). The table
  is IANA's special-purpose registries as of 2024 (RFC 6890 and its updates), kept here because `ipaddress.is_global`
  changed between Python 3.12.3 and 3.12.4.

Cost: constant per candidate.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Final

from transforms.pii.found import Found
from transforms.pii.surroundings import is_beside_currency

LOCAL: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._%+-"
DOMAIN: Final = re.compile(
    rb"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+(?:[Xx][Nn]--[A-Za-z0-9-]{0,58}[A-Za-z0-9]|[A-Za-z]{2,63})"
)
NO_DOMAIN: Final = re.compile(rb"[0-9]+\.[0-9]|[0-9]+x\.(?:avif|gif|jpe?g|png|svg|webp)\Z")
COMMON: Final = (b".com", b".edu", b".gov", b".net", b".org")
"""Top-level domains after which an opening parenthesis does not make the domain a call."""

LOCAL_LENGTH: Final = 64
DOMAIN_LENGTH: Final = 253

IPV4: Final = re.compile(
    rb"(?<![0-9A-Za-z_.-])[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}(?![0-9A-Za-z_])(?![.-][0-9A-Za-z])"
)
IPV6: Final = re.compile(
    rb"(?:(?<![0-9A-Za-z_.:-])|(?<=[G-Zg-z]:))[23][0-9A-Fa-f]{3}:[0-9A-Fa-f:.]{1,48}+(?![0-9A-Za-z_:.])"
)
NUMBERED: Final = re.compile(
    rb"(?:[A-Za-z]/|[=!~<>]=[ ]?|[~^]"
    rb"|(?:(?<![A-Za-z])(?:v|vers?|versions?|releases?|builds?|rev|revisions?|firmware|sec|sections?|chapters?|clauses?"
    rb"|subclauses?|paragraphs?|para|art|articles?|appendix|annex|tables?|figures?|fig|rules?|oid|item|step"
    rb"|propositions?|prop|corollary|theorems?|thm|lemmas?|definitions?|def|remarks?|equations?|eq|exercises?)"
    rb"|\xc2\xa7)[.:=]?[ ]?"
    rb"(?:[0-9]+(?:\.[0-9]+){1,3}(?:,[ ]?(?:and[ ])?|[ ](?:and|or|to)[ ]|[ ]?(?:-|\xe2\x80\x93)[ ]?)){0,3})\Z",
    re.IGNORECASE,
)
NUMBERED_LENGTH: Final = 72
SMALL: Final = 30
"""The largest of the first three numbers of what is rather a version or section, where nothing says otherwise."""
ADDRESS_BEFORE: Final = re.compile(
    rb"(?:(?<![A-Za-z])(?:ips?|ipv4|address|addresses|addr|hosts?|hostname|servers?|dns|nameservers?|resolvers?|gateway"
    rb"|proxy|ping|traceroute|whois|from|client|clients|peer|remote|src|dst)(?:[ ](?:is|of|at|to))?[\"':=]{0,3}[ ]?"
    rb"[\"'(\[]{0,2}|@|://)\Z",
    re.IGNORECASE,
)
ADDRESS_LENGTH: Final = 32
ADDRESS_AFTER: Final = re.compile(rb":[0-9]{2,5}(?![0-9A-Za-z.])|/(?:[89]|[12][0-9]|3[0-2])(?![0-9A-Za-z.])")


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


def email(text: bytes, at: int) -> Found | None:
    """Return the e-mail address around the ``@`` at `at`."""
    head = text[max(0, at - LOCAL_LENGTH) : at]
    local = head[len(head.rstrip(LOCAL)) :].lstrip(b".")
    if not local or local.endswith(b"."):
        return None
    domain = DOMAIN.match(text, at + 1, at + 1 + DOMAIN_LENGTH)
    if domain is None or NO_DOMAIN.match(domain[0]):
        return None
    if text.startswith(b"(", domain.end()) and not domain[0].lower().endswith(COMMON):
        return None
    return Found(at - len(local), domain.end(), "email")


def ipv4(text: bytes, place: int) -> Found | None:
    """Return the public IPv4 address that starts at `place`."""
    match = IPV4.match(text, place)
    if match is None or not _is_public(match[0], ipaddress.IPv4Address, SPECIAL_V4):
        return None
    if NUMBERED.search(text[max(0, place - NUMBERED_LENGTH) : place]) or _is_small(text, place, match):
        return None
    return None if is_beside_currency(text, place, match.end()) else Found(place, match.end(), "ip")


def ipv6(text: bytes, colon: int) -> Found | None:
    """Return the public IPv6 address whose first colon stands at `colon`."""
    match = IPV6.match(text, max(0, colon - 4))
    if match is None:
        return None
    address = match[0].rstrip(b".")
    if address.endswith(b":") and not address.endswith(b"::"):
        address = address[:-1]
    if address.endswith(b"::") and address.count(b":") == 2:
        return None  # a year before a colon that is doubled, or a network
    if not _is_public(address, ipaddress.IPv6Address, SPECIAL_V6):
        return None
    return Found(match.start(), match.start() + len(address), "ip")


def _is_small(text: bytes, place: int, match: re.Match[bytes]) -> bool:
    """Say whether the numbers are those of a version or section, and nothing beside them says otherwise."""
    parts = [int(part) for part in match[0].split(b".")]
    if max(parts[:3]) > SMALL and not parts[1] == parts[2] == 0:
        return False
    said = ADDRESS_BEFORE.search(text[max(0, place - ADDRESS_LENGTH) : place]) or ADDRESS_AFTER.match(text, match.end())
    return said is None


def _is_public(
    address: bytes,
    parse: type[ipaddress.IPv4Address] | type[ipaddress.IPv6Address],
    special: tuple[tuple[int, int], ...],
) -> bool:
    try:
        value = int(parse(address.decode("ascii")))
    except ValueError:
        return False
    return not any(first <= value <= last for first, last in special)
