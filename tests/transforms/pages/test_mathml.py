"""LaTeX of MathML: as its author wrote it, or made of its elements."""

from __future__ import annotations

import time

import pytest

from transforms.pages.mathml import latex


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("<mfrac><mi>a</mi><mrow><mn>2</mn><mi>b</mi></mrow></mfrac>", "\\frac{a}{2b}"),
        ("<msup><mi>x</mi><mn>2</mn></msup><mo>×</mo><msqrt><mi>y</mi></msqrt>", "{x}^{2}\\times \\sqrt{y}"),
        ("<munderover><mo>∑</mo><mi>i</mi><mi>n</mi></munderover><mi>α</mi>", "{\\sum }_{i}^{n}\\alpha"),
        ("<mroot><mi>x</mi><mn>3</mn></mroot><mfenced><mi>a</mi><mi>b</mi></mfenced>", "\\sqrt[{3}]{x}(a, b)"),
        ("<mtable><mtr><mtd>1</mtd><mtd>0</mtd></mtr><mtr><mtd>0</mtd><mtd>1</mtd></mtr></mtable>",
         "\\begin{matrix} 1 & 0 \\\\ 0 & 1 \\end{matrix}"),
        ("<mtext>if</mtext><mi>x</mi><mo>&lt;</mo><mn>1</mn>", "\\text{if}x<1"),
        ("<m:mi>x</m:mi>", "x"),
    ],
)  # fmt: skip
def test_presentation_elements_become_latex(source: str, expected: str) -> None:
    assert latex(f"<math>{source}</math>") == f"${expected}$"


def test_what_the_author_wrote_comes_first() -> None:
    annotation = '<annotation encoding="application/x-tex">{\\displaystyle a &lt; b}</annotation>'
    assert latex(f'<math display="block"><semantics><mi>z</mi>{annotation}</semantics></math>') == "$$a < b$$"
    assert latex("<math alttext='a &amp; b'><mi>z</mi></math>") == "$a & b$"
    assert latex("<math><mi>z</mi><annotation encoding=other>y</annotation></math>") == "$z$"
    assert latex("<math></math>") == ""


def test_deep_and_broken_pieces_take_little_time() -> None:
    started = time.process_time()
    for part in ("<mrow>", "<mfrac>", "</mrow>", "<", "<mi", "<mi a=", "<math alttext='", "<annotation "):
        latex("<math>" + part * (60_000 // len(part)))
    assert time.process_time() - started < 2
