"""How well personal data is found: precision and recall per kind on generated cases, half of the texts being traps.

Run `python -m benchmarks.pii_cases [--peers] [--write]`. It makes `POSITIVES` cases for each kind and `TRAPS_EACH` for
each kind of trap from one seed, puts each between sentences, and counts: a span found is right where a span of that
kind begins and ends exactly there; else it is wrong, and what was not found exactly is missed. Then the speed of
`MaskPII` on the corpus of `benchmarks.filters`, and, with `--peers`, of datatrove's PIIFormatter on the same documents,
which masks e-mail and IPv4 addresses only. The last line is JSON; exit status 1: a check failed. `--write` puts the
figures into the card that the report shows (`transforms/pii/measured.json`); a test sees that it is current.

Bounds (issue: filters, language, classifiers, topics): precision ≥ .98 and recall ≥ .95 per kind on ≥ 2,000 cases.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Any, Final

import pyarrow as pa

from benchmarks import pii_data
from benchmarks.filter_documents import apply, read_documents, size_of
from benchmarks.minhash import seconds
from benchmarks.pii_data import NAMES_OF_SECRETS, TOKENS, Draw
from benchmarks.pii_traps import SENTENCES, TRAPS
from transforms.pii import MaskPII
from transforms.pii.mask import found_in
from transforms.pii.measured import CARD, Measured, card_text

SEED: Final = 20261130
POSITIVES: Final = 400
TRAPS_EACH: Final = 160
LEAST_PRECISION: Final = (98, 100)
LEAST_RECALL: Final = (95, 100)
PEER_BYTES: Final = 20_000_000
SLOT: Final = "\x00"

Check = list[Any]


@dataclass(frozen=True, slots=True)
class Case:
    """A text, and the personal data in it: kind and place in UTF-8 bytes; `form` names how it was made."""

    text: str
    spans: tuple[tuple[str, int, int], ...]
    form: str


AROUND: Final = {
    "email": (
        f"Write to {SLOT}.", f"<{SLOT}>", f"mailto:{SLOT}?subject=hello", f'"email": "{SLOT}",',
        f"e-mail：{SLOT}，谢谢",
        f"{SLOT}, {SLOT}; cc {SLOT}", f"Author: A. Writer <{SLOT}>", f'<a href="mailto:{SLOT}">post</a>',
        f"[{SLOT}](#)",
        f"https://example.org/?to={SLOT}&x=1", f"user={SLOT}\n", f"({SLOT})", f"'{SLOT}'",
    ),
    "ipv4": (
        f"ping {SLOT}", f"host {SLOT}.", f"from {SLOT}: timeout", f"http://{SLOT}:8080/path",
        f"{SLOT}/24 is blocked",
        f'"ip": "{SLOT}",', f'1 GET / from ip={SLOT}&x', f"server ({SLOT}), at {SLOT}", f"地址：{SLOT}。",
        f"root@{SLOT}:~$",
        f"Received: from mail [{SLOT}]", f"client {SLOT} said hello", f"nameserver {SLOT}\n",
    ),
    "ipv6": (
        f"ping6 {SLOT}", f"[{SLOT}]:443", f"from {SLOT}: reply", f"http://[{SLOT}]/", f'"ip": "{SLOT}"',
        f"{SLOT}/64",
        f"addr {SLOT}.", f"inet6 {SLOT} prefixlen 64", f"AAAA {SLOT}\n", f"({SLOT})",
    ),
    "card": (
        f"card {SLOT}", f"Visa {SLOT} 12/27", f'"card_number": "{SLOT}"', f"({SLOT})",
        f"Kartennummer: {SLOT}, Name", f"pan={SLOT}",
        f"paid with {SLOT}.", f"{SLOT};{SLOT}", f"卡号：{SLOT}", f"cc: {SLOT}\n",
    ),
    "iban": (
        f"IBAN: {SLOT}", f"to account {SLOT}.", f'"iban": "{SLOT}"', f"IBAN {SLOT}, BIC ABCDDEFF", f"({SLOT})",
        f"{SLOT}\n",
        f"pay {SLOT} by Friday", f"iban={SLOT}&", f"Konto {SLOT};",
    ),
    "international": (
        f"Call {SLOT}.", f"Tel: {SLOT}", f"tel:{SLOT}", f"({SLOT})", f'"phone": "{SLOT}",',
        f"Reach us at {SLOT} or by post",
        f"{SLOT} / {SLOT}", f"WhatsApp {SLOT}!", f"M {SLOT}\nF none", f"电话：{SLOT}。", f"<td>{SLOT}</td>",
        f"Contact: {SLOT}, Ms Reed",
    ),
    "national": (
        f"Call {SLOT}.", f"Tel: {SLOT}", f"Phone {SLOT}, ask for Jo", f"our number is {SLOT}.",
        f'"phone": "{SLOT}",',
        f"12 Mill Lane, {SLOT}", f"{SLOT}, {SLOT}", f"Fax: {SLOT}\n", f"<td>{SLOT}</td>", f"* {SLOT}",
        f"Jo Reed ({SLOT})",
        f"Contact: {SLOT}; or write",
    ),
    "secret": (
        f'token = "{SLOT}"', f"export KEY={SLOT}", f"Authorization: Bearer {SLOT}",
        f"the leaked one was {SLOT}", f"key: {SLOT}\n",
        f'{{"k": "{SLOT}"}}', f"curl -H 'X-Token: {SLOT}' https://example.org", f"({SLOT})", f"login('{SLOT}')",
    ),
}  # fmt: skip
"""What stands around personal data of each form."""


def positives(draw: Draw) -> Iterator[Case]:
    """Yield `POSITIVES` cases for each kind."""
    made: tuple[tuple[str, str, Callable[[Draw], str]], ...] = (
        ("email", "email", pii_data.email),
        ("ipv4", "ipv4", pii_data.ipv4),
        ("ipv6", "ipv6", pii_data.ipv6),
        ("payment_card", "card", pii_data.card),
        ("iban", "iban", pii_data.iban),
    )
    for kind, form, make in made:
        for _ in range(POSITIVES):
            yield filled(draw, draw.of(AROUND[form]), make, kind, form)
    for place in range(POSITIVES):
        yield phone_case(draw, place)
    for place in range(POSITIVES):
        yield secret_case(draw, place)


def phone_case(draw: Draw, place: int) -> Case:
    """Return a telephone number: of five two international, two national, one that only a label tells."""
    form = ("international", "international", "national", "national", "labelled")[place % 5]
    if form == "labelled":
        return filled(draw, draw.of(pii_data.PHONE_WORDS) + SLOT, _shaped(pii_data.LABELLED), "phone", form)
    forms = pii_data.INTERNATIONAL if form == "international" else pii_data.NATIONAL
    return filled(draw, draw.of(AROUND[form]), _shaped(forms), "phone", form)


def _shaped(forms: Sequence[str]) -> Callable[[Draw], str]:
    return lambda draw: draw.shape(draw.of(forms))


def secret_case(draw: Draw, place: int) -> Case:
    """Return a secret: of eight six in a published form, one assigned to a name, one the password of a URL."""
    if place % 4 < 3:
        return filled(draw, draw.of(AROUND["secret"]), TOKENS[place % len(TOKENS)], "secret", "published form")
    if place % 8 == 3:
        around = draw.of((f' = "{SLOT}"', f": '{SLOT}'", f"={SLOT}\n", f": {SLOT}\n", f'": "{SLOT}",', f' => "{SLOT}"'))
        return filled(draw, draw.of(NAMES_OF_SECRETS) + around, pii_data.random_value, "secret", "assigned")
    return filled(draw, f"postgres://app:{SLOT}@db.internal/main", _password, "secret", "password of a URL")


def _password(draw: Draw) -> str:
    return draw.string(pii_data.BASE62, draw.between(8, 20))


def filled(draw: Draw, around: str, make: Callable[[Draw], str], kind: str, form: str) -> Case:
    """Return the case with data made for each slot of `around`, between sentences."""
    before, after = draw.of(SENTENCES) + draw.of((" ", "\n")), draw.of((" ", "\n", "")) + draw.of(SENTENCES)
    text, spans = before, []
    head, *rest = around.split(SLOT)
    text += head
    for piece in rest:
        value = make(draw)
        start = len(text.encode())
        spans.append((kind, start, start + len(value.encode())))
        text += value + piece
    return Case(text + ("\n" if after[:1].isalnum() else "") + after, tuple(spans), form)


def cases() -> list[Case]:
    """Return all cases: personal data of each kind, then traps."""
    draw = Draw(SEED)
    made = list(positives(draw))
    for name, trap in TRAPS.items():
        for _ in range(TRAPS_EACH):
            text = f"{draw.of(SENTENCES)}{draw.of((' ', chr(10)))}{trap(draw)}\n{draw.of(SENTENCES)}"
            made.append(Case(text, (), f"trap: {name}"))
    return made


def evaluate(made: list[Case]) -> tuple[dict[str, Measured], list[tuple[str, Case, tuple[str, int, int]]]]:
    """Return the counts per kind, and each mistake: what it is, its case, the span."""
    texts = pa.array([case.text for case in made], pa.large_string())
    found: dict[int, list[tuple[str, int, int]]] = {}
    for row, text, items in found_in(texts, MaskPII()):
        found[row] = [(_kind(kind, text[start:end]), start, end) for start, end, kind in items]
    counts: Counter[tuple[str, str]] = Counter()
    mistakes = []
    for row, case in enumerate(made):
        expected, got = set(case.spans), set(found.get(row, []))
        for what, spans in (("right", expected & got), ("wrong", got - expected), ("missed", expected - got)):
            for span in sorted(spans):
                counts[span[0], what] += 1
                if what != "right":
                    mistakes.append((what, case, span))
    kinds = sorted({kind for kind, _ in counts})
    return {k: Measured(*(counts[k, what] for what in ("right", "wrong", "missed"))) for k in kinds}, mistakes


def _kind(kind: str, written: bytes) -> str:
    return kind if kind != "ip" else "ipv6" if b":" in written else "ipv4"


def checks() -> dict[str, Check]:
    """Return the checks of this benchmark: name → [value, bound, holds]; .3 s."""
    made = cases()
    measured, _ = evaluate(made)
    result: dict[str, Check] = {"PII: cases": [len(made), "≥ 2000", len(made) >= 2000]}
    for kind, counts in measured.items():
        precision, recall = counts.precision(), counts.recall()
        result[f"PII, {kind}: precision"] = [f"{float(precision):.4f}", "≥ .98", precision * 100 >= LEAST_PRECISION[0]]
        result[f"PII, {kind}: recall"] = [f"{float(recall):.4f}", "≥ .95", recall * 100 >= LEAST_RECALL[0]]
    return result


def rates(with_peers: bool) -> tuple[float, float, dict[str, float]]:
    """Return MB/s of `MaskPII` with all kinds, and with those of datatrove's formatter; MB/s of the formatter."""
    documents = read_documents(1_000_000)
    size = size_of(documents)
    ours = size / seconds(partial(apply, MaskPII(), documents), 3)
    two = size / seconds(partial(apply, MaskPII.only("email", "ip"), documents), 3)
    if not with_peers:
        return ours, two, {}
    from datatrove.pipeline.formatters import PIIFormatter

    texts, total = [], 0
    for text in documents.column("text").to_pylist():
        texts.append(text)
        total += len(text.encode())
        if total > PEER_BYTES:
            break
    formatter = PIIFormatter()
    start = time.process_time()
    for text in texts:
        formatter.format(text)
    return ours, two, {"datatrove PIIFormatter (e-mail, IPv4)": total / 1e6 / (time.process_time() - start)}


