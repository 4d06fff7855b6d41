"""Telephone numbers: the verdict on a candidate.

Found are, in this order:

- *international*: ``+`` and a country calling code of ITU-T E.164, then a national number of a length that the country
  has (`NATIONAL_LENGTHS`), in one or with spaces, hyphens, full stops, slashes and parentheses: ``+49 (0)30 1234567``,
  ``+1-202-555-0143``. With ``00`` instead of ``+`` the code stands in a group of its own: ``0049 30 1234567``.
- *North American*: three, three and four digits with an area code and an exchange that the numbering plan allows,
  joined by hyphens or full stops or with the area code in parentheses, with or without a leading 1:
  ``(202) 555-0143``.
- *with a trunk 0*: 10 to 12 digits in two to five groups, joined by one kind of separator behind the area code:
  ``030 1234567``, ``0171/1234567``, ``(020) 7946 0958``, ``01 23 45 67 89``, ``03-1234-5678``; nine digits only as
  ``02 123 45 67`` and ``02-123-4567``.
- *other national forms* that no other number has: ``(11) 91234-5678`` (Brazil), ``8 (495) 123-45-67`` (Russia),
  ``138 1234 5678`` (mobile, China).
- *labelled*: 7 to 13 digits behind a word such as "tel", "phone", "fax" in any of these forms, and others: ``612 34 56
  78``, ``555-0143``. After "call" and the like separators are needed.

An extension (``x12``, ``ext. 12``) belongs to the number. Not found: national numbers in one, and those without a trunk
0, where nothing says that they are telephone numbers. Left are numbers that continue one or are continued, that stand
in a word, a URL or a decimal, behind "ISBN", "order no." and the like, beside a currency or unit; dates, ranges of
years, arithmetic progressions.

Cost: constant per candidate.
"""

from __future__ import annotations

import re
from itertools import accumulate, pairwise
from typing import Final

from transforms.pii.found import Found
from transforms.pii.surroundings import is_beside_currency, label

_SPACE: Final = rb"(?:[ ]|\xc2\xa0|\xe2\x80\xaf)"
_HYPHEN: Final = rb"(?:-|\xe2\x80[\x90\x91])"
_SEPARATOR: Final = rb"(?:[ ]?(?:/|%s)[ ]?|\.|%s)" % (_HYPHEN, _SPACE)
_AREA: Final = rb"%s?\([0-9]{1,5}\)%s?" % (_SPACE, _SEPARATOR)

CHAIN: Final = re.compile(
    rb"(?:\([0-9]{2,5}\)%s?)?[0-9]{1,14}+(?:(?:%s|%s)[0-9]{1,14}+){0,7}" % (_SEPARATOR, _AREA, _SEPARATOR)
)
"""Groups of digits with what joins them; an area code may stand in parentheses."""

INTERNATIONAL: Final = re.compile(rb"(?:\+|00)[0-9]{1,15}+(\))?(?:(?:%s|%s)?[0-9]{1,14}+){0,7}" % (_AREA, _SEPARATOR))
GROUP: Final = re.compile(rb"[0-9]+")
TRUNK_MARK: Final = re.compile(rb"\(0\)")
NORTH_AMERICAN: Final = re.compile(
    rb"(?:1(?:[-.]|%s)?)?(?:\([2-9](?!11)[0-8][0-9]\)(?:[-.]|%s)?|[2-9](?!11)[0-8][0-9](?:[-.]|%s(?=[0-9]{3}[-.])))"
    rb"[2-9][0-9]{2}(?:[-.]|(?<=\)[0-9]{3})%s|(?<=\)[ ][0-9]{3})%s)[0-9]{4}" % (_SPACE, _SPACE, _SPACE, _SPACE, _SPACE)
)
BRAZILIAN: Final = re.compile(rb"\([1-9][1-9]\)%s?9?[0-9]{4}-[0-9]{4}" % _SPACE)
RUSSIAN: Final = re.compile(rb"(?<![0-9][ ])8(?:[- ]?\([0-9]{3}\)[- ]?|[- ][0-9]{3}[- ])[0-9]{3}-[0-9]{2}-[0-9]{2}")
CHINESE: Final = re.compile(rb"(?<![0-9][ ])1[3-9][0-9]([- ])[0-9]{4}\1[0-9]{4}")
OTHERS: Final = (NORTH_AMERICAN, BRAZILIAN, RUSSIAN, CHINESE)
EXTENSION: Final = re.compile(rb"[ ]?(?:x|ext\.?|extension)[ ]?[0-9]{1,5}(?![0-9A-Za-z_])", re.IGNORECASE)

