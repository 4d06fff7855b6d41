"""Train the block engine: `python -m benchmarks.train_extractor [--folds FOLDER] [--out FILE]`.

Pages with gold text (../shared/data/extraction: aeb, MIT; wcxb_dev and wcxb_dev2, CC-BY-4.0) give blocks with labels. A
hashed linear score of words is fitted by AdaGrad, then two stages of LightGBM trees; each stage is fed what models that
did not see a page said of it (folds by domain inside). Only words of at least three domains get a weight. `--folds`
writes one model for each of five outer folds by domain, for `benchmarks.extraction` to score pages that the model was
not trained on. Deterministic: one thread, fixed seeds, LightGBM's `deterministic` and `force_row_wise`; the same
versions give the same file. About half an hour on one core with folds, a sixth of it without.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import lightgbm
import numpy as np

from benchmarks.extractor_data import Array, Example, GoldPage, example_of, read_gold
from transforms.kernels import kernel
from transforms.pages.context import fill_context
from transforms.pages.features import FEATURES
from transforms.pages.forest import SCORE, Forest, probabilities
from transforms.pages.model import FILE, BlockModel, write_model
from transforms.pages.model import FIRST as FIRST_COLUMNS
from transforms.pages.words import BUCKETS, LIMIT

FOLDS: Final = 5
INNER: Final = 3
LEAST_DOMAINS: Final = 3
SEED: Final = 1

_SHARED: Final = {
    "objective": "binary",
    "learning_rate": 0.1,
    "min_data_in_leaf": 60,
    "feature_fraction": 0.4,
    "bagging_fraction": 0.6,
    "bagging_freq": 1,
    "lambda_l2": 5,
    "max_bin": 63,
    "num_threads": 1,
    "deterministic": True,
    "force_row_wise": True,
    "seed": SEED,
    "verbose": -1,
}
FIRST: Final = {**_SHARED, "num_leaves": 31, "num_iterations": 90}
SECOND: Final = {**_SHARED, "learning_rate": 0.06, "num_leaves": 15, "num_iterations": 120}


def fold_numbers(pages: Sequence[GoldPage], count: int, seed: int) -> Array:
    """Return a fold for each page, all pages of a domain in the same."""
    domains = sorted({page.domain for page in pages})
    np.random.RandomState(seed).shuffle(domains)
    folds = {domain: place % count for place, domain in enumerate(domains)}
    return np.array([folds[page.domain] for page in pages])


@kernel
def _descend(
    buckets: Array, ends: Array, order: Array, labels: Array, rates: Array, allowed: Array, weights: Array
) -> None:
    """AdaGrad on the logistic loss, weights[-1] the bias; each block in the order given."""
    squares = np.full(weights.size, 1e-6)
    last = weights.size - 1
    for at in order:
        first, end = (ends[at - 1] if at > 0 else 0), ends[at]
        score = weights[last]
        for place in range(first, end):
            score += weights[buckets[place]]
        step = (labels[at] - 1 / (1 + np.exp(-score))) * rates[at]
        squares[last] += step * step
        weights[last] += 0.05 * step / np.sqrt(squares[last])
        for place in range(first, end):
            bucket = buckets[place]
            if allowed[bucket]:
                squares[bucket] += step * step
                weights[bucket] += 0.05 * step / np.sqrt(squares[bucket]) - 1e-6 * weights[bucket]


def fit_words(examples: Sequence[Example]) -> tuple[Array, int]:
    """Return weights of words in 1/1024 and their bias."""
    domains: dict[int, set[str]] = {}
    for example in examples:
        for bucket in np.unique(example.buckets).tolist():
            seen = domains.setdefault(bucket, set())
            if len(seen) < LEAST_DOMAINS:
                seen.add(example.page.domain)
    allowed = np.zeros(BUCKETS, np.bool_)
    allowed[[bucket for bucket, seen in domains.items() if len(seen) >= LEAST_DOMAINS]] = True
    buckets = np.concatenate([example.buckets for example in examples])
    sizes = [len(example.buckets) for example in examples]
    starts = np.cumsum([0, *sizes[:-1]])
    ends = np.concatenate([example.ends + start for example, start in zip(examples, starts, strict=True)])
    labels = np.concatenate([example.label for example in examples])
    rates = np.concatenate([example.weight for example in examples])
    rates = np.minimum(rates / rates.mean(), 20)
    weights = np.zeros(BUCKETS + 1)
    random = np.random.RandomState(SEED)
    for _ in range(4):
        _descend(buckets, ends, random.permutation(len(ends)), labels, rates, allowed, weights)
    cut = np.clip(np.rint(weights * 1024), -32767, 32767).astype(np.int16)
    cut[np.abs(cut) < 16] = 0
    return cut[:-1], round(float(weights[-1]) * 1024)


def word_scores(example: Example, weights: Array, bias: int) -> Array:
    """Return the words' score of each block, as `transforms.pages.words.fill_scores` does."""
    sums = np.concatenate([[0], np.cumsum(weights[example.buckets].astype(np.int64))])
    starts = np.concatenate([[0], example.ends[:-1]])
    return np.clip(sums[example.ends] - sums[starts] + bias, -LIMIT, LIMIT).astype(np.int32)


