"""Undoing mojibake: text whose UTF-8 bytes were once read in another encoding, once, twice or more often.

`RepairMojibake` looks for runs of characters which in that encoding are the bytes of valid UTF-8, and repairs them only
where that cannot be chance:

- *whole text*: all its non-ASCII characters lie in such runs, of three sequences or more;
- *quotes and dashes*: three characters that are the bytes of one of U+2010 to U+2044, as "â€™" for "’";
- *chains*: four sequences in a row (three in windows-1252, whose continuation bytes are signs) that are no word:
  a quarter of the continuation bytes are signs, or capitals follow small letters;
- *inside a word*: in windows-1252, a run with a capital as first byte (Â to Ü) beside a small ASCII letter, as "fÃ¼r".

Clean text that comes near is left alone: "é »" with a no-break space is the bytes of a Chinese character, "NÃO" has no
continuation, Ukrainian "Ві" is a superscript in windows-1251 amid letters that are not. Then C1 controls that are the
quotes, dashes and signs of windows-1252 become these.

Invariants: a repair is repeated until nothing changes, so doing it twice changes nothing; exact per document and
encoding, in + inserted = out + cut in code points; depends on the document alone. Cost: one pass over the bytes; texts
in which nothing can be found are never decoded. Texts are repaired in Python at some 5 MB/s.

ftfy (Speer 2019) does more and guesses more: it also repairs what lost its no-break spaces, at 15 MB/s. Here nothing is
guessed, and clean text costs a look at 1.5 GB/s (docs/encodings.md has the figures).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from transforms.kernels import kernel
from transforms.outcome import Outcome, kept, require
from transforms.schema import set_columns
from transforms.segmentation import Bytes, Int, Positions, decode, text_buffers
from transforms.unicode_tables import ALPHABETIC, CLASS, CODE_POINTS, CONTROL, LOWER, OTHER
from transforms.web_codecs import table

READ_AS: Final = (
    "windows-1252",
    "windows-1251",
    "windows-1250",
    "windows-1254",
    "windows-1253",
    "windows-1257",
    "iso-8859-2",
    "koi8-r",
    "macintosh",
    "ibm437",
    "ibm850",
    "ibm866",
)
"""Encodings that UTF-8 was read in, in the order in which they are tried. windows-1252 covers iso-8859-1."""

Masks = npt.NDArray[np.uint32]

_SIGNS_ONLY: Final = frozenset({"windows-1252", "windows-1254"})
_QUOTES: Final = frozenset("\u00a0«»‘’“”„‚‹›–—…")
_NATURAL: Final = re.compile("^[à-ô]\u00a0[»’”“‘«›!?:;]$")
_CONTROLS: Final = re.compile("[\x80-\x9f]")
_RIVALS: Final = {
    "windows-1250": "iso-8859-2",
    "iso-8859-2": "windows-1250",
    "ibm437": "ibm850",
    "ibm850": "ibm437",
}
_NEXT_LINE: Final = "\x85"
_LEAST_WHOLE: Final = 3
_ODD_CAPITALS: Final = 3
_CONTROL_REASON: Final = "windows-1252 read as iso-8859-1"


@dataclass(frozen=True, slots=True)
class Misreading:
    """What UTF-8 looks like in an encoding."""

    encoding: str
    runs: re.Pattern[str]
    """Runs of characters that are bytes of UTF-8 by their kinds."""
    sequence: re.Pattern[str]
    to_byte: dict[int, int]
    characters: frozenset[str]
    chain: int
    """Sequences in a row that are no chance."""


@dataclass(frozen=True, slots=True)
class RepairMojibake:
    """Repairs text whose UTF-8 was read as another encoding, where that is certain; see the module.

    Edits are counted per encoding, as "utf-8 read as windows-1252". Put it after extraction and before
    `NormalizeText`, which cuts the control characters that are part of what it needs.

    Attributes:
        read_as: the encodings that are tried, of `READ_AS`.
    """

    read_as: tuple[str, ...] = READ_AS

    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        """Check the encodings.

        Raises:
            ValueError: one is unknown.
        """
        if unknown := sorted(set(self.read_as) - set(READ_AS)):
            raise ValueError(f"RepairMojibake(read_as) knows {', '.join(READ_AS)}, not {unknown[0]!r}")

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return `schema`.

        Raises:
            SchemaError: there is no column `text`.
        """
        require(schema, "RepairMojibake", text=pa.large_string())
        return schema

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        """Return all rows, their texts repaired."""
        data, bounds = text_buffers(batch.column("text"))
        suspects = _suspects(data, bounds, _masks())
        texts: dict[int, str] = {}
        edits: list[dict[str, Any]] = []
        for row in np.flatnonzero(suspects).tolist():
            text = batch.column("text")[row].as_py()
            repaired, counts = self.repair(text, int(suspects[row]))
            if repaired != text:
                texts[row] = repaired
                identity = batch.column("id")[row].as_py()
                edits += [{"id": identity, "transform": "RepairMojibake", "reason": reason, "cut": cut,
                           "inserted": inserted} for reason, (cut, inserted) in counts.items()]  # fmt: skip
        if not texts:
            return kept(batch)
        column = [texts.get(row, value) for row, value in enumerate(batch.column("text").to_pylist())]
        repaired_column = {batch.schema.field("text"): pa.array(column, pa.large_string())}
        return kept(set_columns(batch, repaired_column), edits=edits)

    def repair(self, text: str, suspected: int = -1) -> tuple[str, dict[str, tuple[int, int]]]:
        """Return `text` repaired, and reason → (characters cut, inserted).

        `suspected` are bits of the encodings of `READ_AS` that are looked at first; all of them once one was found.
        """
        counts: dict[str, tuple[int, int]] = {}
        while True:
            names = [name for name in self.read_as if suspected >> READ_AS.index(name) & 1]
            change = _best(text, names) or _without_controls(text)
            if not change.cut:
                return text, counts
            text, suspected = change.text, -1
            cut, inserted = counts.get(change.reason, (0, 0))
            counts[change.reason] = cut + change.cut, inserted + change.inserted


