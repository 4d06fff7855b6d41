"""URL rules: rates, memory, and datatrove's URLFilter on the same URLs with the same lists.

Run `python -m benchmarks.urls [--size small|full] [--peers]`. URLs are made here of the entries of datatrove's lists
(4.6 million domains, 20,000 pages, read from the installed package): as they stand, as sub-domains, with other paths,
ports and capitals, and as look-alikes (a letter before, another ending behind), so that the truth of each is known;
words in addresses are asked on the same URLs. Rates are URLs per CPU second, memory is the growth of the process's
peak while the index is made. Checks: every listed page and sub-domain is found and no look-alike is; the rule equals
datatrove's filter (`--peers`, which loads its lists into Python sets, needs the extra "datatrove"), but for the
differences counted by cause. The last line is JSON; exit status 1: a check failed.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tarfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any, Final

import numpy as np
import pyarrow as pa

from transforms.public_suffixes import suffix_file, suffix_rules
from transforms.url_lists import URLList, _entries
from transforms.url_places import place_of
from transforms.url_rules import URLDenyList, URLWords, datatrove_lists

URLS: Final = {"small": 20_000, "full": 400_000}
BATCH: Final = 4_096
KINDS: Final = ("as listed", "sub-domain", "written otherwise", "look-alike before", "look-alike behind")
PACKAGES: Final = ("numpy", "numba", "pyarrow", "datatrove", "tld")

Case = tuple[str, str]
"""A kind out of `KINDS`, and a URL."""


def entries(listed: URLList) -> list[str]:
    """Return the lines of a member of datatrove's archive."""
    with tarfile.open(listed.path) as archive:
        member = archive.extractfile(listed.member or "")
        assert member is not None
        return member.read().decode("utf-8", "replace").split()


