"""A store with topics, levels of scores, hosts, caches by topic and level, and a plan: for cells and concentration."""

from __future__ import annotations

import json
import random
from pathlib import Path

from curate import Column, Outputs, read_jsonl, tokenize
from curate.run import run
from mixtures import ByColumn, Chunks, Mixture, Phase
from tests.curate.token_corpus import write_tokenizer
from tests.viewers.stores import Made, words
from transforms import Level, Tokenizer

TOPICS = ("sea", "<b>bread", "law / tax")


def make_graded_store(folder: Path) -> Made:
    """Run a recipe over documents of three topics and fifteen hosts, whose scores follow topic and host by half."""
    draw = random.Random(5)
    rows = []
    for n in range(300):
        topic, host = draw.randrange(3), min(draw.randrange(40), 14)
        text = words(n, 10 + n % 23)
        score = 40 * topic + 5 * host + draw.randrange(-60, 60) - 50
        url = f"http://h{host}.example/{n}" if n % 9 else None
        rows.append({"text": text, "topic": TOPICS[topic], "url": url, "quality_score": score if n % 50 else None})
        rows[-1]["language"] = (None, "de", "tr")[n % 7 % 3]
    for part in range(2):
        path = folder / f"in/{part}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows[part::2]))
    columns: dict[str, str | Column] = {
        "topic": "topic",
        "language": "language",
        "url": Column("url"),
        "quality_score": Column("quality_score", "int64"),
    }
    graded = read_jsonl(folder / "in", source="web", columns=columns).apply(Level((0, 40)), name="graded")
    cells = tokenize(graded, Tokenizer(write_tokenizer(folder)), by=("topic", "quality_level"))
    phase = Phase("main", tokens=2000, weights=ByColumn(quality_level={0: 0, 2: 2, None: 0}))
    mixture = Mixture(cells, phase, sequences=Chunks(32), batch=4, seed=1)
    result = run(Outputs(mixture, documents=graded), folder / "store", name="graded", runner="local")
    return Made(folder / "store", result.folder.name, result)
