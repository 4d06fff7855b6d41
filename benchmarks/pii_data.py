"""Personal data made up at random by the published rules of each kind, and texts of our own to put it in.

Everything is drawn from one seeded generator through `Draw`, whose only source is `random.Random.random`: the same
values on every Python version. Nothing here uses the code that is measured: check digits are worked out on their own.
"""

from __future__ import annotations

import base64
import random
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

T = TypeVar("T")

DIGITS: Final = "0123456789"
LOWER: Final = "abcdefghijklmnopqrstuvwxyz"
UPPER: Final = LOWER.upper()
BASE62: Final = UPPER + LOWER + DIGITS
URL_SAFE: Final = BASE62 + "-_"


class Draw:
    """Draws of one seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed).random

    def below(self, count: int) -> int:
        """Return a number from 0 to `count` - 1."""
        return int(self._random() * count)

    def between(self, low: int, high: int) -> int:
        """Return a number from `low` to `high`."""
        return low + self.below(high - low + 1)

    def of(self, values: Sequence[T]) -> T:
        """Return one of `values`."""
        return values[self.below(len(values))]

    def string(self, alphabet: str, length: int) -> str:
        """Return `length` characters of `alphabet`."""
        return "".join(self.of(alphabet) for _ in range(length))

    def shape(self, pattern: str) -> str:
        """Return `pattern` with n a digit, x one from 2 to 9, z one from 1 to 9; other characters as they are."""
        drawn = {"n": DIGITS, "x": DIGITS[2:], "z": DIGITS[1:]}
        return "".join(self.of(drawn[character]) if character in drawn else character for character in pattern)


NAMES: Final = [
    "anna",
    "ben",
    "carla",
    "david",
    "elena",
    "farid",
    "greta",
    "hamid",
    "ines",
    "jonas",
    "kemal",
    "lucia",
    "marek",
    "nadia",
    "olaf",
    "priya",
    "quentin",
    "rosa",
    "stefan",
    "tara",
    "umar",
    "vera",
    "wim",
    "xenia",
    "yusuf",
    "zoe",
    "maria.lopez",
    "jan_kowalski",
    "j.smith",
    "aoife.byrne",
    "info",
    "sales",
    "support",
    "d.o.e",
]
HOSTS: Final = [
    "mailbox",
    "post",
    "webhaus",
    "northwind-traders",
    "blue-river",
    "kite42",
    "uni-example",
    "lab.example",
    "mail.acme",
    "dept.cs.univ",
    "a1",
    "x-ray",
    "sub.sub2.corp",
    "xn--bcher-kva",
    "greenfield",
    "gartenbau-meyer",
]
DOMAINS: Final = [
    "com",
    "org",
    "net",
    "edu",
    "de",
    "fr",
    "co.uk",
    "com.br",
    "io",
    "ai",
    "info",
    "museum",
    "technology",
    "online",
    "jp",
    "in",
    "nl",
    "pl",
    "ch",
    "xn--p1ai",
]


def email(draw: Draw) -> str:
    """Return an address: names, dots, plus signs, sub-domains, old and new top-level domains."""
    local = draw.of(NAMES) + draw.of(("", "", "", str(draw.below(100)), "+news", ".x", "_2", "-" + draw.of(NAMES)))
    written = f"{local}@{draw.of(HOSTS)}.{draw.of(DOMAINS)}"
    return written.upper() if draw.below(20) == 0 else written


SPECIAL: Final = (0, 10, 100, 127, 169, 172, 192, 198, 203)
"""First numbers of IPv4 addresses of which some are special: not drawn."""


def ipv4(draw: Draw) -> str:
    """Return a public address; the first number below 224 and none of `SPECIAL`."""
    first = draw.of([number for number in range(1, 224) if number not in SPECIAL])
    return ".".join(map(str, (first, draw.below(256), draw.below(256), draw.below(256))))


def ipv6(draw: Draw) -> str:
    """Return a global unicast address, in full, without leading zeros, or with ``::``."""
    groups = [draw.of(("2a00", "2600", "2400", "2804", "2c0f", "2a02"))]
    groups += [format(draw.below(65536), "x") for _ in range(7)]
    form = draw.below(4)
    if form == 0:
        return ":".join(group.zfill(4) for group in groups)
    if form == 1:
        return ":".join(groups)
    cut = draw.between(2, 4)
    written = ":".join(groups[:cut]) + "::" + ":".join(groups[8 - draw.between(1, 3) :])
    return written.upper() if form == 3 else written


def luhn_digit(digits: str) -> str:
    """Return the digit that makes `digits` pass Luhn's test."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (2 if place % 2 == 0 else 1)
        total += value - 9 if value > 9 else value
    return str(-total % 10)


