"""The host of a URL, and the country that the end of its name stands for, as statistics count them."""

from __future__ import annotations

from typing import Final

NO_COUNTRY: Final = "no country"
"""Hosts under names as "com" and "org", addresses, and hosts of one label."""


def host_of(url: str) -> str:
    """Return the host of `url` in lower case, without user, port or path; "" where there is none."""
    rest = url.partition("://")[2]
    for end in "/?#\\":
        rest = rest.partition(end)[0]
    host = rest.rpartition("@")[2]
    if not host.startswith("["):
        host = host.partition(":")[0]
    return "".join(chr(ord(c) + 32) if "A" <= c <= "Z" else c for c in host[:255])


def country_of(host: str) -> str:
    """Return the country domain of `host`: its last label where that has two ASCII letters or is Punycode.

    "io" and "tv" are country domains, too, whoever uses them; a label in Punycode may be no country's.
    """
    before, _, label = host.rstrip(".").rpartition(".")
    letters = len(label) == 2 and all("a" <= c <= "z" for c in label)
    return label if before and (letters or label.startswith("xn--")) else NO_COUNTRY
