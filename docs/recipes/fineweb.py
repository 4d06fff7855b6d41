"""FineWeb-like: English Common Crawl, deduplicated per dump (Penedo et al. 2024, arXiv:2406.17557).

    curate run docs/recipes/fineweb.py --store STORE --set root=/data/crawl --set dumps=CC-MAIN-2024-10,CC-MAIN-2024-18

`root` holds a folder of WARC files per dump. Each dump is an output of its own; adding one reruns none of the others.
"""

from curate import Outputs, deduplicate, read_warc, recipe
from transforms import ExtractText, Language, MaskPII, MinHash, NormalizeText, URLDenyList, URLWords, datatrove_lists
from transforms import fineweb as filters


@recipe
def fineweb(root: str, dumps: str) -> Outputs:
    """Return one deduplicated dataset per dump."""

    def dump(name: str):
        pages = read_warc(f"{root}/{name}", "**/*.warc.gz", source=name).apply(
            URLDenyList(*datatrove_lists()),
            URLWords.of_datatrove(),
            ExtractText(),
            NormalizeText(),
            Language({"en": 0.65}),
            *filters(),
            name=f"filter {name}",
        )
        unique = deduplicate(pages, method=MinHash.fineweb(), name=f"deduplicate {name}")
        return unique.apply(MaskPII.only("email", "ip"), name=name)

    return Outputs(**{name: dump(name) for name in dumps.split(",")})
