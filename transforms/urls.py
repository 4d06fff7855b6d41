"""The normal form of a URL: equal for two URLs that name one page, for deduplication by URL.

By RFC 3986, §6.2, and what crawls hold:

- white space and control characters at both ends go, tabs and line breaks within, too;
- scheme and host in lower case; http becomes https; a host beyond ASCII is written in Punycode (RFC 3492), folded by
  our tables; a full stop at its end, a port that is the scheme's own and an empty port go; "www." stays;
- percent-encoding: unreserved characters are decoded, other triplets get capital digits, characters that may not stand
  in a URL are encoded as UTF-8; a "%" that begins no triplet stays;
- "." and ".." in the path are resolved, an empty path is "/"; a session in it (";jsessionid=…") goes;
- parameters whose names are listed (`TRACKING`) go, the others are sorted by name, those of one name as they stood; an
  empty query goes;
- the fragment goes, unless it begins with "!", where it names a page of its own.

What has no scheme and host ("mailto:…", "page.html") is only trimmed. Two pages that differ in a listed parameter alone
count as one: the list is data, part of the configuration.

Invariants: the normal form of a normal form is itself; no network, no list that changes with a library.
Cost: some 10 µs per URL.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa
from blake3 import blake3

from transforms.schema import ID
from transforms.unicode_tables import LOWER

TRACKING: Final = (
    "utm_*", "mtm_*", "pk_*", "piwik_*", "hsa_*", "ga_*", "_ga", "_gl", "gclid", "gclsrc", "dclid", "gbraid", "wbraid",
    "fbclid", "fb_*", "msclkid", "yclid", "ysclid", "twclid", "ttclid", "li_fat_id", "igshid", "igsh", "mc_cid",
    "mc_eid", "_hsenc", "_hsmi", "mkt_tok", "vero_id", "oly_anon_id", "oly_enc_id", "wickedid", "srsltid", "s_cid",
    "icid", "cmpid", "spm", "scm", "ref_src", "jsessionid", "phpsessid", "aspsessionid*", "sessionid",
)  # fmt: skip
"""Parameters that say where a visitor came from or who they are, lower case; "*" stands for any ending."""

_PARTS: Final = re.compile(r"([a-z][a-z0-9+.-]*)://([^/?#\\]*)([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.I | re.S | re.A)
_TRIPLET: Final = re.compile(r"%[0-9A-Fa-f]{2}")
_FORBIDDEN: Final = re.compile(r"[^!-~]|[\"<>\\^`{|}]")
_SESSION: Final = re.compile(r";(?:jsessionid|phpsessid)=[^/;?#]*", re.I | re.A)
_AROUND: Final = "".join(map(chr, range(0x21)))
_PLAIN: Final = re.compile(r"[!#$&-;=?-\[\]_a-z~]+")
_PLAIN_HOST: Final = re.compile(r"[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.?")
_PORT: Final = re.compile(r"(.*):([0-9]*)", re.S | re.A)
_WITHIN: Final = re.compile(r"[\t\n\r]")
_SURROGATES: Final = re.compile("[\ud800-\udfff]")
_UNRESERVED: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_DECODED: Final = {f"%{byte:02X}": chr(byte) for byte in _UNRESERVED}
_PORTS: Final = {"http": "80", "https": "443", "ftp": "21"}
_CAPITALS: Final = {capital: capital + 32 for capital in range(0x41, 0x5B)}


@dataclass(frozen=True, slots=True)
class URLForm:
    """Which parameters do not count: names in lower case, with "*" at the end for any ending."""

    without: tuple[str, ...] = TRACKING

    def of(self, url: str) -> str:
        """Return the normal form of `url`."""
        return _form(url, *self._listed())

    def digests(self, urls: pa.Array[Any]) -> pa.FixedSizeBinaryArray:
        """Return 16 bytes of BLAKE3 of each normal form; null where there is no URL, or an empty one."""
        listed = self._listed()
        forms = (_form(url, *listed) if url else "" for url in urls.to_pylist())
        digests = [blake3(form.encode()).digest(16) if form else None for form in forms]
        return cast("pa.FixedSizeBinaryArray", pa.array(digests, ID))

    def _listed(self) -> tuple[frozenset[str], tuple[str, ...]]:
        """Return whole names and beginnings of names."""
        beginnings = tuple(name[:-1] for name in self.without if name.endswith("*"))
        return frozenset(name for name in self.without if not name.endswith("*")), beginnings


def known(digests: pa.FixedSizeBinaryArray) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return which rows have a URL: the others are duplicates of none."""
    return np.asarray(digests.is_valid())


