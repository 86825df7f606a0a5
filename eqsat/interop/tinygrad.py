"""A step in tinygrad's compiler that makes the index expressions of each kernel cheaper (the extra ``tinygrad``).

tinygrad lowers a kernel by graph rewriting, in ``full_rewrite_to_sink``. After its last symbolic pass, ``"extra
symbolic"``, indices are still weak integers, which do not wrap around, and the gate of an index is still beside it. At
that point all index expressions and conditions on them are read as terms, optimised in one run and written again,
without those that only add and multiply. What no term has an operator for is a variable: a loop, a parameter, a value
from memory. A kernel stays as it is unless its answer costs less as tinygrad writes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from eqsat.egraph.budget import Budget
from eqsat.extract import CostModel, Latency
from eqsat.extract.cost import is_power_of_two
from eqsat.extract.graph import reached
from eqsat.interop.drop_in import DropIn, Kept, Seam, Statistics, settings
from eqsat.interop.limits import INTEROP_LIMITS
from eqsat.lang.costs import cost_of
from eqsat.lang.expr import Expr, as_expr, const, make, rebuild, var
from eqsat.lang.ops import Bounds
from eqsat.lang.properties import VariableSets
from eqsat.lang.terms import one_of_two
from eqsat.lang.traversal import topological
from eqsat.optimizer.front import optimize
from eqsat.rules.ranges import RANGES

__all__ = ["Statistics", "enabled", "install", "reset_statistics", "statistics", "uninstall"]

#: The pass of tinygrad's after which kernels are optimised.
PASS = "extra symbolic"

#: The operators of tinygrad's operations on weak integers.
_ON_INTEGERS = {
    "ADD": "add",
    "SUB": "sub",
    "MUL": "mul",
    "FLOORDIV": "floordiv",
    "FLOORMOD": "mod",
    "CDIV": "tdiv",
    "CMOD": "tmod",
    "MAX": "max",
    "CMPLT": "lt",
    "CMPNE": "ne",
    "CMPEQ": "eq",
}
_ON_CONDITIONS = {"AND": "and", "OR": "or", "CMPNE": "ne", "CMPEQ": "eq"}
_DIVISIONS = {"FLOORDIV", "FLOORMOD", "CDIV", "CMOD"}
_QUOTIENTS = {_ON_INTEGERS[name] for name in _DIVISIONS}
#: The operations that write a term of tinygrad's own.
_WRITTEN = {name: operation for operation, name in (_ON_CONDITIONS | _ON_INTEGERS).items()} | {"where": "WHERE"}

#: What C compilers take out of loops, best in the form in which tinygrad writes it.
_HOISTED = frozenset({"add", "sub", "neg", "mul"})
#: By what the prices of a model are multiplied, so that those of sums and products fit below them.
_UNIT = 8
#: What an operation costs on top of its price if its result does not fit 32 bits.
_WIDE = 10_000
#: Linear arithmetic finds nearly all there is; other rules, and extraction with sharing, double the time to compile.
_SEARCH: dict[str, Any] = {"rules": RANGES, "extract": "tree", "unknown_divisors": "keep"}

_DROP_IN = DropIn("tinygrad")
uninstall, statistics, reset_statistics = _DROP_IN.uninstall, _DROP_IN.statistics, _DROP_IN.reset_statistics


def install(*, cost: CostModel | str | None = None, budget: Budget | None = None) -> None:
    """Let tinygrad's compiler optimise the index expressions of every kernel that it lowers from now on.

    Kernels that were compiled before are compiled again, in this process alone: tinygrad's worker processes, which know
    nothing of the change, are not used (``PARALLEL``) until :func:`uninstall`.

    Parameters
    ----------
    cost : CostModel or str, optional
        What is cheap: latency if none is given.
    budget : Budget, optional
        For each kernel; that of :func:`eqsat.optimize` if none is given.

    Raises
    ------
    ImportError
        If tinygrad is not installed, or is not a version 0.14.
    ValueError, TypeError
        If ``cost`` is no cost model, or ``budget`` no budget.

    >>> install()
    >>> uninstall()
    """
    options = settings(Latency() if cost is None else cost, Budget() if budget is None else budget)
    tinygrad = _modules()
    codegen, parallel = tinygrad.codegen, tinygrad.helpers.PARALLEL
    # programs are kept by the kernel as it was before it was lowered
    before = dict(codegen.to_program_cache), parallel.value

    def after() -> None:
        programs, parallel.value = before
        codegen.to_program_cache.clear()
        codegen.to_program_cache.update(programs)

    if not _DROP_IN.is_installed or options != _DROP_IN.options:
        codegen.to_program_cache.clear()
    _DROP_IN.install([Seam(codegen, "graph_rewrite", partial(_rewriting, tinygrad))], options, after)
    parallel.value = 0


@contextmanager
def enabled(*, cost: CostModel | str | None = None, budget: Budget | None = None) -> Iterator[None]:
    """:func:`install` at the start of a ``with``, :func:`uninstall` at its end.

    Parameters
    ----------
    cost, budget
        As for :func:`install`.

    >>> from tinygrad import Tensor
    >>> with enabled():
    ...     Tensor([[1, 2, 3], [4, 5, 6]], device="PYTHON").T.reshape(6).tolist()
    [1, 4, 2, 5, 3, 6]
    """
    with _DROP_IN.restored(lambda options: install(cost=options[0], budget=options[1])):
        install(cost=cost, budget=budget)
        yield


def _modules() -> Any:
    try:
        import tinygrad
        import tinygrad.codegen
        import tinygrad.dtype
        import tinygrad.helpers
        import tinygrad.uop
        import tinygrad.uop.ops
    except ImportError:
        raise ImportError("tinygrad 0.14 is not installed: pip install 'eqsat[tinygrad]'") from None
    lowering = getattr(tinygrad.codegen, "full_rewrite_to_sink", None)
    if lowering is None or PASS not in lowering.__code__.co_consts or not hasattr(tinygrad.codegen, "to_program_cache"):
        raise ImportError("this tinygrad lowers kernels in another way than 0.14: pip install 'eqsat[tinygrad]'")
    return tinygrad


@dataclass(frozen=True)
class _InLoops:
    """The prices of ``model`` in loops: C compilers take sums out of them, and most products.

    A sum costs next to nothing. A product costs less than a comparison with a selection, which could take its place. A
    remainder costs no more than to compute it from the quotient. What does not fit 32 bits costs more than all else, as
    tinygrad would compute with 64.
    """

    model: CostModel
    sum: int = 1
    product: int = 14

    def price(self, op: str, operands: Sequence[Bounds], result: Bounds) -> int:
        price = _UNIT * self.model.price(op, operands, result)
        if op in _HOISTED:
            price = min(price, self.product if op == "mul" else self.sum)
        elif op == "mod" and operands[1][0] == operands[1][1]:
            price = min(price, self.price("floordiv", operands, result) + self.product + self.sum)
        is_wide = operands and (result[0] < -(2**31) or result[1] >= 2**31)
        return price + (_WIDE if is_wide else 0)


def _rewriting(tinygrad: Any, original: Any) -> Any:

    def rewrite(sink: Any, *arguments: Any, **options: Any) -> Any:
        found = original(sink, *arguments, **options)
        return _improved(tinygrad, found) if options.get("name") == PASS else found

    return rewrite


def _improved(tinygrad: Any, sink: Any) -> Any:
    """The kernel with cheaper index expressions, or as it is."""
    reason, found = "", sink
    with _DROP_IN.kernel():
        try:
            kernel = _Kernel(tinygrad, sink)
            problem = (kernel.terms, kernel.gates)
            answer = _DROP_IN.answer(problem, lambda: _solved(*problem))
            if isinstance(answer, str):
                raise Kept(answer)
            found = kernel.rewritten(answer)
        except Kept as why:
            reason = str(why)
        except Exception:
            # an optimisation is never worth a failed compilation; it is counted
            reason = "error"
        weak = tinygrad.dtype.dtypes.weakint
        _DROP_IN.record([reason], (_divisions(sink, weak), _divisions(found, weak)))
    return found


def _divisions(sink: Any, weak: Any) -> int:
    """Quotients and remainders, but for those by powers of two, which are shifts and masks."""
    return sum(
        u.op.name in _DIVISIONS and u.dtype is weak and not _is_power_of_two(u.src[1].arg) for u in sink.toposort()
    )


def _solved(terms: tuple[Expr, ...], gates: tuple[Expr | None, ...]) -> tuple[Expr, ...] | str:
    """Terms that cost less, of tinygrad's operations alone, or why they stay."""
    model, budget = _DROP_IN.options
    cost = _InLoops(model)
    operators = [{t.op for t in topological([term]) if t.args} for term in terms]
    if not (places := [place for place, own in enumerate(operators) if not own <= _HOISTED]):
        return "sums and products alone"
    chosen, when = [terms[place] for place in places], [gates[place] for place in places]
    try:
        result = optimize(chosen, gates=when, cost=cost, budget=budget, **_SEARCH)
        answer = tuple(_of_tinygrads(result.exprs))
    except ValueError:
        return "refused"
    except Kept as why:
        return str(why)
    if _divisions_in(answer) > _divisions_in(chosen):
        return "divides more"
    # what tinygrad has no operation for costs several; fewer sums and products alone are no gain
    if any(cost_of(answer, each) >= cost_of(chosen, each) for each in (cost, _InLoops(model, 0, 0))):
        return "costs no less"
    # a variable of another root may be that of a loop that this one is outside of
    sets = VariableSets()
    for term, found, gate in zip(chosen, answer, when, strict=True):
        known = sets.of(term) | (0 if gate is None else sets.of(gate))
        if sets.of(found) & ~known:
            return "other variables"
    found_at = dict(zip(places, answer, strict=True))
    return tuple([found_at.get(place, term) for place, term in enumerate(terms)])


