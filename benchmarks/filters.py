"""The document-wise transforms on one core: rates, verdicts against plain Python and datatrove, and peers' rates.

Run `python -m benchmarks.filters [--size small|full] [--peers]`. It reads
../shared/data/corpora/multidomain.parquet where it is present (books, LaTeX, code, twelve languages; small is 1,000
documents spread over it), else text made here. Rates are the best of several runs, in MB (10^6 bytes) of UTF-8 and
documents per CPU second. The *chain* is Gopher repetition, Gopher quality, C4, FineWeb (`benchmarks.filter_chain`).

Checks: the chain makes 30 MB/s; every verdict of the two Gopher filters equals that of `benchmarks.plain_gopher` on a
sample; each verdict on 20,000 passages (small: 2,000) and 3,000 (300) edge cases equals datatrove's or is explained by
a reading of the paper (`benchmarks.filter_parity`); personal data is found (`benchmarks.pii_cases`), normalising twice
changes nothing, languages are those that the corpus states. The last line is JSON; exit status 1: a check failed.

`--peers` measures datatrove's chain in this process (extra "datatrove") and compares with its filters themselves, not
with their restatement; and functions of NeMo Curator, dolma and data-juicer, called directly in environments of their
own. Checks then: 60 times datatrove's rate and 4 times NeMo Curator's, on the same documents.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from importlib.metadata import version
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks import pii_cases
from benchmarks.filter_chain import datatrove_rate, run_chain, run_everything, tool_rate
from benchmarks.filter_documents import apply, batches, read_documents, size_of
from benchmarks.filter_parity import compare, datatrove_filters, edge_cases, lines_of_report, passages, restated
from benchmarks.minhash import CORPUS, seconds
from benchmarks.plain_gopher import quality_reason, repetition_reason
from transforms.c4_rules import C4Documents, C4Lines
from transforms.code_rules import CodeQuality
from transforms.fineweb_rules import FineWebQuality
from transforms.gopher_rules import GopherQuality, GopherRepetition
from transforms.language import Language
from transforms.language_model import default_model
from transforms.normalise import NormalizeText
from transforms.outcome import Outcome, Transform
from transforms.pii import MaskPII
from transforms.refinedweb_rules import RefinedWebLines

DOCUMENTS: Final = {"small": 1_000, "full": 1_000_000}
PLAIN_DOCUMENTS: Final = 400
PLAIN_BYTES: Final = 20_000
PEER_BYTES: Final = 1_500_000
PASSAGES: Final = {"small": (2_000, 300), "full": (20_000, 3_000)}
"""Passages and edge cases on which verdicts are compared."""
LEAST_RATE: Final = 30
LEAST_RATIOS: Final = {"datatrove": 60, "NeMo Curator": 4}
TOOLS: Final = {"NeMo Curator": "nemo", "dolma (tags)": "dolma", "data-juicer": "data-juicer"}
"""Other tools → their environments."""
LEAST_ACCURACY: Final = 0.98
"""Of languages of encyclopaedia articles, which lid.176 confuses rarely."""
PACKAGES: Final = ("numpy", "numba", "pyarrow", "fasttext-community", "datatrove", "spacy")

Verdicts = dict[bytes, str]
Check = list[Any]


def transforms() -> dict[str, Transform]:
    """Return what is measured, by name."""
    measured: dict[str, Transform] = {
        "NormalizeText": NormalizeText(),
        "GopherQuality": GopherQuality(),
        "GopherRepetition": GopherRepetition(),
        "C4Lines": C4Lines(),
        "C4Documents": C4Documents(),
        "FineWebQuality": FineWebQuality(),
        "RefinedWebLines": RefinedWebLines(),
        "CodeQuality": CodeQuality(),
        "MaskPII": MaskPII(),
    }
    return measured | ({"Language": Language()} if default_model().exists() else {})


def verdicts_of(outcomes: Sequence[Outcome]) -> Verdicts:
    """Return id → reason of the documents dropped."""
    columns = [(outcome.dropped.column("id"), outcome.dropped.column("reason")) for outcome in outcomes]
    return {
        identity: reason
        for ids, reasons in columns
        for identity, reason in zip(ids.to_pylist(), reasons.to_pylist(), strict=True)
    }


def verdict_checks(documents: pa.RecordBatch) -> Iterator[tuple[str, Check]]:
    """Yield, per Gopher filter, how many documents of a sample get another verdict than by the definition."""
    short = documents.filter(pc.less(pc.binary_length(documents.column("text")), PLAIN_BYTES))
    step = max(1, len(short) // PLAIN_DOCUMENTS)
    sample = short.take(pa.array(np.arange(0, len(short), step)))
    quality, repetition = GopherQuality(), GopherRepetition()
    texts = dict(zip(sample.column("id").to_pylist(), sample.column("text").to_pylist(), strict=True))
    for name, found, plain in (
        (
            "GopherQuality",
            verdicts_of(apply(quality, sample)),
            {i: quality_reason(t, quality) for i, t in texts.items()},
        ),
        (
            "GopherRepetition",
            verdicts_of(apply(repetition, sample)),
            {i: repetition_reason(t, repetition) for i, t in texts.items()},
        ),
    ):
        different = sum(found.get(identity) != plain[identity] for identity in texts)
        yield f"{name}: other verdicts than plain Python", [different, f"0 of {len(texts)}", different == 0]
        print(f"{name} drops {len(found)} of {len(texts)} in the sample: {dict(Counter(found.values()).most_common())}")


def other_checks(documents: pa.RecordBatch) -> Iterator[tuple[str, Check]]:
    """Yield the checks of the transforms that are no Gopher filters."""
    once = [outcome.kept for outcome in apply(NormalizeText(), documents)]
    again = sum(NormalizeText().apply(batch).edits.num_rows for batch in once)
    yield "NormalizeText: documents edited when done twice", [again, f"0 of {len(documents)}", again == 0]
    yield from pii_cases.checks().items()
    articles = documents.filter(pc.is_valid(documents.column("stated")))
    if default_model().exists() and len(articles):
        kept = pa.Table.from_batches([outcome.kept for outcome in apply(Language(), articles)])
        equal = int(pc.sum(pc.equal(kept.column("language"), kept.column("stated"))).as_py() or 0)
        holds = equal >= LEAST_ACCURACY * len(articles)
        yield "Language: articles in the language stated", [equal, f"≥ {LEAST_ACCURACY} · {len(articles)}", holds]
    else:
        print("Language is not checked: `curate fetch lid` puts the model in place")


def chain_rates(documents: pa.RecordBatch, peers: bool) -> tuple[dict[str, float], dict[str, str]]:
    """Return MB/s of the chain on all documents, and on the first of them of ours and of peers; and their versions."""
    found, size = batches(documents), size_of(documents)
    rates = {
        "chain": size / seconds(partial(run_chain, found), 3),
        "every filter on every document": size / seconds(partial(run_everything, found), 3),
    }
    if not peers:
        return rates, {}
    lengths = np.asarray(pc.binary_length(documents.column("text")))
    some = documents.slice(0, max(1, int(np.searchsorted(np.cumsum(lengths), PEER_BYTES))))
    texts, size = some.column("text").to_pylist(), size_of(some)
    rates["ours, the peers' documents"] = size / seconds(partial(run_chain, batches(some)), 5)
    stays = {"ours": run_chain(batches(some))}
    rates["datatrove"], stays["datatrove"] = datatrove_rate(texts, size)
    versions: dict[str, str] = {}
    for name, tool in TOOLS.items():
        rates[name], stays[name], said = tool_rate(tool, texts, size)
        versions |= said
    print(f"of {len(some)} documents the chain keeps: {stays}")
    return rates, versions


def rate_checks(rates: dict[str, float]) -> Iterator[tuple[str, Check]]:
    """Yield the checks of the chain's rate."""
    yield "chain: MB/s", [round(rates["chain"], 1), f"≥ {LEAST_RATE}", rates["chain"] >= LEAST_RATE]
    for peer, least in LEAST_RATIOS.items():
        if peer in rates:
            ratio = rates["ours, the peers' documents"] / rates[peer]
            yield f"chain: times {peer}", [round(ratio, 1), f"≥ {least}", ratio >= least]


