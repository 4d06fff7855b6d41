"""A small made-up benchmark, and texts to plant its items into."""

from __future__ import annotations

import json
from pathlib import Path

from transforms.benchmark_items import Benchmark

PASSAGE = (
    "The lighthouse of Varnholm was built of grey granite in four summers, because the masons refused to work in "
    "winter gales. Its first keeper, a retired whaler, planted cabbages behind the oil store and quarrelled with every "
    "inspector who climbed the two hundred steps to his lamp room."
)
QUOTED = (
    "whoever keeps the lamp shall keep it for friend and stranger alike and shall ask of no ship what flag it flies "
    "nor what cargo lies beneath its hatches"
)
ITEMS = [
    {
        "question": "Marta's ferry carries 24 passengers and 6 bicycles on each crossing of the fjord. If it crosses 9 "
        "times on Saturday and 7 times on Sunday, how many passengers can it carry over the weekend in all?",
        "answer": "On Saturday it carries 24 * 9 = 216 passengers. On Sunday it carries 24 * 7 = 168 passengers. "
        "Over the weekend the ferry can therefore carry 216 + 168 = 384 passengers in all.",
    },
    {
        "question": "Why do the glassblowers of Lindau don't cool a finished vase in open air, but leave it overnight "
        "in a slowly cooling annealing oven?",
        "answer": "Uneven cooling leaves stresses that crack the glass.",
    },
    {"question": "Which bird nests inside abandoned woodpecker holes lined with mud?", "answer": "The nuthatch"},
    {"question": "Who painted the ceiling?", "answer": "A pupil of Tiepolo painted it during three rainy winters"},
    {"question": "Who knows?", "answer": "Nobody"},
    {"question": "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20", "answer": "21"},
    {"question": "a b c d e f g h i j k l m n o p q r s t u v w x y z", "answer": "alphabet"},
    {
        "passage": PASSAGE,
        "question": "According to the text, what kept the masons of Varnholm from finishing the tower sooner?",
        "answer": "They would not work during the winter gales",
    },
    {
        "question": f'An old harbour charter says: "{QUOTED}". Which modern principle of maritime rescue did the '
        "charter of that harbour anticipate?",
        "answer": "The duty to render assistance",
    },
    {
        "question": 'def shelf_load(weights):\n    """Return the heaviest shelf, where every shelf takes three '
        'boxes in the order given.\n    >>> shelf_load([4, 1, 7, 2])\n    12\n    """\n',
        "answer": "    return max(sum(weights[i:i + 3]) for i in range(0, len(weights), 3))\n",
    },
    {
        "question": "Complete the sentence about tides:",
        "choices": ["spring tides follow the full moon", "neap tides drown the salt marsh", "tides never reach Basel"],
        "answer": "spring tides follow the full moon",
    },
]
HOST = (
    "The road down from the pass was closed again, and the drivers drank their coffee standing. Nobody had expected "
    "snow so early in the year, least of all the man who sold the chains.\n\nBelow the tree line it rained. "
)


def write_benchmark(folder: Path, items: list[dict[str, object]] | None = None, name: str = "made-up") -> Benchmark:
    """Write `items` and return them as a benchmark."""
    path = folder / f"{name}.jsonl"
    path.write_text("".join(json.dumps(item) + "\n" for item in (ITEMS if items is None else items)), "utf-8")
    fields = {"question": "question", "answer": "answer", "passage": "passage", "choices": "choices"}
    named = {part: field for part, field in fields.items() if any(field in item for item in (items or ITEMS))}
    return Benchmark.jsonl(name, path, **named)
