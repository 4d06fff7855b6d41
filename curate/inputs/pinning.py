"""Making listings (`curate.inputs.listings`): of files, of versions of objects, or of checksums that came with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from curate.configuration import ConfigurationError
from curate.inputs.files import InputFile, place_of
from curate.inputs.listings import ListedFile, check_hex, named


def make_listing(
    files: Sequence[InputFile], given: Mapping[str, str] | None = None, kind: str = "blake3"
) -> Iterator[ListedFile]:
    """Yield a line for each of `files`: by `given` checksums of this `kind`, else by version, else hashed here.

    Raises:
        ConfigurationError: checksums are given, but not of every file, or of files that are not there.
    """
    if given is not None:
        _check_given(files, given)
    for file in files:
        if given is not None:
            yield ListedFile(file.path, file.size, {kind: given[file.path]})
        elif file.version:
            yield ListedFile(file.path, file.size, {}, file.version)
        else:
            yield ListedFile(file.path, file.size, {"blake3": place_of(file.root).digest(file.path)})


def _check_given(files: Sequence[InputFile], given: Mapping[str, str]) -> None:
    names = {file.path for file in files}
    place = place_of(files[0].root)
    lacking = sorted(names - given.keys())
    gone = sorted(name for name in given.keys() - names if not place.exists(name))
    for what, which in (("have no checksum", lacking), ("have a checksum and are not there", gone)):
        if which:
            raise ConfigurationError(f"{len(which):,} files of {place.url('')} {what}: {named(which)}")


def read_sums(path: Path, kind: str) -> dict[str, str]:
    """Return path → checksum of a file as `sha256sum`, `md5sum` and `b3sum` write it.

    Raises:
        ConfigurationError: it cannot be read, or a line is no checksum with a name.
    """
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: {error}") from None
    found: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        digest, _, name = line.partition(" ")
        try:
            check_hex(kind, digest.lower())
        except ValueError as error:
            raise ConfigurationError(
                f"{path} line {number}: {error}; a line is a checksum, two blanks, a name"
            ) from None
        found[name[1:].removeprefix("./")] = digest.lower()  # " " or "*" before the name: text or binary
    return found