IN_WORD: Final = re.compile(rb"[0-9A-Za-z_+)]")
TAKEN_BEFORE: Final = re.compile(rb"(?:[0-9A-Za-z_]|[-./:=&%?@\\~^+#])\Z")
FREE_BEFORE: Final = re.compile(rb"(?:[A-Za-z\x80-\xff]:|(?:\A|[^0-9A-Za-z])[-.~])\Z")
TAKEN_AFTER: Final = re.compile(rb"[0-9A-Za-z_@\\]|[-./:=+*^][0-9]|[-_/][A-Za-z]")
GROUP_BEFORE: Final = re.compile(rb"[0-9](?:,|%s)\Z" % _SPACE)
GROUP_AFTER: Final = re.compile(rb"(?:,|%s)[0-9]" % _SPACE)

DOTTED: Final = ((2, 2, 2, 2, 2), (4, 2, 2, 2), (2, 3, 2, 2), (3, 3, 2, 2))
"""Groups of numbers with a trunk 0 that full stops may join: France, Belgium, the Netherlands, Switzerland."""

NATIONAL_LENGTHS: Final = {
    int(code): (int(least), int(most))
    for code, least, most in re.findall(
        r"(\d+):(\d+)-(\d+)",
        "1:10-10 7:10-10 20:8-10 27:9-9 30:10-10 31:9-9 32:8-9 33:9-9 34:9-9 36:8-9 39:8-11 40:9-9 41:9-9 43:8-13 "
        "44:9-10 45:8-8 46:7-10 47:8-8 48:9-9 49:7-11 51:8-9 52:10-11 53:6-8 54:10-11 55:10-11 56:9-9 57:8-10 58:10-10 "
        "60:8-10 61:9-9 62:8-12 63:8-10 64:8-10 65:8-8 66:8-9 81:9-10 82:8-10 84:9-10 86:10-11 90:10-10 91:10-10 "
        "92:9-10 93:9-9 94:9-9 95:7-10 98:10-10",
    )
}
"""Least and most digits of a national number behind a country calling code, as national plans give them."""

THREE_DIGITS: Final = re.compile(
    rb"21[12368]|2[2346][0-9]|25[0-8]|29[01789]|3[57][0-9]|38[0-35-79]|42[013]|5[09][0-9]|67[02-9]|68[0-35-9]|69[0-2]"
    rb"|85[02356]|88[06]|96[0-8]|97[0-7]|99[2-68]"
)
"""Country calling codes of three digits that are assigned."""

THREE_DIGITS_LENGTHS: Final = (7, 10)
"""Least and most digits of a national number behind any of them."""

LEADING_ZERO: Final = (39, 225, 229, 241, 242, 378)
"""Country calling codes behind which a national number may start with 0."""

LEAST: Final = 7
MOST: Final = 13


def phone(text: bytes, place: int) -> Found | None:
    """Return the telephone number whose first digit stands at `place`."""
    found = _international(text, place) or _national(text, place)
    if found is None or is_beside_currency(text, *found):
        return None
    start, end = found
    extension = EXTENSION.match(text, end)
    end = extension.end() if extension else end
    return None if TAKEN_AFTER.match(text, end) else Found(start, end, "phone")


def _international(text: bytes, place: int) -> tuple[int, int] | None:
    """Return the span of a number with a country calling code, as many groups of it as the country's numbers have."""
    has_plus = text[place - 1 : place] == b"+"
    start = place - has_plus
    match = INTERNATIONAL.match(text, start)
    if match is None or IN_WORD.search(text[max(0, start - 1) : start]) or (not has_plus and _is_taken(text, start)):
        return None
    end = _national_end(match, 1 if has_plus else 2)
    is_opened = text[start - 1 : start] == b"(" and match[1] == b")"
    return None if end is None else (start - is_opened, end)


def _national_end(match: re.Match[bytes], prefix: int) -> int | None:
    """Return where the longest number of a length that the country has ends; None without one."""
    groups = list(GROUP.finditer(match[0], prefix))
    mark = TRUNK_MARK.search(match[0])
    written = [group for group in groups if mark is None or group.start() != mark.start() + 1]
    digits = b"".join(group[0] for group in written)
    size = next((size for size in (1, 2) if int(digits[:size]) in NATIONAL_LENGTHS), 3)
    if (size == 3 and not THREE_DIGITS.match(digits)) or (prefix == 2 and len(written[0][0]) != size):
        return None
    code = int(digits[:size])
    if digits[size : size + 1] == b"0" and code not in LEADING_ZERO:
        return None
    least, most = NATIONAL_LENGTHS.get(code, THREE_DIGITS_LENGTHS)
    counts = accumulate(len(group[0]) for group in written)
    fitting = [group.end() for group, count in zip(written, counts, strict=True) if least <= count - size <= most]
    return match.start() + fitting[-1] if fitting else None


