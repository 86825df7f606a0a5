"""What terms cost under a cost model: each distinct node once, or as often as it runs, in its cheapest form.

Products, quotients and remainders by literals have forms without divisions. ``x*8`` is ``x << 3``, ``x//8`` is
``x >> 3``, ``x%8`` is ``x & 7``. ``x//7`` is ``x*m >> k`` for an ``m`` and ``k`` that are exact on the range of ``x``
(:func:`eqsat.extract.cost.exact_multiplier`), after a multiple of 7 was added to what may be negative; ``x%7`` is
``x - x//7*7``. :class:`StrengthReduced` prices a node as its cheapest form, so that extraction chooses by that, and
:func:`reduced` writes the forms.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from eqsat.extract.cost import (
    COST_MODELS,
    CostModel,
    LoopAware,
    OpCount,
    checked,
    cost_model,
    exact_multiplier,
    is_power_of_two,
    is_shipped_model,
    literal,
)
from eqsat.lang.errors import TooWideError
from eqsat.lang.expr import Expr, const, make, substitute, var, with_operands
from eqsat.lang.hoist import levels
from eqsat.lang.ops import FLOATS, MAX_SHIFT, OPS, REDUCTIONS, Bounds, is_finite
from eqsat.lang.properties import VariableSets, exceeds_64_bits, misfits
from eqsat.lang.traversal import topological
from eqsat.lang.validation import did_you_mean

LATENCY = COST_MODELS["latency"]
#: Compilers write a quotient by a literal as a product and a shift themselves. A model that prices it at less than this
#: many times what these two cost knows so, and the quotient stays.
KNOWN_TO_COMPILERS = 2
_REDUCIBLE = frozenset({"mul", "floordiv", "mod"})
#: Nodes that show whether a model prefers any form: the operator and the literal, of a variable in ``[0, 999]``.
_PROBES = (("mul", 8), ("floordiv", 8), ("mod", 8), ("floordiv", 7), ("mod", 7))


def model_of(given: CostModel | str) -> CostModel:
    """The cost model that a caller gives or names, so that each price it returns is checked.

    Raises what :func:`eqsat.extract.cost_model` does; and ``ValueError`` if an :class:`OpCount` weighs what is no
    operator, which would count for nothing.
    """
    model = cost_model(given)
    counts = model.model if isinstance(model, LoopAware) else model
    if isinstance(counts, OpCount):
        known = [*OPS, *FLOATS, *REDUCTIONS, "load", "store"]
        if unknown := [op for op in counts.weights if op not in known]:
            near = did_you_mean(unknown[0], known)
            raise ValueError(f"the cost model weighs {unknown[0]!r}, which is no operator{near}")
    return checked(model)


def cost_of(roots: Iterable[Expr], model: CostModel) -> int:
    """The cost of ``roots`` under ``model``: each distinct node once, or as often as it runs."""
    return sum(costs_of_terms(topological(roots), checked(model)))


def costs_of_terms(terms: Sequence[Expr], model: CostModel) -> list[int]:
    """What each of distinct ``terms`` costs without its operands, which are among them, before it."""
    if isinstance(model, LoopAware):
        level = levels(terms, model)
        runs = [model.runs(level[t]) for t in terms]
        return [count * price for count, price in zip(runs, prices(terms, model.model), strict=True)]
    return prices(terms, model)


def costs_alone(roots: Iterable[Expr], model: CostModel) -> dict[Expr, int]:
    """The cost of each root as if there were no other."""
    roots = dict.fromkeys(roots)
    terms = topological(roots)
    own = dict(zip(terms, costs_of_terms(terms, model), strict=True))
    return {root: sum([own[term] for term in topological([root])]) for root in roots}


def prices(terms: Sequence[Expr], model: CostModel) -> list[int]:
    """The price of each term alone; in the body of a reduction, for all its steps."""
    found = [model.price(t.op, [(a.vmin, a.vmax) for a in t.args], (t.vmin, t.vmax)) if t.args else 0 for t in terms]
    if not REDUCTIONS.keys().isdisjoint([t.op for t in terms]):
        sets = VariableSets()
        found = [price * sets.times(sets.of(term)) for price, term in zip(found, terms, strict=True)]
    return found


@dataclass
class StrengthReduced:
    """A model's prices, where a node costs what its cheapest form does."""

    model: CostModel
    _best: dict[tuple[str, Bounds, int], tuple[int, Expr | None]] = field(default_factory=dict, repr=False)

    def price(self, op: str, operands: Sequence[Bounds], result: Bounds) -> int:
        """The price of the cheapest form."""
        if op in _REDUCIBLE:
            x, by = operands if op != "mul" or literal(operands[0]) is None else operands[::-1]
            if (number := literal(by)) is not None:
                return self.best(op, x, number)[0]
        return self.model.price(op, operands, result)

    def best(self, op: str, of: Bounds, by: int) -> tuple[int, Expr | None]:
        """What the cheapest form costs, and that form of a variable ``x``; ``None`` if that is the node as it is."""
        key = (op, of, by)
        if key not in self._best:
            x = var("x", *of)
            least = cost_of([make(op, x, const(by))], self.model)
            form, is_known = _form(op, x, by)
            price = least if form is None or misfits([form]) else cost_of([form], self.model)
            is_cheaper = price * (KNOWN_TO_COMPILERS if is_known else 1) < least
            self._best[key] = (price, form) if is_cheaper else (least, None)
        return self._best[key]

    def form_of(self, term: Expr, args: tuple[Expr, ...]) -> Expr:
        """The cheapest form of a term with these operands in place of its own."""
        if term.op in _REDUCIBLE:
            x, by = args[::-1] if term.op == "mul" and args[0].op == "const" else args
            if by.op == "const" and x.op != "const":
                bounds = x.vmin, x.vmax
                _, form = self.best(term.op, bounds, by.vmin)
                if form is not None:
                    return substitute([form], {var("x", *bounds): x})[0]
        return with_operands(term, args)


