"""A store that goes all the way to a plan: leaked benchmark items, held-out texts, a tokenizer, caches, a mixture."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from pathlib import Path

from curate import Outputs, decontaminate, deduplicate, hold_out, read_jsonl, tokenize, train_tokenizer
from curate.run import run
from mixtures import AtMost, Chunks, Mixture, Phase
from tests.viewers.stores import HOSTILE, Made
from transforms import Benchmark
from transforms.minhash import MinHash

SHELF = 'shelf"><script>'
PLACES = ["harbour", "meadow", "tower", "mill", "quarry", "orchard", "chapel", "market", "bridge", "station", "barn"]
PEOPLE = ["Anna", "Boris", "Clara", "David", "Edith", "Felix", "Greta", "Henry", "Irene", "Jonas", "Karla", "Louis"]
THINGS = ["lantern", "kettle", "ladder", "barrel", "anchor", "violin", "basket", "mirror", "saddle", "compass", "rope"]
VERBS = ["carried", "painted", "borrowed", "repaired", "counted", "buried", "traded", "polished", "dropped", "found"]
QUESTION = (
    "A ferryman rows seven passengers across the wide river every morning before the bells of the old abbey ring. "
    "Each passenger pays three copper coins and on Sundays nobody pays. How many coins does he earn in four weeks?"
)
ANSWER = "He earns five hundred and four coins because he works six paid days in each of the four weeks."


def story(seed: int, sentences: int) -> str:
    """Return sentences that follow from `seed`."""
    choose = random.Random(seed)
    names = [(choose.choice(PEOPLE), choose.choice(VERBS), choose.choice(THINGS)) for _ in range(sentences)]
    ends = [f"near the {choose.choice(PLACES)} on day {choose.randrange(1000)}" for _ in range(sentences)]
    return " ".join(f"{who} {does} the {what} {end}." for (who, does, what), end in zip(names, ends, strict=True))


def make_token_store(folder: Path) -> Made:
    """Run a recipe from documents to a plan of two phases."""
    web = [{"text": story(seed, 6 + seed % 5)} for seed in range(60)]
    web += [{"text": f"{story(100, 8)} {QUESTION} {ANSWER} {story(101, 8)}"}, {"text": f"{story(102, 3)} {QUESTION}"}]
    web += [{"text": f"{story(103 + i, 4)} and then <|endoftext|> {text}"} for i, text in enumerate(HOSTILE)]
    shelf = [{"text": story(1000 + seed, 20)} for seed in range(25)]
    shelf += [{"text": row["text"] + " And so it went on."} for row in shelf[:25]]
    _write(folder / "web/a.jsonl", web)
    _write(folder / "shelf/a.jsonl", shelf)
    _write(folder / "bench.jsonl", [{"q": QUESTION, "a": ANSWER}, {"q": "What is two and two?", "a": "4"}])
    store = folder / "store"
    result = run(recipe(folder), store, name="all <the> way", runner="local", recipe=Path(__file__))
    return Made(store, result.folder.name, result)


def recipe(folder: Path) -> Outputs:
    """Return the recipe of `make_token_store`."""
    web = read_jsonl(folder / "web", source="web")
    shelf = read_jsonl(folder / "shelf", source=SHELF)
    bench = Benchmark.jsonl("<b>ferry", folder / "bench.jsonl", question="q", answer="a")
    both = decontaminate(deduplicate(web, shelf, method=MinHash(threshold=".99")), bench)
    train, valid = hold_out(both, characters=3000, per="source")
    tokenizer = train_tokenizer(train, 400)
    mixture = Mixture(
        tokenize(train, tokenizer, by="source"),
        Phase("main", tokens=40_000, weights={"web": 3, SHELF: 1}),
        Phase("<i>end", tokens=8_000, weights={SHELF: 1}, others=0),
        sequences=Chunks(64),
        repeats=AtMost(9, then="redistribute"),
        batch=8,
        seed=3,
    )
    held = tokenize(valid, tokenizer, by="source", name="tokenize valid")
    return Outputs(mixture, validation=held, batches=[(0, 4)])


def write_run(folder: Path, plan: str, sources: Iterable[str], steps: int = 40) -> Path:
    """Write the log of a run on `plan`, with a line that has no loss, and one that was not written to its end."""
    lines = [
        {"kind": "start", "step": 0, "plan": plan, "config": {"seed": 5}, "environment": {}, "timing": {"time": 1}}
    ]
    for step in range(steps):
        loss = None if step == 7 else 6 - step / 10
        lines.append({"kind": "train", "step": step, "loss": loss, "timing": {"seconds": 1.5}})
    for step in (0, steps):
        lines += [
            {"kind": "validation", "step": step, "source": s, "loss": 6.5 - step / 16, "timing": {}} for s in sources
        ]
    folder.mkdir(parents=True)
    (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"kind": "tra')
    return folder


def _write(path: Path, rows: list[dict[str, str]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
