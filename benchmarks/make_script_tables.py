"""Make transforms/script_tables.npz from the `regex` distribution: `python -m benchmarks.make_script_tables`.

Scripts are the property Script of the Unicode version that the installed `regex` carries, of letters only, by their ISO
15924 codes. Which Han characters are written in simplified or in traditional Chinese only follows from two national
standards as Python's codecs hold them: those of GB 2312 that Big5 lacks, and those of Big5's frequent plane (A440 to
C67E) that GB 2312 lacks. Run this only to move to another Unicode version: then raise the `version` of the transforms
that read the tables, and set the new digest in tests/transforms/test_scripts.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import regex._regex_core as core

from benchmarks.make_unicode_tables import members, ranges, unicode_version
from transforms import scripts, unicode_tables

TARGET: Final = Path(scripts.__file__).with_name("script_tables.npz")
NO_SCRIPT: Final = ("COMMON", "INHERITED", "UNKNOWN")
OLD_CODES: Final = {"QAAI", "QAAC", "MIAO"}
"""Names of four letters that are no codes of ISO 15924 today."""
FREQUENT: Final = range(0xA440, 0xC67F)


def script_codes() -> dict[str, str]:
    """Return name of the property's value → code, as "LATIN" → "Latn"."""
    names: dict[int, list[str]] = {}
    for name, number in core.PROPERTIES["SCRIPT"][1].items():
        names.setdefault(number, []).append(name)
    chosen = {}
    for group in names.values():
        code = next(name for name in group if len(name) == 4 and name not in OLD_CODES)
        if group[0] not in NO_SCRIPT:
            chosen[group[0]] = code.capitalize()
    return chosen


def encodable(character: str, codec: str) -> int | None:
    """Return the number of `character` in `codec`, None where it has none."""
    try:
        return int.from_bytes(character.encode(codec), "big")
    except UnicodeEncodeError:
        return None


def chinese(code_points: npt.NDArray[np.int64]) -> tuple[list[int], list[int]]:
    """Return which of the Han `code_points` are of simplified and which of traditional Chinese only."""
    simplified, traditional = [], []
    for point in code_points.tolist():
        mainland, taiwan = encodable(chr(point), "gb2312"), encodable(chr(point), "big5")
        if mainland is not None and taiwan is None:
            simplified.append(point)
        elif mainland is None and taiwan in FREQUENT:
            traditional.append(point)
    return simplified, traditional


def main() -> None:
    """Write the file."""
    codes = script_codes()
    names = ["", "Hans", "Hant", *sorted(codes.values())]
    table = np.zeros(unicode_tables.CODE_POINTS, np.uint8)
    for name, code in codes.items():
        table[members(rf"(?V1)[\p{{L}}&&\p{{Script={name}}}]")] = names.index(code)
    simplified, traditional = chinese(np.flatnonzero(table == names.index("Hani")))
    table[simplified], table[traditional] = names.index("Hans"), names.index("Hant")
    content: dict[str, npt.NDArray[Any]] = {"version": unicode_version(), "names": np.array(names, "<U4")}
    content["starts"], content["values"] = ranges(table)
    with TARGET.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **content)
    size, version = TARGET.stat().st_size, ".".join(map(str, content["version"]))
    print(f"{TARGET.name}: {size} bytes, Unicode {version}, {len(simplified)} Hans, {len(traditional)} Hant")


if __name__ == "__main__":
    main()
