"""Formulas of web pages as a line of text."""

import pytest

from quoth_sources.html import read

_POWER = "<msup><mn>10</mn><mn>6</mn></msup>"


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        (f"<mrow><mn>4</mn><mo>×</mo>{_POWER}</mrow>", "4 × 10⁶"),
        (f"<semantics><mrow>{_POWER}</mrow><annotation>10^6</annotation></semantics>", "10⁶"),
        ("<mfrac><mi>a</mi><mrow><mi>b</mi><mo>+</mo><mn>1</mn></mrow></mfrac>", "a/(b + 1)"),
        ("<mi>E</mi><mo>=</mo><mi>m</mi><msup><mi>c</mi><mn>2</mn></msup>", "E = mc²"),
        ("<mi>sin</mi><mo>&#x2061;</mo><mi>x</mi><mo>&#x2062;</mo><mi>y</mi>", "sin xy"),
        ("<mo>-</mo><mn>2</mn><mfrac><mn>1</mn><mn>2</mn></mfrac>", "-2 1/2"),
        ("<munderover><mo>∑</mo><mrow><mi>i</mi><mo>=</mo><mn>1</mn></mrow><mi>n</mi></munderover>", "∑ᵢ₌₁ⁿ"),
        ("<msubsup><mi>x</mi><mi>i</mi><mfrac><mi>n</mi><mn>2</mn></mfrac></msubsup>", "xᵢ^(n/2)"),
        ("<msqrt><mi>x</mi><mo>+</mo><mn>1</mn></msqrt><mroot><mi>x</mi><mn>3</mn></mroot>", "√(x + 1)³√x"),
        ("<mfenced><mi>a</mi><mi>b</mi></mfenced><mspace/><mtext>kg</mtext><mphantom>z</mphantom>", "(a, b) kg"),
        ("<mtable><mtr><mtd>a</mtd><mtd>b</mtd></mtr><mtr><mtd>c</mtd></mtr></mtable>", "a, b; c"),
        ("<msup><mn>10</mn></msup>7", "107"),
    ],
)  # fmt: skip
def test_a_formula_is_a_line_of_its_sentence(formula: str, text: str) -> None:
    assert read(f"<body><p>It holds <math>{formula}</math> bricks.</body>".encode()).text == f"It holds {text} bricks."
    table = f"<table><tr><td>a<td>holds <math>{formula}</math> bricks<tr><td>b<td>c</table>"
    assert read(table.encode()).text == f"a | holds {text} bricks\nb | c"


def test_how_pages_embed_formulas() -> None:
    prefixed = "<m:msup><m:mn>10</m:mn><m:mn>6</m:mn></m:msup>"
    assert read(f"<p>a <m:math>{prefixed}</m:math> b".encode()).text == "a 10⁶ b"
    assert read(f"<p>a <i style='display:none'><math>{_POWER}</math></i><img> b".encode()).text == "a 10⁶ b"
    assert read(f"<p>a<math display=block>{_POWER}</math>b".encode()).text == "a 10⁶ b"


def test_a_formula_that_is_nested_too_deep_says_so() -> None:
    with pytest.raises(ValueError, match="nested more than 100 deep"):
        read(b"<math>" + b"<mrow>" * 200 + b"<mi>x</mi>")
