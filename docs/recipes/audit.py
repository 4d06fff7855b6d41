"""An audit of somebody else's Parquet: everything is looked for and written down, nothing is dropped.

    curate run docs/recipes/audit.py --store STORE --set root=/data/theirs --set benchmarks=/data/benchmarks
    curate report STORE --fail-on any

`root` holds Parquet files with a column "text" (`curate audit` finds the column by itself and writes the page at
once; this is the same as a recipe, to change). Each document of the output `audited` says which of its copies stays,
which benchmark items it holds, which rule would drop it and by which measure; `masked` is what it would be without
personal data.
"""

from pathlib import Path

from curate import Datasheet, Outputs, decontaminate, deduplicate, read_parquet, recipe
from transforms import (
    C4Documents,
    FineWebQuality,
    GopherQuality,
    GopherRepetition,
    Language,
    MaskPII,
    MinHash,
    known_benchmark,
)

RULES = (GopherRepetition(), GopherQuality(), C4Documents(), FineWebQuality())


@recipe
def audit(root: str, benchmarks: str, source: str = "theirs", licence: str = "unknown") -> Outputs:
    """Return all documents with what was found, and what they would be without personal data."""
    theirs = read_parquet(root, source=source, licence=None if licence == "unknown" else licence)
    told = theirs.apply(Language(), *(rules.tag() for rules in RULES), name="told")
    told = deduplicate(told, method=MinHash(threshold=0.8), action="tag", count="copies", name="copies")
    items = [known_benchmark(path.name.partition(".")[0], path) for path in sorted(Path(benchmarks).glob("*"))]
    audited = decontaminate(told, *items, action="tag", name="audited")
    masked = audited.apply(MaskPII(), name="masked")
    return Outputs(
        audited=audited,
        masked=masked,
        datasheet=Datasheet(purpose="To say what somebody else's files hold, before anything is trained on them."),
    )
