"""What stands beside a number and says what it is: a label before it, a currency, a unit behind it.

Labels are words just before the number, perhaps with fillers ("tel. no.", "call us at") and punctuation between, in any
case of ASCII letters. Invariants: every answer depends on at most `LOOK` bytes on one side. Cost: constant.
"""

from __future__ import annotations

import re
from typing import Final

LOOK: Final = 64
"""Bytes before and after a number that are looked at."""

_BETWEEN: Final = b" \t.:#=\"'*([]"

PHONE_WORDS: Final = frozenset(
    word.encode()
    for word in (
        *("tel", "tels", "telephone", "phone", "phones", "ph", "mobile", "mob", "fax", "hotline", "whatsapp", "sms"),
        *("telefon", "telefax", "telefono", "teléfono", "téléphone", "telefone", "telefoon", "telefonnummer", "handy"),
        *("rufnummer", "mobil", "móvil", "celular", "puhelin", "telefoonnummer", "cellphone", "landline", "telefonu"),
        *("тел", "Тел", "телефон", "Телефон", "факс", "Факс", "모바일", "전화", "휴대폰"),
    )
)
"""Words for telephone (Latin, Cyrillic and Korean)."""

PHONE_ENDS: Final = tuple(word.encode() for word in ("电话", "電話", "手机", "手機", "传真", "傳真", "携帯"))
"""What a label in Chinese or Japanese, where no space separates words, may end in; the full-width colon is cut off."""

CALL_WORDS: Final = frozenset((b"call", b"dial", b"cell", b"ring", b"text"))
"""Words that may announce a telephone number and often do not."""

NUMBER_WORDS: Final = frozenset(
    word.encode()
    for word in (
        *("isbn", "isbn-10", "isbn-13", "issn", "ean", "ean-13", "upc", "gtin", "doi", "pmid", "pmc", "oclc", "lccn"),
        *("asin", "sku", "part", "parts", "model", "serial", "order", "invoice", "ref", "reference", "case", "docket"),
        *(
            "patent",
            "version",
            "versions",
            "ticket",
            "tracking",
            "shipment",
            "article",
            "catalog",
            "catalogue",
            "batch",
        ),
        *("lot", "id", "item", "figure", "fig", "table", "tables", "section", "sections", "rfc", "cas", "lat", "lon"),
        *("lng", "latitude", "longitude", "coordinates", "page", "pages", "pp", "vol", "ssn", "vin", "isin", "barcode"),
        *("sequence", "seq", "accession", "job", "build", "commit", "sha", "md5", "hash", "digest", "timestamp"),
        *("epoch", "account", "customer", "bestellnummer", "artikel", "rechnung"),
    )
)
"""Words that say a number is of another kind."""

FILLERS: Final = frozenset(
    (b"no", b"nr", b"num", b"number", b"code", b"is", b"at", b"on", b"us", b"me", b"him", b"her")
)

_WIDE_COLON: Final = "：".encode()
_WORD: Final = re.compile(rb"(?<![._@0-9-])[a-z\x80-\xff]++(?:-[0-9]{2})?\Z")

_CURRENCY: Final = (
    rb"(?:\$|\xc2[\xa2-\xa5]|\xe2\x82[\xa0-\xbf]|(?<![A-Za-z])(?:USD|EUR|GBP|CHF|JPY|CNY|INR|RUB|BRL|AUD|CAD|NZD|SEK|NOK"
    rb"|DKK|PLN|CZK|HUF|TRY|KRW|ZAR|Rs|kr)\.?)"
)
BEFORE_CURRENCY: Final = re.compile(_CURRENCY + rb"[ ]?\Z", re.IGNORECASE)
AFTER_AMOUNT: Final = re.compile(
    rb"(?:,[0-9]{2})?(?:[ ]|\xc2\xa0)?(?:[%$]|\xc2[\xa2-\xa5\xb0]|\xe2\x82[\xa0-\xbf]"
    rb"|(?:USD|EUR|GBP|CHF|JPY|CNY|INR|RUB|BRL|euros?|dollars?|pounds?|kr|million|bytes)(?![A-Za-z]))",
    re.IGNORECASE,
)


def label(text: bytes, place: int) -> str:
    """Return what the word before `place` says of the number there: "phone", "call", "number" (another kind), or ""."""
    before = text[max(0, place - LOOK) : place].rstrip(_BETWEEN)
    before = before.removesuffix(_WIDE_COLON)
    if before.endswith(PHONE_ENDS):
        return "phone"
    for written in reversed(before.lower().split()[-3:]):
        word = _last_word(written)
        if word not in FILLERS:
            return _meaning(word)
    return ""


def _last_word(written: bytes) -> bytes:
    match = _WORD.search(written.rstrip(_BETWEEN))
    return match[0] if match else b""


def _meaning(word: bytes) -> str:
    if word in PHONE_WORDS:
        return "phone"
    if word in CALL_WORDS:
        return "call"
    return "number" if word in NUMBER_WORDS else ""


def is_beside_currency(text: bytes, start: int, end: int) -> bool:
    """Say whether text[start:end] is an amount: a currency stands before, or a currency or unit behind."""
    return bool(BEFORE_CURRENCY.search(text[max(0, start - 8) : start]) or AFTER_AMOUNT.match(text, end))
