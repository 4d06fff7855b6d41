"""rensa's streaming deduplicator, from Parquet to Parquet: the first text of any that resemble each other stays."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from peer import arguments, batches, grams, least, shingles
from rensa import RMinHashDeduplicator

MAKE = {"words": shingles, "white space": lambda text: grams(text.split())}


def main() -> None:
    """Deduplicate at an estimated similarity of .8, 20 bands of 6."""
    corpus, folder, variant = arguments()
    make, kept = MAKE[variant], list[str]()

    def once(out: Path) -> None:
        kept.clear()
        unique = RMinHashDeduplicator(threshold=0.8, num_perm=120, use_lsh=True, num_bands=20)
        with pq.ParquetWriter(out / "kept.parquet", pq.read_schema(corpus), compression="zstd") as writer:
            for batch in batches(corpus):
                ids = batch.column("id").to_pylist()
                texts = batch.column("text").to_pylist()
                stays = unique.add_pairs([(name, make(text)) for name, text in zip(ids, texts, strict=True)])
                writer.write_batch(batch.filter(pa.array(stays)))
                kept.extend(name for name, stay in zip(ids, stays, strict=True) if stay)

    report, _ = least(folder, once)
    report.write(
        folder, kept, f"RMinHashDeduplicator(.8, 120, 20 bands), 5-grams of {variant} in Python", "rensa", "pyarrow"
    )


if __name__ == "__main__":
    main()