def parity_checks(passages_and_cases: tuple[int, int], peers: bool) -> Iterator[tuple[str, Check]]:
    """Yield how many verdicts differ from datatrove's without an explanation."""
    count, cases = passages_and_cases
    texts = [*passages(count), *edge_cases(cases)]
    with datatrove_filters() if peers else nullcontext(restated()) as filters:
        parity = compare(texts, filters)
    for line in lines_of_report(parity):
        print(line[:400])
    verdicts = f"0 of {parity.texts * len(parity.explained):,} verdicts, {parity.different:,} of which differ"
    yield "datatrove: unexplained verdicts", [len(parity.unexplained), verdicts, not parity.unexplained]


def main(arguments: list[str] | None = None) -> int:
    """Print a table, the checks and one line of JSON; return 1 if a check failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--size", choices=sorted(DOCUMENTS), default="small", help="how much text (default: %(default)s)"
    )
    parser.add_argument("--peers", action="store_true", help="measure other tools' filters, too")
    options = parser.parse_args(arguments)
    documents = read_documents(DOCUMENTS[options.size])
    name, size = CORPUS.name if CORPUS.exists() else "text made here", size_of(documents)
    print(f"{name}: {len(documents):,} documents, {size:.1f} MB, one core")
    times = {name: seconds(partial(apply, t, documents), 2) for name, t in transforms().items()}
    for name, time in times.items():
        print(f"{name:45} {size / time:9.1f} MB/s {len(documents) / time:9,.0f} documents/s")
    rates, others = chain_rates(documents, options.peers)
    for name, rate in rates.items():
        print(f"{name:45} {rate:9.2f} MB/s")
    checks = dict(
        [
            *rate_checks(rates),
            *verdict_checks(documents),
            *parity_checks(PASSAGES[options.size], options.peers),
            *other_checks(documents),
        ]
    )
    for name, (value, bound, holds) in checks.items():
        print(f"{name:60} {value:6} {bound:14} {'holds' if holds else 'FAILS'}")
    peers = {peer: round(rates[peer], 2) for peer in ("datatrove", *TOOLS) if peer in rates}
    report = {
        "name": "filters",
        "unit": "MB per CPU second, Gopher repetition + quality + C4 + FineWeb",
        "ours": round(rates.get("ours, the peers' documents", rates["chain"]), 1),
        "rows": [{"what": "the chain on all documents", "ours": round(rates["chain"], 1), "peers": {}}],
        "rates": {name: round(size / time, 1) for name, time in times.items()},
        "peers": peers,
        "ratio": round(rates["ours, the peers' documents"] / max(peers.values()), 1) if peers else None,
        "checks": checks,
        "versions": {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}, **others},
    }
    print(json.dumps(report, ensure_ascii=False))
    return int(not all(holds for _, _, holds in checks.values()))


if __name__ == "__main__":
    sys.exit(main())
