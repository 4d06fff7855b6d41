"""Contamination of what is finished: which items of benchmarks stand in a dataset, in token caches, in plain files.

`audit_texts` looks for benchmarks in texts, `found_in_run` reads what a run found; both give an `Audit`, which has the
counts per benchmark and split and the lists of items for scoring evaluations. On the command line:
`curate contamination`.
"""

from transforms.lazy_names import lazy_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from curate.contamination.audit import Audit, audit_texts, found_in_run
    from curate.contamination.texts import Portion, texts_at, texts_of_cache, texts_of_dataset, texts_of_files

__all__ = [
    "Audit",
    "Portion",
    "audit_texts",
    "found_in_run",
    "texts_at",
    "texts_of_cache",
    "texts_of_dataset",
    "texts_of_files",
]

__getattr__, __dir__ = lazy_names(__name__, __file__)
