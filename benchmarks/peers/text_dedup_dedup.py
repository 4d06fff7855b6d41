"""text-dedup's MinHash, from a Parquet file to a saved dataset, as its own command line runs it, in one process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from datasets import load_from_disk
from peer import arguments, least
from text_dedup.config.base import load_config_from_toml
from text_dedup.minhash import main as deduplicate


def write_settings(path: Path, corpus: Path, folder: Path, variant: str) -> None:
    """Write its configuration: .8, 5-grams of words, 20 bands of 6, one process; verified or not by `variant`."""
    read = {"path": "parquet", "data_files": str(corpus), "split": "train", "cache_dir": str(folder / "cache")}
    tables: dict[str, dict[str, Any]] = {
        "input": {"input_type": "local_files", "file_type": "parquet"},
        "input.read_arguments": read,
        "algorithm": {
            "algorithm_name": "minhash",
            "text_column": "text",
            "num_perm": 120,
            "bands": 20,
            "rows": 6,
            "ngram_size": 5,
            "threshold": 0.8,
            "num_proc": 1,
            "check_false_positive": variant == "verified",
        },
        "output": {"output_dir": str(folder / "out")},
        "debug": {},
    }
    lines = []
    for name, table in tables.items():
        lines.append(f"[{name}]")
        lines += [f"{key} = {json.dumps(value)}" for key, value in table.items()]
    path.write_text("\n".join(lines))


def main() -> None:
    """Deduplicate, verified or not."""
    corpus, folder, variant = arguments()
    np.seterr(over="ignore")

    def once(out: Path) -> None:
        write_settings(out / "config.toml", corpus, out, variant)
        deduplicate(load_config_from_toml(out / "config.toml"))

    report, last = least(folder, once)
    kept = list(load_from_disk(str(last / "out"))["id"])
    report.write(folder, kept, f"20 x 6, 5-grams, num_proc=1, {variant}", "text-dedup", "datasets", "polars", "numpy")


if __name__ == "__main__":
    main()
