"""Benchmark files by path or URL, and benchmarks as a command line names them.

A file from a URL is fetched once, into the user's data folder, and is what it was from then on: its digest, which is
part of every key, can be pinned. Nothing is fetched that was not named; at most `LARGEST` bytes are.
"""

from __future__ import annotations

import os
import re
import tempfile
import urllib.request
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from blake3 import blake3

from curate.configuration import ConfigurationError
from transforms.benchmark_items import Benchmark, BenchmarkError
from transforms.benchmark_registry import KNOWN, known_benchmark
from transforms.language_model import data_folder

LARGEST: Final = 1 << 30
SECONDS: Final = 60
"""After which a server that sends nothing is given up."""

_FIELD: Final = re.compile(r",(question|answer|choices|passage|counts_from)=", re.ASCII)


def benchmark_file(url: str, digest: str = "", folder: Path | None = None) -> Path:
    """Return the path of the benchmark file at `url`, fetched if it is not there.

    Args:
        url: http, https or file; the file's ending tells its format.
        digest: BLAKE3 that it must have, 64 hex digits; "" takes what comes.
        folder: where it is kept; None: the user's data folder.

    Raises:
        ConfigurationError: it cannot be had, is larger than `LARGEST`, or has another digest.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https", "file"):
        raise ConfigurationError(f"{url}: benchmark files come from http, https or file URLs, or paths")
    folder = folder or data_folder() / "benchmarks"
    path = folder / blake3(url.encode()).hexdigest()[:16] / (Path(parts.path).name or "file")
    if not path.is_file():
        _fetch(url, path)
    if digest and (found := blake3(path.read_bytes()).hexdigest()) != digest:
        raise ConfigurationError(
            f"{path}, from {url}, has the digest {found}, not {digest}: remove it to fetch it again"
        )
    return path


def _fetch(url: str, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with urllib.request.urlopen(url, timeout=SECONDS) as answer:
            content = answer.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{url} cannot be fetched ({error}): download it and give its path") from error
    if len(content) > LARGEST:
        raise ConfigurationError(f"{url} is larger than {LARGEST:,} bytes: no benchmark")
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(content)
    os.replace(file.name, path)


def benchmark_of(given: str) -> Benchmark:
    """Return the benchmark that `given` names: "NAME[/SPLIT]=FILE[,question=FIELD,answer=FIELD,choices=FIELD+FIELD,…]".

    FILE is a path or URL. Without fields NAME is one of the registry.

    Raises:
        ConfigurationError: it cannot be understood, or the file is not there or has no such fields.
    """
    named, is_given, rest = given.partition("=")
    if not is_given or not named or not rest:
        raise ConfigurationError(f"--benchmark {given!r}: give NAME=FILE, as gsm8k=test.jsonl")
    name, _, split = named.partition("/")
    place, *pairs = _FIELD.split(rest)
    fields = _parts(dict(zip(pairs[::2], pairs[1::2], strict=True)))
    path = benchmark_file(place) if re.match("(https?|file)://", place) else Path(place)
    try:
        benchmark = (
            Benchmark.file(name, path, split=split, **fields) if fields else known_benchmark(name, path, split=split)
        )
        benchmark.items()
    except BenchmarkError as error:
        more = "" if fields or name in KNOWN else f"; or name its fields: {name}={place},question=FIELD,answer=FIELD"
        raise ConfigurationError(f"{error}{more}") from error
    return benchmark


def _parts(pairs: dict[str, str]) -> dict[str, Any]:
    parts: dict[str, Any] = dict(pairs)
    if "+" in pairs.get("choices", ""):
        parts["choices"] = tuple(pairs["choices"].split("+"))
    if "counts_from" in pairs:
        parts["counts_from"] = int(pairs["counts_from"])
    return parts