def _form(url: str, names: frozenset[str], beginnings: tuple[str, ...]) -> str:
    url = _SURROGATES.sub("\ufffd", _WITHIN.sub("", url.strip(_AROUND)))
    parts = _PARTS.fullmatch(url)
    authority = "" if parts is None else _authority(parts[2], parts[1].translate(_CAPITALS))
    if parts is None or not authority:
        return url
    scheme = parts[1].translate(_CAPITALS)
    pairs = [] if not parts[4] else [_encoded(pair) for pair in parts[4].split("&") if pair]
    query = "&".join(sorted((pair for pair in pairs if not _is_left_out(pair, names, beginnings)), key=_name))
    fragment = _encoded(parts[5]) if (parts[5] or "").startswith("!") else ""
    path = _path(parts[3].replace("\\", "/"))
    scheme = "https" if scheme == "http" else scheme
    return f"{scheme}://{authority}{path}{'?' + query if query else ''}{'#' + fragment if fragment else ''}"


def _is_left_out(pair: str, names: frozenset[str], beginnings: tuple[str, ...]) -> bool:
    name = _name(pair).translate(_CAPITALS)
    return name in names or name.startswith(beginnings)


def _name(pair: str) -> str:
    return pair.partition("=")[0]


def _authority(authority: str, scheme: str) -> str:
    """Return user, host and port in normal form; nothing where there is no host."""
    user, at, place = authority.rpartition("@")
    found = _PORT.fullmatch(place)
    host, port = (place, "") if found is None else (found[1], found[2])
    host = normal_host(host)
    if not host or (":" in host and not host.startswith("[")):
        return ""
    return f"{_encoded(user)}{at}{host}{':' + port if port and port != _PORTS.get(scheme) else ''}"


def normal_host(host: str) -> str:
    """Return the host in lower case, labels beyond ASCII in Punycode, without the full stop at the end."""
    if _PLAIN_HOST.fullmatch(host):
        return host.translate(_CAPITALS).rstrip(".")
    labels = re.split("[.\u3002]", _decoded(host))
    while len(labels) > 1 and not labels[-1]:
        labels.pop()
    folded = ("".join(chr(LOWER[ord(character)]) for character in label) for label in labels)
    plain = (
        label if max(label, default="") < "\x80" else "xn--" + label.encode("punycode").decode() for label in folded
    )
    return ".".join(_encoded(label) for label in plain)


def _decoded(text: str) -> str:
    """Return `text` with triplets decoded where they are UTF-8, else as it is."""
    if "%" not in text:
        return text
    content = re.sub(rb"%([0-9A-Fa-f]{2})", lambda found: bytes([int(found[1], 16)]), text.encode())
    try:
        return content.decode()
    except UnicodeDecodeError:
        return text


def _path(path: str) -> str:
    if ";" not in path and "/." not in path and "%" not in path:
        return _encoded(path) or "/"
    segments: list[str] = []
    pieces = _encoded(_SESSION.sub("", path)).split("/")[1:]
    for place, piece in enumerate(pieces):
        last = place == len(pieces) - 1
        if piece == "..":
            segments = segments[:-1]
        elif piece != ".":
            segments.append(piece)
        if last and piece in (".", ".."):
            segments.append("")
    return "/" + "/".join(segments)


def _encoded(text: str) -> str:
    """Return `text` with percent-encoding in its normal form."""
    if not text or _PLAIN.fullmatch(text):
        return text
    encoded = _FORBIDDEN.sub(_encode, text)
    return _TRIPLET.sub(_triplet, encoded)


def _encode(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in found[0].encode())


def _triplet(found: re.Match[str]) -> str:
    capital = f"%{int(found[0][1:], 16):02X}"
    return _DECODED.get(capital, capital)
