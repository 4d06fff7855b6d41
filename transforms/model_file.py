r"""The file of a trained classifier: a line of canonical JSON that says what it is, then arrays, little-endian.

    {"arrays":[["weights","<i4",262144],…],"bias":…,"format":1,"kind":"hashed linear","width":2000,…}\n
    the bytes of the arrays, one after the other

Invariants: the same model has the same bytes; numbers of the header are integers; what is read is checked for its
length. Cost: that of its arrays, 1 MB for 2^18 weights.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from transforms.canonical import canonical_json
from transforms.fitted import FittedError

FORMAT: Final = 1

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class ModelFile:
    """What a model file says: `header` without format and arrays, and the arrays by name."""

    header: Mapping[str, Any]
    arrays: Mapping[str, Array]

    @property
    def kind(self) -> str:
        """Which learner made it."""
        return str(self.header["kind"])

    @property
    def width(self) -> int:
        """Code points of a window of text."""
        return int(self.header["width"])

    def to_bytes(self) -> bytes:
        """Return the file."""
        arrays = {name: _little(array) for name, array in self.arrays.items()}
        listed = [[name, array.dtype.str, len(array)] for name, array in arrays.items()]
        line = canonical_json({**self.header, "format": FORMAT, "arrays": listed})
        return line.encode() + b"\n" + b"".join(array.tobytes() for array in arrays.values())


def _little(array: Array) -> Array:
    """Return `array` in the byte order of the file; single bytes have none."""
    return array.astype(array.dtype.newbyteorder("<")) if array.dtype.itemsize > 1 else array


def read_model(content: bytes, where: str = "the model") -> ModelFile:
    """Return what a model file says.

    Raises:
        FittedError: it is none, is of another format, or was cut short.
    """
    line, newline, rest = content.partition(b"\n")
    try:
        header = json.loads(line)
        found, listed = header.pop("format"), header.pop("arrays")
    except (ValueError, KeyError, AttributeError, UnicodeDecodeError):
        raise FittedError(f"{where} is no classifier: give the file that train_classifier made") from None
    if found != FORMAT or not newline:
        raise FittedError(f"{where} is of format {found}, this curate reads {FORMAT}: train it again")
    arrays, place = {}, 0
    for name, kind, length in listed:
        size = np.dtype(kind).itemsize * length
        if place + size > len(rest):
            raise FittedError(f"{where} is cut short in {name}: copy it again")
        array = np.frombuffer(rest, kind, length, place)
        arrays[name] = array.astype(array.dtype.newbyteorder("="))
        place += size
    return ModelFile(header, arrays)
