"""datatrove's MinHash pipeline, its four stages one after the other by its own executor, from Parquet to Parquet."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
from datatrove.executor.local import LocalPipelineExecutor
from datatrove.pipeline.dedup.minhash import (
    MinhashConfig,
    MinhashDedupBuckets,
    MinhashDedupCluster,
    MinhashDedupFilter,
    MinhashDedupSignature,
)
from datatrove.pipeline.readers import ParquetReader
from datatrove.pipeline.writers import ParquetWriter
from datatrove.utils.logging import logger
from datatrove.utils.text import TextNormConfig
from datatrove.utils.word_tokenizers import load_word_tokenizer
from peer import arguments, least


def main() -> None:
    """Deduplicate with its defaults, 14 buckets of 8 hashes, xxhash."""
    corpus, folder, _ = arguments()
    logger.remove()
    load_word_tokenizer("eng").word_tokenize("Load what it needs.")
    config = MinhashConfig(norm_config=TextNormConfig())

    def read() -> ParquetReader:
        return ParquetReader(str(corpus.parent), glob_pattern=corpus.name, doc_progress=False)

    def once(mine: Path) -> None:
        signatures, buckets, remove, out = (str(mine / name) for name in ("signatures", "buckets", "remove", "out"))
        for number, (steps, tasks) in enumerate(
            (
                ([read(), MinhashDedupSignature(signatures, config)], 1),
                ([MinhashDedupBuckets(signatures, buckets, config=config)], config.num_buckets),
                ([MinhashDedupCluster(buckets, remove, config)], 1),
                ([read(), MinhashDedupFilter(remove), ParquetWriter(out, compression="zstd")], 1),
            )
        ):
            LocalPipelineExecutor(steps, tasks=tasks, workers=1, logging_dir=str(mine / f"logs{number}")).run()

    report, last = least(folder, once)
    tables = sorted((last / "out").glob("*.parquet"))
    kept = [name for path in tables for name in pq.read_table(path)["id"].to_pylist()]
    report.write(folder, kept, "defaults: 14 x 8, 5-grams, spaCy's words, xxhash", "datatrove", "spacy", "xxhash")


if __name__ == "__main__":
    main()
