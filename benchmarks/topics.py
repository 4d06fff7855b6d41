"""Topics: how fast they are fitted and assigned on one core, and whether they are the domains that a corpus states.

Run `python -m benchmarks.topics [--size small|full] [--peers]`. It needs ../shared/data/corpora/multidomain.parquet
and ends without it. Its documents are cut into passages of 1,500 characters; the 20,000 (small: 4,000) with the lowest
digests are used. 40 topics are fitted to them. The labels of a passage are its domain and language (22 of them: books,
LaTeX mathematics, Java, twelve languages of Wikipedia …), which nothing but the measures sees:

- purity: share of passages whose label is the most frequent one of their topic;
- NMI: mutual information of topics and labels over the mean of their entropies. More topics than labels lower it.
- adjusted Rand index of two seeds: how much of the grouping does not hang on chance.

Rates are CPU seconds of this process, all threads; MB are 10^6 bytes of UTF-8. Fitting is all that a stage does:
vectors, groups from two seeds, terms, names and the card; of a peer its vectors and groups from one seed. Checks, each
of which can fail: assigning reaches 20 MB/s; purity and NMI; topics fitted again are the same bytes; names are all
different. The last line is JSON; exit status 1: a check failed.

`--peers` runs scikit-learn's TfidfVectorizer and KMeans (its defaults, and settings near ours), each with two seeds, in
an environment of its own, `.venv-peer-scikit-learn`, made when it is not there.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib.metadata import version
from math import log
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from blake3 import blake3

from benchmarks.install_peers import Environment
from curate.fitting.topics import DIMENSION
from transforms.embedding import HashedTfidf
from transforms.spherical_kmeans import adjusted_rand
from transforms.topic_fitting import Fitting, Sampled, fit
from transforms.topics import Topics

ROOT: Final = Path(__file__).parents[1]
CORPUS: Final = ROOT.parent / "shared" / "data" / "corpora" / "multidomain.parquet"
PASSAGES: Final = {"small": 4_000, "full": 20_000}
CHARACTERS: Final = 1_500
LEAST_CHARACTERS: Final = 300
K: Final = 40
LEAST_RATE: Final = 20.0
LEAST_PURITY: Final = {"small": 0.85, "full": 0.9}
LEAST_NMI: Final = 0.6
PEER: Final = Environment("scikit-learn")
PACKAGES: Final = ("numpy", "numba", "pyarrow")

Labels = npt.NDArray[np.int64]
Check = list[Any]


@dataclass(frozen=True, slots=True)
class Passages:
    """Passages, and what the corpus says of them."""

    ids: list[bytes]
    texts: pa.LargeStringArray
    languages: list[str]
    labels: Labels

    @property
    def megabytes(self) -> float:
        """Their size."""
        return sum(len(text.encode()) for text in self.texts.to_pylist()) / 1e6


def read_passages(count: int) -> Passages:
    """Return the `count` passages with the lowest digests."""
    rows = sorted((blake3(text.encode()).digest(16), text, domain, lang) for text, domain, lang in _cut())[:count]
    names = [f"{domain} {lang}" for _, _, domain, lang in rows]
    labels = np.unique(names, return_inverse=True)[1].astype(np.int64)
    texts = pa.array([text for _, text, _, _ in rows], pa.large_string())
    return Passages([digest for digest, *_ in rows], texts, [lang for *_, lang in rows], labels)


def _cut() -> Iterator[tuple[str, str, str]]:
    for row in pq.read_table(CORPUS, columns=["text", "domain", "lang"]).to_pylist():
        for first in range(0, len(row["text"]), CHARACTERS):
            text = row["text"][first : first + CHARACTERS]
            if len(text) >= LEAST_CHARACTERS or not first:
                yield text, row["domain"], row["lang"]


def agreement(found: Labels, stated: Labels) -> tuple[float, float]:
    """Return purity and normalised mutual information of two groupings."""
    table = np.zeros((found.max() + 1, stated.max() + 1), np.int64)
    np.add.at(table, (found, stated), 1)
    total, ours, theirs = int(table.sum()), table.sum(1), table.sum(0)
    shared = sum(
        count / total * log(count * total / (int(ours[i]) * int(theirs[j])))
        for (i, j), count in np.ndenumerate(table)
        if count
    )
    entropies = [-sum(n / total * log(n / total) for n in sizes.tolist() if n) for sizes in (ours, theirs)]
    return float(table.max(1).sum() / total), float(shared / (sum(entropies) / 2))


def fitted(passages: Passages, seed: int) -> tuple[Topics, dict[str, Any], float]:
    """Return topics, their card, and the CPU seconds that it took."""
    how = Fitting(K, HashedTfidf(DIMENSION), Fraction(1, 10 * K), 20_000, seed, 25)
    before = time.process_time()
    topics, card = fit(Sampled(passages.ids, passages.texts, passages.languages), how)
    return topics, card, time.process_time() - before


def assign_rate(topics: Topics, texts: pa.LargeStringArray) -> float:
    """Return the least CPU seconds of three runs over all texts, 1,024 at a time."""
    spent = []
    for _ in range(3):
        before = time.process_time()
        for first in range(0, len(texts), 1024):
            topics.assign(texts.slice(first, 1024))
        spent.append(time.process_time() - before)
    return min(spent)


def run_peers(passages: Passages) -> Iterator[dict[str, Any]]:
    """Yield what scikit-learn finds, by setting."""
    PEER.make()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "passages.parquet"
        pq.write_table(pa.table({"text": passages.texts}), path)
        script = Path(__file__).parent / "peers" / "scikit_topics.py"
        done = subprocess.run(
            [str(PEER.interpreter), str(script), str(path), str(K)], check=True, capture_output=True, text=True
        )
    yield from map(json.loads, done.stdout.splitlines())


def show(topics: Topics, card: dict[str, Any]) -> None:
    """Print the topics."""
    for topic in card["topics"]:
        print(f"  {topic['documents']:>6,}  {topic['similarity']}  {topic['name']:<40} {' '.join(topic['terms'][3:7])}")
    print(f"adjusted Rand index of two seeds {card['adjusted_rand']}, {len(topics.to_bytes()):,} bytes")


def described(
    passages: Passages, labels: Sequence[Labels], fit_seconds: float, assign_seconds: float
) -> dict[str, Any]:
    """Return rates and agreement of one way of making topics, from two seeds."""
    agreed = [agreement(found, passages.labels) for found in labels]
    return {
        "fit_seconds": round(fit_seconds, 2),
        "MB_per_second": round(passages.megabytes / assign_seconds, 1),
        "documents_per_second": round(len(passages.ids) / assign_seconds),
        "purity": [round(purity, 3) for purity, _ in agreed],
        "nmi": [round(nmi, 3) for _, nmi in agreed],
        "adjusted_rand": round(float(adjusted_rand(*labels)), 3),
    }


def measure(size: str, peers: bool) -> tuple[dict[str, Any], dict[str, Check]]:
    """Return the figures and the checks."""
    passages = read_passages(PASSAGES[size])
    print(f"{len(passages.ids):,} passages, {passages.megabytes:.1f} MB, {passages.labels.max() + 1} labels")
    fitted(Passages(passages.ids[:500], passages.texts[:500], passages.languages[:500], passages.labels[:500]), 0)
    topics, card, spent = fitted(passages, 0)
    other, _, _ = fitted(passages, 1)
    show(topics, card)
    labels = [each.assign(passages.texts)[0].labels for each in (topics, other)]
    ours = described(
        passages, labels, spent / 2, assign_rate(topics, passages.texts)
    )  # groups are made twice, for the card
    again, _, _ = fitted(passages, 0)
    checks: dict[str, Check] = {
        "MB/s of assigning": [ours["MB_per_second"], f"≥ {LEAST_RATE}", ours["MB_per_second"] >= LEAST_RATE],
        "purity": [min(ours["purity"]), f"≥ {LEAST_PURITY[size]}", min(ours["purity"]) >= LEAST_PURITY[size]],
        "NMI": [min(ours["nmi"]), f"≥ {LEAST_NMI}", min(ours["nmi"]) >= LEAST_NMI],
        "fitted again": ["the same bytes", "equal", bool(again.to_bytes() == topics.to_bytes())],
        "names": [len(set(topics.names)), f"= {len(topics.names)}", len(set(topics.names)) == len(topics.names)],
    }
    found = {
        peer["name"]: described(
            passages, [np.array(each, np.int64) for each in peer["labels"]], peer["fit"], peer["assign"]
        )
        for peer in (run_peers(passages) if peers else ())
    }
    return {"ours": ours, "peers": found}, checks


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.topics", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--size", choices=sorted(PASSAGES), default="small")
    parser.add_argument("--peers", action="store_true")
    given = parser.parse_args(arguments)
    if not CORPUS.exists():
        print("../shared/data/corpora/multidomain.parquet is not there: nothing is measured")
        return 0
    figures, checks = measure(given.size, given.peers)
    for name, row in {"ours": figures["ours"], **figures["peers"]}.items():
        print(f"{name:<40} " + ", ".join(f"{what} {value}" for what, value in row.items()))
    for name, (value, wanted, held) in checks.items():
        print(f"{'ok  ' if held else 'FAIL'} {name}: {value} ({wanted})")
    rates = {name: row["MB_per_second"] for name, row in figures["peers"].items()}
    ratio = {name: round(figures["ours"]["MB_per_second"] / rate, 1) for name, rate in rates.items()}
    versions = {name: version(name) for name in PACKAGES} | {"python": platform.python_version()}
    print(
        json.dumps(
            {"name": "topics", "unit": "MB/s", **figures, "ratio": ratio, "checks": checks, "versions": versions},
            ensure_ascii=False,
        )
    )
    return 0 if all(held for *_, held in checks.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
