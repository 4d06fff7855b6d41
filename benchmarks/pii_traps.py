"""What looks like personal data and is none: versions, ISBNs, dates, hashes, DOIs, prices and more, made at random.

Each trap returns a short text in which nothing is to be masked. Drawn as in `benchmarks.pii_data`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from benchmarks.pii_data import BASE62, DIGITS, LOWER, UPPER, Draw, card_number, iban_of, in_fours

HEX: Final = "0123456789abcdef"
MONTHS: Final = ("January", "March", "May", "July", "October", "December")
THINGS: Final = ("parser", "loader", "scheduler", "renderer", "compiler", "kernel", "browser", "driver")


def version(draw: Draw) -> str:
    """Return a version of four numbers with a word, an operator or a name before it."""
    number = ".".join(str(draw.below(12)) if place else str(draw.between(1, 120)) for place in range(4))
    before = draw.of(("version ", "Version: ", "v", "ver. ", "release ", "build ", "firmware ", "rev. "))
    thing = draw.of(THINGS)
    return draw.of(
        (
            f"The {thing} is now at {before}{number}, which fixes the leak.",
            f"{thing}=={number}",
            f"{thing} >= {number}",
            f"User-Agent: Mozilla/5.0 (X11) {thing.title()}/{number} Gecko",
            f"{thing}-{number}.tar.gz",
            f"{thing.title()} {draw.between(31, 130)}.0.0.{draw.below(200)} and {thing} {draw.below(9)}.1.2.3",
            f"Versions {number} and {draw.between(1, 9)}.2.3.4 are affected.",
        )
    )


def section(draw: Draw) -> str:
    """Return the number of a section, theorem or requirement."""
    number = ".".join(str(draw.between(1, 14)) for _ in range(4))
    return draw.of(
        (
            f"{number} Results and discussion",
            f"See Section {number} of the manual.",
            f"as stated in Theorem {number} and Lemma {number}",
            f"## {number} Setting the clock",
            f"(cf. {number})",
            f"Sections {number}, {number[:-1]}9 and {number[:-1]}7 apply.",
            f"§ {number} remains in force",
        )
    )


def not_an_ip(draw: Draw) -> str:
    """Return what has the form of an address and is none, or a special one."""
    low, high = draw.below(256), draw.between(256, 999)
    return draw.of(
        (
            f"{low}.{low}.{high}.{low}",
            f"10.{low}.{low}.{low} is the router",
            f"192.168.{low}.{low}",
            f"172.16.{low}.{low} and 127.0.0.1",
            f"OID 1.3.6.1.4.1.{draw.between(100, 60000)}.{low}",
            f"mask 255.255.255.0, gateway 192.168.1.{low}",
            f"netmask 255.255.{low}.0",
            f"203.0.113.{low} in our documentation",
            f"{low}.{low}.{low}.{low}.{low}",
            f"0{draw.below(10)}.0{draw.below(10)}.{low}.{low}",
        )
    )


def not_ipv6(draw: Draw) -> str:
    """Return colons and hexadecimal digits that are no public address."""
    pair = draw.string(HEX, 2)
    return draw.of(
        (
            f"eth0 00:1a:2b:{pair}:4d:5e",
            f"fe80::1ff:fe23:4567:{draw.string(HEX, 4)}",
            f"2001:db8::{draw.string(HEX, 4)}",
            f"at {draw.between(10, 23)}:{draw.between(10, 59)}:{draw.between(10, 59)} sharp",
            f"std::vector<int>::iterator, ns::{draw.string(HEX, 4)}::beef",
            f"SHA256:{draw.string(HEX, 2)}:{draw.string(HEX, 2)}:{pair}:{pair}:{pair}",
            f"In {draw.between(2000, 2039)}: the harbour; in {draw.between(2000, 2039)}:: as above",
            "::1 and :: and fd00::1",
            f"ratio 2021:{draw.between(10, 99)}",
        )
    )


def isbn(draw: Draw) -> str:
    """Return an ISBN-13 or ISBN-10 with a right check digit, bare or in groups, or an ISSN."""
    body = draw.of(("978", "979")) + draw.string(DIGITS, 9)
    check = str(-sum(int(digit) * (3 if place % 2 else 1) for place, digit in enumerate(body)) % 10)
    digits = body + check
    ten = "0" + draw.string(DIGITS, 8)
    last = -sum(int(digit) * (10 - place) for place, digit in enumerate(ten)) % 11
    short = ten + ("X" if last == 10 else str(last))
    return draw.of(
        (
            f"ISBN {digits[:3]}-{digits[3]}-{digits[4:7]}-{digits[7:12]}-{digits[12]}",
            f"ISBN-13: {digits}",
            f"{digits[:3]} {digits[3]} {digits[4:8]} {digits[8:12]} {digits[12]}",
            f"ISBN {short[0]}-{short[1:4]}-{short[4:9]}-{short[9]}",
            f"ISBN-10 {short}",
            f"isbn:{short[0]} {short[1:5]} {short[5:9]} {short[9]}",
            f"ISSN {draw.string(DIGITS, 4)}-{draw.string(DIGITS, 4)}",
        )
    )


def doi(draw: Draw) -> str:
    """Return a DOI, an arXiv id, a PubMed id."""
    four = draw.string(DIGITS, 4)
    return draw.of(
        (
            f"https://doi.org/10.{four}/s{draw.string(DIGITS, 5)}-020-{four}-{draw.below(9)}",
            f"doi:10.{draw.between(1000, 9999)}/j.cell.20{draw.between(10, 24)}.01.0{draw.between(10, 99)}",
            f"10.1145/{draw.string(DIGITS, 7)}.{draw.string(DIGITS, 7)}",
            f"arXiv:{draw.between(10, 24)}0{draw.between(1, 9)}.{draw.string(DIGITS, 5)}v2",
            f"PMID: {draw.string(DIGITS, 8)}; PMC{draw.string(DIGITS, 7)}",
        )
    )


def date(draw: Draw) -> str:
    """Return a date, a time, a span of either."""
    day, month, year = draw.between(1, 28), draw.between(1, 12), draw.between(1900, 2039)
    clock = f"{draw.between(0, 23):02d}:{draw.below(60):02d}"
    return draw.of(
        (
            f"{year}-{month:02d}-{day:02d} {clock}:{draw.below(60):02d}",
            f"{day:02d}.{month:02d}.{year} {clock}",
            f"{day:02d}/{month:02d}/{year} - {day:02d}/{month:02d}/{year + 1}",
            f"{year}{month:02d}{day:02d}T{clock.replace(':', '')}00+0{draw.between(1, 9)}00",
            f"{draw.of(MONTHS)} {day}, {year} ({year}-{year + 2})",
            f"{day:02d}-{month:02d}-{year} {day:02d}-{month:02d}-{year}",
            f"{day:02d} {month:02d} {year} {clock}",
            f"open 0{draw.between(7, 9)}30-1{draw.between(2, 9)}00, closed {year}-{year + 1}",
            f"{year}-{month:02d}-{day:02d}T{clock}:00.{draw.string(DIGITS, 6)}+0{draw.between(1, 9)}:00",
        )
    )


def price(draw: Draw) -> str:
    """Return an amount of money or of something else."""
    thousands = f"{draw.between(1, 250)} {draw.string(DIGITS, 3)} {draw.string(DIGITS, 3)}"
    dotted = f"{draw.between(1, 250)}.{draw.between(100, 255)}.{draw.between(100, 255)}.{draw.between(100, 255)}"
    return draw.of(
        (
            f"${draw.between(1, 99)},{draw.string(DIGITS, 3)},{draw.string(DIGITS, 3)}.00",
            f"{thousands} €",
            f"€ {dotted}",
            f"{dotted} euros",
            f"+{thousands} inhabitants since the last count",
            f"USD {draw.between(200, 999)}-{draw.between(200, 999)}-{draw.string(DIGITS, 4)}",
            f"{draw.between(10, 99)}.{draw.string(DIGITS, 7)} %",
            f"+{draw.between(20, 99)} 000 000 euros",
        )
    )


def coordinates(draw: Draw) -> str:
    """Return a place on the map."""
    north, east = f"{draw.between(1, 89)}.{draw.string(DIGITS, 6)}", f"{draw.between(1, 179)}.{draw.string(DIGITS, 6)}"
    return draw.of(
        (
            f"{north}, -{east}",
            f"lat {north} lon {east}",
            f"0{draw.between(10, 59)}° {draw.between(10, 59)}' {draw.between(10, 59)}\" N",
            f"POINT({east} {north})",
            f"32U 0{draw.string(DIGITS, 6)} 5{draw.string(DIGITS, 6)}",
            f"geo:{north},{east}",
        )
    )


def hexadecimal(draw: Draw) -> str:
    """Return a digest, a UUID, an address in memory, a checksum in a lock file."""
    uuid = "-".join(draw.string(HEX, size) for size in (8, 4, 4, 4, 12))
    return draw.of(
        (
            f"commit {draw.string(HEX, 40)}",
            f"md5 = {draw.string(HEX, 32)}",
            f'"integrity": "sha512-{draw.string(BASE62, 86)}=="',
            f"uuid: {uuid}",
            f'api_key_id = "{uuid}"',
            f"sha256:{draw.string(HEX, 64)}",
            f"segfault at 0x{draw.string(HEX, 12)}",
            f"etag: {draw.string(DIGITS, 16)}-{draw.below(9)}",
            f'"hash": "{draw.string(HEX, 40)}", "cache_key": "{draw.string(HEX, 32)}"',
            f"digest {draw.string(DIGITS, 32)}",
        )
    )


def long_number(draw: Draw) -> str:
    """Return digits that are no card: Luhn's test fails, or no issuer has the prefix; stamps, ids, decimals."""
    digits = card_number(draw)
    wrong = digits[:-1] + str((int(digits[-1]) + draw.between(1, 9)) % 10)
    return draw.of(
        (
            f"parcel {wrong}",
            f"{in_fours(wrong)} is not valid",
            f"{in_fours(wrong, '-')}",
            f"row {draw.between(7, 9)}{draw.string(DIGITS, 15)}",
            f"created {draw.between(1, 9)}{draw.string(DIGITS, 12)}",
            f"t = 16{draw.string(DIGITS, 14)} us",
            f"0.{digits}",
            f"{digits[0]}.{digits[1:]}",
            f"serial no. {digits}",
            f"{digits}{draw.string(DIGITS, 6)}",
            f"EAN 40{draw.string(DIGITS, 11)}",
            f"id{digits}, x_{digits}",
            " ".join(str(draw.between(1000, 1999)) for _ in range(4)),
            f"order number {digits}",
            f"invoice no. {in_fours(digits)}",
        )
    )