CARDS: Final = (
    ("4", 16), ("4", 16), ("51", 16), ("53", 16), ("55", 16), ("2221", 16), ("2720", 16), ("34", 15), ("37", 15),
    ("6011", 16), ("65", 16), ("644", 16), ("36", 14), ("3530", 16), ("62", 16), ("2201", 16), ("6759", 16), ("4", 19),
)  # fmt: skip
"""Prefixes and lengths of cards."""


def card_number(draw: Draw) -> str:
    """Return the digits of a card."""
    prefix, length = draw.of(CARDS)
    digits = prefix + draw.string(DIGITS, length - len(prefix) - 1)
    return digits + luhn_digit(digits)


def card(draw: Draw) -> str:
    """Return a card number in one, or in groups joined by spaces or hyphens."""
    digits = card_number(draw)
    separator = draw.of(("", " ", " ", "-"))
    cuts = {14: (4, 10), 15: (4, 10), 16: (4, 8, 12), 19: (4, 8, 12, 16)}[len(digits)]
    parts = [digits[start:end] for start, end in zip((0, *cuts), (*cuts, len(digits)), strict=True)]
    return separator.join(parts)


IBANS: Final = {
    "DE": "d18", "FR": "d10 a11 d2", "GB": "u4 d14", "NL": "u4 d10", "ES": "d20", "IT": "u1 d10 a12", "PL": "d24",
    "CH": "d5 a12", "AT": "d16", "BE": "d12", "SE": "d20", "NO": "d11", "DK": "d14", "FI": "d14", "PT": "d21",
    "IE": "u4 d14", "LU": "d3 a13", "CZ": "d20", "GR": "d7 a16", "TR": "d6 a16", "SA": "d2 a18", "AE": "d19",
    "MT": "u4 d5 a18", "UA": "d6 a19", "BR": "d23 u1 a1", "LC": "u4 a24",
}  # fmt: skip
"""Forms of basic account numbers, by country: d digits, u capitals, a either, and how many."""


def iban_of(draw: Draw, shift: int = 0) -> str:
    """Return an IBAN in one; with a `shift` from 1 to 96 its check digits are wrong."""
    country = draw.of(sorted(IBANS))
    alphabets = {"d": DIGITS, "u": UPPER, "a": UPPER + DIGITS}
    account = "".join(draw.string(alphabets[part[0]], int(part[1:])) for part in IBANS[country].split())
    number = "".join(str(int(character, 36)) for character in account + country + "00")
    check = 98 - int(number) % 97
    return f"{country}{(check - 2 + shift) % 97 + 2:02d}{account}"


def in_fours(written: str, separator: str = " ") -> str:
    """Return `written` in groups of four."""
    return separator.join(written[start : start + 4] for start in range(0, len(written), 4))


def iban(draw: Draw) -> str:
    """Return an IBAN in one or as it is printed."""
    written = iban_of(draw)
    return draw.of((written, in_fours(written), in_fours(written)))


