"""Sites of URLs: what is held out together when a classifier is judged.

A site is the end of a host at which one owner most likely begins: its last two labels, or three where the last has two
letters and the one before it at most three ("example.co.uk", "example.com.au"). Hosts of one owner under one such name
are one site, and so are those of two owners under "github.io": what is held out together may be more than it need be,
never less. Addresses are sites of their own. No list that changes from week to week decides, so the same documents are
held out next year; filters by registered domain have `transforms.public_suffixes`.

Cost: about 1 µs per URL.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from transforms.url_places import hosts_of, places_of

SHORT: Final = 3
"""Longest label, before one of two letters, that is taken for a part of a public suffix ("co", "com")."""

_DIGITS: Final = frozenset("0123456789")


def sites_of(urls: pa.LargeStringArray) -> pa.LargeStringArray:
    """Return the site of each URL; null where it has no host."""
    hosts = hosts_of(places_of(urls)).to_pylist()
    return pa.array([site_of(host) if host else None for host in hosts], pa.large_string())


def site_of(host: str) -> str:
    """Return the site of a host in lower case."""
    labels = host.split(".")
    if host.startswith("[") or not set(labels[-1]) - _DIGITS:
        return host
    country = len(labels) > 2 and len(labels[-1]) == 2 and len(labels[-2]) <= SHORT
    return ".".join(labels[-3 if country else -2 :])