def not_iban(draw: Draw) -> str:
    """Return an IBAN with wrong check digits or a wrong length, or other codes of letters and digits."""
    wrong = iban_of(draw, draw.between(1, 96))
    return draw.of(
        (
            f"IBAN {wrong}",
            in_fours(wrong),
            iban_of(draw) + draw.of(DIGITS),
            f"XX{draw.string(DIGITS, 20)}",
            f"VAT DE{draw.string(DIGITS, 9)}",
            f"BIC {draw.string(UPPER, 8)}XXX",
            f"flight LH{draw.string(DIGITS, 4)} gate B{draw.string(DIGITS, 2)}",
            f"key {draw.string(UPPER, 2)}{draw.string(DIGITS, 2)} {draw.string(UPPER + DIGITS, 4)} 1234",
            f"ISIN US{draw.string(DIGITS, 10)}",
        )
    )


def not_a_phone(draw: Draw) -> str:
    """Return digits in groups that are no telephone number."""
    three, four = draw.between(200, 999), draw.string(DIGITS, 4)
    return draw.of(
        (
            f"pp. {three}-{three + 20}, vol. 12 (20{draw.between(10, 24)})",
            f"part no. {three}-{draw.between(200, 999)}-{four}",
            f"SSN {draw.string(DIGITS, 3)}-{draw.string(DIGITS, 2)}-{four}",
            f"ZIP {draw.string(DIGITS, 5)}-{four}",
            " ".join(str(draw.between(1, 9) * 10 + place) for place in range(12)),
            "01 02 03 04 05 06 07 08",
            "01 02 03 04 05",
            f"{draw.between(10, 99)} {three} {draw.between(200, 999)} {draw.between(200, 999)}",
            f"case 20{draw.between(10, 24)}-CV-0{draw.string(DIGITS, 4)}",
            f"order {three}-{draw.string(DIGITS, 7)}-{draw.string(DIGITS, 7)}",
            f"0{draw.between(1, 9)}:{draw.between(10, 59)}:{draw.between(10, 59)}.{draw.string(DIGITS, 6)}",
            f"{draw.between(1, 9)}-{draw.between(1, 9)}, {draw.between(1, 9)}-4, 10-{draw.between(1, 9)}",
            f"1{draw.string(DIGITS, 2)}-{three}-{four}, {three}-0{draw.string(DIGITS, 2)}-{four}, 911-{three}-{four}",
            f"x+{draw.string(DIGITS, 11)}*y - {draw.string(DIGITS, 3)}",
            f"1e+{draw.string(DIGITS, 2)} 3.{draw.string(DIGITS, 9)}",
            f"https://example.org/a/0{draw.string(DIGITS, 3)}-{draw.string(DIGITS, 7)}.html?id={three}-{three}-{four}",
            " ".join("0" + draw.string(DIGITS, 2) for _ in range(4)),
            f"patent US {draw.between(1, 9)},{three},{three}; model 0{draw.string(DIGITS, 3)}-{draw.string(DIGITS, 2)}",
            f"population {draw.string(DIGITS, 7)}",
            f"[{three}, {three}, {four}] (n = {draw.string(DIGITS, 9)})",
            f"{three}.{draw.between(200, 999)} {three}.{draw.between(200, 999)} {four}",
            f"+1 {draw.string(DIGITS, 3)} for the away side, +{draw.string(DIGITS, 4)} volts",
        )
    )


