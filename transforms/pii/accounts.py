"""Payment card numbers and IBANs: the verdict on a candidate.

- *payment card*: 12 to 19 digits that pass Luhn's test (ISO/IEC 7812-1, annex B) and have the prefix and length of an
  issuer (`ISSUERS`), written in one or in groups of four (American Express 4-6-5, Diners Club 4-6-4, Visa of 13 digits
  4-3-3-3) joined by one kind of separator, space or hyphen. The number stands alone: no letter, digit, ``_``, ``.`` or
  ``,`` with a digit beside it, no further group. Visa numbers of 13 digits are found in groups only, for they look like
  European article numbers. Numbers behind "ISBN", "order no." and the like are left.
- *IBAN*: country code, two check digits and as many letters and digits as that country's IBANs have (`LENGTHS`, the
  IBAN registry of ISO 13616), in one or in groups of four, with check digits right (mod 97 = 1, ISO/IEC 7064). Capital
  letters only: as it is printed.

Cost: constant per candidate.
"""

from __future__ import annotations

import re
from typing import Final

from transforms.pii.found import Found
from transforms.pii.surroundings import is_beside_currency, label

ISSUERS: Final = (
    (re.compile(rb"4"), (16, 19)),  # Visa
    (re.compile(rb"5[1-5]|2(?:2(?:2[1-9]|[3-9])|[3-6]|7(?:[01]|20))"), (16,)),  # Mastercard
    (re.compile(rb"3[47]"), (15,)),  # American Express
    (re.compile(rb"6(?:011|4[4-9]|5)"), (16, 17, 18, 19)),  # Discover, RuPay
    (re.compile(rb"3(?:0[0-5]|095|6|[89])"), (14,)),  # Diners Club
    (re.compile(rb"35(?:2[89]|[3-8])"), (16, 17, 18, 19)),  # JCB
    (re.compile(rb"62"), (16, 17, 18, 19)),  # UnionPay
    (re.compile(rb"5018|5020|5038|5893|6304|6759|676[1-3]"), (12, 13, 14, 15, 16, 17, 18, 19)),  # Maestro
    (re.compile(rb"220[0-4]"), (16, 17, 18, 19)),  # Mir
)
"""Prefixes and lengths of card numbers, by issuer."""

PLAIN: Final = re.compile(rb"[0-9]{12,19}+")
GROUPED: Final = re.compile(
    rb"[0-9]{4}([ -])(?:[0-9]{4}\1[0-9]{4}\1[0-9]{4}(?:\1[0-9]{3})?|[0-9]{6}\1[0-9]{4,5}|[0-9]{3}\1[0-9]{3}\1[0-9]{3})"
)
VISA_OF_13: Final = re.compile(rb"4[0-9]{3}[ -][0-9]{3}[ -]")
TAKEN_BEFORE: Final = re.compile(rb"(?:[0-9A-Za-z_]|[0-9][.,/+-]|(?<![A-Za-z])\.)\Z")
TAKEN_AFTER: Final = re.compile(rb"[0-9A-Za-z_]|[.,/-][0-9A-Za-z]")
GROUP_BEFORE: Final = re.compile(rb"[0-9][ ]\Z")
GROUP_AFTER: Final = re.compile(rb"[ ][0-9]++(?!/[0-9])")
"""A further group behind a card number in groups; what follows may be an expiry date, as 09/27."""

LENGTHS: Final = {
    country: int(length)
    for country, length in re.findall(
        r"(\w\w):(\d+)",
        "AD:24 AE:23 AL:28 AT:20 AZ:28 BA:20 BE:16 BG:22 BH:22 BI:27 BR:29 BY:28 CH:21 CR:22 CY:28 CZ:24 DE:22 DJ:27 "
        "DK:18 DO:28 EE:20 EG:29 ES:24 FI:18 FK:18 FO:18 FR:27 GB:22 GE:22 GI:23 GL:18 GR:27 GT:28 HN:28 HR:21 HU:28 "
        "IE:22 IL:23 IQ:23 IS:26 IT:27 JO:30 KW:30 KZ:20 LB:28 LC:32 LI:21 LT:20 LU:20 LV:21 LY:25 MC:27 MD:24 ME:22 "
        "MK:19 MN:20 MR:27 MT:31 MU:30 NI:28 NL:18 NO:15 OM:23 PK:24 PL:28 PS:29 PT:25 QA:29 RO:24 RS:22 RU:33 SA:24 "
        "SC:31 SD:18 SE:24 SI:19 SK:24 SM:27 SO:23 ST:25 SV:28 TL:23 TN:24 TR:26 UA:29 VA:22 VG:24 XK:20 YE:30",
    )
}
"""Characters of an IBAN, by country."""

COMPACT: Final = re.compile(rb"[0-9A-Z]+")
BOUND: Final = re.compile(rb"[0-9A-Za-z_]")


def card(text: bytes, place: int) -> Found | None:
    """Return the card number that starts at `place`; the scan has seen to Luhn's test."""
    match = GROUPED.match(text, place) or PLAIN.match(text, place)
    if match is None or not _stands_alone(text, place, match):
        return None
    digits = match[0].replace(b" ", b"").replace(b"-", b"")
    if not _passes_luhn(digits) or len(set(digits)) == 1:
        return None
    is_issued = any(len(digits) in lengths and prefix.match(digits) for prefix, lengths in ISSUERS)
    if not is_issued and not VISA_OF_13.match(match[0]):
        return None
    if label(text, place) == "number" or is_beside_currency(text, place, match.end()):
        return None
    return Found(place, match.end(), "payment_card")


def _stands_alone(text: bytes, place: int, match: re.Match[bytes]) -> bool:
    ahead = text[max(0, place - 2) : place]
    if TAKEN_BEFORE.search(ahead) or TAKEN_AFTER.match(text, match.end()):
        return False
    return match.lastindex is None or not (GROUP_BEFORE.search(ahead) or GROUP_AFTER.match(text, match.end()))


def _passes_luhn(digits: bytes) -> bool:
    """Say whether `digits` pass Luhn's test: from the right every second one doubled, the sum a multiple of ten."""
    values = [digit - 0x30 for digit in reversed(digits)]
    return (sum(values[::2]) + sum(sum(divmod(2 * value, 10)) for value in values[1::2])) % 10 == 0


def iban(text: bytes, digits: int) -> Found | None:
    """Return the IBAN whose check digits stand at `digits`."""
    start = digits - 2
    length = LENGTHS.get(text[start:digits].decode("ascii"))
    if length is None:
        return None
    for size, step in ((length, 0), (length + (length - 1) // 4, 5)):
        written = text[start : start + size]
        if len(written) == size and not BOUND.match(text, start + size) and _is_iban(written, step):
            return Found(start, start + size, "iban")
    return None


def _is_iban(written: bytes, step: int) -> bool:
    """Say whether `written` is an IBAN in one (step 0) or with a separator at every `step`th place."""
    compact = written
    if step:
        separators = set(written[step - 1 :: step])
        if len(separators) != 1 or not separators <= set(b" -"):
            return False
        compact = written.translate(None, bytes(separators))
        if len(compact) != len(written) - len(written) // step:
            return False
    if not COMPACT.fullmatch(compact) or not compact[2:4].isdigit():
        return False
    number = "".join(str(int(chr(character), 36)) for character in compact[4:] + compact[:4])
    return int(number) % 97 == 1
