"""LaTeX of a piece of MathML: what its author wrote, where the page has that, else made of its presentation elements.

Taken in this order: an annotation of encoding application/x-tex, the attribute `alttext`, the elements of MathML Core
(fractions, roots, scripts, fences, tables). Invariants: bounded (pieces are at most 64 kB, nesting at most
`MOST_NESTED`, what lies deeper is read as a row); the same piece gives the same text.
"""

from __future__ import annotations

import html
import re
from typing import Final

MOST_NESTED: Final = 60

_ANNOTATION: Final = re.compile(
    r'<annotation[^>]{0,99}encoding="?application/x-tex"?[^>]{0,99}>([^<]*)<', re.IGNORECASE
)
_ALTERNATIVE: Final = re.compile(r"""^<math[^>]{0,999}?\salttext=(?:"([^"]*)"|'([^']*)')""", re.IGNORECASE)
_ANNOTATIONS: Final = re.compile("<annotation", re.IGNORECASE)
_DISPLAY: Final = re.compile(r"""^<math[^>]{0,999}?\sdisplay=["']?block""", re.IGNORECASE)
_TOKEN: Final = re.compile(r"<(/?)(?:m|mml):?([a-z]+)\b[^<>]*?(/?)>|<[^<>]*>|([^<]+)", re.IGNORECASE)
_STYLE: Final = re.compile(r"^\{\\displaystyle (.*)\}$", re.DOTALL)
_BLANKS: Final = re.compile(r"[ \t\r\n]+")
_GREEK: Final = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho varsigma sigma tau "
    "upsilon phi chi psi omega"
)
_SYMBOLS: Final = {
    **{chr(0x3B1 + place): f"\\{name} " for place, name in enumerate(_GREEK.split())},
    **{
        chr(0x391 + place): f"\\{name.title()} "
        for place, name in enumerate(_GREEK.split())
        if name in "gamma delta theta"
    },
    "Λ": "\\Lambda ",
    "Ξ": "\\Xi ",
    "Π": "\\Pi ",
    "Σ": "\\Sigma ",
    "Φ": "\\Phi ",
    "Ψ": "\\Psi ",
    "Ω": "\\Omega ",
    "−": "-",
    "×": "\\times ",
    "·": "\\cdot ",
    "⋅": "\\cdot ",
    "÷": "\\div ",
    "±": "\\pm ",
    "≤": "\\le ",
    "≥": "\\ge ",
    "≠": "\\ne ",
    "≈": "\\approx ",
    "≡": "\\equiv ",
    "∈": "\\in ",
    "∉": "\\notin ",
    "⊂": "\\subset ",
    "⊆": "\\subseteq ",
    "∪": "\\cup ",
    "∩": "\\cap ",
    "∅": "\\emptyset ",
    "∞": "\\infty ",
    "∑": "\\sum ",
    "∏": "\\prod ",
    "∫": "\\int ",
    "∂": "\\partial ",
    "∇": "\\nabla ",
    "→": "\\to ",
    "⇒": "\\Rightarrow ",
    "⇔": "\\Leftrightarrow ",
    "↦": "\\mapsto ",
    "∀": "\\forall ",
    "∃": "\\exists ",
    "…": "\\ldots ",
    "⋯": "\\cdots ",
    "\u2061": "",
    "\u2062": "",
    "\u2063": "",
    "%": "\\%",
    "#": "\\#",
    "&": "\\&",
}
_TRANSLATED: Final = str.maketrans(_SYMBOLS)

Node = tuple[str, list["Node | str"]]


def latex(source: str) -> str:
    """Return a `math` element as LaTeX between dollar signs, two where displayed; empty where it holds nothing."""
    found = _ANNOTATION.search(source) or _ALTERNATIVE.search(source)
    written = next((group for group in found.groups() if group), "") if found else ""
    text = html.unescape(written) if found else _render(_tree(source))
    text = _STYLE.sub(r"\1", _BLANKS.sub(" ", text).strip(" \t\r\n")).strip(" \t\r\n")
    return delimited(text, displayed=bool(_DISPLAY.search(source)))


def delimited(text: str, *, displayed: bool) -> str:
    """Return LaTeX between dollar signs, two on each side where it is displayed."""
    marks = "$$" if displayed else "$"
    return f"{marks}{text}{marks}" if text else ""


def _tree(source: str) -> Node:
    root: Node = ("row", [])
    stack = [root]
    for end, name, closed, text in _TOKEN.findall(_ANNOTATIONS.split(source, maxsplit=1)[0]):
        if text:
            stack[-1][1].append(html.unescape(text).strip(" \t\r\n"))
        elif end:
            if len(stack) > 1 and stack[-1][0] == name.lower():
                stack.pop()
        elif name:
            node: Node = (name.lower(), [])
            stack[-1][1].append(node)
            if not closed and len(stack) < MOST_NESTED:
                stack.append(node)
    return root


def _render(node: Node | str) -> str:
    if isinstance(node, str):
        return node.translate(_TRANSLATED)
    name, children = node
    rendered = [_render(child) for child in children]
    inside = [text for child, text in zip(children, rendered, strict=True) if not isinstance(child, str)]
    pattern = _PATTERNS.get((name, len(inside)))
    if pattern:
        return pattern.format(*(f"{{{text}}}" for text in inside))
    if name in _AROUND:
        before, between, after = _AROUND[name]
        return before + between.join(inside) + after
    text = "".join(rendered)
    return f"\\text{{{text}}}" if name == "text" else f"\\sqrt{{{text}}}" if name == "sqrt" else text


_PATTERNS: Final = {
    ("frac", 2): "\\frac{0}{1}",
    ("root", 2): "\\sqrt[{1}]{0}",
    ("sup", 2): "{0}^{1}",
    ("sub", 2): "{0}_{1}",
    ("subsup", 3): "{0}_{1}^{2}",
    ("under", 2): "{0}_{1}",
    ("over", 2): "{0}^{1}",
    ("underover", 3): "{0}_{1}^{2}",
}
_AROUND: Final = {
    "fenced": ("(", ", ", ")"),
    "table": ("\\begin{matrix} ", " \\\\ ", " \\end{matrix}"),
    "tr": ("", " & ", ""),
}