def _is_power_of_two(value: object) -> bool:
    return isinstance(value, int) and is_power_of_two(value)


def _divisions_in(terms: Sequence[Expr]) -> int:
    return sum(t.op in _QUOTIENTS and not _is_power_of_two(t.args[1].value) for t in topological(terms))


def _of_tinygrads(terms: Sequence[Expr]) -> list[Expr]:
    """Equal terms of tinygrad's operations, which has neither ``<=`` nor ``==`` nor ``min``, nor a difference."""

    def replace(term: Expr, args: tuple[Expr, ...]) -> Expr | None:
        if (method := _REPLACED.get(term.op)) is not None:
            return method(*args)
        if term.op not in _WRITTEN and term.args:
            raise Kept(f"tinygrad has no {term.op}")
        return None

    return rebuild(terms, replace)


def _negated(x: Expr) -> Expr:
    return const(-x.vmin) if x.op == "const" else make("mul", x, const(-1))


def _not(x: Expr) -> Expr:
    return make("ne", x, as_expr(True))


def _less(x: Expr, y: Expr) -> Expr:
    # tinygrad's rules know a literal on the right
    return _not(make("lt", y, const(x.vmin + 1))) if x.op == "const" else make("lt", x, y)


def _shifted(name: str, x: Expr, amount: Expr) -> Expr:
    if amount.op != "const":
        raise Kept("a shift by what is no literal")
    return make(name, x, const(2**amount.vmin))


