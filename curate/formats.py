"""Format numbers: every file that is read again says which version of its format it has.

A reader accepts the current number and every older one for which there is a step; anything else is an error that names
the file, its version, what is read, and the remedy. A step is a function from what version n says to what version n + 1
would say: readers know the current version only. The digest of a file is that of what was stored, and is checked
before a step runs. Stores of every version are kept in `tests/formats/` and opened by its tests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Step = Callable[[dict[str, Any]], dict[str, Any]]
"""Returns the fields of the next version, given those of a version. The field "format" is changed by `Format`."""


class FormatError(ValueError):
    """A file of a version that this package does not read."""


@dataclass(frozen=True, slots=True)
class Format:
    """The format of one kind of file.

    Attributes:
        number: the version that is written.
        remedy: what to do with a file of a version that is not read.
        steps: the last versions, oldest first: `steps[-1]` lifts version `number` - 1 to `number`.
        prefix: what stands before the number in the field "format", where it is a text.
    """

    number: int
    remedy: str
    steps: tuple[Step, ...] = ()
    prefix: str = ""

    @property
    def stamp(self) -> int | str:
        """What is written into the field "format"."""
        return self._stamp(self.number)

    @property
    def oldest(self) -> int:
        """The oldest version that is read."""
        return self.number - len(self.steps)

    def lift(self, value: Mapping[str, Any], file: str) -> dict[str, Any]:
        """Return what `value`, read from `file`, says in the current version.

        Raises:
            FormatError: it has a version that is not read.
        """
        lifted = dict(value)
        number = self._number(value.get("format"), file)
        for step in self.steps[number - self.oldest :]:
            lifted = step(lifted)
        return {**lifted, "format": self.stamp}

    def _stamp(self, number: int) -> int | str:
        return f"{self.prefix}{number}" if self.prefix else number

    def _number(self, stored: object, file: str) -> int:
        for number in range(self.oldest, self.number + 1):
            if stored == self._stamp(number) and type(stored) is type(self._stamp(number)):
                return number
        read = f"format {self.stamp}"
        if self.steps:
            read = f"formats {self._stamp(self.oldest)} to {self.stamp}"
        raise FormatError(f"{file} has format {stored}, this version of curate reads {read}: {self.remedy}")
