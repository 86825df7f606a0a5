"""SymPy's expressions of integers, read, optimised and written again (the extra ``sympy``).

Inside of ``floor`` and ``ceiling`` numbers are rational. Each is read as a :class:`_Ratio`, an integer term over a
literal and symbolic divisors; ``floor`` divides one by the other, so that no fraction is left in a term. Classes that
other projects derive from SymPy's (PyTorch's ``FloorDiv`` and ``ModularIndexing``, for instance) are known by their
names, and those that were read are used for writing. SymPy evaluates nothing that is written but sums and products.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from math import inf, lcm, prod
from operator import and_, or_, xor
from typing import Any, cast

from eqsat.extract.graph import reached
from eqsat.interop.parts import optimized, without_multiples
from eqsat.lang.expr import (
    FALSE,
    TRUE,
    WORDS,
    Expr,
    any_var,
    as_expr,
    bounds_of,
    buffer,
    const,
    make,
    refuse_array,
    stated,
    substitute,
    var,
)
from eqsat.lang.functions import maximum, minimum, prod_over, sum_over, where
from eqsat.lang.ops import INFINITY, SUMS, Bounds
from eqsat.lang.properties import facts_on
from eqsat.lang.terms import written_product
from eqsat.lang.text import free_name, numbered
from eqsat.lang.traversal import buffer_key, is_index, signed_members, topological_until, use_counts
from eqsat.lang.validation import counted, require, shortened
from eqsat.optimizer.front import OPTIONS
from eqsat.theory.linear import LinearArithmetic

#: The two ends of a range, both inclusive, ``None`` for no end; or a ``range`` of step 1.
Ends = tuple[Any, Any] | range


@dataclass(frozen=True)
class Reading:
    """What :func:`from_sympy` read.

    Attributes
    ----------
    terms : tuple of Expr
        The expressions, in their order.
    constraints : tuple of Expr
        What is assumed, beyond the ranges of the variables.
    names : dict from str to object
        By the name of a variable its symbol, by that of an array, with ``[]`` behind it, the function that it stands
        for, and by their names the classes that other projects derive from SymPy's: what :func:`to_sympy` needs.

    >>> from sympy import Symbol
    >>> Reading((var("i", 0, 7) * 2,), (), {"i": Symbol("$i", integer=True)}).term
    Expr('i*2')
    """

    terms: tuple[Expr, ...]
    constraints: tuple[Expr, ...]
    names: dict[str, Any] = field(repr=False)

    @property
    def term(self) -> Expr:
        """The single expression."""
        (term,) = self.terms
        return term


@dataclass(frozen=True)
class _Ratio:
    """A rational number: an integer over a positive literal and over terms that are not zero."""

    top: Expr
    literal: int = 1
    factors: tuple[Expr, ...] = ()

    @property
    def below(self) -> Expr:
        return written_product([*self.factors, const(self.literal)])


def from_sympy(exprs: Any, ranges: Mapping[Any, Ends] | None = None, assume: Iterable[Any] = ()) -> Reading:
    """Read SymPy expressions of integers as terms.

    Parameters
    ----------
    exprs : sympy.Basic or sequence of them
        Integers or conditions, of the classes that the page `docs/sympy.md` lists. A function that is not known is one
        of which nothing is known but that equal arguments have equal values.
    ranges : mapping from symbol or its name to (low, high) or range, optional
        Inclusive bounds, ``None`` for none, or a ``range`` of step 1. Without them a symbol has the bounds that its
        assumptions say.
    assume : iterable of sympy.Basic
        Relations and other conditions that hold, as ``Eq(Mod(n, 8), 0)``.

    Raises
    ------
    ValueError
        If an expression is not known to be an integer, is of a class that is not known, or divides by zero; if a symbol
        is no integer or has no value left.
    TypeError
        If what is given is no SymPy expression.
    ImportError
        If SymPy is not installed.

    >>> from sympy import floor, symbols
    >>> x, n = symbols("x n", integer=True, positive=True)
    >>> from_sympy(floor((x + 7) / 8) - n, {x: (1, 64)}, assume=[n > 3])
    Reading(terms=(Expr('(x + 7)//8 - n'),), constraints=())
    """
    if isinstance(assume, str) or not isinstance(assume, Iterable):
        raise TypeError(f"what is assumed must be a list of relations, not {assume!r}")
    ranges = {} if ranges is None else ranges
    require(ranges, Mapping, "ranges")
    given = exprs if isinstance(exprs, list | tuple) else [exprs]
    try:
        reader = _Reader(_sympy(), list(assume), dict(ranges), given)
        terms = tuple([reader.value(e) for e in given])
    except RecursionError:
        raise ValueError(
            "the expressions nest deeper than SymPy can follow: put a symbol in the place of a part of them"
        ) from None
    return Reading(terms, tuple(facts_on(terms, reader.constraints)), reader.names)


def to_sympy(term: Expr, names: Mapping[str, Any] | None = None) -> Any:
    """Write a term as a SymPy expression.

    Parameters
    ----------
    term : Expr
        An integer or a condition, without maxima and minima over ranges and floating-point values.
    names : mapping from str to object, optional
        ``Reading.names`` of what the term came from. Other variables become integer symbols, positive or not negative
        if their ranges are; other arrays functions.

    Raises
    ------
    ValueError
        If the term has an operator that SymPy has no class for.
    ImportError
        If SymPy is not installed.

    >>> to_sympy(var("i", 0, 63) // 8 * 8)
    8*floor(i/8)
    """
    require(term, Expr, "the term to write")
    names = {} if names is None else names
    require(names, Mapping, "names")
    refuse_array(term)
    return _Writer(_sympy(), dict(names)).write(term)


def simplify(exprs: Any, ranges: Mapping[Any, Ends] | None = None, assume: Iterable[Any] = (), **options: Any) -> Any:
    """Return the cheapest expressions found that are equal for all integers in the ranges for which ``assume`` holds.

    Divisions by what may be zero as far as is known are kept as they are.

    Parameters
    ----------
    exprs : sympy.Basic or sequence of them
        Several are optimised together: what they share is paid once. They come back as a list.
    ranges, assume
        As for :func:`from_sympy`.
    **options
        Of :func:`eqsat.optimize`, such as ``cost`` and ``budget``.

    Raises
    ------
    ValueError, TypeError, ImportError
        As :func:`from_sympy` and :func:`eqsat.optimize`.

    >>> from sympy import Eq, Mod, floor, symbols
    >>> x, y, n = symbols("x y n", integer=True, nonnegative=True)
    >>> simplify([floor((x*n + y) / n), Mod(x*n + y, n)], assume=[n > 0, y < n])
    [x, y]
    >>> simplify(8*floor((n + 3) / 8), assume=[Eq(Mod(n, 8), 0)])
    n
    """
    reading = from_sympy(exprs, ranges, assume)
    settings = {"unknown_divisors": "assume", "branches": "lazy", **options}
    if unknown := settings.keys() - OPTIONS | settings.keys() & {"gates", "constraints"}:
        raise TypeError(f"simplify has no option {min(unknown)!r}: give what is known as ranges and assume")
    writer = _Writer(_sympy(), reading.names)
    answers = optimized(without_multiples(reading.terms), reading.constraints, settings)
    found = [writer.write(term) for term in answers]
    return found if isinstance(exprs, list | tuple) else found[0]


def _sympy() -> Any:
    try:
        import sympy
    except ImportError:
        raise ImportError("SymPy is not installed: pip install 'eqsat[sympy]'") from None
    return sympy


class _Reader:
    """Reads expressions that share symbols; each part is read once."""

    def __init__(self, sympy: Any, assume: list[Any], ranges: Mapping[Any, Ends], exprs: Sequence[Any]) -> None:
        self.sympy = sympy
        #: The parts that are evaluated whatever branches conditions choose.
        self._always = reached([e for e in (*assume, *exprs) if isinstance(e, sympy.Basic)], _evaluated_operands)
        self.names: dict[str, Any] = {}
        self._taken: set[str] = set()
        self._ranges = ranges
        self._values: dict[Any, _Ratio | Expr] = {}
        self._bounds: dict[Any, list[int]] = {}
        self._theory: LinearArithmetic | None = None
        self.constraints: list[Expr] = []
        #: Symbols that sums run over are integers whatever SymPy knows of them.
        self._counted = _indices([e for e in (*assume, *exprs) if isinstance(e, sympy.Basic)])
        for fact in [fact for fact in (*assume, *self._symbolic_ends(exprs)) if not self._note_bound(fact)]:
            # what is read may know more
            if (term := self.condition(fact)) is not TRUE:
                self._assume(term)

    def fail(self, e: Any, why: str) -> ValueError:
        try:
            shown = shortened(str(e), 80)
        except RecursionError:
            # SymPy prints no expressions that nest very deep
            shown = f"{type(e).__name__}(...)"
        return ValueError(f"cannot read {shown!r}: {why}")

    def _symbolic_ends(self, exprs: Sequence[Any]) -> list[Any]:
        """What ranges with ends that are expressions say, as facts; such an end is none from then on."""
        facts, ranges = [], dict(self._ranges)
        for key, given in self._ranges.items():
            if not isinstance(given, list | tuple) or len(given) != 2:
                continue
            low, high = [isinstance(end, self.sympy.Expr) and not end.is_number for end in given]
            if low or high:
                symbol = key if isinstance(key, self.sympy.Basic) else self._called(key, exprs)
                facts += [self.sympy.Le(given[0], symbol)] if low else []
                facts += [self.sympy.Le(symbol, given[1])] if high else []
                ranges[key] = (None if low else given[0], None if high else given[1])
        self._ranges = ranges
        return facts

    def _called(self, name: object, exprs: Sequence[Any]) -> Any:
        found = {s for e in exprs if isinstance(e, self.sympy.Basic) for s in e.free_symbols if s.name == name}
        return found.pop() if len(found) == 1 else self.sympy.Symbol(str(name), integer=True)

    def _note_bound(self, fact: Any) -> bool:
        """Note the bound of a symbol that a fact says; say whether it says one."""
        op, swapped = _RELATIONS.get(type(fact).__name__, ("", False))
        if op not in ("lt", "le"):
            return False
        less, more = reversed(fact.args) if swapped else fact.args
        if less.is_Symbol and more.is_Integer:
            ends = self._ends(less)
            ends[1] = min(ends[1], int(more) - (op == "lt"))
        elif more.is_Symbol and less.is_Integer:
            ends = self._ends(more)
            ends[0] = max(ends[0], int(less) + (op == "lt"))
        else:
            return False
        return True

    def _ends(self, symbol: Any) -> list[int]:
        """The bounds of a symbol, by its assumptions and its range."""
        if symbol not in self._bounds:
            given = self._ranges.get(symbol, self._ranges.get(symbol.name))
            known = symbol.is_integer or (symbol.is_integer is None and (given is not None or symbol in self._counted))
            if not known:
                raise ValueError(f"symbol {symbol.name!r} is not known to be an integer: make it with integer=True")
            low = 1 if symbol.is_positive else 0 if symbol.is_nonnegative else -INFINITY
            high = -1 if symbol.is_negative else 0 if symbol.is_nonpositive else INFINITY
            own = _ends_of_index(symbol, literal=True) if type(symbol).__name__ == "Idx" else None
            for least, most in [_range(symbol, ends) for ends in (given, own) if ends is not None]:
                low, high = max(low, least), min(high, most)
            self._bounds[symbol] = [low, high]
        return self._bounds[symbol]

    def _symbol(self, symbol: Any) -> Expr:
        name = self._name(symbol.name)
        self.names[name] = symbol
        return var(name, *self._ends(symbol))

    def _name(self, wanted: str) -> str:
        """A free name for the variable of a symbol, or for the array of a function, like its own."""
        name = re.sub(r"\W", "_", wanted)
        return free_name(name if name.isidentifier() and name not in WORDS else f"_{name}", self._taken)

    def value(self, e: Any) -> Expr:
        """An integer or a condition."""
        found = self.read(e)
        return found if isinstance(found, Expr) else self._integer(e, found)

    def condition(self, e: Any) -> Expr:
        found = self.read(e)
        if isinstance(found, Expr):
            return found
        if getattr(e, "is_Symbol", False):
            # a symbol may stand where SymPy needs a condition
            return found.top.ne(0)
        raise self.fail(e, "a condition is needed here")

    def number(self, e: Any) -> _Ratio:
        found = self.read(e)
        if isinstance(found, Expr):
            raise self.fail(e, "a number is needed here, not a condition")
        return found

    def integer(self, e: Any) -> Expr:
        return self._integer(e, self.number(e))

    def _integer(self, e: Any, found: _Ratio) -> Expr:
        quotient = self._quotient(e, found)
        if quotient is not found.top and not self._divides(found.top, found.below):
            if e.is_integer is True:
                # SymPy takes e/6 for an integer if e is even: it looks at powers of two alone
                below = replace(found, literal=found.literal & -found.literal).below
                self._assume(stated("mod", found.top, below).eq(0))
            if not (self._divides(found.top, found.below) or self._is_whole(found)):
                raise self.fail(e, "it is not known to be an integer: write floor(...) around it")
        return quotient

    def _is_whole(self, found: _Ratio) -> bool:
        """Whether the quotient has no remainder wherever it has a value."""
        rest = stated("mod", found.top, found.below)
        return optimized([rest], self.constraints, {"unknown_divisors": "assume"}) == (const(0),)

    def _divides(self, x: Expr, y: Expr) -> bool:
        """Whether it is known that ``x`` is a multiple of ``y``."""
        if self._theory is None:
            self._theory = LinearArithmetic(self.constraints)
        return self._theory.bounds_of(stated("mod", x, y)) == (0, 0)

    def _assume(self, fact: Expr) -> None:
        self.constraints.append(fact)
        self._theory = None

    def read(self, e: Any) -> _Ratio | Expr:
        """A number, or a condition as a term."""
        if e is True or e is False:
            return as_expr(e)
        if isinstance(e, int):
            return _Ratio(const(e))
        if not isinstance(e, self.sympy.Basic):
            shown = shortened(" ".join(repr(e).split()), 80)
            raise TypeError(f"{shown} is no SymPy expression: give expressions, or a list of them")
        # operands first, so that expressions may nest to any depth
        for part in topological_until([e], self._values.__contains__, _operands):
            self._values[part] = self._read(part)
        return self._values[e]

    def _read(self, e: Any) -> _Ratio | Expr:
        if e.is_Symbol:
            return _Ratio(self._symbol(e))
        if e.is_Rational:
            return _Ratio(const(int(e.p)), int(e.q))
        kind = type(e).__name__
        if (method := _READERS.get(kind)) is None:
            if not _is_applied(e):
                remedy = "write floats as Rational(1, 2)" if kind == "Float" else "put an integer symbol in its place"
                raise self.fail(e, f"{kind} is none of the classes that are read: {remedy}")
            return self._unknown(e, e.func)
        if kind in _OPERANDS and len(e.args) != _OPERANDS[kind]:
            raise self.fail(e, f"{kind} takes {counted(_OPERANDS[kind], 'operand')}, not {len(e.args)}")
        if kind == "Piecewise" and not e.args:
            raise self.fail(e, "it has no branch")
        if kind in _DERIVED and not type(e).__module__.startswith("sympy."):
            self.names[f"class {kind}"] = type(e)
        return method(self, e)

    def _unknown(self, e: Any, head: Any) -> _Ratio | Expr:
        """An element, or a function, of which nothing is known: of an array of any integers, or of conditions."""
        is_condition = bool(e.is_Boolean)
        if not (is_condition or e.is_integer is True) or not e.args:
            name, is_own = str(getattr(head, "name", head)), str(getattr(head, "__module__", "")).startswith("sympy.")
            if e.is_Indexed:
                remedy = f"make it by IndexedBase({name!r}, integer=True)"
            elif not e.args or (is_own and not isinstance(head, self.sympy.core.function.UndefinedFunction)):
                remedy = "put an integer symbol in its place"
            else:
                remedy = f"make it by Function({name!r}, integer=True), or derive it from BooleanFunction"
            raise self.fail(e, f"{name} is not known to be an integer or a condition: {remedy}")
        key = next((name for name, known in self.names.items() if known == head and name.endswith("[]")), None)
        name = key[:-2] if key else self._name(str(head.name if e.is_Indexed else type(e).__name__))
        array = buffer(name, "bool" if is_condition else "int")
        self.names[buffer_key(array)] = head
        value = array[tuple(map(self.integer, e.indices if e.is_Indexed else e.args))]
        return value if is_condition else _Ratio(value)

    def _index(self, e: Any) -> _Ratio:
        """An index in a range, of which the ends may be expressions."""
        if not e.label.is_Symbol:
            return self.number(e.label)
        variable = self._symbol(e)
        if e in self._counted:
            # the range of a sum may be empty: then there is no index
            ends = [end for end in (e.lower, e.upper) if end is not None and not end.is_infinite]
            if len(ends) == 2 and not all(end.is_number for end in ends):
                low, high = map(self.integer, ends)
                self._assume(low <= high + 1)
            return _Ratio(variable)
        low, high = _ends_of_index(e, literal=False)
        if low is not None:
            self._assume(self.integer(low) <= variable)
        if high is not None:
            self._assume(variable <= self.integer(high))
        return _Ratio(variable)

    def _sum(self, e: Any) -> _Ratio:
        """A sum or product over ranges, of which the first is innermost; SymPy's ends belong to it."""
        body, combine = self.number(e.function), sum_over if type(e).__name__ == "Sum" else prod_over
        if body.factors or combine is prod_over:
            body = _Ratio(self.integer(e.function))
        ranges = []
        for limit in e.limits:
            index, low, high = limit.args
            ranges.append((self.integer(index), self.integer(low), self.integer(high) + 1))
        top = body.top
        for n, (index, low, high) in enumerate(ranges):
            outer = [fact for i, first, end in ranges[n + 1 :] for fact in (first <= i, i < end)]
            # a symbol of that name that stands free is another one
            images = {i: any_var(f"#{i.value}", -INFINITY, INFINITY) for i, _, _ in ranges[n + 1 :]}
            is_forward, *within = substitute([low <= high, *outer], images)
            if LinearArithmetic([*self.constraints, *within]).condition(is_forward) is not TRUE:
                # SymPy has the sum from 0 to -3 as the opposite of that from -2 to -1
                raise self.fail(e, f"its range may be less than empty: assume {low} <= {high}")
            top = combine(top, index, low, high)
        return _Ratio(top, body.literal)

    def _add(self, e: Any) -> _Ratio:
        tops, literal, factors = _common([self.number(a) for a in e.args])
        return _Ratio(_sum(tops), literal, factors)

    def _mul(self, e: Any) -> _Ratio:
        numbers = [self.number(a) for a in e.args]
        factors = tuple([factor for x in numbers for factor in x.factors])
        return _Ratio(written_product([x.top for x in numbers]), prod([x.literal for x in numbers]), factors)

    def _pow(self, e: Any) -> _Ratio:
        base, exponent = e.args
        if not exponent.is_Integer:
            return self._power_of_two(e)
        x, n = self.number(base), int(exponent)
        if n < 0:
            if x.top.op == "const":
                if not x.top.vmin:
                    raise self.fail(e, "it divides by zero")
                sign = -1 if x.top.vmin < 0 else 1
                x = _Ratio(x.below * sign, abs(x.top.vmin))
            else:
                x = _Ratio(x.below, 1, (x.top,))
        top = x.top ** abs(n)
        return _Ratio(top, x.literal ** abs(n), x.factors * abs(n))

    def _power_of_two(self, e: Any) -> _Ratio:
        """A literal power of two to a power that is none, as a shift."""
        base, exponent = e.args
        bits = int(base).bit_length() - 1 if base.is_Integer and base > 1 else 0
        if not bits or int(base) != 1 << bits or exponent.is_integer is False:
            raise self.fail(e, "an exponent must be an integer literal, but for powers of 2")
        try:
            return _Ratio(make("shl", const(1), self.integer(exponent) * bits if bits > 1 else self.integer(exponent)))
        except ValueError as error:
            raise self.fail(e, f"{error}: give ranges that say so") from None

    def _fraction(self, e: Any) -> _Ratio:
        """What is left of a number less its floor."""
        x = self.number(e.args[0])
        if x.literal == 1 and not x.factors:
            return _Ratio(const(0))
        return _Ratio(self._stated(e, "mod", x.top, x.below), x.literal, x.factors)

    def _quotient(self, e: Any, x: _Ratio) -> Expr:
        """The floor of a ratio."""
        if x.literal == 1 and not x.factors:
            return x.top
        return self._stated(e, "floordiv", x.top, x.below)

    def _stated(self, e: Any, op: str, x: Expr, y: Expr) -> Expr:
        """A quotient or remainder, whose divisor is not always zero."""
        try:
            return stated(op, x, y)
        except ValueError as error:
            raise self.fail(e, str(error)) from None

    def _ceiling(self, e: Any) -> _Ratio:
        x = self.number(e.args[0])
        if not x.factors:
            return _Ratio(x.top if x.literal == 1 else (x.top + (x.literal - 1)) // x.literal)
        return _Ratio(-self._quotient(e, _Ratio(-x.top, x.literal, x.factors)))

    def _divided(self, e: Any, x: _Ratio, y: _Ratio) -> Expr:
        """The floor of the quotient of two numbers."""
        factors, literal = ((), y.top.vmin) if y.top.op == "const" and y.top.vmin > 0 else ((y.top,), 1)
        return self._quotient(e, _Ratio(written_product([x.top, y.below]), x.literal * literal, x.factors + factors))

    def _clean_div(self, e: Any) -> _Ratio:
        """A quotient that leaves no remainder."""
        x, y = map(self.integer, e.args)
        quotient = self._divided(e, _Ratio(x), _Ratio(y))
        if e in self._always:
            self._assume(stated("mod", x, y).eq(0))
        return _Ratio(quotient)

    def _mod(self, e: Any) -> _Ratio:
        (x, y), literal, factors = _common([self.number(a) for a in e.args])
        if factors:
            raise self.fail(e, "its operands have divisors that are no literals")
        return _Ratio(self._stated(e, "mod", x, y), literal)

    def _modular_indexing(self, e: Any) -> _Ratio:
        base, divisor, modulus = map(self.integer, e.args)
        quotient = self._divided(e, _Ratio(base), _Ratio(divisor))
        return _Ratio(self._stated(e, "mod", quotient, modulus))

    def _extreme(self, e: Any) -> _Ratio:
        tops, literal, factors = _common([self.number(a) for a in e.args])
        self._require_positive(e, factors)
        combine = minimum if type(e).__name__ == "Min" else maximum
        return _Ratio(reduce(combine, tops), literal, factors)

    def _require_positive(self, e: Any, factors: Iterable[Expr]) -> None:
        for factor in factors:
            if factor.vmin <= 0:
                raise self.fail(e, f"the sign of the divisor {shortened(str(factor), 40)!r} is not known")

    def _abs(self, e: Any) -> _Ratio:
        x = self.number(e.args[0])
        self._require_positive(e, x.factors)
        return _Ratio(maximum(x.top, -x.top), x.literal, x.factors)

    def _bitwise(self, e: Any) -> _Ratio:
        op = _BITWISE[type(e).__name__]
        if len(e.args) < 2:
            raise self.fail(e, "a bit operator needs two operands or more")
        self.names[f"function {op}"] = e.func
        return _Ratio(reduce(lambda x, y: make(op, x, y), map(self.integer, e.args)))

    def _select(self, pairs: Sequence[tuple[Any, Any]]) -> _Ratio | Expr:
        """The first branch whose condition holds; where none does the value is undefined, so the last one will do."""
        branches = [self.read(branch) for branch, _ in pairs]
        conditions = [self.condition(condition) for _, condition in pairs[:-1]]
        if all(isinstance(branch, Expr) for branch in branches):
            return _first(conditions, cast(list[Expr], branches))
        numbers = [self.number(branch) for branch, _ in pairs]
        if any(x.factors != numbers[0].factors for x in numbers):
            # no common divisor: it would have that of a branch which is not chosen, and which may be zero
            below = [x.below for x in numbers]
            return _Ratio(_first(conditions, [x.top for x in numbers]), 1, (_first(conditions, below),))
        tops, literal, factors = _common(numbers)
        return _Ratio(_first(conditions, tops), literal, factors)

    def _relation(self, e: Any) -> Expr:
        op, swapped = _RELATIONS[type(e).__name__]
        sides = [self.read(a) for a in e.args]
        if all(isinstance(side, Expr) for side in sides):
            return make(op, *cast(list[Expr], sides))
        (x, y), _, factors = _common([self.number(a) for a in e.args])
        if op in ("lt", "le"):
            self._require_positive(e, factors)
        return make(op, y, x) if swapped else make(op, x, y)

    def _junction(self, e: Any) -> Expr:
        first, *others = [self.condition(a) for a in sorted(e.args, key=self.sympy.default_sort_key)]
        if type(e).__name__ == "Equivalent":
            return reduce(and_, [first.eq(other) for other in others])
        return reduce({"And": and_, "Or": or_, "Xor": xor}[type(e).__name__], others, first)


def _operands(e: Any) -> list[Any]:
    """The parts that are read before an expression itself."""
    kind = type(e).__name__
    if kind == "Piecewise":
        # the condition of the last branch is not read
        return [part for pair in e.args for part in pair.args][:-1]
    if kind == "Pow":
        return [e.args[0]] if e.args[1].is_Integer else [part for part in e.args if not part.is_Rational]
    if kind == "Indexed":
        return list(e.indices)
    if kind == "Idx":
        return [end for end in _ends_of_index(e, literal=False) if end is not None]
    if kind in ("Sum", "Product"):
        return [e.function, *[part for limit in e.limits for part in limit.args]]
    return list(e.args) if kind in _READERS or _is_applied(e) else []


def _is_applied(e: Any) -> bool:
    """Whether it is a function of operands: a ``Lambda``, which says that it is a function, still waits for them."""
    return getattr(e, "is_Function", False) and not callable(e)


def _evaluated_operands(e: Any) -> list[Any]:
    """The operands that are evaluated whatever conditions hold."""
    first_condition = {"Piecewise": slice(1, 2), "Where": slice(0, 1), "ITE": slice(0, 1)}
    return _operands(e)[first_condition.get(type(e).__name__, slice(None))]


def _indices(exprs: Sequence[Any]) -> set[Any]:
    """The symbols that sums and products in the expressions run over, and that stand nowhere else."""
    over = [e for e in reached(exprs, _operands) if type(e).__name__ in ("Sum", "Product")]
    # SymPy finds free symbols by recursion
    free = [e.free_symbols for e in exprs] if over else []
    return {limit.args[0] for e in over for limit in e.limits}.difference(*free)


def _ends_of_index(index: Any, literal: bool) -> list[Any]:
    """The two ends of the range of an ``Idx``: those that are literals, or those that are not; None for the others."""
    return [None if end is None or end.is_number != literal else end for end in (index.lower, index.upper)]


def _range(symbol: Any, given: Ends | list[Any]) -> Bounds:
    """The bounds of a symbol that its range says; SymPy's infinities and those of floats are no bounds."""
    if isinstance(given, range) and given.step == 1:
        given = (given.start, given.stop - 1)
    try:
        low, high = given
        return bounds_of(symbol.name, None if low == -inf else low, None if high == inf else high)
    except (TypeError, ValueError):
        raise TypeError(
            f"the range of {symbol.name!r} must be two integers, None for no end: not {shortened(repr(given), 80)}"
        ) from None


def _common(numbers: Sequence[_Ratio]) -> tuple[list[Expr], int, tuple[Expr, ...]]:
    """The numerators of numbers over their common divisor, and this as a literal and factors."""
    literal = lcm(*[x.literal for x in numbers])
    # of each factor as many as the number that has most of it
    factors = reduce(or_, [Counter(x.factors) for x in numbers])
    tops = []
    for x in numbers:
        missing = factors - Counter(x.factors)
        tops.append(written_product([x.top, *missing.elements(), const(literal // x.literal)]))
    return tops, literal, tuple(factors.elements())


def _sum(operands: Sequence[Expr]) -> Expr:
    """A sum, with what is subtracted behind what is added."""
    rank = {"neg": 1, "const": 2}
    first, *others = sorted(operands, key=lambda t: rank.get(t.op, 0))
    for term in others:
        if term.op == "neg":
            first = first - term.args[0]
        else:
            first = first - -term.vmin if term.op == "const" and term.vmin < 0 else first + term
    return first


def _first(conditions: Sequence[Expr], values: Sequence[Expr]) -> Expr:
    """The value beside the first condition that holds; the last if none does."""
    found = values[-1]
    for condition, value in zip(reversed(conditions), reversed(values[:-1]), strict=True):
        found = where(condition, value, found)
    return found


#: By class the operator of a relation, and whether its sides are exchanged.
_RELATIONS = {
    "Equality": ("eq", False),
    "Unequality": ("ne", False),
    "StrictLessThan": ("lt", False),
    "LessThan": ("le", False),
    "StrictGreaterThan": ("lt", True),
    "GreaterThan": ("le", True),
}
#: By class how many operands it takes, where SymPy does not say.
_OPERANDS = {
    **dict.fromkeys(("FloorDiv", "CleanDiv", "Mod", "PythonMod", "Implies"), 2),
    **dict.fromkeys(("ModularIndexing", "Where", "ITE"), 3),
}
#: Classes of others that are written again if they were read.
_DERIVED = frozenset({"FloorDiv", "ModularIndexing", "Mod", "PythonMod", "Where", "Max", "Min"})
#: Functions that are bit operators, by their names.
_BITWISE = {
    **dict.fromkeys(("xor", "bitwise_xor", "BitwiseFn_bitwise_xor"), "bitxor"),
    **dict.fromkeys(("bitwise_and", "BitwiseFn_bitwise_and"), "bitand"),
    **dict.fromkeys(("bitwise_or", "BitwiseFn_bitwise_or"), "bitor"),
}
_READERS: dict[str, Callable[[_Reader, Any], _Ratio | Expr]] = {
    **dict.fromkeys(_BITWISE, _Reader._bitwise),
    "Add": _Reader._add,
    "Mul": _Reader._mul,
    "Pow": _Reader._pow,
    "floor": lambda reader, e: _Ratio(reader._quotient(e, reader.number(e.args[0]))),
    "ceiling": _Reader._ceiling,
    **dict.fromkeys(("Mod", "PythonMod"), _Reader._mod),
    "FloorDiv": lambda reader, e: _Ratio(reader._divided(e, *map(reader.number, e.args))),
    "CleanDiv": _Reader._clean_div,
    "ModularIndexing": _Reader._modular_indexing,
    **dict.fromkeys(("Identity", "UnevaluatedExpr"), lambda reader, e: reader.read(e.args[0])),
    "frac": _Reader._fraction,
    "Idx": _Reader._index,
    "Indexed": lambda reader, e: reader._unknown(e, e.base),
    **dict.fromkeys(("Sum", "Product"), _Reader._sum),
    **dict.fromkeys(("Max", "Min"), _Reader._extreme),
    "Abs": _Reader._abs,
    "Piecewise": lambda reader, e: reader._select([pair.args for pair in e.args]),
    **dict.fromkeys(("Where", "ITE"), lambda reader, e: reader._select([(e.args[1], e.args[0]), (e.args[2], True)])),
    **dict.fromkeys(("And", "Or", "Xor", "Equivalent"), _Reader._junction),
    "Not": lambda reader, e: ~reader.condition(e.args[0]),
    "Implies": lambda reader, e: ~reader.condition(e.args[0]) | reader.condition(e.args[1]),
    "BooleanTrue": lambda reader, e: TRUE,
    "BooleanFalse": lambda reader, e: FALSE,
    **dict.fromkeys(_RELATIONS, _Reader._relation),
}


class _Writer:
    """Writes terms, each once."""

    def __init__(self, sympy: Any, names: dict[str, Any]) -> None:
        self.sympy = sympy
        self.names = names
        self._written: dict[Expr, Any] = {}
        #: Names that indices of sums do not take.
        self._free: set[str] = set()

    def write(self, root: Expr) -> Any:
        """The expression of a term. A sum within a sum is written with it, or SymPy would copy each into the next."""
        uses = use_counts([root])
        self._free |= {str(term.value) for term in uses if term.op == "var"}
        inner = {a for term in uses if term.op in SUMS for a in term.args if a.op in SUMS and uses[a] == 1}
        for term in uses:
            if term not in self._written and term.op != "buffer" and term not in inner:
                self._written[term] = self._write(term)
        return self._written[root]

    def _write(self, term: Expr) -> Any:
        if term.op == "load":
            head, operands = self._function(term), [self._written[a] for a in term.args[1:]]
            return head[tuple(operands)] if isinstance(head, self.sympy.IndexedBase) else head(*operands)
        if term.op in SUMS:
            return self._sum(term)
        if (method := _WRITERS.get(term.op)) is None:
            raise ValueError(f"SymPy has no class for {term.op} in {shortened(str(term), 80)!r}")
        return method(self, term, *[self._written[a] for a in term.args])

    def _function(self, term: Expr) -> Any:
        key = buffer_key(term.args[0])
        if key not in self.names:
            name, boolean = key[:-2], self.sympy.logic.boolalg.BooleanFunction
            self.names[key] = type(name, (boolean,), {}) if term.is_bool else self.sympy.Function(name, integer=True)
        return self.names[key]

    def _symbol(self, variable: Expr) -> Any:
        name = str(variable.value)
        if name not in self.names and is_index(variable):
            taken = self._free.union(map(str, self.names.values()))
            self.names[name] = self.sympy.Symbol(next(numbered("r", taken, 1)), integer=True)
        if name not in self.names:
            known = {"positive": True} if variable.vmin > 0 else {"nonnegative": True} if variable.vmin == 0 else {}
            self.names[name] = self.sympy.Symbol(name, integer=True, **known)
        return self.names[name]

    def _sum(self, term: Expr) -> Any:
        """A sum, with the addends of sums within it that are not written by themselves."""
        parts = signed_members(term, lambda part: part not in self._written)
        return self.sympy.Add(*[self._written[part] if sign > 0 else -self._written[part] for part, sign in parts])

    def _quotient(self, term: Expr, x: Any, y: Any) -> Any:
        floor_div, divisor = self.names.get("class FloorDiv"), term.args[1]
        if divisor.vmax < 0:
            x, y = -x, -y
        # PyTorch's FloorDiv makes one quotient of two, which is wrong where the outer divisor is negative
        is_merged_wrongly = floor_div and divisor.vmin < 0 <= divisor.vmax and isinstance(x, floor_div)
        return floor_div(x, y) if floor_div and not is_merged_wrongly else self.sympy.floor(x / y, evaluate=False)

    def _remainder(self, term: Expr, x: Any, y: Any) -> Any:
        dividend, divisor = term.args
        if dividend.vmin >= 0 and divisor.vmin >= 0:
            # truncating and floor remainders agree
            if modular := self.names.get("class ModularIndexing"):
                operands = [x, self.sympy.Integer(1)]
                if dividend.op == "floordiv" and dividend.args[0].vmin >= 0 and dividend.args[1].vmin >= 0:
                    operands = [self._written[a] for a in dividend.args]
                try:
                    return modular(*operands, y)
                except self.sympy.PolynomialError:
                    # PyTorch's class asks for divisors of the dividend, and SymPy finds none of a Piecewise
                    return modular(*operands, y, evaluate=False)
            if remainder := self.names.get("class Mod"):
                return remainder(x, y)
        remainder = self.names.get("class PythonMod")
        return remainder(x, y) if remainder else self.sympy.Mod(x, y, evaluate=False)

    def _extreme(self, term: Expr, x: Any, y: Any) -> Any:
        if term.is_bool:
            return self._junction(term, x, y)
        name = "Min" if term.op == "min" else "Max"
        members, extreme = _members(name, x, y), self.names.get(f"class {name}")
        return extreme(*members) if extreme else getattr(self.sympy, name)(*members, evaluate=False)

    def _junction(self, term: Expr, x: Any, y: Any) -> Any:
        name = "And" if term.op in ("min", "and") else "Or"
        return getattr(self.sympy, name)(*_members(name, x, y), evaluate=False)

    def _selection(self, term: Expr, condition: Any, x: Any, y: Any) -> Any:
        if term.is_bool:
            return self.sympy.ITE(condition, x, y, evaluate=False)
        if selection := self.names.get("class Where"):
            return selection(condition, x, y)
        # not by its constructor, which rewrites conditions with selections in them, or fails to
        kind = self.sympy.Piecewise
        pair = self.sympy.functions.elementary.piecewise.ExprCondPair
        make_pair = self.sympy.Tuple.__new__
        others = y.args if isinstance(y, kind) else [make_pair(pair, y, self.sympy.true)]
        return self.sympy.Basic.__new__(kind, make_pair(pair, x, condition), *others)

    def _over(self, term: Expr, body: Any, index: Any, low: Any, high: Any) -> Any:
        kind = self.sympy.Sum if term.op == "sum_over" else self.sympy.Product
        return kind(body, (index, low, high - 1))

    def _bitwise(self, term: Expr, x: Any, y: Any) -> Any:
        name = {"bitxor": "xor", "bitand": "bitwise_and", "bitor": "bitwise_or"}[term.op]
        return (self.names.get(f"function {term.op}") or self.sympy.Function(name, integer=True))(x, y)

    def _truncated(self, term: Expr, x: Any, y: Any) -> Any:
        """A quotient rounded toward zero is the floor of that of one sign, or less the floor of its opposite."""
        one, other = term.args
        same_sign = ((one >= 0) & (other > 0)) | ((one <= 0) & (other < 0))
        return self.write(where(same_sign, one // other, -((-one) // other)))

    def _equality(self, term: Expr, x: Any, y: Any) -> Any:
        if term.args[0].is_bool:
            same = self.sympy.Equivalent(x, y)
            return same if term.op == "eq" else self.sympy.Not(same)
        return (self.sympy.Eq if term.op == "eq" else self.sympy.Ne)(x, y, evaluate=False)


def _members(name: str, *operands: Any) -> list[Any]:
    """The operands of a chain of one class."""
    return [member for e in operands for member in (e.args if type(e).__name__ == name else (e,))]


_WRITERS: dict[str, Callable[..., Any]] = {
    "const": lambda w, term: w.sympy.Integer(term.vmin),
    "bool": lambda w, term: w.sympy.true if term.vmin else w.sympy.false,
    "var": _Writer._symbol,
    "mul": lambda w, term, x, y: x * y,
    "floordiv": _Writer._quotient,
    "mod": _Writer._remainder,
    "tdiv": _Writer._truncated,
    "tmod": lambda w, term, x, y: x - y * w._truncated(term, x, y),
    "shl": lambda w, term, x, y: x * 2**y,
    "shr": lambda w, term, x, y: w.sympy.floor(x / 2**y, evaluate=False),
    **dict.fromkeys(("bitand", "bitor", "bitxor"), _Writer._bitwise),
    **dict.fromkeys(("min", "max"), _Writer._extreme),
    "where": _Writer._selection,
    **dict.fromkeys(("sum_over", "prod_over"), _Writer._over),
    **dict.fromkeys(("eq", "ne"), _Writer._equality),
    "lt": lambda w, term, x, y: w.sympy.Lt(x, y, evaluate=False),
    "le": lambda w, term, x, y: w.sympy.Le(x, y, evaluate=False),
    **dict.fromkeys(("and", "or"), _Writer._junction),
    "not": lambda w, term, x: w.sympy.Not(x, evaluate=False),
}