INTERNATIONAL: Final = (
    "+1 (x02) 555-01nn", "+1-x02-555-01nn", "+1x02555nnnn", "+1 x02 555 01nn", "+49 30 znnnnnn",
    "+49 (0)89 znnnnn",
    "+49 171 znnnnnn", "+44 20 znnn nnnn", "+44 (0)7700 900nnn", "+447700900nnn", "+33 1 zn nn nn nn",
    "+33-6-zn-nn-nn-nn",
    "+39 06 znnn nnnn", "+39 347 znn nnnn", "+34 612 nn nn nn", "+34 91 znn nn nn", "+31 20 znn nnnn",
    "+31 6 znnnnnnn",
    "+41 44 znn nn nn", "+43 1 znn nn nn", "+46 8 znn nnn nn", "+47 22 zn nn nn", "+48 22 znn nn nn",
    "+351 21 znn nnnn",
    "+353 1 znn nnnn", "+358 40 znn nnnn", "+420 601 nnn nnn", "+7 495 znn-nn-nn", "+7 (912) znn-nn-nn",
    "+380 44 znn nnnn",
    "+90 212 znn nn nn", "+971 50 znn nnnn", "+972 3-znn-nnnn", "+91 98765 znnnn", "+91-22-znnnnnnn",
    "+86 10 znnn nnnn",
    "+86 138 znnn nnnn", "+81 3-znnn-nnnn", "+81-90-znnn-nnnn", "+82 2-znn-nnnn", "+61 2 znnn nnnn",
    "+61 412 znn nnn",
    "+64 21 znn nnn", "+55 11 9znnn-nnnn", "+52 55 znnn nnnn", "+54 11 znnn-nnnn", "+27 11 znn nnnn",
    "+234 803 znn nnnn",
    "+65 znnn nnnn", "+852 znnn nnnn", "+886 2 znnn nnnn", "0049 30 znnnnnn", "0033 1 zn nn nn nn",
    "0044 20 znnn nnnn",
    "+49-30-znnnnnnn", "+49.30.znnnnnn", "+44 1632 960nnn", "+1.x02.555.01nn", "+32 2 znn nn nn",
    "+45 zn nn nn nn",
)  # fmt: skip
NATIONAL: Final = (
    "(x02) 555-01nn", "x02-555-01nn", "x02.555.01nn", "1-x02-555-01nn", "1 (x02) 555-01nn", "(415) x26-znnn",
    "212-x37-znnn", "030 znnnnnn", "089/znnnnnn", "0171 znnnnnn", "(030) znnnnnn", "0221-znnnnnn",
    "030/znnn nnn",
    "020 znnn nnnn", "0161 znn nnnn", "01632 960nnn", "07700 900nnn", "(020) znnn nnnn", "01 zn nn nn nn",
    "06.zn.nn.nn.nn", "06-zn-nn-nn-nn", "020 znn nnnn", "06 znnnnnnn", "06-znnnnnnn", "044 znn nn nn",
    "02 znn nn nn",
    "0475 zn nn nn", "02 znnn nnnn", "0412 znn nnn", "(02) znnn nnnn", "03-znnn-nnnn", "090-znnn-nnnn",
    "06-znnn-nnnn",
    "02-znn-nnnn", "010-znnn-nnnn", "010-znnnnnnn", "0755-2znnnnnn", "138 znnn nnnn", "(11) 9znnn-nnnn",
    "(21) 3nnn-nnnn",
    "8 (495) znn-nn-nn", "8-912-znn-nn-nn", "022 2znnnnnn", "098765 znnnn", "030 / znnnnnn", "+1 (x02)555-01nn",
    "612 zn nn nn", "22 zn nn nn", "601 znn nnn",
)  # fmt: skip
LABELLED: Final = (
    "612 34 zn nn", "912 znn nnn", "22 zn nn nn", "znn nn nn", "555-01nn", "x025550znn", "020znnnnnnn",
    "347 znnnnnn",
    "znnn nnnn", "138znnnnnnn", "98765 znnnn", "x02 555 01nn", "601 znn nnn", "21 znn nnnn",
)  # fmt: skip
"""Forms in which telephone numbers are written, as in `Draw.shape`; the last ones only behind a word that says so.

The last three of `NATIONAL` have nothing by which to know them, and are not found."""

