"""Lists of domains and URLs, of millions of lines, as sorted digests; and lists of words.

    example.org             the host and every name below it
    *.edu  .edu             the same, said of a public suffix
    example.org/a/b         that page and what lies below it, under this host (or "www." before it)
    example.org/a?page=2    that page with that query
    0.0.0.0 example.org     the line of a hosts file; "#" begins a comment, empty lines do not count

Files are plain text, gzip, or one member of a tar archive (`member`). URLs are compared as places
(`transforms.url_places`). A line that is a registry's public suffix ("co.uk", "edu", any single label) would drop half
a crawl by accident: it is an error, or ignored (`suffixes`), unless it is written with its star.

Invariants: what a list names depends on the file's bytes, the member and the public suffix list alone, whose digests
are part of every key after it; the path is not. Entries are told apart by 128 bits of BLAKE3. An index is made once per
node (a file beside the compiled kernels, put there whole; who comes meanwhile waits) and mapped by every process.
Cost: 24 bytes per line, shared; some 60 while it is made, 1 s per million lines. A look-up: .2 µs per span.
"""

from __future__ import annotations

import fcntl
import gzip
import os
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, Final, Literal, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from blake3 import blake3

from transforms.kernels import kernel, own_folder
from transforms.many_digests import short_digests
from transforms.public_suffixes import Rules, read_suffixes, suffix_file, suffix_rules
from transforms.segmentation import Positions, text_buffers
from transforms.url_places import HOST, place_of

Words = npt.NDArray[np.uint64]

FORMAT: Final = 1
"""Raised when what an index makes of a list changes: it is part of the index's name on the node."""

BLOCK: Final = 8 << 20
LONGEST_LINE: Final = 1 << 20
_BITS: Final = np.uint64(16)
_REDIRECTED: Final = r"^(?:0\.0\.0\.0|127\.0\.0\.1|::1?)[ \t]+"
_COMMENT: Final = r"(?:^|[ \t]+)#.*$"


class ListError(RuntimeError):
    """A list that cannot be used: it is not there, was changed, or has a line that names nothing or too much."""


@dataclass(frozen=True, slots=True)
class URLList:
    """A list of domains and URLs in a file, as the module describes it.

    Args:
        path: the file; no part of a key.
        name: what ledgers call it; the file's name without its ending, or the member's, unless given.
        member: which file of a tar archive.
        suffixes: what a bare public suffix in it means: "refuse" is an error, "ignore" leaves the line out.
        public_suffixes: file of the public suffix list; None is the one that the package `tld` ships.

    Raises:
        ListError: the file is not there.
        SuffixError: the public suffix list is not there.
    """

    path: Path = field(compare=False, metadata={"key": False})
    name: str = ""
    member: str | None = None
    suffixes: Literal["refuse", "ignore"] = "refuse"
    public_suffixes: Path | None = field(default=None, compare=False, metadata={"key": False})
    digest: str = field(init=False, default="")
    suffix_digest: str = field(init=False, default="")

    version = FORMAT

    def __post_init__(self) -> None:
        """Digest the files: the list is read when it is used."""
        if self.suffixes not in ("refuse", "ignore"):
            raise ValueError(f"suffixes={self.suffixes!r}: choose refuse or ignore")
        object.__setattr__(self, "path", Path(self.path))
        name = self.name or (self.member or self.path.name).rpartition("/")[2].partition(".")[0]
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "digest", _digest(self.path))
        content = read_suffixes(self.public_suffixes or suffix_file())
        object.__setattr__(self, "suffix_digest", blake3(content).hexdigest())

    def rules(self) -> Rules:
        """Return the registries' public suffixes."""
        return suffix_rules(self.public_suffixes or suffix_file(), self.suffix_digest, False)

    def index(self) -> ListIndex:
        """Return the index of this list, made once per node.

        Raises:
            ListError: the file changed, or a line names nothing, or a bare public suffix.
        """
        parts = (str(FORMAT), self.digest, self.member or "", self.suffixes, self.suffix_digest)
        return _mapped(self, blake3("\0".join(parts).encode()).hexdigest()[:32])


@dataclass(frozen=True, slots=True)
class WordList:
    """A list of words in a file, one a line; "#" begins a line that does not count. The path is no part of a key."""

    path: Path = field(compare=False, metadata={"key": False})
    digest: str = field(init=False, default="")

    def __post_init__(self) -> None:
        """Digest the file."""
        object.__setattr__(self, "path", Path(self.path))
        object.__setattr__(self, "digest", _digest(self.path))

    def words(self) -> tuple[str, ...]:
        """Return the words, sorted: the letters a-z (in lower case) and digits of each line.

        Raises:
            ListError: the file changed since it was named.
        """
        content = _opened(self.path)
        if blake3(content).hexdigest() != self.digest:
            raise ListError(f"{self.path} was changed while the recipe ran: run it again")
        lines = content.decode("utf-8", "replace").split("\n")
        return tuple(sorted({word for line in lines if not line.startswith("#") and (word := alphanumeric(line))}))


