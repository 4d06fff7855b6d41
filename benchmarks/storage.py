"""What a store costs: publishing and reading files on a local folder, on rclone's S3 server and on moto's.

Run `python -m benchmarks.storage [--files 12] [--size 32]` (files of so many MB of random bytes). Rates are MB/s of one
process over all files, requests of one file after the other but for the parts of a large one; both servers run on this
machine and share its cores and its disk, so a rate says what the client side can do at least, not what a network does.
Small files: how many of 1 kB are published and read per second by 8 threads. The last line is JSON; the exit status is
1 when something read is not what was written.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from curate.digests import digest_bytes
from curate.store import Store
from tests.storage.servers import credentials, moto, rclone, store_at

SMALL = 400


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=12)
    parser.add_argument("--size", type=int, default=32, help="MB of a file")
    options = parser.parse_args(arguments)
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, store in _stores(Path(folder)):
            found[name] = _measure(store, options.files, options.size)
            print(f"{name:<8}" + ", ".join(f"{what} {rate:,.0f}" for what, rate in found[name].items()), flush=True)
    print(json.dumps(found))
    return 0


def _stores(folder: Path) -> Iterator[tuple[str, Store]]:
    yield "local", Store(folder / "local")
    with credentials():
        with rclone(folder / "served") as endpoint:
            yield "rclone", store_at(endpoint, folder / "node rclone", writers="one")
        with moto() as endpoint:
            yield "moto", store_at(endpoint, folder / "node moto")


def _measure(store: Store, files: int, size: int) -> dict[str, float]:
    content = [random.Random(number).randbytes(size * 1_000_000) for number in range(files)]
    names = [f"shards/{number:04d}/part.parquet" for number in range(files)]
    digests = list(map(digest_bytes, content))
    paths = []
    for number, part in enumerate(content):
        store.files.spool.mkdir(parents=True, exist_ok=True)
        paths.append(store.files.spool / f"measured-{number}")
        paths[-1].write_bytes(part)
    rates: dict[str, float] = {}
    with _rate(rates, "publish MB/s", files * size):
        for path, name in zip(paths, names, strict=True):
            store.publish(path, name)
    with _rate(rates, "open and hash MB/s", files * size):
        _check([store.digest(name) for name in names] == digests)
    with _rate(rates, "copy to the node MB/s", files * size):
        _check([store.local(name).stat().st_size for name in names] == [size * 1_000_000] * files)
    small = [f"shards/small/{number}" for number in range(SMALL)]
    with _rate(rates, "small published/s", SMALL):
        _at_once(lambda name: store.publish_bytes(name.encode() * 50, name), small)
    with _rate(rates, "small read/s", SMALL):
        _at_once(lambda name: _check(store.read_bytes(name) == name.encode() * 50), small)
    for name in [*names, *small]:
        store.remove(name)
    return rates


@contextmanager
def _rate(rates: dict[str, float], what: str, amount: float) -> Iterator[None]:
    began = time.perf_counter()
    yield
    rates[what] = round(amount / (time.perf_counter() - began), 1)


def _at_once(do: Callable[[str], object], names: Sequence[str]) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(do, names))


def _check(right: bool) -> None:
    if not right:
        sys.exit("something read is not what was written")


if __name__ == "__main__":
    sys.exit(main())