PHONE_WORDS: Final = (
    "Tel: ", "Tel. ", "Phone: ", "phone ", "Telephone: ", "Fax: ", "Mobile: ", "Tel.: ", "Telefon: ",
    "Teléfono: ",
    "WhatsApp: ", "тел. ", "电话：", "Phone number: ", "tel. no. ",
)  # fmt: skip


def labelled(draw: Draw) -> tuple[str, str]:
    """Return a word that says telephone, and a number."""
    return draw.of(PHONE_WORDS), draw.shape(draw.of(LABELLED))


def json_web_token(draw: Draw) -> str:
    """Return three base64url parts as RFC 7519 has them."""
    header = draw.of(('{"alg":"HS256","typ":"JWT"}', '{"typ":"JWT","alg":"RS256","kid":"a1b2"}'))
    payload = f'{{"sub":"{draw.string(DIGITS, 10)}","iat":{draw.between(1, 9) * 10**8}}}'
    parts = [base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in (header, payload)]
    return ".".join([*parts, draw.string(URL_SAFE, 43)])


def private_key(draw: Draw) -> str:
    """Return a block with made-up content."""
    kind = draw.of(("RSA PRIVATE KEY", "PRIVATE KEY", "EC PRIVATE KEY", "OPENSSH PRIVATE KEY"))
    lines = [draw.string(BASE62 + "+/", 64) for _ in range(draw.between(3, 12))]
    join = draw.of(("\n", "\n", "\\n"))
    return join.join([f"-----BEGIN {kind}-----", *lines, f"-----END {kind}-----"])


TOKENS: Final[Sequence[Callable[[Draw], str]]] = (
    lambda draw: draw.of(("AKIA", "ASIA")) + draw.string(UPPER + "234567", 16),
    lambda draw: draw.of(("ghp_", "gho_", "ghs_", "ghu_")) + draw.string(BASE62, 36),
    lambda draw: "github_pat_" + draw.string(BASE62, 22) + "_" + draw.string(BASE62, 59),
    lambda draw: "glpat-" + draw.string(URL_SAFE, 20),
    lambda draw: "xoxb-" + draw.string(DIGITS, 12) + "-" + draw.string(DIGITS, 12) + "-" + draw.string(BASE62, 24),
    lambda draw: "xoxp-" + "-".join(draw.string(DIGITS, 12) for _ in range(3)) + "-" + draw.string("0123abcd", 32),
    lambda draw: "AIza" + draw.string(URL_SAFE, 35),
    lambda draw: draw.of(("sk_live_", "sk_test_", "rk_live_")) + draw.string(BASE62, draw.of((24, 99))),
    lambda draw: "hf_" + draw.string(UPPER + LOWER, 34),
    lambda draw: "npm_" + draw.string(BASE62, 36),
    lambda draw: "sk-ant-api03-" + draw.string(URL_SAFE, 93) + "AA",
    lambda draw: "sk-proj-" + draw.string(URL_SAFE, 74) + "T3BlbkFJ" + draw.string(URL_SAFE, 74),
    lambda draw: "SG." + draw.string(URL_SAFE, 22) + "." + draw.string(URL_SAFE, 43),
    json_web_token,
    private_key,
)  # fmt: skip
"""Secrets of published forms."""

NAMES_OF_SECRETS: Final = (
    "API_KEY", "api_key", "apiKey", "secret", "SECRET_KEY", "password", "DB_PASSWORD", "access_token",
    "auth_token",
    "client_secret", "aws_secret_access_key", "private_key", "token",
)  # fmt: skip


def random_value(draw: Draw) -> str:
    """Return what is assigned to such names: base 62, hexadecimal, base64."""
    form = draw.below(4)
    if form == 0:
        return draw.string("0123456789abcdef", draw.of((32, 40, 64)))
    if form == 1:
        return draw.string(BASE62 + "+/", 40)
    return draw.string(BASE62, draw.of((20, 24, 32, 40)))