@dataclass(frozen=True, slots=True)
class ListIndex:
    """The entries of a list: rows of (two halves of the digest, line), sorted; `begins` where each beginning starts."""

    entries: Words
    begins: Positions

    def __len__(self) -> int:
        return len(self.entries)

    def lines(self, digests: Words) -> Positions:
        """Return, for each row of `digests` (two halves), the line of the list that it is the entry of, or -1."""
        found = np.empty(len(digests), np.int64)
        _look_up(self.entries, self.begins, digests, found)
        return found


def halves(digests: pa.FixedSizeBinaryArray) -> Words:
    """Return 16-byte digests as rows of two numbers."""
    if not len(digests):
        return _read_only(np.zeros((0, 2), np.uint64))
    content = memoryview(digests.buffers()[1])
    return _read_only(np.frombuffer(content, "<u8", 2 * len(digests), 16 * digests.offset).reshape(-1, 2))


def alphanumeric(text: str) -> str:
    """Return the letters a-z and digits of `text`, in lower case."""
    lower = "".join(chr(ord(c) + 32) if "A" <= c <= "Z" else c for c in text)
    return "".join(c for c in lower if "a" <= c <= "z" or "0" <= c <= "9")


def _digest(path: Path) -> str:
    hasher = blake3()
    try:
        with path.open("rb") as file:
            while block := file.read(BLOCK):
                hasher.update(block)
    except OSError as error:
        raise ListError(f"{path}: {error.strerror}: a transform needs this list") from None
    return hasher.hexdigest()


