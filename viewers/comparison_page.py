"""The page of a comparison of mixtures: verdict, what it could have seen, differences with intervals, and the caution.

One file without script beside its values as canonical JSON (decimals as strings). Cost: one row per comparison.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from curate.formats import Format
from curate.store import json_line, self_digested
from trainers.config import flat
from trainers.evidence.compare import AtSize, Comparison, Contrast
from trainers.evidence.pilot import Planned
from trainers.evidence.power import POWER
from viewers.difference_dots import Difference, chart
from viewers.frame import document, write_whole
from viewers.markup import Child, Markup, element
from viewers.numbers import grouped
from viewers.tables import Group, Mark, facts, paragraphs, table
from viewers.visible import shortened

FORMAT: Final = Format(1, "compare again with curate compare")
"""Version 1: the first."""


def write_comparison(found: Comparison, planned: Planned | None, path: Path) -> list[Path]:
    """Write the page of a comparison to `path`, its values beside it with the suffix ".json"; return both.

    Raises:
        OSError: they cannot be written.
    """
    values = path.with_suffix(".json")
    write_whole(values, json_line(self_digested(comparison_json(found, planned))))
    write_whole(path, comparison_page(found, planned).encode())
    return [path, values]


def comparison_json(found: Comparison, planned: Planned | None) -> dict[str, Any]:
    """Return the values of a comparison: what was stated before, and every loss."""
    return {
        "format": FORMAT.stamp,
        "kind": "comparison",
        "mixtures": list(found.mixtures),
        "level": repr(found.level),
        "comparisons": found.comparisons,
        "verdict": found.verdict,
        "rank_held": found.rank_held,
        "stated": None if planned is None else _stated(planned),
        "sizes": [_size(size) for size in found.sizes],
    }


def _stated(planned: Planned) -> dict[str, Any]:
    return {
        "seeds": list(planned.seeds),
        "spent_seconds": f"{planned.spent:.1f}",
        "expected_seconds": f"{planned.expected:.1f}",
        "power": repr(POWER),
        "noise": {name: repr(noise.deviation) for name, noise in planned.noise.items()},
        "detectable": {name: repr(value) for name, value in planned.detectable.items()},
    }


def _size(size: AtSize) -> dict[str, Any]:
    return {
        "config": flat(size.config),
        "seeds": list(size.seeds),
        "plans": {name: list(found) for name, found in size.plans.items()},
        "losses": {
            mixture: {domain: [repr(value) for value in values] for domain, values in domains.items()}
            for mixture, domains in size.losses.items()
        },
        "ranking": list(size.ranking),
        "contrasts": [_contrast(contrast) for contrast in size.contrasts],
    }


def _contrast(contrast: Contrast) -> dict[str, str]:
    it = contrast.interval
    ends = {"difference": repr(it.mean), "low": repr(it.low), "high": repr(it.high)}
    return {
        "first": contrast.first,
        "second": contrast.second,
        "domain": contrast.domain,
        **ends,
        "verdict": it.verdict,
    }


def comparison_page(found: Comparison, planned: Planned | None) -> str:
    """Return the page."""
    names = ", ".join(map(shortened, found.mixtures))
    title = f"Comparison of {names}"
    verdict = "They differ." if found.verdict == "different" else "They are not told apart."
    head = element(
        "header",
        element("p", "Comparison of mixtures", class_="kicker"),
        element("h1", names),
        element("p", verdict, " ", found.caution, class_="subtitle"),
    )
    parts = [*(_section(size, found) for size in found.sizes), None if planned is None else _before(planned)]
    return document(title, head, element("main", *parts))


def _section(size: AtSize, found: Comparison) -> Markup:
    model, tokens = size.config.model, size.config.steps * size.config.batch * size.config.length
    lede = (
        f"The same model of width {model.width} and {model.layers} layers, {grouped(tokens)} tokens of each mixture, "
        f"{len(size.seeds)} paired seeds. Loss on held-out text in nats per token, second mixture minus first: below "
        f"zero the second is better. Intervals hold together with {1 - found.level:.0%} over {found.comparisons} "
        "comparisons (Bonferroni)."
    )
    rows = [
        Group(shortened(f"{second} minus {first}"), [_row(contrast) for contrast in some])
        for (first, second), some in groupby(size.contrasts, lambda c: (c.first, c.second))
    ]
    ranks = [(str(place), shortened(name), f"{size.mean(name):.4f}") for place, name in enumerate(size.ranking, 1)]
    return element(
        "section",
        element("h2", f"Width {model.width}"),
        element("p", lede),
        chart("Differences", [_difference(contrast) for contrast in size.contrasts]),
        table(
            "Differences", Mark.EXACT, ("Domain", "Difference", "From", "To", "Verdict"), rows, frozenset({"Verdict"})
        ),
        table(
            "Ranking by mean loss over domains", Mark.EXACT, ("Rank", "Mixture", "Loss"), ranks, frozenset({"Mixture"})
        ),
    )


def _row(contrast: Contrast) -> Sequence[Child]:
    it = contrast.interval
    numbers = [f"{value:+.4f}".replace("-", "−") for value in (it.mean, it.low, it.high)]
    return [shortened(contrast.domain), *numbers, shortened(contrast.said)]


def _difference(contrast: Contrast) -> Difference:
    it = contrast.interval
    label, said = shortened(f"{contrast.domain}: {contrast.second}", 60), shortened(contrast.said, 60)
    return Difference(label, it.low, it.mean, it.high, said, it.verdict == "different")


def _before(planned: Planned) -> Markup:
    rows = [
        (
            shortened(name),
            f"{noise.deviation:.4f}",
            f"{noise.low:.4f}",
            f"{noise.high:.4f}",
            f"{planned.detectable[name]:.4f}",
        )
        for name, noise in planned.noise.items()
    ]
    pilot = next(iter(planned.noise.values())).pairs
    told: Mapping[str, Child] = {
        "Seeds": str(len(planned.seeds)),
        "CPU-minutes of the pilot": f"{planned.spent / 60:.1f}",
        "CPU-minutes expected": f"{planned.expected / 60:.1f}",
    }
    return element(
        "section",
        element("h2", "Stated before the first run"),
        paragraphs(
            f"The first mixture was trained against itself in other orders, {pilot} times at the first size: what the "
            f"two differ by is noise. With it, a true difference is found with probability {POWER:g} where it is as "
            "large as the last column says. A difference that is smaller may be there and not be told."
        ),
        table(
            "Noise between seeds, and the detectable difference",
            Mark.EXACT,
            ("Domain", "Noise of a pair", "at least", "at most (80 %)", "Detectable"),
            rows,
        ),
        facts(list(told.items())),
    )