def _national(text: bytes, place: int) -> tuple[int, int] | None:
    """Return the span of a number without country calling code."""
    start = place - (text[place - 1 : place] == b"(")
    announced = label(text, start)
    if announced == "number" or (not announced and _is_taken(text, start)):
        return None
    for form in OTHERS:
        match = form.match(text, start) or form.match(text, place)
        if match and not TAKEN_AFTER.match(text, match.end()):
            return match.span()
    return _grouped(text, start, announced) or (_grouped(text, place, announced) if start < place else None)


def _grouped(text: bytes, start: int, announced: str) -> tuple[int, int] | None:
    """Return the span of groups of digits that have a trunk 0 or stand behind a label."""
    match = CHAIN.match(text, start)
    if match is None or (not announced and GROUP_BEFORE.search(text[max(0, start - 4) : start])):
        return None
    groups = list(GROUP.finditer(match[0]))
    sizes = tuple(len(group[0]) for group in groups)
    joints = [_joint(match[0][left.end() : right.start()]) for left, right in pairwise(groups)]
    if b" " in joints and GROUP_AFTER.match(text, match.end()):
        return None
    digits = b"".join(group[0] for group in groups)
    if _has_trunk(digits, sizes, joints) or (announced and _is_labelled(groups, sizes, joints, announced)):
        return None if _is_progression(groups) else match.span()
    return None


def _joint(written: bytes) -> bytes:
    """Return what joins two groups, as one character: ``/``, ``-``, ``.``, ``)`` or a space."""
    for character in (b"/", b")", b"(", b".", b"-", b"\xe2\x80\x90", b"\xe2\x80\x91"):
        if character in written:
            return character[:1] if character[0] < 0x80 else b"-"
    return b" "


def _has_trunk(digits: bytes, sizes: tuple[int, ...], joints: list[bytes]) -> bool:
    """Say whether the groups have the form of a national number that starts with 0."""
    if digits[:1] != b"0" or digits[1:2] == b"0" or not 2 <= len(sizes) <= 5 or not 2 <= sizes[0] <= 6:
        return False
    rest = set(joints[1:])
    if len(rest) > 1 or rest & {b"/", b")", b"("} or sizes == (3, 3, 3, 3):
        return False
    if sizes[:2] == (2, 2) and sizes != (2, 2, 2, 2, 2):
        return False  # a date and more
    if b"." in joints:
        return sizes in DOTTED
    if len(digits) == 9:
        return sizes == (2, 3, 2, 2) or (sizes == (2, 3, 4) and b"-" in joints)
    return 10 <= len(digits) <= 12 and all(2 <= size <= 8 for size in sizes[1:])


def _is_labelled(groups: list[re.Match[bytes]], sizes: tuple[int, ...], joints: list[bytes], announced: str) -> bool:
    """Say whether groups behind a label are a telephone number: not a date, not two years."""
    if not LEAST <= sum(sizes) <= MOST or len(sizes) > 6 or (announced == "call" and len(sizes) == 1):
        return False
    if len(sizes) > 1 and b"." in joints and len(set(joints)) == 1 and len(sizes) < 3:
        return False  # a decimal
    first = int(groups[0][0])
    is_year = len(groups[0][0]) == 4 and 1500 <= first < 2100
    return not (is_year and sizes in ((4, 2, 2), (4, 4), (4, 1, 2), (4, 2, 1))) and sizes != (2, 2, 4)


def _is_progression(groups: list[re.Match[bytes]]) -> bool:
    """Say whether three or more groups are an arithmetic progression with a small step, as in a list of numbers."""
    numbers = [int(group[0]) for group in groups]
    steps = {right - left for left, right in pairwise(numbers)}
    return len(numbers) > 2 and len(steps) == 1 and abs(steps.pop()) <= 10


def _is_taken(text: bytes, start: int) -> bool:
    """Say whether what stands before `start` belongs to the number: a word, a path, a decimal, another group."""
    ahead = text[max(0, start - 3) : start]
    return bool(TAKEN_BEFORE.search(ahead) and not FREE_BEFORE.search(ahead))
