"""curate: training data for language models, every document accounted for and reproducible to the bit.

A recipe reads like this:

    from curate import Outputs, deduplicate, read_files, recipe
    from transforms import GopherQuality, MinHash

    @recipe
    def books(root: str) -> Outputs:
        texts = read_files(root, "**/*.txt", source="books").apply(GopherQuality())
        return Outputs(books=deduplicate(texts, method=MinHash(threshold=.8)))

and runs with `curate run books.py --store DIR --set root=…`.
"""

from typing import TYPE_CHECKING

from transforms.lazy_names import lazy_names

if TYPE_CHECKING:
    from curate.bridges.arrow_source import from_arrow
    from curate.bridges.datatrove_reader import to_datatrove
    from curate.bridges.files import write_documents
    from curate.bridges.hugging_face import from_hugging_face, to_hugging_face
    from curate.configuration import ConfigurationError
    from curate.fitting.classifier import train_classifier
    from curate.fitting.levels import fit_levels, fit_threshold, grade, keep_best
    from curate.fitting.phrases import fit_phrases
    from curate.fitting.thresholds import fit_thresholds
    from curate.fitting.topics import fit_topics
    from curate.judging import Judge
    from curate.readers.reader import Column
    from curate.recipes.cells import Cells, TrainedTokenizer, tokenize, train_tokenizer
    from curate.recipes.datasheet import Datasheet
    from curate.recipes.duplicates import deduplicate
    from curate.recipes.evaluation import decontaminate, hold_out
    from curate.recipes.graph import Dataset
    from curate.recipes.reading import (
        read_code,
        read_csv,
        read_epub,
        read_files,
        read_html,
        read_jsonl,
        read_mediawiki,
        read_parquet,
        read_pdf,
        read_tar,
        read_text,
        read_warc,
        read_wat,
        read_wet,
    )
    from curate.recipes.recipe import Outputs, Recipe, recipe
    from curate.recipes.reference import Reference, reference
    from curate.recipes.repeats import (
        deduplicate_against,
        deduplicate_parts,
        deduplicate_spans,
        deduplicate_urls,
    )
    from curate.recipes.semantic import deduplicate_semantic
    from transforms.predicates import field

__all__ = [
    "Cells",
    "Column",
    "ConfigurationError",
    "Dataset",
    "Datasheet",
    "Judge",
    "Outputs",
    "Recipe",
    "Reference",
    "TrainedTokenizer",
    "decontaminate",
    "deduplicate",
    "deduplicate_against",
    "deduplicate_parts",
    "deduplicate_semantic",
    "deduplicate_spans",
    "deduplicate_urls",
    "field",
    "fit_levels",
    "fit_phrases",
    "fit_threshold",
    "fit_thresholds",
    "fit_topics",
    "from_arrow",
    "from_hugging_face",
    "grade",
    "hold_out",
    "keep_best",
    "read_code",
    "read_csv",
    "read_epub",
    "read_files",
    "read_html",
    "read_jsonl",
    "read_mediawiki",
    "read_parquet",
    "read_pdf",
    "read_tar",
    "read_text",
    "read_warc",
    "read_wat",
    "read_wet",
    "recipe",
    "reference",
    "to_datatrove",
    "to_hugging_face",
    "tokenize",
    "train_classifier",
    "train_tokenizer",
    "write_documents",
]

__getattr__, __dir__ = lazy_names(__name__, __file__)
