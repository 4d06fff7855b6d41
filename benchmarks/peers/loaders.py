"""Other loaders of tokens: million tokens per CPU second of batches of 8 sequences of 4,096 tokens, int32, shuffled.

Arguments: a tool, a folder and how many batches. The folder has `tokens.bin` (uint16) and `litdata/` (chunks that our
export wrote, which its TokensLoader reads). Each tool reads the same tokens from files that the kernel has in memory,
uncompressed, on one thread without workers, in the random order that is the fastest for it; the best of five runs.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

SEQUENCE = 4096
BATCH = 8

Run = Callable[[], object]


def litdata(folder: Path, steps: int) -> tuple[dict[str, Run], tuple[str, ...]]:
    """Return ways to read by litdata: its shuffled iterator, and by index."""
    import torch
    from litdata import StreamingDataset
    from litdata.streaming.item_loader import TokensLoader

    def opened(shuffle: bool) -> Any:
        return StreamingDataset(
            str(folder / "litdata"), item_loader=TokensLoader(block_size=SEQUENCE), shuffle=shuffle, drop_last=True
        )

    shuffled, plain = opened(True), opened(False)
    order = np.random.default_rng(0).permutation(len(plain))[: steps * BATCH].tolist()

    def iterate() -> None:
        rows = iter(shuffled)
        for _ in range(min(steps, len(shuffled) // BATCH)):
            torch.stack([next(rows) for _ in range(BATCH)]).to(torch.int32)

    def index() -> None:
        for step in range(0, len(order) - BATCH + 1, BATCH):
            torch.stack([plain[place] for place in order[step : step + BATCH]]).to(torch.int32)

    return {"litdata, iterated": iterate, "litdata, by index": index}, ("litdata", "torch")


def mosaic(folder: Path, steps: int) -> tuple[dict[str, Run], tuple[str, ...]]:
    """Return ways to read by MosaicML streaming: its shuffled iterator, and by index."""
    from streaming import MDSWriter, StreamingDataset

    blocks = np.fromfile(folder / "tokens.bin", np.uint16)
    blocks = blocks[: len(blocks) // SEQUENCE * SEQUENCE].reshape(-1, SEQUENCE)
    with MDSWriter(out=str(folder / "mds"), columns={"tokens": f"ndarray:uint16:{SEQUENCE}"}) as writer:
        for block in blocks:
            writer.write({"tokens": block})
    data: Any = StreamingDataset(local=str(folder / "mds"), shuffle=True, shuffle_seed=0, batch_size=BATCH)
    order = np.random.default_rng(0).permutation(len(data))[: steps * BATCH].tolist()

    def index() -> None:
        for step in range(0, len(order) - BATCH + 1, BATCH):
            np.stack([data[place]["tokens"] for place in order[step : step + BATCH]]).astype(np.int32)

    def iterate() -> None:
        rows = iter(data)
        for _ in range(steps // 8):  # it is slow, and what it prepares at first counts
            np.stack([next(rows)["tokens"] for _ in range(BATCH)]).astype(np.int32)

    return {"MosaicML, by index": index, "MosaicML, iterated": iterate}, ("mosaicml-streaming", "torch")


def grain(folder: Path, steps: int) -> tuple[dict[str, Run], tuple[str, ...]]:
    """Return ways to read by Grain over a mapped file: shuffled, and mixed of 20 parts with uneven weights."""
    import grain.python as pygrain

    class Blocks:
        def __init__(self, tokens: Any) -> None:
            self.tokens = tokens

        def __len__(self) -> int:
            return len(self.tokens) // SEQUENCE

        def __getitem__(self, place: Any) -> Any:
            return self.tokens[place * SEQUENCE : (place + 1) * SEQUENCE].astype(np.int32)

    tokens = np.memmap(folder / "tokens.bin", np.uint16, "r")
    shuffled = pygrain.MapDataset.source(Blocks(tokens)).shuffle(seed=0).repeat().batch(BATCH)
    parts = np.array_split(tokens, 20)
    mixed = pygrain.MapDataset.mix(
        [pygrain.MapDataset.source(Blocks(part)).shuffle(seed=0).repeat() for part in parts],
        [float((1 + number) ** 2) for number in range(20)],
    ).batch(BATCH)

    here = pygrain.ReadOptions(num_threads=0, prefetch_buffer_size=0)

    def read(data: Any) -> Run:
        def run() -> None:
            rows = iter(data.to_iter_dataset(here))
            for _ in range(steps):
                next(rows)

        return run

    return {"Grain, shuffled": read(shuffled), "Grain, 20 mixed": read(mixed)}, ("grain", "numpy")


TOOLS = {"litdata": litdata, "mosaic": mosaic, "grain": grain}


def main() -> None:
    """Measure and print one JSON object."""
    warnings.simplefilter("ignore")
    name, folder, steps = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    ways, packages = TOOLS[name](folder, steps)
    rates, failed = {}, {}
    for way, run in ways.items():
        count = (steps // 8 if way == "MosaicML, iterated" else steps) * BATCH * SEQUENCE
        try:
            run()
            times = []
            for _ in range(2 if "MosaicML" in way else 5):
                began = time.process_time()
                run()
                times.append(time.process_time() - began)
            rates[way] = count / min(times) / 1e6
        except Exception as error:  # the others are still measured
            failed[way] = f"{type(error).__name__}: {error}"[:300]
    print(json.dumps({"rates": rates, "failed": failed, "versions": {name: version(name) for name in packages}}))


if __name__ == "__main__":
    main()
