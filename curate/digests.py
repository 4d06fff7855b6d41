"""Digests: of files (bytes) and of configuration (keys: digests of canonical JSON), ids, and sums of digests.

Those of a table's content are in `curate.content_digests`: nothing here needs Arrow.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO, Final

from blake3 import blake3

from transforms.canonical import canonical_json

CHUNK: Final = 1 << 20
MODULUS: Final = 1 << 256
TICK: Final = 20_000_000
"""Nanoseconds within which two changes of a file can have one time stamp: more than a tick of any kernel."""

COARSE_TICK: Final = 2_500_000_000
"""The same where a file system keeps no fractions of a millisecond: some keep every second second."""

ID_CONTEXT: Final = b"curate document id 1\0"
"""What the bytes that an id digests begin with."""


def digest_bytes(content: bytes) -> str:
    """Return the BLAKE3 digest of `content` as 64 hex digits."""
    return blake3(content).hexdigest()


def digest_file(path: Path) -> str:
    """Return the BLAKE3 digest of a file's bytes as 64 hex digits."""
    with path.open("rb", buffering=0) as file:
        return digest_stream(file)


def digest_unchanged(path: Path) -> str:
    """Return what `digest_file` does; a file that this process has digested is read again only if it has changed.

    Changed is what has another inode, size, time of change of its bytes or of itself: the last the kernel alone sets. A
    file is remembered if its last change was over when reading began, so that a further one has another time.
    """
    with path.open("rb", buffering=0) as file:
        state = os.fstat(file.fileno())
        tick = TICK if state.st_ctime_ns % 1_000_000 else COARSE_TICK
        if not 0 <= state.st_ctime_ns < time.time_ns() - tick:
            return digest_stream(file)
    times = state.st_mtime_ns, state.st_ctime_ns
    return _digest_in_state(path, (state.st_dev, state.st_ino, state.st_size, *times))


@lru_cache(maxsize=1 << 12)
def _digest_in_state(path: Path, state: tuple[int, ...]) -> str:
    return digest_file(path)


def digest_stream(file: BinaryIO) -> str:
    """Return the BLAKE3 digest of what is left of an open file as 64 hex digits."""
    hasher, buffer = blake3(), memoryview(bytearray(CHUNK))
    while count := file.readinto(buffer):  # type: ignore[attr-defined]
        hasher.update(buffer[:count])
    return hasher.hexdigest()


def digest_json(value: object) -> str:
    """Return the digest of the canonical JSON of `value`: this is how keys are made."""
    return digest_bytes(canonical_json(value).encode())


def short(key: str) -> str:
    """Return the 16 hex digits under which `key` stands in paths."""
    return key[:16]


def document_id(source: str, *natural_key: bytes | str | int) -> bytes:
    """Return the 16-byte id of the document that `natural_key` names within `source`.

    Every part is length-prefixed, so that no two lists of parts run together.
    """
    return blake3(ID_CONTEXT + b"".join(map(id_part, (source, *natural_key)))).digest(16)


def id_part(part: bytes | str | int) -> bytes:
    """Return what stands for one part in the bytes that an id digests: its length, its type, itself."""
    data = part if isinstance(part, bytes) else str(part).encode()
    return len(data).to_bytes(8, "little") + type(part).__name__.encode() + b"\0" + data


def text_digest(text: str) -> bytes:
    """Return the 16-byte digest of a text's UTF-8 bytes."""
    return blake3(text.encode()).digest(16)


def sum_digests(digests: Iterable[bytes]) -> str:
    """Return the sum modulo 2^256 of BLAKE3 digests of `digests`, as 64 hex digits.

    It names a multiset: the same for any order, and sums of parts add up to the sum of the whole.
    """
    total = sum(int.from_bytes(blake3(digest).digest(), "little") for digest in digests)
    return f"{total % MODULUS:064x}"


def add_sums(left: str, right: str) -> str:
    """Return the sum of the union of two multisets named by `sum_digests`."""
    return f"{(int(left, 16) + int(right, 16)) % MODULUS:064x}"