def main(arguments: list[str] | None = None) -> int:
    """Print a table, the mistakes, the checks and one line of JSON; return 1 if a check failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--peers", action="store_true", help="measure datatrove's formatter, too")
    parser.add_argument("--write", action="store_true", help="write the card that the report shows")
    parser.add_argument("--mistakes", type=int, default=20, help="how many to show (default: %(default)s)")
    options = parser.parse_args(arguments)
    made = cases()
    measured, mistakes = evaluate(made)
    for what, case, (kind, start, end) in mistakes[: options.mistakes]:
        print(f"{what} {kind} ({case.form}): {case.text.encode()[start:end].decode()!r} in {case.text!r}")
    for kind, counts in measured.items():
        print(f"{kind:13} {counts.right:5} right {counts.wrong:4} wrong {counts.missed:4} missed")
    if options.write:
        CARD.write_text(card_text(SEED, len(made), measured), "utf-8")
    ours, two, peers = rates(options.peers)
    for name, rate in {"MaskPII": ours, "MaskPII.only('email', 'ip')": two, **peers}.items():
        print(f"{name:45} {rate:9.1f} MB/s")
    checked = checks()
    for name, (value, bound, holds) in checked.items():
        print(f"{name:40} {value:>8} {bound:10} {'holds' if holds else 'FAILS'}")
    report = {
        "name": "pii_cases",
        "unit": "MB/s",
        "ours": round(ours, 1),
        "rates": {"MaskPII": round(ours, 1), "MaskPII.only('email', 'ip')": round(two, 1)},
        "peers": {name: round(rate, 2) for name, rate in peers.items()},
        "ratio": round(two / min(peers.values()), 1) if peers else None,
        "checks": checked,
        "versions": {
            "python": platform.python_version(),
            **{p: version(p) for p in ("numpy", "numba", "pyarrow", "datatrove")},
        },
    }
    print(json.dumps(report, ensure_ascii=False))
    return int(not all(holds for _, _, holds in checked.values()))


if __name__ == "__main__":
    sys.exit(main())
