"""What notebooks show of objects: formulas and tables."""

import re

import pytest

import eqsat
from eqsat import buffer, optimize, var
from eqsat.interop.indexing import IndexingMap
from eqsat.lang.display import html_table, to_latex
from eqsat.lang.functions import exp
from eqsat.lang.slots import Displayed
from eqsat.lang.text import parse

X, J, N = var("i", 0, 8), var("row_1", 0, 8), var("n", 1, 9)
A, F = buffer("A", "i32", (9, 9)), buffer("F", "f32", (9, 9))
NAMES = {"i": X, "row_1": J, "n": N, "A": A}

FORMULAS = [
    ("(i + row_1)//n*2", r"\left\lfloor\frac{i + \mathit{row\_1}}{n}\right\rfloor \cdot 2"),
    ("i % n % 3", r"i \bmod n \bmod 3"),
    ("i % (n % 3 + 1)", r"i \bmod (n \bmod 3 + 1)"),
    ("min(i, n)*-2", r"\min(i, n) \cdot -2"),
    ("not (i < 3 and i <= n) or i != 5", r"\lnot (i < 3 \land i \le n) \lor i \ne 5"),
    ("i & 3 | n ^ i", r"i \mathbin{\&} 3 \mathbin{|} n \oplus i"),
    ("A[i, n - 1]", r"A\left[i, n - 1\right]"),
    ("tdiv(i, n)", r"\operatorname{tdiv}(i, n)"),
    ("where(i < n, n, 7)", r"\begin{cases}n & \text{if } i < n \\ 7 & \text{otherwise}\end{cases}"),
    ("sum(r*n, r, 0, i)*2 + 1", r"(\sum_{0 \le r1 < i} r1 \cdot n) \cdot 2 + 1"),
    ("1 << i >> n", r"1 \ll i \gg n"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "formula"), FORMULAS)
def test_formulas(text, formula):
    term = parse(text, NAMES)
    assert to_latex(term) == formula
    assert term._repr_latex_() == rf"$\displaystyle {formula}$"
    for left, right in (("{", "}"), ("(", ")"), (r"\left", r"\right")):
        assert formula.count(left) == formula.count(right)


def test_formulas_of_floating_point_values():
    assert to_latex(exp(F[X, J]) / 2.5) == r"\frac{\exp(F\left[i, \mathit{row\_1}\right])}{2.5}"


def test_what_is_too_large_has_no_formula():
    term = X
    for _ in range(40):
        term = (term + term) % 1000
    assert term._repr_latex_() is None
    assert set(term._repr_mimebundle_()) == {"text/plain"}


MAP = IndexingMap.parse("(d0)[s0] -> (d0 floordiv 4, s0), domain: d0 in [0, 15], s0 in [0, 2], d0 + s0 in [0, 12]")
KERNEL = eqsat.Kernel("turn", [eqsat.Store(buffer("B", "f32", (9, 9))[X, J], F[J, X], [X, J], X < J)])
RESULT = optimize(["i//4*4 + i%4", "i < n"], i=(0, 8), n=(1, 9))
SHOWN = [
    # what, kinds beside its text, a part of each
    (X, {"text/latex": "$\\displaystyle i$"}),
    (RESULT, {"text/html": "<code>i//4*4 + i%4</code></td>", "text/latex": r"& i \\ & i < n"}),
    (RESULT.explain(), {"text/html": "<code>mod-core</code>", "text/latex": r" = i \quad \text{mod-core}"}),
    (MAP, {"text/latex": r"\frac{d_{0}}{4}\right\rfloor, s_{0}) \quad d_{0} \in [0, 15]"}),
    (KERNEL, {"text/html": "<code>B[i, row_1] = F[row_1, i]</code>"}),
    (eqsat.experiment(["i//4*4 + i%4"], ["gpu"], i=(0, 9)), {"text/html": "<th>model</th>"}),
]  # fmt: skip


@pytest.mark.parametrize(("shown", "kinds"), SHOWN, ids=[type(shown).__name__ for shown, _ in SHOWN])
def test_what_notebooks_show(shown, kinds):
    assert isinstance(shown, Displayed)
    bundle = shown._repr_mimebundle_()
    assert bundle.pop("text/plain") == repr(shown)
    assert set(bundle) == set(kinds)
    for kind, part in kinds.items():
        assert part in bundle[kind]
    html = bundle.get("text/html", "")
    assert [html.count(f"<{tag}") for tag in ("td", "table")] == [html.count(f"</{tag}>") for tag in ("td", "table")]


def test_cells_are_escaped():
    assert re.search("<code>i &lt; &amp;n</code>", html_table(["a"], [["i < &n", None]]))
