"""Documents of several languages, hosts and presses through two filters, and what they are, told by other means."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from curate import Column, Outputs, read_jsonl
from curate.run import Result
from tests.curate.corpus import run_on, write_lines
from transforms.count_by import CountBy
from transforms.where import Where, field

WORDS = {"en": "the rain on the hill", "ru": "дождь на холме идёт", "el": "η βροχή στο βουνό", None: "1 2 3 4"}
SCRIPTS = {"en": "Latn", "ru": "Cyrl", "el": "Grek", None: None}
HOSTS = ("a.example.de", "b.example.com", "c.рф", "127.0.0.1", "d.co.uk", None)


def lines(count: int) -> list[dict[str, Any]]:
    """Return documents of all combinations of language, host and press."""
    made = []
    for n in range(count):
        language, host = list(WORDS)[n % 4], HOSTS[n // 4 % 6]
        url = None if host is None else f"http://{host}/{n}"
        press = f"press {n % 3}" if n % 7 else None
        drawn = {"one": "no" if language == "ru" and n % 5 else "yes", "two": "no" if n % 10 == 7 else "yes"}
        text = f"{WORDS[language]} " * (n % 9) + str(n)
        when = f"201{n % 3}-0{1 + n % 2}-28T23:59:59Z" if n % 5 else None
        made.append({"text": text, "lang": language, "url": url, "press": press, "when": when, **drawn})
    return made


def run_over(root: Path, files: int, count: int = 160, **options: Any) -> Result:
    """Run two filters over `count` lines, which lie in so many files."""
    made = lines(count)
    for part in range(files):
        write_lines(root / f"in/{part}.jsonl", made[part::files])
    further = {name: Column(name) for name in ("url", "press", "one", "two")}
    columns: dict[str, Any] = {"language": "lang", "crawled_at": "when", **further}
    read = read_jsonl(root / "in", source="s", columns=columns)
    steps = (CountBy("press"), Where(field("one") == "yes", "one"), Where(field("two") == "yes", "two"))
    return run_on(Outputs(all=read.keep("all"), texts=read.apply(*steps, name="texts")), root / "store", **options)


def host_in(row: dict[str, Any]) -> str | None:
    """Return the host of the URL of a row."""
    return row["url"] and str(row["url"].split("/")[2]).replace("рф", "xn--p1ai")


def attributes(row: dict[str, Any]) -> dict[str, str | None]:
    """Return what a document is, told without the code under test."""
    host = host_in(row)
    country = {"de": "de", "uk": "uk", "xn--p1ai": "xn--p1ai"}.get(host.split(".")[-1], "no country") if host else None
    power = max(16, 1 << len(row["text"]).bit_length())
    language = SCRIPTS[row["language"]] if len(row["text"]) > 4 else None
    return {
        "language": row["language"],
        "script": language,
        "country domain": country,
        "length": str(power),
        "crawl month": row["crawled_at"] and f"{row['crawled_at']:%Y-%m}",
        "press": row["press"],
    }
