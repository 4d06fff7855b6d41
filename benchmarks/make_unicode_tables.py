"""Make transforms/unicode_tables.npz from the `regex` distribution: `python -m benchmarks.make_unicode_tables`.

`regex` carries its own copy of the Unicode Character Database, so one pinned version of it gives the same tables on
every Python. Run this only to move to another Unicode version: then raise the `version` of every transform that reads
the tables, and set the new digest in tests/transforms/test_unicode_tables.py.
"""

from __future__ import annotations

from importlib.metadata import distribution
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import regex

from transforms import unicode_tables as tables

EVERYTHING: Final = "".join(map(chr, range(tables.CODE_POINTS)))
TARGET: Final = Path(tables.__file__).with_name("unicode_tables.npz")

CLASSES: Final = (  # later lines win
    (tables.LETTER, r"\p{L}"),
    (tables.MARK, r"\p{M}"),
    (tables.NUMBER, r"\p{N}"),
    (tables.PUNCTUATION, r"\p{P}"),
    (tables.CONNECTOR, r"\p{Pc}"),
    (tables.SYMBOL, r"\p{S}"),
    (tables.CONTROL, r"\p{Cc}"),
    (tables.FORMAT, r"\p{Cf}"),
    (tables.SPACE, r"\p{White_Space}"),
    (tables.LINE_BREAK, r"[\n\r\u2028\u2029]"),
    (tables.IDEOGRAPH, r"(?V1)[[\p{L}\p{Nl}]&&[\p{Ideographic}\p{Script=Han}\p{Script=Hiragana}]]"),
    (tables.COMPLEX, r"(?V1)[\p{L}&&\p{Line_Break=SA}]"),
)


def members(pattern: str) -> npt.NDArray[np.int64]:
    """Return the code points that a one-character `pattern` matches."""
    return np.array([match.start() for match in regex.finditer(pattern, EVERYTHING)], np.int64)


def ranges(table: npt.NDArray[Any]) -> tuple[npt.NDArray[np.int32], npt.NDArray[Any]]:
    """Return starts and values of the runs of equal values in `table`."""
    starts = np.flatnonzero(np.r_[True, table[1:] != table[:-1]])
    return starts.astype(np.int32), table[starts]


def classes() -> npt.NDArray[np.uint8]:
    """Return the table `CLASS`."""
    table = np.zeros(tables.CODE_POINTS, np.uint8)
    for value, pattern in CLASSES:
        table[members(pattern)] = value
    return table


def word_breaks() -> npt.NDArray[np.uint8]:
    """Return the table `WORD_BREAK`."""
    table = np.zeros(tables.CODE_POINTS, np.uint8)
    table[members(r"[\p{L}\p{Nl}]")] = tables.WB_UNIT
    for value, name in enumerate(tables.WORD_BREAK_NAMES[1 : tables.WB_UNIT], start=1):
        table[members(rf"\p{{Word_Break={name}}}")] = value
    table[members(r"\p{Extended_Pictographic}")] |= tables.PICTOGRAPHIC
    return table


def lower_case() -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Return code points that change when lower-cased, and their simple lower-case mappings.

    `regex` has case folding and sets of case variants, not the mapping itself. For characters that change when
    lower-cased the two agree, but for U+0130 (folds to two characters only) and Cherokee (folds to capitals, which
    here are the variants that do change when lower-cased).
    """
    sources = members(r"\p{Changes_When_Lowercased}")
    changing = set(sources.tolist())
    targets = []
    for source in sources.tolist():
        folded = ord(regex._regex.fold_case(regex.UNICODE | regex.IGNORECASE, chr(source))[0])
        variants = [other for other in regex._regex.get_all_cases(regex.UNICODE, source) if other not in changing]
        targets.append(ord("i") if source == 0x130 else folded if folded in variants else variants[0])
    return sources.astype(np.int32), np.array(targets, np.int32)


def unicode_version() -> npt.NDArray[np.int32]:
    """Return the Unicode version that the installed `regex` states in its description."""
    text = distribution("regex").read_text("METADATA") or ""
    found = regex.search(r"This module supports Unicode (\d+)\.(\d+)\.(\d+)", text)
    if found is None:
        raise SystemExit("the description of `regex` no longer states its Unicode version")
    return np.array([int(part) for part in found.groups()], np.int32)


def main() -> None:
    """Write the file."""
    alphabetic = np.zeros(tables.CODE_POINTS, np.bool_)
    alphabetic[members(r"\p{L}")] = True
    content: dict[str, npt.NDArray[Any]] = {"version": unicode_version()}
    content["class_starts"], content["class_values"] = ranges(classes())
    content["break_starts"], content["break_values"] = ranges(word_breaks())
    content["alphabetic_starts"], content["alphabetic_values"] = ranges(alphabetic)
    content["lower_sources"], content["lower_targets"] = lower_case()
    with TARGET.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **content)
    print(f"{TARGET.name}: {TARGET.stat().st_size} bytes, Unicode {'.'.join(map(str, content['version']))}")


if __name__ == "__main__":
    main()