@dataclass(frozen=True, slots=True)
class _Change:
    """A text, and how many characters were cut and inserted for which reason."""

    text: str
    reason: str = ""
    cut: int = 0
    inserted: int = 0


def _best(text: str, names: list[str]) -> _Change | None:
    """Return a repair of all of `text` if there is one only, else one of what is certain by itself, else None."""
    whole = [change for name in names if (change := _whole(text, _misreading(name))).cut]
    if whole:
        return whole[0] if len({change.text for change in whole}) == 1 else None
    return next((change for name in names if (change := _in_parts(text, _misreading(name))).cut), None)


def _whole(text: str, misreading: Misreading) -> _Change:
    """Return `text` with all its runs repaired if they are all that is not ASCII in it."""
    if any(character > "\x7f" for character in set(text) - misreading.characters):
        return _Change(text)
    found = _found(text, misreading)
    outside = len(text) - len(text.encode("ascii", "ignore")) - sum(len(match[0]) for match, _ in found)
    if outside or sum(len(decoded) for _, decoded in found) < _LEAST_WHOLE:
        return _Change(text)
    return _changed(text, found, misreading)


def _in_parts(text: str, misreading: Misreading) -> _Change:
    """Return `text` with the runs repaired that are certain by themselves."""
    found = _found(text, misreading)
    certain = [pair for pair in found if _is_certain(*pair, text, misreading)]
    return _changed(text, [pair for pair in certain if not _is_ambiguous(*pair, misreading)], misreading)


def _found(text: str, misreading: Misreading) -> list[tuple[re.Match[str], str]]:
    """Return the runs of `text`, and what they were."""
    runs = misreading.runs.finditer(text)
    return [(match, decoded) for match in runs if (decoded := _decoded(match[0], misreading)) is not None]


def _changed(text: str, found: list[tuple[re.Match[str], str]], misreading: Misreading) -> _Change:
    parts, end, cut, inserted = [], 0, 0, 0
    for match, decoded in found:
        parts += [text[end : match.start()], decoded]
        end, cut, inserted = match.end(), cut + len(match[0]), inserted + len(decoded)
    return _Change("".join([*parts, text[end:]]), f"utf-8 read as {misreading.encoding}", cut, inserted)


def _decoded(run: str, misreading: Misreading) -> str | None:
    """Return what a run was, None where it is no UTF-8 or no text, or where clean text has such runs."""
    if any(_NATURAL.match(sequence[0]) for sequence in misreading.sequence.finditer(run)):
        return None
    try:
        text = bytes(misreading.to_byte[ord(character)] for character in run).decode("utf-8")
    except UnicodeDecodeError:
        return None
    kinds = CLASS[[ord(character) for character in text]]
    return None if (kinds == OTHER).any() or ((kinds == CONTROL) & (np.array([*map(ord, text)]) < 0x80)).any() else text


def _is_ambiguous(match: re.Match[str], decoded: str, misreading: Misreading) -> bool:
    """Tell whether a run would be something else in an encoding that is easily taken for this one."""
    rival = _RIVALS.get(misreading.encoding)
    if rival is None or not _misreading(rival).runs.fullmatch(match[0]):
        return False
    return _decoded(match[0], _misreading(rival)) not in (None, decoded)


def _is_certain(match: re.Match[str], decoded: str, text: str, misreading: Misreading) -> bool:
    """Tell whether one run, amid text that is read well, cannot be chance."""
    if all("\u2010" <= character <= "\u2044" for character in decoded):
        return True
    if len(decoded) >= misreading.chain and _reads_oddly(match[0], misreading):
        return True
    before, after = text[match.start() - 1 : match.start()], text[match.end() : match.end() + 1]
    return (
        misreading.encoding == "windows-1252"
        and "Â" <= match[0][0] <= "Ü"
        and match[0][0] != "×"
        and ("a" <= before <= "z" or "a" <= after <= "z")
        and not (match[0][-1] in _QUOTES and not "a" <= after <= "z")
        and all(ALPHABETIC[ord(character)] or character < "\u0100" for character in decoded)
    )