def cases(domains: Sequence[str], pages: Sequence[str], count: int) -> list[Case]:
    """Return `count` URLs of all kinds, a tenth of them of listed pages; entries are drawn by a fixed seed."""
    draw = np.random.default_rng(0)
    chosen = [domains[place] for place in draw.integers(0, len(domains), count - count // 10)]
    made = [(KINDS[row % len(KINDS)], _domain_url(KINDS[row % len(KINDS)], name)) for row, name in enumerate(chosen)]
    paged = [pages[place] for place in draw.integers(0, len(pages), count // 10)]
    return [*made, *(("as listed", f"http://{page}") for page in paged)]


def _domain_url(kind: str, name: str) -> str:
    return {
        "as listed": f"http://{name}/some/page.html",
        "sub-domain": f"https://cdn-1.{name}/x?y=1",
        "written otherwise": f"HTTP://{name.upper()}:80/Page#top",
        "look-alike before": f"https://zq{name}/a/b",
        "look-alike behind": f"https://{name}.look-alike.example/a/{name}",
    }[kind]


def rate(work: Callable[[], object], count: int) -> float:
    """Return `count` per CPU second of the best of three runs."""
    best = float("inf")
    for _ in range(3):
        begin = time.process_time()
        work()
        best = min(best, time.process_time() - begin)
    return count / best


def in_batches(urls: Sequence[str], rule: URLDenyList | URLWords) -> dict[int, str]:
    """Return row → reason of the URLs in which `rule` finds something."""
    found = {}
    for first in range(0, len(urls), BATCH):
        batch = pa.array(urls[first : first + BATCH], pa.large_string())
        found.update({first + row: finding.reason for row, finding in rule.findings(batch).items()})
    return found


def index_cost(listed: URLList) -> dict[str, float]:
    """Return CPU seconds, lines, and growth of peak memory in MB of making the index anew."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = time.process_time()
    made = _entries(listed)
    seconds = time.process_time() - begin
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return {"entries": len(made), "cpu_seconds": round(seconds, 2), "peak_mb": round(grown / 1024)}


class Datatrove:
    """datatrove's URLFilter with its own lists, and a suffix list that is not fetched from a network."""

    def __init__(self) -> None:
        from datatrove.data import Document
        from datatrove.pipeline.filters import URLFilter
        from tldextract import TLDExtract

        self.document, self.filter = Document, URLFilter()
        self.filter.tldextractor = TLDExtract(suffix_list_urls=(), cache_dir=None)
        self.filter.download_data()

    def reason(self, url: str) -> str | None:
        """Return why the filter drops `url`, None where it does not."""
        verdict = self.filter.filter(self.document(text="", id="0", metadata={"url": url}))
        return None if verdict is True else str(verdict[1])


def difference(url: str, ours: bool, theirs: str | None, rules: Any) -> str:
    """Return the cause of a difference between the two."""
    if not ours:
        return f"datatrove drops, we keep: {theirs}"
    place = place_of(url)
    host = place.partition("/")[0]
    if url.lower() != url or ":80" in url:
        return "written otherwise: we compare normal forms (capitals, ports)"
    if rules.registered(host) != host:
        return "we look at every ending of the host, datatrove at the registered domain and the whole host"
    return "datatrove looks for the page as it is written, scheme included; we for the page and what lies below it"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--size", choices=URLS, default="small")
    parser.add_argument("--peers", action="store_true")
    options = parser.parse_args(arguments)
    domains, pages = datatrove_lists()
    rule, words = URLDenyList(domains, pages), URLWords.of_datatrove()
    rule.ready()
    costs = index_cost(domains)
    listed_domains, listed_pages = entries(domains), entries(pages)
    known = set(listed_domains)
    made = cases(listed_domains, listed_pages, URLS[options.size])
    urls = [url for _, url in made]
    found = in_batches(urls, rule)
    hits, totals = Counter(made[row][0] for row in found), Counter(kind for kind, _ in made)
    rules = suffix_rules(suffix_file(), domains.suffix_digest, False)
    bare = dict.fromkeys(KINDS, 0)
    for kind, url in made:
        host = place_of(url).partition("/")[0]
        below = host.split(".")
        names = {".".join(below[at:]) for at in range(len(below))}
        truly = any(name in known and rules.suffix(name) != name for name in names)
        bare[kind] += truly
    for kind in KINDS:
        print(f"{kind:20} {totals[kind]:8,} URLs, {hits[kind]:8,} dropped, {bare[kind]:8,} under a listed domain")
    figures = {
        "lists": rate(lambda: in_batches(urls, rule), len(urls)),
        "words": rate(lambda: in_batches(urls, words), len(urls)),
    }
    named = sum(hits[kind] for kind in KINDS[:3])
    due = sum(totals[kind] for kind in KINDS[:3])
    alike = sum(hits[kind] - bare[kind] for kind in KINDS[3:])
    checks: dict[str, list[Any]] = {
        "listed found": [round(named / due, 5), "≥ .999", named >= 0.999 * due],
        "look-alikes dropped that no list names": [alike, "= 0", alike == 0],
        "URLs per second": [round(figures["lists"]), "≥ 50,000", figures["lists"] >= 50_000],
    }
    peers: dict[str, Any] = {}
    if options.peers:
        peers = compare(urls, found, in_batches(urls, words), rules, checks)
    packages = {package: version(package) for package in PACKAGES}
    ratio = round(figures["lists"] / peers["urls_per_second"], 1) if peers else None
    ours = {"lists": round(figures["lists"]), "words": round(figures["words"]), "index": costs}
    print(
        json.dumps(
            {
                "name": "urls",
                "unit": "URLs per CPU second",
                "ours": ours,
                "peers": peers,
                "ratio": ratio,
                "checks": checks,
                "versions": packages,
            }
        )
    )
    return 0 if all(check[2] for check in checks.values()) else 1


def compare(
    urls: Sequence[str], found: dict[int, str], worded: dict[int, str], rules: Any, checks: dict[str, list[Any]]
) -> dict[str, Any]:
    """Return the peer's rate and the differences by cause; add the check that none is unexplained."""
    peer = Datatrove()
    chosen = urls[:: max(1, len(urls) // 20_000)]
    step = max(1, len(urls) // 20_000)
    begin = time.process_time()
    theirs = [peer.reason(url) for url in chosen]
    seconds = time.process_time() - begin
    causes: Counter[str] = Counter()
    for place, reason in enumerate(theirs):
        row = place * step
        by_list = reason in ("domain", "subdomain", "url")
        if (row in found) != by_list:
            causes[difference(urls[row], row in found, reason, rules)] += 1
        elif not by_list and (row in worded) != (reason is not None):
            causes["words: we fold capitals" if row in worded else f"words: datatrove drops, we keep: {reason}"] += 1
    for cause, count in causes.most_common():
        print(f"{count:8,}  {cause}")
    missed = sum(count for cause, count in causes.items() if "we keep" in cause)
    checks["dropped by datatrove, kept by us"] = [missed, "= 0", missed == 0]
    return {"name": "datatrove URLFilter", "urls_per_second": round(len(chosen) / seconds), "differences": dict(causes)}


if __name__ == "__main__":
    sys.exit(main())