def strength_reduced(model: CostModel) -> CostModel:
    """``model`` with the prices of cheapest forms, if it prefers any; under loops, the model of each iteration."""
    if isinstance(model, LoopAware):
        inner = strength_reduced(model.model)
        return model if inner is model.model else replace(model, model=inner)
    if is_shipped_model(model):
        # none of them prefers any, as the tests say
        return model
    found = StrengthReduced(model)
    return found if any(found.best(op, (0, 999), by)[1] is not None for op, by in _PROBES) else model


def plain(model: CostModel) -> CostModel:
    """The model that :func:`strength_reduced` was given."""
    if isinstance(model, LoopAware):
        return replace(model, model=plain(model.model))
    return model.model if isinstance(model, StrengthReduced) else model


def reduced(roots: Iterable[Expr], model: CostModel) -> list[Expr]:
    """``roots`` with the cheapest forms under a model that :func:`strength_reduced` made; any other changes nothing."""
    inner = model.model if isinstance(model, LoopAware) else model
    if not isinstance(inner, StrengthReduced):
        return [*roots]
    # `narrow` has forms whose bounds are no wider than those of their terms; x - x//7*7 has wider ones than x%7
    narrow: dict[Expr, Expr] = {}
    found: dict[Expr, Expr] = {}
    roots = [*roots]
    for term in topological(roots):
        kept = tuple([narrow[a] for a in term.args])
        form = inner.form_of(term, kept)
        is_no_wider = term.vmin <= form.vmin and form.vmax <= term.vmax
        narrow[term] = form if is_no_wider else with_operands(term, kept)
        # the bounds of an index, and how often a body runs, come from those of the ends
        ends = narrow if term.op in REDUCTIONS else found
        args = tuple([(ends if place else found)[a] for place, a in enumerate(term.args)])
        if args != kept:
            try:
                form = inner.form_of(term, args)
            except TooWideError:
                form = narrow[term]
        found[term] = narrow[term] if exceeds_64_bits(form) and not exceeds_64_bits(term) else form
    return [found[root] for root in roots]


def _form(op: str, x: Expr, by: int) -> tuple[Expr | None, bool]:
    """Another form of a node, if it has one, and whether compilers know it."""
    if x.vmin == x.vmax:
        return None, False
    if is_power_of_two(by) and 1 < by <= 1 << MAX_SHIFT:
        amount = const(by.bit_length() - 1)
        shifted = {"mul": ("shl", amount), "floordiv": ("shr", amount), "mod": ("bitand", const(by - 1))}
        name, other = shifted[op]
        return make(name, x, other), False
    if op == "mul" or by < 3 or not is_finite(x.vmin, x.vmax):
        return None, False
    raised = max(0, -(x.vmin // by))
    multiplier, shift = exact_multiplier(by, x.vmax + raised * by)
    if shift > MAX_SHIFT:
        return None, False
    dividend = make("add", x, const(raised * by)) if raised else x
    quotient = make("shr", make("mul", dividend, const(multiplier)), const(shift))
    quotient = make("sub", quotient, const(raised)) if raised else quotient
    return quotient if op == "floordiv" else make("sub", x, make("mul", quotient, const(by))), True
