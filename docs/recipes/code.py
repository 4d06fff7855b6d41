"""Code by repository: permissive files joined in path order, then deduplicated.

    curate run docs/recipes/code.py --store STORE --set root=/data/stack

`root` holds Parquet files with one source file a row. A document is a repository: its files in the order of their
paths, so that what a file uses tends to stand before it.
"""

from curate import Column, Outputs, deduplicate, field, read_parquet, recipe
from transforms import MaskPII, MinHash, NormalizeText

PERMISSIVE = ("Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "Unlicense")


@recipe
def code(root: str) -> Outputs:
    """Return repositories with a permissive licence, the ones with more stars preferred."""
    files = read_parquet(
        root,
        source="code",
        columns={
            "text": "content",
            "key": "blob_id",
            "licence": "license_type",
            "repo": "repo_name",
            "path": "path",
            "stars": Column("stars", "int64"),
        },
    )
    files = files.where(field("licence").isin(PERMISSIVE), reason="licence").apply(NormalizeText(), MaskPII())
    repositories = files.group("repo", order="path")
    return Outputs(code=deduplicate(repositories, method=MinHash(threshold=0.7), prefer=("-stars", "-length")))
