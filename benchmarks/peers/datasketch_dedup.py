"""datasketch's bulk MinHash and LSH, from Parquet to Parquet: a text that resembles one that stays goes."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import xxhash
from datasketch import MinHash, MinHashLSH
from peer import arguments, batches, least, shingles

THRESHOLD = 0.8


def main() -> None:
    """Deduplicate at an estimated similarity of .8, 20 bands of 6."""
    corpus, folder, _ = arguments()
    kept: list[str] = []

    def once(out: Path) -> None:
        kept.clear()
        index, signed = MinHashLSH(threshold=THRESHOLD, num_perm=120, params=(20, 6)), {}
        with pq.ParquetWriter(out / "kept.parquet", pq.read_schema(corpus), compression="zstd") as writer:
            for batch in batches(corpus):
                sets = map(shingles, batch.column("text").to_pylist())
                signatures = MinHash.generator(sets, num_perm=120, hashfunc=xxhash.xxh32_intdigest)
                stays = []
                for name, signature in zip(batch.column("id").to_pylist(), signatures, strict=True):
                    again = any(signed[other].jaccard(signature) >= THRESHOLD for other in index.query(signature))
                    stays.append(not again)
                    if not again:
                        index.insert(name, signature, check_duplication=False)
                        signed[name] = signature
                        kept.append(name)
                writer.write_batch(batch.filter(pa.array(stays)))

    report, _ = least(folder, once)
    report.write(
        folder, kept, "affine32, xxh32, LSH 20 x 6, estimate >= .8", "datasketch", "xxhash", "numpy", "pyarrow"
    )


if __name__ == "__main__":
    main()
