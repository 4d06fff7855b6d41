"""The licence that a page declares for itself: Creative Commons and public-domain links marked rel=license.

The mark is the microformat that Creative Commons' own chooser writes (`<a rel="license" href="…">`, also `<link>`). A
page that declares two different licences is taken to declare none: the mark may belong to an image. Cost: a search
for one string in pages that do not link there.
"""

from __future__ import annotations

import re
from typing import Final

_URL: Final = re.compile(
    rb"creativecommons\.org/(?:licenses/(by(?:-nc|-nd|-sa){0,2}|publicdomain)|publicdomain/(zero|mark))"
    rb"(?:/([1-4]\.[0-9]))?(?:/([a-z]{2,3}|igo|scotland))?(?![a-z0-9.])"
)
_TAG: Final = re.compile(rb"<(?:a|link|area)\s", re.IGNORECASE)
_RELATION: Final = re.compile(
    rb"\srel\s{0,9}=\s{0,9}(?:[\"'](?:[a-z \t\r\n:-]{0,99}[ \t\r\n])?)?license[\"'\s/>]", re.IGNORECASE
)
_MAX_TAG: Final = 2000

# Ported Creative Commons licences that have their own SPDX identifier (SPDX licence list 3.26).
_PORTED_NAMES: Final = (
    "CC-BY-2.5-AU CC-BY-3.0-AT CC-BY-3.0-AU CC-BY-3.0-DE CC-BY-3.0-IGO CC-BY-3.0-NL CC-BY-3.0-US CC-BY-NC-3.0-DE "
    "CC-BY-NC-ND-3.0-DE CC-BY-NC-ND-3.0-IGO CC-BY-NC-SA-2.0-DE CC-BY-NC-SA-2.0-FR CC-BY-NC-SA-2.0-UK "
    "CC-BY-NC-SA-3.0-DE CC-BY-NC-SA-3.0-IGO CC-BY-ND-3.0-DE CC-BY-SA-2.0-UK CC-BY-SA-2.1-JP CC-BY-SA-3.0-AT "
    "CC-BY-SA-3.0-DE CC-BY-SA-3.0-IGO"
)
_PORTED: Final = frozenset(_PORTED_NAMES.split())


def page_licence(page: bytes) -> str | None:
    """Return the SPDX identifier of the licence that `page` declares, None where it declares none or several.

    What SPDX does not list (ports to most jurisdictions, links without a version) is "LicenseRef-" and the name.
    """
    if b"creativecommons.org/" not in page:
        return None
    found = {spdx_of(url) for url in _URL.finditer(page) if _is_declaration(page, url.start())}
    return found.pop() if len(found) == 1 else None


def spdx_of(url: re.Match[bytes]) -> str:
    """Return the SPDX identifier for a match of a Creative Commons URL."""
    terms, dedication, version, port = ((part or b"").decode("ascii") for part in url.groups())
    if terms == "publicdomain":
        return "CC-PDDC"
    if dedication:
        return "CC0-1.0" if dedication == "zero" else "CC-PDM-1.0"
    terms = terms.replace("nd-nc", "nc-nd").replace("sa-nc", "nc-sa")
    name = "-".join(part for part in ("CC", terms.upper(), version, port.upper()) if part)
    listed = bool(version) and (not port or name in _PORTED)
    return name if listed else f"LicenseRef-{name}"


def _is_declaration(page: bytes, at: int) -> bool:
    begin = page.rfind(b"<", max(at - _MAX_TAG, 0), at)
    end = page.find(b">", at, at + _MAX_TAG)
    if begin < 0 or end < 0 or b">" in page[begin:at] or not _TAG.match(page, begin):
        return False
    return _RELATION.search(page, begin, end + 1) is not None