_REPLACED: dict[str, Callable[..., Expr]] = {
    "sub": lambda x, y: make("add", x, _negated(y)),
    "neg": _negated,
    "lt": _less,
    "le": lambda x, y: make("lt", x, const(y.vmin + 1)) if y.op == "const" else _not(make("lt", y, x)),
    "eq": lambda x, y: _not(make("ne", x, y)),
    "not": _not,
    "min": lambda x, y: make("and", x, y) if x.is_bool else make("where", _less(x, y), x, y),
    "max": lambda x, y: make("or" if x.is_bool else "max", x, y),
    "shl": lambda x, y: _shifted("mul", x, y),
    "shr": lambda x, y: _shifted("floordiv", x, y),
}


class _Kernel:
    """The largest index expressions of a kernel as ``terms``, and the kernel with others in their place.

    ``gates`` has for each of them the condition under which its value matters, or ``None``.
    """

    def __init__(self, tinygrad: Any, sink: Any) -> None:
        self._ops, self._dtypes = tinygrad.uop.Ops, tinygrad.dtype.dtypes
        self._uop = tinygrad.uop.ops.UOp
        self._sink = sink
        self._order = list(sink.toposort())
        ops = self._ops
        if any(u.op is ops.INDEX and len(u.src) > 2 for u in self._order):
            # tinygrad drops gates of images by the form of their indices
            raise Kept("an image")
        #: Operations that have an operator of terms, and whether integers are among what they are computed from.
        self._inner: dict[Any, bool] = {}
        for u in filter(self._is_inner, self._order):
            self._inner[u] = any(s.dtype is self._dtypes.weakint or self._inner.get(s, False) for s in u.src)
        if len(self._inner) > INTEROP_LIMITS.operations:
            raise Kept("too many operations")
        #: By an operation and the position of an operand, which root that operand is.
        self._places: dict[tuple[Any, int], int] = {}
        roots = self._roots({ops.INDEX, ops.SHRINK, ops.CAST, ops.STORE, *tinygrad.uop.GroupOp.ALU})
        if not roots:
            raise Kept("no index expressions")
        self._leaves: dict[str, Any] = {}
        self._read({u for key in roots for u in key if u is not None})
        self.terms = tuple([self._terms[s] for s, _ in roots])
        self.gates = tuple([None if gate is None else self._terms[gate] for _, gate in roots])

    def _roots(self, holders: set[Any]) -> dict[tuple[Any, Any], int]:
        """The index expressions that operations without a term read, each with its gate or ``None``."""
        roots: dict[tuple[Any, Any], int] = {}
        outer = [u for u in self._order if u.op in holders and u not in self._inner]
        for u, at, s in [(h, at, s) for h in outer for at, s in enumerate(h.src) if self._inner.get(s, False)]:
            is_gated = at == 1 and u.op is self._ops.WHERE and u.src[2].is_invalid
            self._places[u, at] = roots.setdefault((s, u.src[0] if is_gated else None), len(roots))
        return roots

    def _is_inner(self, u: Any) -> bool:
        kinds, weak, condition = [s.dtype for s in u.src], self._dtypes.weakint, self._dtypes.bool
        if u.op is self._ops.WHERE:
            is_known = kinds in ([condition, weak, weak], [condition] * 3)
        else:
            of_integers = u.op.name in _ON_INTEGERS and kinds == [weak, weak]
            is_known = of_integers or (u.op.name in _ON_CONDITIONS and kinds == [condition] * 2)
        return is_known and u.tag is None and u._shape == () and not any(s.is_invalid for s in u.src)

    def _read(self, uops: set[Any]) -> None:
        needed = reached(uops, lambda u: u.src if u in self._inner else ())
        self._terms: dict[Any, Expr] = {}
        for u in self._order:
            if u in needed:
                try:
                    self._terms[u] = self._term(u)
                except ValueError:
                    raise Kept("refused") from None

    def _term(self, u: Any) -> Expr:
        if u in self._inner:
            names = _ON_CONDITIONS if u.src[0].dtype is self._dtypes.bool else _ON_INTEGERS
            return make("where" if u.op is self._ops.WHERE else names[u.op.name], *[self._terms[s] for s in u.src])
        if u.op is self._ops.CONST and not u.is_invalid:
            return as_expr(u.val)
        # a condition is a variable that is 0 or 1
        is_condition = u.dtype is self._dtypes.bool
        low, high = (0, 1) if is_condition else (u.vmin, u.vmax)
        if not isinstance(low, int) or not isinstance(high, int):
            raise Kept("an index without bounds")
        name = f"v{len(self._leaves)}"
        self._leaves[name] = u
        variable = var(name, int(low), int(high))
        return variable.ne(0) if is_condition else variable

    def rewritten(self, answers: Sequence[Expr]) -> Any:
        """The kernel with ``answers`` in the places of its terms."""
        self._written: dict[Expr, Any] = {}
        self._new: dict[Any, Any] = {}
        for u in self._order:
            operands = [
                self._write(answers[self._places[u, at]]) if (u, at) in self._places else self._new[s]
                for at, s in enumerate(u.src)
            ]
            if u.op is self._ops.WHERE and u.src[2].is_invalid and operands[0].op is self._ops.CONST:
                if not operands[0].val:
                    raise Kept("a gate that never holds")
                self._new[u] = operands[1]
            else:
                self._new[u] = u.replace(src=tuple(operands))
        if any(self._is_wide(u) for u in self._written.values()) and not any(map(self._is_wide, self._inner)):
            raise Kept("wider integers")
        return self._new[self._sink]

    def _is_wide(self, u: Any) -> bool:
        return u.dtype is self._dtypes.weakint and bool(u.overflows(self._dtypes.int32))

    def _write(self, root: Expr) -> Any:
        for term in topological([root]):
            if term not in self._written:
                self._written[term] = self._operation(term)
        return self._written[root]

    def _operation(self, term: Expr) -> Any:
        if term.op in ("const", "bool"):
            return self._uop.const(bool(term.vmin) if term.is_bool else term.vmin)
        if term.op == "var":
            leaf = self._new[self._leaves[str(term.value)]]
            if leaf.dtype is not self._dtypes.bool:
                return leaf
            return leaf.where(self._uop.const(1), self._uop.const(0))
        if (leaf := self._condition(term)) is not None:
            return leaf
        operands = [self._written[a] for a in term.args]
        return self._uop(getattr(self._ops, _WRITTEN[term.op]), src=tuple(operands))

    def _condition(self, term: Expr) -> Any:
        """The condition or its negation, for a term that compares it, as 0 or 1, with a literal."""
        variable, holds = one_of_two(term)
        leaf = None if variable is None else self._new[self._leaves[str(variable.value)]]
        if leaf is None or leaf.dtype is not self._dtypes.bool:
            return None
        return leaf if holds else leaf.logical_not()