def fit_trees(rows: Array, labels: Array, weights: Array, settings: dict[str, Any]) -> lightgbm.Booster:
    """Return trees for blocks in and out of the main text; a block that is half in it counts little."""
    sure = weights * (np.abs(labels - 0.5) * 1.8 + 0.1)
    data = lightgbm.Dataset(rows.astype(np.float32), labels > 0.5, weight=sure / sure.mean())
    return lightgbm.train(settings, data)


def forest_of(booster: lightgbm.Booster) -> Forest:
    """Return the trees of `booster` as arrays; thresholds are cut down to whole numbers, which features are."""
    nodes: list[tuple[int, int]] = []
    children: list[tuple[int, int]] = []
    leaves: list[int] = []

    def place(node: dict[str, Any]) -> int:
        """Put a node and those below it into the arrays; return its number."""
        if "split_index" not in node:
            leaves.append(round(node["leaf_value"] * SCORE))
            return ~(len(leaves) - 1)
        assert node["decision_type"] == "<=" and node["missing_type"] == "None", node
        number = len(nodes)
        nodes.append((node["split_feature"], int(np.clip(np.floor(node["threshold"]), -(2**31), 2**31 - 1))))
        children.append((0, 0))
        children[number] = (place(node["left_child"]), place(node["right_child"]))
        return number

    roots = [place(tree["tree_structure"]) for tree in booster.dump_model()["tree_info"]]
    features, limits = zip(*nodes, strict=True)
    return Forest(
        np.array(roots, np.int32),
        np.array(features, np.int16),
        np.array(limits, np.int32),
        np.array(children, np.int16),
        np.array(leaves, np.int32),
    )


def _stack(examples: Sequence[Example], chosen: Sequence[Array]) -> tuple[Array, Array, Array]:
    labels = np.concatenate([example.label for example in examples])
    return np.concatenate(chosen), labels, np.concatenate([example.weight for example in examples])


def _with_scores(examples: Sequence[Example], weights: Array, bias: int) -> list[Array]:
    rows = [example.rows.copy() for example in examples]
    for example, own in zip(examples, rows, strict=True):
        own[:, FEATURES] = word_scores(example, weights, bias)
    return rows


def fit(examples: Sequence[Example]) -> BlockModel:
    """Train a model on `examples`."""
    inner = fold_numbers([example.page for example in examples], INNER, SEED + 10)
    rows: list[Array] = [np.empty(0)] * len(examples)
    for fold in range(INNER):
        seen = [example for example, own in zip(examples, inner, strict=True) if own != fold]
        places = np.flatnonzero(inner == fold)
        found = _with_scores([examples[place] for place in places], *fit_words(seen))
        for place, own in zip(places, found, strict=True):
            rows[place] = own
    for fold in range(INNER):
        kept = np.flatnonzero(inner != fold)
        stack = _stack([examples[place] for place in kept], [rows[place][:, : FEATURES + 1] for place in kept])
        trees = forest_of(fit_trees(*stack, FIRST))
        for place in np.flatnonzero(inner == fold):
            own = probabilities(trees, rows[place])
            fill_context(examples[place].around, own, rows[place][:, FIRST_COLUMNS:])
    weights, bias = fit_words(examples)
    first = fit_trees(*_stack(examples, [own[:, : FEATURES + 1] for own in rows]), FIRST)
    second = fit_trees(*_stack(examples, rows), SECOND)
    return BlockModel(weights, bias, forest_of(first), forest_of(second))


def main(arguments: list[str] | None = None) -> int:
    """Train and write the models that were asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--folds", type=Path, help="write a model for each outer fold into this folder")
    parser.add_argument("--out", type=Path, help=f"write the model of all pages here ({FILE.name} in the package)")
    options = parser.parse_args(arguments)
    started = time.process_time()
    examples = [example for page in read_gold() if (example := example_of(page)) is not None]
    print(f"{len(examples)} pages, {sum(len(example.label) for example in examples)} blocks", flush=True)
    if options.folds:
        options.folds.mkdir(parents=True, exist_ok=True)
        folds = fold_numbers([example.page for example in examples], FOLDS, SEED)
        for fold in range(FOLDS):
            model = fit([example for example, own in zip(examples, folds, strict=True) if own != fold])
            write_model(model, options.folds / f"fold-{fold}.npz")
            print(f"fold {fold}: {time.process_time() - started:.0f} s", flush=True)
    if options.out:
        write_model(fit(examples), options.out)
        print(f"{options.out}: {time.process_time() - started:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
