"""Bytes to letters: generated pages in every encoding of the web, declared in every way, and not at all.

Run `python -m benchmarks.encodings [--size small|full] [--peers]`. Texts are the last two fifths of the Universal
Declaration of Human Rights in ../shared, of which the detector's statistics have seen the first three, and Wikipedia
paragraphs of other topics; what an encoding lacks stands as a character reference. Each page is declared by the header,
in the page, by both, contradictorily (the header is right and the page wrong, or the other way round) and not at all.
Exact: every character of the page is as it was. Peers guess the encoding of the undeclared ones. The last line is JSON;
exit status 1: a check failed. `--size full` also measures `RepairMojibake`: on clean texts, and on misread ones.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.make_encoding_statistics import first_part, for_windows_1258, texts
from transforms.decoding import decode
from transforms.encoding_labels import CODECS
from transforms.mojibake import READ_AS, RepairMojibake, characters_of
from transforms.schema import ID

SHARED: Final = Path("../shared/data")
CORPUS: Final = SHARED / "corpora/multidomain.parquet"
MOJIBAKE: Final = 14
"""Texts of `clean_texts` that are mojibake in part, each looked at by a person."""
LEAST_SIGNS: Final = 3
WEST: Final = "eng fra deu_1901 spa por_PT ita nld dan swe nob fin isl cat glg eus"
CENTRAL: Final = "pol ces slk hun slv hrv"
CASES: Final = {
    "utf-8": "eng fra rus jpn arb tha", "utf-16le": "eng rus jpn arb", "utf-16be": "eng rus jpn arb",
    "utf-32le": "eng rus jpn", "utf-32be": "eng rus jpn",
    "windows-1252": WEST, "iso-8859-15": "fra fin deu_1901 spa", "macintosh": "fra deu_1901 spa",
    "windows-1250": CENTRAL + " ron", "iso-8859-2": CENTRAL, "iso-8859-3": "mlt epo", "iso-8859-4": "est lav lit",
    "iso-8859-5": "rus bul mkd srp_cyrl", "iso-8859-6": "arb", "iso-8859-7": "ell_monotonic", "iso-8859-8-i": "heb",
    "iso-8859-10": "isl sme", "iso-8859-13": "lit lav est", "iso-8859-14": "gle cym", "iso-8859-16": "ron pol",
    "windows-1251": "rus ukr bul mkd srp_cyrl bel", "koi8-r": "rus bul", "koi8-u": "ukr", "ibm866": "rus",
    "x-mac-cyrillic": "rus bul ukr", "windows-1253": "ell_monotonic", "windows-1254": "tur azj_latn",
    "windows-1255": "heb ydd", "windows-1256": "arb pes_1 urd", "windows-1257": "lit lav est", "windows-1258": "vie",
    "windows-874": "tha", "gbk": "cmn_hans", "gb18030": "cmn_hans", "big5": "cmn_hant", "euc-jp": "jpn",
    "shift_jis": "jpn", "iso-2022-jp": "jpn", "euc-kr": "kor", "hz-gb-2312": "cmn_hans",
}  # fmt: skip
"""Encoding → texts that are written in it."""
WIKIPEDIA: Final = {
    "ar": "windows-1256 iso-8859-6", "de": "windows-1252 iso-8859-15 macintosh", "el": "windows-1253 iso-8859-7",
    "es": "windows-1252 macintosh", "ro": "windows-1250 iso-8859-16",
    "ru": "windows-1251 koi8-r iso-8859-5 ibm866 x-mac-cyrillic",
    "th": "windows-874", "tr": "windows-1254", "vi": "windows-1258", "zh": "gbk gb18030",
}  # fmt: skip
"""Language of the corpus → encodings."""
WAYS: Final = ("header", "meta", "both", "header right", "meta right", "none")
LEAST: Final = 500
PAGES: Final = {"small": 3, "full": 30}
NO_LABEL: Final = {"utf-16le", "utf-16be", "utf-32le", "utf-32be"}
"""Encodings in which a declaration within the page cannot be read."""
WRONG: Final = ("windows-1252", "utf-8", "gbk", "windows-1251", "iso-8859-2", "shift_jis")
PACKAGES: Final = ("Resiliparse", "chardet", "charset-normalizer")

Case = tuple[str, str, str]
"""Where its text is from, the encoding, the text."""


def pieces(text: str) -> Iterator[str]:
    """Yield `text` in parts of at least `LEAST` characters, cut at line ends where there are any."""
    part = ""
    for line in text.split("\n"):
        part += line + "\n"
        if len(part) >= LEAST + 100:
            yield part
            part = ""


def cases(most: int) -> Iterator[Case]:
    """Yield all cases, at most `most` of an encoding and text."""
    declaration = texts()
    for encoding, codes in CASES.items():
        for code in codes.split():
            rest = declaration[code][len(first_part(declaration[code])) :]
            parts = list(pieces(rest)) or [rest]
            yield from (("declaration", encoding, part) for part in parts[:most])
    table = pq.read_table(CORPUS, columns=["text", "lang", "domain"])
    rows = defaultdict(list)
    for row in table.to_pylist():
        if row["domain"] == "wiki" and len(row["text"]) >= LEAST:
            rows[row["lang"]].append(row["text"][:4000])
    for language, encodings in WIKIPEDIA.items():
        for encoding in encodings.split():
            yield from (("wikipedia", encoding, text) for text in rows[language][:most])


def page(text: str, encoding: str, declared: str | None) -> tuple[bytes, str]:
    """Return the bytes of a page of `text`, and what they say."""
    if encoding == "windows-1258":
        text = for_windows_1258(text)
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace("\n", "</p>\n<p class=text>")
    meta = f'<meta http-equiv="Content-Type" content="text/html; charset={declared}">' if declared else ""
    title = text[:40].split("<")[0].split("&")[0]
    html = f"<html><head>{meta}\n<title>{title}</title></head>\n<body><p>{text}</p></body></html>"
    codec = {"gbk": "gbk", "shift_jis": "cp932", "iso-8859-8-i": "iso8859_8"}.get(encoding, CODECS[encoding])
    payload = html.encode(codec, "xmlcharrefreplace")
    said = payload.decode(codec)
    if encoding in ("euc-jp", "iso-2022-jp"):  # as Windows reads its signs
        said = said.translate(
            str.maketrans("\u301c\u2016\u2212\u00a2\u00a3\u00ac", "\uff5e\u2225\uff0d\uffe0\uffe1\uffe2")
        )
    return payload, said


def declared_pages(case: Case, number: int) -> Iterator[tuple[str, bytes, str | None, str]]:
    """Yield (way, bytes, charset of the header, truth) of each way of declaring a page."""
    _, encoding, text = case
    wrong = next(
        name
        for name in WRONG[number % len(WRONG) :] + WRONG
        if name != encoding and (name, encoding) != ("gbk", "gb18030")
    )
    for way in WAYS:
        header = encoding if way in ("header", "both", "header right") else wrong if way == "meta right" else None
        meta = encoding if way in ("meta", "both", "meta right") else wrong if way == "header right" else None
        if encoding in NO_LABEL and way in ("meta", "meta right"):
            continue
        payload, said = page(text, encoding, meta)
        yield way, payload, header, said


def measure(chosen: list[Case], show: int) -> dict[str, list[int]]:
    """Return way (and source) → pages exact, pages."""
    tally: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    wrong: Counter[str] = Counter()
    for number, case in enumerate(chosen):
        for way, payload, header, said in declared_pages(case, number):
            decoded = decode(payload, header)
            exact = decoded.text == said
            for name in {way, f"{way}, {case[0]}", f"{way}: {case[1]}"}:
                tally[name][0] += exact
                tally[name][1] += 1
            if not exact:
                wrong[f"{way}: {case[1]} ({case[0]}) read as {decoded.encoding} by {decoded.how}"] += 1
    for name, count in wrong.most_common(show):
        print(f"  {count:4} {name}")
    return tally


def rate(chosen: list[Case], guess: Callable[[bytes], object]) -> tuple[float, float]:
    """Return the share of undeclared pages that `guess` reads exactly, and milliseconds for each."""
    exact, spent = 0, 0.0
    for _, encoding, text in chosen:
        payload, said = page(text, encoding, None)
        start = time.process_time()
        name = guess(payload)
        spent += time.process_time() - start
        with suppress(LookupError, UnicodeDecodeError):
            exact += payload.decode(str(name)).lstrip("\ufeff") == said
    return exact / len(chosen), 1000 * spent / len(chosen)


def clean_texts() -> list[str]:
    """Return the texts of ../shared in which there is next to no mojibake."""
    files = ("corpora/multidomain.parquet", "lid/udhr2.parquet", "duplicates/spdx_docs.parquet")
    return [text for name in files for text in pq.read_table(SHARED / name, columns=["text"])["text"].to_pylist()]


def measure_mojibake() -> tuple[int, dict[str, float]]:
    """Return how many clean texts a repair changes, and encoding → share of misread texts that come back exactly."""
    repair, column = RepairMojibake().repair, pa.array(clean_texts(), pa.large_string())
    ids = pa.array([number.to_bytes(16, "big") for number in range(len(column))], ID)
    edits = RepairMojibake().apply(pa.RecordBatch.from_arrays([ids, column], ["id", "text"])).edits
    changed = len(set(edits.column("id").to_pylist()))
    shares = {}
    for encoding in READ_AS:
        wrongly = misread(encoding)
        pairs = [(text[:1500], wrongly(text[:1500])) for text in list(texts().values())[::3]]
        told = [
            (text, wrong) for text, wrong in pairs if "\ufffd" not in wrong and len(wrong) > len(text) + LEAST_SIGNS
        ]
        shares[encoding] = sum(repair(wrong)[0] == repair(text)[0] for text, wrong in told) / len(told)
    return changed, shares


def misread(encoding: str) -> Callable[[str], str]:
    """Return what makes mojibake of a text."""
    characters = characters_of(encoding)
    return lambda text: "".join(characters[byte] for byte in text.encode())


def peers() -> dict[str, Callable[[bytes], object]]:
    """Return other detectors that are installed."""
    import charset_normalizer
    from resiliparse.parse.encoding import detect_encoding

    found: dict[str, Callable[[bytes], object]] = {
        "resiliparse": detect_encoding,
        "charset-normalizer": lambda payload: (best := charset_normalizer.from_bytes(payload).best()) and best.encoding,
    }
    for name, guess in (
        ("chardet", lambda module: lambda payload: module.detect(payload)["encoding"]),
        ("chardetng_py", lambda module: module.detect),
    ):
        with suppress(ImportError):
            found[name] = guess(import_module(name))
    return found


def main() -> None:
    """Measure, print, exit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=PAGES, default="small")
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--show", type=int, default=25, help="kinds of wrong pages to print")
    options = parser.parse_args()
    chosen = list(cases(PAGES[options.size]))
    tally = measure(chosen, options.show)
    shares = {name: exact / count for name, (exact, count) in tally.items()}
    for name in sorted(shares):
        if shares[name] < 1 or ":" not in name:
            print(f"{name:40} {tally[name][0]:5} of {tally[name][1]:5}  {shares[name]:.4f}")
    undeclared = [case for case in chosen if case[1] not in ("utf-8", *NO_LABEL)]
    start = time.process_time()
    for _, encoding, text in undeclared:
        decode(page(text, encoding, None)[0], None)
    print(
        f"ours: {1000 * (time.process_time() - start) / len(undeclared):.2f} ms an undeclared page, its making included"
    )
    measured = {name: rate(undeclared, guess) for name, guess in peers().items()} if options.peers else {}
    for name, (exact, spent) in measured.items():
        print(f"{name:20} {exact:.4f} exact, {spent:.2f} ms")
    consistent = [tally[way] for way in ("header", "meta", "both")]
    declared = sum(exact for exact, _ in consistent) / sum(count for _, count in consistent)
    checks: dict[str, list[Any]] = {
        "consistent": [round(declared, 5), "≥ .999", declared >= 0.999],
        "none": [round(shares["none"], 4), "≥ .95", shares["none"] >= 0.95],
        "header right": [round(shares["header right"], 4), "≥ .98", shares["header right"] >= 0.98],
        "meta right": [round(shares["meta right"], 4), "≥ .95", shares["meta right"] >= 0.95],
    }
    if options.size == "full":
        changed, shares = measure_mojibake()
        print("misread texts that come back:", {name: round(share, 4) for name, share in shares.items()})
        checks["clean texts changed by RepairMojibake"] = [changed, f"= {MOJIBAKE}, looked at", changed == MOJIBAKE]
        lowest = min(shares.values())
        checks["misread texts restored"] = [round(lowest, 4), "≥ .85", lowest >= 0.85]
    best = max((exact for exact, _ in measured.values()), default=None)
    none = sum(tally[f"none: {name}"][0] for name in CASES if name not in ("utf-8", *NO_LABEL)) / len(undeclared)
    result = {
        "name": "encodings", "unit": "undeclared pages exact", "ours": round(none, 4),
        "peers": {name: round(exact, 4) for name, (exact, _) in measured.items()},
        "ratio": round(none / best, 3) if best else None, "checks": checks,
        "versions": {name: version(name) for name in PACKAGES if name != "chardet"},
    }  # fmt: skip
    print(json.dumps(result, ensure_ascii=False))
    sys.exit(not all(passed for _, _, passed in checks.values()))


if __name__ == "__main__":
    main()
