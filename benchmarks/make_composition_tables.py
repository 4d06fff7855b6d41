"""Make transforms/composition_tables.npz of `unicodedata2`: `python -m benchmarks.make_composition_tables`.

That distribution carries the Unicode Character Database of one version whatever the Python; it is needed here only
(`pip install unicodedata2==18.0.0`). Run this only to move to another Unicode version: normal forms of characters that
a version has never change in later ones (Unicode Normalization Stability Policy), so a new table adds characters. Then
raise the `version` of `NormalizeText`, and set the new digest in tests/transforms/test_composition.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import unicodedata2 as database  # type: ignore[import-not-found]

from benchmarks.make_unicode_tables import ranges
from transforms import composition
from transforms.unicode_tables import CODE_POINTS

TARGET: Final = Path(composition.__file__).with_name("composition_tables.npz")
SURROGATES: Final = range(0xD800, 0xE000)
HANGUL: Final = range(0xAC00, 0xD7A4)
JAMO: Final = (range(0x1161, 0x1176), range(0x11A8, 0x11C3))
"""Vowels and final consonants, which compose with what stands before."""


def main() -> None:
    """Write the file."""
    points = [point for point in range(CODE_POINTS) if point not in SURROGATES]
    classes = np.zeros(CODE_POINTS, np.uint8)
    check = np.zeros(CODE_POINTS, np.uint8)
    sources, parts, pairs = [], [], []
    for point in points:
        character = chr(point)
        classes[point] = database.combining(character)
        whole = database.normalize("NFD", character)
        if whole != character and point not in HANGUL:
            sources.append(point)
            parts.append([ord(part) for part in whole])
        if database.normalize("NFC", character) != character:
            check[point] = composition.CHANGES
        raw = database.decomposition(character).split()
        if len(raw) == 2 and not raw[0].startswith("<") and database.normalize("NFC", whole) == character:
            first, second = (int(part, 16) for part in raw)
            pairs.append((first, second, point))
    for point in [second for _, second, _ in pairs] + [point for jamo in JAMO for point in jamo]:
        check[point] = check[point] or composition.COMPOSES
    check[(check == 0) & (classes > 0)] = composition.MARK
    pairs.sort()
    content: dict[str, npt.NDArray[Any]] = {
        "version": np.array([int(part) for part in database.unidata_version.split(".")], np.int32),
        "sources": np.array(sources, np.int32),
        "lengths": np.array([len(row) for row in parts], np.uint8),
        "parts": np.array([part for row in parts for part in row], np.int32),
        "pairs": np.array(pairs, np.int32),
    }
    content["class_starts"], content["class_values"] = ranges(classes)
    content["check_starts"], content["check_values"] = ranges(check)
    with TARGET.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **content)
    print(f"{TARGET.name}: {TARGET.stat().st_size} bytes, Unicode {database.unidata_version}, {len(pairs)} pairs")


if __name__ == "__main__":
    main()