def _opened(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ListError(f"{path}: {error.strerror}: a transform needs this list") from None


@lru_cache(maxsize=16)
def _mapped(listed: URLList, key: str) -> ListIndex:
    """Return the index, mapped from the node's file; made first where there is none."""
    folder = own_folder() / "url_lists"
    folder.mkdir(exist_ok=True)
    path = folder / f"{key}.npy"
    with _alone(folder / f"{key}.lock"):
        if not path.is_file():
            _publish(path, lambda file: np.save(file, _entries(listed)))
    entries = np.load(path, mmap_mode="r") if path.stat().st_size > 256 else np.load(path)
    edges = np.arange(1 << int(_BITS), dtype=np.uint64) << (np.uint64(64) - _BITS)
    begins = np.append(np.searchsorted(entries[:, 0], edges), len(entries)).astype(np.int64)
    return ListIndex(_read_only(np.asarray(entries)), _read_only(begins))


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Let one process of this node in at a time; all where the file system knows no locks. The dead hold none."""
    with lock.open("w") as file:
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _publish(path: Path, write: Callable[[IO[bytes]], Any]) -> None:
    """Put a file that `write` fills at `path`, whole or not at all; who comes second overwrites it by equal bytes."""
    handle, name = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
        os.replace(name, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name)


def _entries(listed: URLList) -> Words:
    """Return the entries of a list, sorted by digest; of equal ones the first line."""
    parts = [np.zeros((0, 3), np.uint64)]
    for keys, lines in _keys(listed):
        digests = halves(short_digests(*text_buffers(keys)))
        parts.append(np.column_stack([digests, lines.astype(np.uint64)]))
    entries = np.concatenate(parts)
    parts.clear()
    entries = entries[np.argsort(entries[:, 0], kind="stable")]
    same = (entries[1:, 0] == entries[:-1, 0]) & (entries[1:, 1] == entries[:-1, 1])
    return np.delete(entries, np.flatnonzero(same) + 1, axis=0) if same.any() else entries


def _keys(listed: URLList) -> Iterator[tuple[pa.LargeStringArray, Positions]]:
    """Yield the keys of a list and their lines, counted from 1, block by block."""
    rules = listed.rules()
    with _content(listed) as file:
        for block, first in _blocks(file, listed.path):
            lines = _lines(block)
            keys, starred = _parsed(lines, listed, first)
            bare = pc.and_not(pc.not_equal(keys, ""), pc.or_(starred, pc.match_substring(keys, "/")))
            wide = pc.indices_nonzero(pc.and_(bare, rules.are_suffixes(keys))).to_numpy()
            if len(wide) and listed.suffixes == "refuse":
                raise _too_wide(listed, first + int(wide[0]), keys[int(wide[0])].as_py())
            stays = np.asarray(pc.not_equal(keys, "")).copy()
            stays[wide] = False
            rows = np.flatnonzero(stays)
            yield keys.take(pa.array(rows)), first + rows


def _too_wide(listed: URLList, line: int, suffix: str) -> ListError:
    return ListError(
        f"{listed.path} line {line}: {suffix!r} is a public suffix, under which anybody registers names: write "
        f'"*.{suffix}" to mean them all, or URLList(…, suffixes="ignore") to leave such lines out'
    )


@contextmanager
def _content(listed: URLList) -> Iterator[IO[bytes]]:
    """Open the list: a member of an archive, gzip or plain, told by its first bytes.

    Raises:
        ListError: the file changed since it was named, or is damaged.
    """
    if _digest(listed.path) != listed.digest:
        raise ListError(f"{listed.path} was changed while the recipe ran: run it again")
    try:
        with listed.path.open("rb") as file:
            if listed.member is not None:
                with tarfile.open(fileobj=file) as archive:
                    member = archive.extractfile(listed.member)
                    if member is None:
                        raise ListError(f"{listed.path}: {listed.member!r} is no regular file in it")
                    yield member
            elif file.read(2) == b"\x1f\x8b":
                file.seek(0)
                yield cast(IO[bytes], gzip.GzipFile(fileobj=file))
            else:
                file.seek(0)
                yield file
    except KeyError:
        raise ListError(f"{listed.path} has no member {listed.member!r}") from None
    except (EOFError, OSError, tarfile.TarError) as error:
        raise ListError(f"{listed.path}: damaged, cut off or no archive ({error}): get it again") from None


def _blocks(file: IO[bytes], path: Path) -> Iterator[tuple[bytes, int]]:
    """Yield whole lines, some `BLOCK` bytes at a time, and the number of the first."""
    rest, number = b"", 1
    while more := file.read(BLOCK):
        block = rest + more
        cut = block.rfind(b"\n") + 1
        block, rest = block[:cut], block[cut:]
        if len(rest) > LONGEST_LINE:
            raise ListError(f"{path} line {number + block.count(10)}: more than {LONGEST_LINE} bytes: no list of lines")
        if block:
            yield block, number
            number += block.count(b"\n")
    if rest:
        yield rest + b"\n", number


def _lines(block: bytes) -> pa.LargeStringArray:
    """Return the lines of `block`, which ends in a line feed, without comments and space around them."""
    try:
        block.decode()
    except UnicodeDecodeError:
        block = block.decode("utf-8", "replace").encode()
    ends = np.flatnonzero(np.frombuffer(block, np.uint8) == 10) + 1
    bounds = np.concatenate([np.zeros(1, np.int64), ends])
    lines = pa.LargeStringArray.from_buffers(len(ends), pa.py_buffer(bounds), pa.py_buffer(block))
    if b"#" in block:
        lines = pc.replace_substring_regex(pc.ascii_rtrim_whitespace(lines), _COMMENT, "")
    lines = pc.ascii_trim_whitespace(lines)
    if b" " in block or b"\t" in block:
        lines = pc.replace_substring_regex(lines, _REDIRECTED, "")
    return lines


def _parsed(lines: pa.LargeStringArray, listed: URLList, first: int) -> tuple[pa.LargeStringArray, pa.BooleanArray]:
    """Return the key of each line ("" where it is empty), and whether it names all below by a star."""
    plain = pc.or_(pc.equal(lines, ""), pc.match_substring_regex(lines, f"^{HOST}$"))
    rows = pc.indices_nonzero(pc.invert(plain)).to_numpy()
    mask, starred, keys = np.zeros(len(lines), np.bool_), np.zeros(len(lines), np.bool_), []
    for row in rows.tolist():
        line = lines[row].as_py()
        starred[row] = line.startswith(("*.", "."))
        keys.append(_key(line.removeprefix("*").removeprefix(".") if starred[row] else line))
        if not keys[-1]:
            raise ListError(
                f"{listed.path} line {first + row}: {line[:80]!r} names no host: write a domain, a URL, or # before it"
            )
    mask[rows] = True
    return pc.replace_with_mask(lines, pa.array(mask), pa.array(keys, pa.large_string())), pa.array(starred)


def _key(line: str) -> str:
    """Return what a line is compared by: a host, or a place without the slash at its end."""
    if " " in line or "\t" in line:
        return ""
    place = place_of(line)
    host, _, path = place.partition("/")
    return f"{host}/{path.rstrip('/')}" if path.strip("/") else host


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    view = array.view()
    view.flags.writeable = False
    return view


@kernel
def _look_up(entries: Words, begins: Positions, digests: Words, found: Positions) -> None:
    for row in range(len(digests)):
        high, low = digests[row, 0], digests[row, 1]
        bucket = np.int64(high >> (np.uint64(64) - _BITS))
        left, right = begins[bucket], begins[bucket + 1]
        while left < right:
            middle = (left + right) // 2
            if entries[middle, 0] < high:
                left = middle + 1
            else:
                right = middle
        found[row] = -1
        while left < len(entries) and entries[left, 0] == high:
            if entries[left, 1] == low:
                found[row] = np.int64(entries[left, 2])
                break
            left += 1