def at_sign(draw: Draw) -> str:
    """Return an ``@`` that belongs to no address."""
    name = draw.of(THINGS)
    return draw.of(
        (
            f"@{name} and @{name}.cached def load(self):",
            f"{name}@{draw.between(1, 9)}.{draw.below(20)}.{draw.below(20)}-beta.rc",
            f"src/icon@2x.png and tile@{draw.between(2, 4)}x.webp",
            f"y = weights @ {name} + bias",
            "out = (a@b.transpose(0, 1)) + x@w.to(device)",
            f"follow @{name}_news, foo@, @bar, {name}@localhost",
            f"3 apples @ {draw.between(1, 9)}.50 each",
            f"npm install @scope/{name}@latest",
            f"{name}.@example.org, {name}@.org",
        )
    )


def not_a_secret(draw: Draw) -> str:
    """Return code and settings about secrets without one in it."""
    name = draw.of(("api_key", "API_KEY", "password", "secret", "auth_token", "client_secret"))
    return draw.of(
        (
            f'{name} = "your_{name}_goes_here"',
            f'{name} = os.environ["SERVICE_{name.upper()}"]',
            f"{name}: ${{SERVICE_TOKEN_FROM_VAULT}}",
            f'{name} = "xxxxxxxxxxxxxxxxxxxxxxxx"',
            f"{name} = get_secret_value_from_store(request)",
            f'{name}: "change-me-before-deploy-2"',
            'tokenizer = "bert-base-multilingual-cased"; token_type = "word_piece_token_2"',
            f'<label for="{name}">{name}: please enter between 8 and 24 characters</label>',
            f"-----BEGIN PUBLIC KEY-----\n{draw.string(BASE62, 64)}\n-----END PUBLIC KEY-----",
            f"-----BEGIN CERTIFICATE-----\n{draw.string(BASE62, 64)}\n-----END CERTIFICATE-----",
            "a file that starts with -----BEGIN PRIVATE KEY----- and ends with -----END PRIVATE KEY-----",
            f"data:image/png;base64,{draw.string(BASE62, 80)}",
            f"ssh-rsa {draw.string(BASE62, 120)} comment",
            f"pk_live_{draw.string(BASE62, 24)}",
            f".sk-fading-circle .sk-circle{draw.below(12)} {{ width: 100% }}",
            f"task_runner_{draw.string(LOWER, 12)}, disk_usage_statistics, risk-adjusted-returns",
            f"ghp_{draw.string(LOWER, 12)}",
            "mongodb://user:password@database-host/items",
            f"{name} = settings.{name}_from_file_2;",
            f"AKIA{draw.string(LOWER, 16)}",
            f'{name} = "correct horse battery staple 12"',
            f"eyJhbGciOiJIUzI1NiJ9.{draw.string(LOWER, 6)}",
        )
    )


TRAPS: Final[dict[str, Callable[[Draw], str]]] = {
    trap.__name__.replace("_", " "): trap
    for trap in (
        version,
        section,
        not_an_ip,
        not_ipv6,
        isbn,
        doi,
        date,
        price,
        coordinates,
        hexadecimal,
        long_number,
        not_iban,
        not_a_phone,
        at_sign,
        not_a_secret,
    )
}
"""The traps, by what they are of."""

SENTENCES: Final[Sequence[str]] = (
    "The harbour lay quiet when the ferry came in.",
    "Nobody had opened the archive for years.",
    "Der Zug hielt auf freier Strecke, und alle sahen hinaus.",
    "Il pleuvait sur les toits de la vieille ville.",
    "We measured the flow twice and found the same value.",
    "El mercado abre a las ocho y cierra al mediodía.",
    "这条河从山上流下来。",
    "Please keep the gate shut, the goats are curious.",
    "The meeting was moved to the small room upstairs.",
    "def mean(values):\n    return sum(values) / len(values)",
)
"""Sentences of our own that stand before and behind."""