def _reads_oddly(run: str, misreading: Misreading) -> bool:
    """Tell whether a run is no word: a quarter of its later bytes are signs, or capitals follow small letters."""
    points = np.array([ord(character) for character in run])
    letters, capitals = ALPHABETIC[points], LOWER[points] != points
    more = np.array([misreading.to_byte[point] < 0xC0 for point in points.tolist()])
    inside = letters[:-1] & ~capitals[:-1] & capitals[1:]
    return bool(4 * (~letters & more).sum() >= more.sum() or inside.sum() >= _ODD_CAPITALS)


def _without_controls(text: str) -> _Change:
    """Return `text` with C1 controls as the signs of windows-1252, if each of them is one."""
    signs, controls = table("windows-1252"), _CONTROLS.findall(text)
    if _misreading("windows-1252").runs.search(text):
        return _Change(text)  # what is left of mojibake
    if set(controls) <= {_NEXT_LINE} or any(signs[ord(control)] == control for control in controls):
        return _Change(text)
    repaired = _CONTROLS.sub(lambda found: signs[ord(found[0])], text)
    return _Change(repaired, _CONTROL_REASON, len(controls), len(controls))


@cache
def characters_of(encoding: str) -> str:
    """Return what the 256 bytes are in `encoding`."""
    if encoding.startswith(("ibm4", "ibm85")):
        return bytes(range(256)).decode(encoding.replace("ibm", "cp"))
    return table(encoding)


@cache
def _misreading(encoding: str) -> Misreading:
    """Return what UTF-8 looks like in `encoding`."""
    characters = characters_of(encoding)
    to_byte = {
        ord(character): byte for byte, character in enumerate(characters) if byte >= 0x80 and character != "\ufffd"
    }
    if encoding == "windows-1252":
        to_byte |= {byte: byte for byte in range(0x80, 0xA0)}

    def one_of(first: int, last: int) -> str:
        return f"[{''.join(re.escape(chr(point)) for point, byte in to_byte.items() if first <= byte <= last)}]"

    more = one_of(0x80, 0xBF)
    sequence = f"(?:{one_of(0xC2, 0xDF)}{more}|{one_of(0xE0, 0xEF)}{more}{{2}}|{one_of(0xF0, 0xF4)}{more}{{3}})"
    chain = 3 if encoding in _SIGNS_ONLY else 4
    return Misreading(
        encoding, re.compile(f"{sequence}+"), re.compile(sequence), to_byte, frozenset(map(chr, to_byte)), chain
    )


@cache
def _masks() -> Masks:
    """Return, by code point, the encodings (bits) in which it begins a sequence, continues one, is E2, is 80."""
    masks = np.zeros((4, CODE_POINTS), np.uint32)
    for bit, encoding in enumerate(READ_AS):
        for point, byte in _misreading(encoding).to_byte.items():
            kinds = (0xC2 <= byte <= 0xF4, byte <= 0xBF, byte == 0xE2, byte == 0x80)
            masks[:, point] |= np.array(kinds, np.uint32) << np.uint32(bit)
    return masks


@kernel
def _suspects(data: Bytes, bounds: Positions, masks: Masks) -> npt.NDArray[np.int64]:
    """Return, for each text, the encodings (bits) in which it may have something to repair; bit 32: a C1 control.

    These are: a pair of bytes in windows-1252; a pair where all non-ASCII characters are bytes of UTF-8; three pairs in
    a row, every second or third character; what quotes and dashes begin with.
    """
    found = np.zeros(len(bounds) - 1, np.int64)
    pairs = np.zeros(8, np.uint32)  # of the last characters, in turn
    for text in range(len(found)):
        position: Int = bounds[text]
        end = bounds[text + 1]
        any_pair, certain, whole = np.uint32(0), np.uint32(0), np.uint32(0xFFFFFFFF)
        before: Int = np.int64(0)
        last, control = np.uint32(0), np.int64(0)
        while position < end:
            if data[position] < 0x80:
                position += 1
                before = np.int64(0)
                continue
            point, position = decode(data, position, end)
            if before == 0:
                pairs[:] = 0
            pair = masks[0, before] & masks[1, point]
            last = (last + np.uint32(1)) & np.uint32(7)
            pairs[last] = pair
            any_pair |= pair
            certain |= (
                pair & pairs[last - 2 & 7] & pairs[last - 4 & 7] | pair & pairs[last - 3 & 7] & pairs[last - 6 & 7]
            )
            certain |= masks[2, before] & masks[3, point]
            whole &= masks[0, point] | masks[1, point]
            control |= np.int64(point < 0xA0) << 32
            before = point
        found[text] = np.int64((any_pair & (whole | np.uint32(1))) | certain) | control
    return found
