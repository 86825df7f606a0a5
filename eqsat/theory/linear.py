"""Linear integer arithmetic as a theory beside the e-graph: a normal form for every term.

The normal form of an integer term is a :class:`eqsat.theory.forms.LinearForm`, a sum of integer multiples of *atoms*
plus a constant. ``x % n`` is ``x - n*(x // n)``, so every div-mod identity is cancellation; a remainder is an atom only
where its dividend has more quotients than are taken apart. A condition normalises to comparisons of a form with a
constant, joined by ``and`` and ``or``. Terms with equal normal forms are equal; nothing depends on the order of
operands.

Its parts, each a layer on the one before: :mod:`eqsat.theory.forms` (sums), :mod:`eqsat.theory.divisions` (atoms as
quotients), :mod:`eqsat.theory.intervals` (bounds), :mod:`eqsat.theory.facts` (what is known),
:mod:`eqsat.theory.quotients` (floor division), :mod:`eqsat.theory.bits` (bit operators),
:mod:`eqsat.theory.refutation` (what cannot hold), :mod:`eqsat.theory.extremes` (``min`` and ``max``),
:mod:`eqsat.theory.digits` (digits compared one by one), :mod:`eqsat.theory.conditions`, :mod:`eqsat.theory.reduce`
(reductions), and here the traversal of terms. What a lower layer asks of a higher one is declared in
:mod:`eqsat.theory.facts`. Reading the facts that a theory starts with needs all layers: each sets its own fields before
it initialises the one below.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from math import gcd
from typing import Self

from eqsat.lang.errors import TooWideError
from eqsat.lang.expr import FALSE, TRUE, Expr, is_wide, make, topological
from eqsat.lang.ops import DIVISIONS, FLOATS, OWN, REDUCTIONS, SUMS, Bounds
from eqsat.lang.traversal import topological_until
from eqsat.theory.conditions import is_negative
from eqsat.theory.forms import LinearForm, atom_form, combination, factors, number, scale_of, to_expr, without_quotients
from eqsat.theory.limits import LIMITS
from eqsat.theory.reduce import Reductions

#: Atoms that may be known to equal other forms.
_REPLACEABLE = frozenset({"floordiv", "tdiv", "where", "min"})


class LinearArithmetic(Reductions):
    """Normal forms under known facts; all results are memoised.

    Parameters
    ----------
    facts : iterable of bool Expr
        Conditions known to hold wherever the terms are evaluated.

    Raises
    ------
    ValueError
        If the facts contradict each other.

    >>> from eqsat.lang.expr import var
    >>> i, j = var("i", 0, 7), var("j", 0, 31)
    >>> LinearArithmetic().simplify((i*32 + j) // 32 * 32 + (i*32 + j) % 32)
    Expr('i*32 + j')
    """

    #: Whether terms that are known to be equal have one normal form, however they are written.
    is_canonical = True
    #: By dividend the divisors and remainders that are known, where no normal form says so.
    residues: Mapping[Expr, tuple[int, int]] = {}

    def form(self, root: Expr) -> LinearForm:
        """The normal form of an integer term."""
        return self.forms.get(root) or self._traverse(root).forms[root]

    def condition(self, root: Expr) -> Expr:
        """The normal form of a bool term, as a term."""
        found = self.conditions.get(root)
        return self._traverse(root).conditions[root] if found is None else found

    def _traverse(self, root: Expr) -> Self:
        """Normalise ``root`` and all below it."""
        self.traverse(topological_until([root], self._is_done if self.parent else self.traversed.__contains__))
        return self

    def traverse(self, order: Iterable[Expr], parts: Collection[Expr] = ()) -> None:
        """Normalise terms whose operands come before them; ``parts`` of others get no form of their own."""
        done = self.traversed
        for place, term in enumerate(order, 1):
            if place % LIMITS.terms_per_look == 0:
                # overdue also where no term asks
                self.is_late()
            if term not in done and term not in parts:
                if term.is_bool:
                    self.conditions[term] = self._condition(term)
                else:
                    self.forms[term] = self._form_or_atom(term)
                done.add(term)

    def assert_equal(self, equalities: Iterable[tuple[Expr, Expr]]) -> None:
        """Add equalities of terms in normal form, simpler ones first, and what follows from them where these are used.

        The caller has proved them under the facts.
        """
        changed = self.rewrite(equalities)
        for _ in range(LIMITS.consequences):
            found = {} if self.is_late() else self._consequences(changed)
            if not found:
                break
            changed = self.rewrite(sorted(found.items(), key=lambda item: self.simplicity[item[0]]))

    def _consequences(self, changed: set[Expr]) -> dict[Expr, Expr]:
        """Atoms, and what they equal since terms with ``changed`` operands have a second normal form.

        ``(A//n)//m`` is one atom that does not say what ``A//n`` was: what is asserted of that is read off here.
        """
        found: dict[Expr, Expr] = {}
        for term, form in list(self.forms.items()):
            if changed.isdisjoint(term.args) or term.op in SUMS or form.is_affine():
                continue
            if self.traversed.issuperset(term.args):
                equation = self._form(term).plus(form, -1)
                atom = max(equation.terms, key=self.simplicity.__getitem__, default=None)
                if atom in form.terms and atom not in found and atom.op in _REPLACEABLE:
                    other = _solved(equation, atom)
                    if other is not None:
                        found[atom] = to_expr(other)
        return found

    def alignment(self, form: LinearForm) -> tuple[int, int]:
        """A number, and what all values of a form leave modulo it; 0 and the value of a literal."""
        content = form.content()
        return content, form.constant % content if content else form.constant

    def read_as(self, term: Expr, form: LinearForm) -> None:
        """Take ``form``, which equals ``term``, for its normal form."""
        self.forms[term] = form
        self.traversed.add(term)

    def _is_done(self, term: Expr) -> bool:
        """Whether a term is done, here or by the parent, to which it is the same if no fact here speaks of it."""
        if term in self.traversed:
            return True
        if self.parent is None or self.variables.of(term) & self.touched:
            return False
        if term.is_bool:
            self.conditions[term] = self.parent.condition(term)
        else:
            self.forms[term] = self.parent.form(term)
        self.traversed.add(term)
        return True

    def _form_or_atom(self, term: Expr) -> LinearForm:
        """The normal form of a term; the term itself, which has its own bounds, where that would be much wider.

        The terms of ``x - n*(x//n)`` are not bound by ``n``: of remainders multiplied again and again each is wider
        than any machine integer, and in the end than any that is accepted.
        """
        try:
            form = self._form(term)
        except TooWideError:
            return atom_form(term)
        if term.op == "mul" and any(map(is_wide, form.terms)) and not is_wide(term):
            return atom_form(term)
        return form

    def _form(self, term: Expr) -> LinearForm:
        forms, op, args = self.forms, term.op, term.args
        if term.vmin == term.vmax:
            return number(term.vmin)
        if op == "add":
            return self._sum(term)
        step = _INTEGER_STEPS.get(op)
        if step is not None:
            written = _decided_by_bounds(op, *args)
            if written is not None:
                return forms[written[0]].shifted(written[1])
            return step(self, forms[args[0]], forms[args[1]])
        if op == "var":
            return self._variable(term)
        if op == "where":
            return self._where(term)
        if op == "neg":
            return forms[args[0]].times(-1)
        if op in REDUCTIONS and not term.element:
            return self._reduction(term)
        if op in OWN:
            own = make(op, *[to_expr(forms[a]) for a in args])
            return number(own.vmin) if own.vmin == own.vmax else atom_form(own)
        # nothing is known of a rounded value
        return atom_form(term) if term.element else self._variable(self._loaded(term))

    def _sum(self, term: Expr) -> LinearForm:
        """The form of an addition, whose first operands may be additions that have none: each would copy the last."""
        addends = []
        while term.op == "add" and term not in self.forms:
            addends.append(self.forms[term.args[1]])
            term = term.args[0]
        return self.forms[term].plus_all(addends[::-1])

    def _condition(self, term: Expr) -> Expr:
        op, args = term.op, term.args
        if term.vmin == term.vmax:
            return TRUE if term.vmin else FALSE
        if op == "buffer":
            return term
        if op in FLOATS:
            return self.known.get(term, term)
        if op == "load":
            loaded = self._loaded(term)
            return self.known.get(loaded, loaded)
        if op in ("and", "or"):
            result = self.junction(op, [self.conditions[a] for a in args])
        elif op == "not":
            result = self.negate(self.conditions[args[0]])
        elif op == "where" or args[0].is_bool:
            result = self._choice(term)
        else:
            x, y = self.forms[args[0]], self.forms[args[1]]
            if op == "lt":
                result = self.at_least_zero(y.plus(x, -1).shifted(-1))
            elif op == "le":
                result = self.at_least_zero(y.plus(x, -1))
            else:
                result = self.equal_zero(self.differing(x.plus(y, -1)))
                if op == "ne":
                    result = self.negate(result)
        return self.known.get(result, result)

    def _loaded(self, term: Expr) -> Expr:
        """A load with its indices in normal form; a buffer is one already."""
        indices = [to_expr(self.forms[a]) for a in term.args[1:]]
        return make("load", term.args[0], *indices) if indices else term

    def _variable(self, term: Expr) -> LinearForm:
        """The form of a variable, or of an element of an array at indices in normal form."""
        low, high = self.range(term)
        if low == high:
            return number(low)
        solved = self.solved.get(term)
        if solved is None:
            return atom_form(term)
        return combination([(self.atom(atom), k) for atom, k in solved.terms.items()], solved.constant)

    def value(self, term: Expr) -> LinearForm | Expr:
        """The normal form of any term: equal for terms that are known to be equal."""
        return self.condition(term) if term.is_bool else self.form(term)

    def bounds_of(self, term: Expr) -> Bounds:
        """Inclusive bounds of an integer term: those of its normal form, or its own where they are closer."""
        low, high = self.bounds(self.form(term))
        return max(low, term.vmin), min(high, term.vmax)

    def simplify(self, term: Expr) -> Expr:
        """The normal form of ``term`` as a term."""
        return self.condition(term) if term.is_bool else to_expr(self.form(term))

    def _where(self, term: Expr) -> LinearForm:
        condition = self.conditions[term.args[0]]
        if condition is TRUE or condition is FALSE:
            return self.forms[term.args[1] if condition is TRUE else term.args[2]]
        yes, no = term.args[1:]
        if is_negative(condition):
            condition, yes, no = self.negate(condition), no, yes
        extreme = self._as_extreme(condition, self.forms[yes], self.forms[no])
        if extreme is not None:
            return extreme
        x, y = self._branch(yes, condition), self._branch(no, self.negate(condition))
        if x is None or y is None:
            return self.forms[no if x is None else yes]
        return self.selection(condition, x, y)

    def selection(self, condition: Expr, x: LinearForm, y: LinearForm) -> LinearForm:
        """The normal form of ``where(condition, x, y)``; each branch knows the condition already."""
        key = (condition, x, y)
        found = self._selections.get(key)
        if found is None:
            found = self._selections[key] = self._selection(condition, x, y)
        return found

    def _selection(self, condition: Expr, x: LinearForm, y: LinearForm) -> LinearForm:
        if x == y or self._is_read_as(y, x, condition):
            return y
        if self._is_read_as(x, y, self.negate(condition)):
            return x
        pulled = self._selected_division(condition, x, y) or self._toward_zero(condition, x, y)
        if pulled is not None:
            return pulled
        x, y = self._at_ends(condition, x, y)
        if x == y:
            return x
        common = LinearForm({a: c for a, c in x.terms.items() if y.terms.get(a) == c}, 0)
        x, y = x.plus(common, -1), y.plus(common, -1)
        read = self.wrapped(condition, common, x, y) or self._two_periods(condition, x, y)
        if read is not None:
            return common.plus(read)
        scale = gcd(*x.terms.values(), x.constant, *y.terms.values(), y.constant)
        signs = (y.constant, x.constant, y.terms and y.sign(), x.terms and x.sign())
        scale *= -1 if next(s for s in signs if s) < 0 else 1
        x, y = x.divided(scale), y.divided(scale)
        for atom in (*x.terms, *y.terms):
            if atom.op == "where":
                # else the bounds of the outermost of a thousand selections would be asked for first
                self.range(atom)
        return common.plus(self.atom(make("where", condition, to_expr(x), to_expr(y))), scale)

    def _at_ends(self, condition: Expr, x: LinearForm, y: LinearForm) -> tuple[LinearForm, LinearForm]:
        """Branches as one and a literal beside it, where the condition is, or its failure, an equation that says so."""
        difference = x.plus(y, -1)
        if difference.terms:
            for is_there, zero in zip((True, False), self.outermost().ends(condition), strict=True):
                if zero.terms.keys() == difference.terms.keys():
                    left = difference.plus(zero, -scale_of(zero, difference))
                    if not left.terms:
                        return (y.shifted(left.constant), y) if is_there else (x, x.shifted(-left.constant))
        return x, y

    def _two_periods(self, condition: Expr, x: LinearForm, y: LinearForm) -> LinearForm | None:
        """``where(A < n, 0, k)`` is ``k*(A // n)`` for ``A`` in ``[0, 2n)``, if ``n`` is a literal or ``k``."""
        step = y.plus(x, -1)
        if condition.op != "lt" or step.content() > 1 or len(step.terms) > 1:
            return None
        left, right = map(self.inner, condition.args)
        if not step.terms:
            return None if x.terms or right.terms else self._stepped(x, step, left, right)
        if self.bounds(step)[1] < 0:
            # the branches, and the sides of the comparison, the other way round
            x, y, step, left, right = y, x, step.times(-1), right, left.shifted(1)
        if self.bounds(step)[0] <= 0:
            return None
        # left < right says A < n of A = n + left - right, and n <= A of A = n - 1 - left + right
        gap = left.plus(right, -1)
        return self._stepped(x, step, step.plus(gap), step) or self._stepped(
            y, step.times(-1), step.plus(gap, -1).shifted(-1), step
        )

    def wrapped(self, condition: Expr, common: LinearForm, x: LinearForm, y: LinearForm) -> LinearForm | None:
        """What ``where(A < 0, n, 0)`` adds to an ``A`` in ``[-n, n)``, that makes it ``A % n``.

        Also what ``where(A % n < 1, 0, 1)`` adds to ``A // n``, that makes it ``(A + n - 1) // n``.
        """
        if x.terms or y.terms or condition.op not in ("lt", "le") or condition.args[0].is_bool:
            return None
        # the first branch is where this is never negative
        gap = self.inner(condition.args[1]).plus(self.inner(condition.args[0]), -1).shifted(-(condition.op == "lt"))
        step = x.constant - y.constant
        rounded_up = self.rounded_up(gap, common, step)
        if rounded_up is not None:
            # the second branch is that of what is divisible, or the first is
            return (y if gap.constant else x).plus(rounded_up)
        period = self._rounded_by(gap, common, step)
        if not period:
            atom, k = next(iter(gap.terms.items()))
            scale = common.terms.get(atom, 0) // k
            if scale < 0:
                gap, scale, step, y = gap.times(-1).shifted(-1), -scale, -step, x
            period, rest = divmod(-step, scale) if scale else (0, 1)
            if rest or any(common.terms.get(a) != scale * c for a, c in gap.terms.items()):
                return None
        # where only a gate or a branch bounds it, the quotient would have other values beside the selection's two
        low, high = self.outermost().bounds(gap)
        if -period <= low and high < period:
            return y.plus(self.quotient_by(gap.shifted(period), period), step)
        return None

    def rounded_up(self, gap: LinearForm, common: LinearForm, step: int) -> LinearForm | None:
        """What makes ``A // d``, of which ``common`` has a multiple, ``(A + d - 1) // d``, if ``d`` is no literal.

        That is if ``gap`` says whether the remainder is at least 1, and the branches differ by that multiple.
        """
        for atom, k in common.terms.items():
            sign = -1 if gap.constant == 0 else 1
            if atom.op != "floordiv" or atom.args[1].op == "const" or k != sign * step or gap.constant not in (0, -1):
                continue
            dividend, divisor = map(self.inner, atom.args)
            remainder = dividend.plus(self.times(divisor, atom_form(atom)), -1)
            if self.bounds(divisor)[0] > 0 and gap == remainder.times(sign).shifted(gap.constant):
                return self.quotient(dividend.plus(divisor).shifted(-1), divisor).plus(atom_form(atom), -1).times(k)
        return None

    @staticmethod
    def _rounded_by(gap: LinearForm, common: LinearForm, step: int) -> int:
        """The divisor of a quotient in ``common`` that a selection by its remainder, ``gap``, rounds; 0 if none."""
        for atom, k in gap.terms.items():
            cancels = common.terms.get(atom, 0) == (-step if k > 0 else step)
            if cancels and atom.op == "floordiv" and atom.args[1].op == "const" and atom.args[1].vmin == abs(k):
                return abs(k)
        return 0

    def _stepped(
        self, start: LinearForm, step: LinearForm, dividend: LinearForm, divisor: LinearForm
    ) -> LinearForm | None:
        """``start + step*(dividend // divisor)`` if that is one quotient, or one variable, and 0 or 1."""
        if not self._is_proper_remainder(dividend, divisor.times(2)):
            return None
        if not (self.is_defined(to_expr(start)) and self.is_defined(to_expr(step))):
            # both branches would be evaluated everywhere
            return None
        quotient = self.quotient(dividend, divisor)
        atom = quotient.single()
        is_one = atom is not None and atom.op == "floordiv"
        # a variable of two values is such a quotient itself
        is_variable = divisor == number(1) and [a.op for a in quotient.terms] == ["var"]
        return start.plus(self.times(step, quotient)) if is_one or is_variable else None

    def _is_read_as(self, form: LinearForm, other: LinearForm, condition: Expr) -> bool:
        """Whether ``form`` is ``other`` where the condition holds."""
        term = to_expr(form)
        if not self.variables.of(term) & self.variables.of(condition):
            return False
        theory = self.assuming(condition)
        if theory is None or theory is self:
            return False
        return theory.is_defined(term) and self._form_assuming(theory, term) == other

    def is_defined(self, term: Expr) -> bool:
        """Whether no divisor in ``term``, wherever it stands, can be zero."""
        divisors = [t.args[1] for t in topological([term]) if t.op in DIVISIONS]
        return all(d.vmin > 0 or d.vmax < 0 or self.is_nonzero(self.form(d)) for d in divisors)

    def _selected_division(self, condition: Expr, x: LinearForm, y: LinearForm) -> LinearForm | None:
        """``where(c, x // d, y // d)`` is ``where(c, x, y) // d``, and so for the remainder, if ``d`` is no literal."""
        one, other = _division(x), _division(y)
        if one is None or other is None or one[1] is not other[1]:
            return None
        divisor = self.inner(one[1])
        dividends = self.inner(one[0]), self.inner(other[0])
        if (x, y) == (self.quotient(dividends[0], divisor), self.quotient(dividends[1], divisor)):
            return self.quotient(self.selection(condition, *dividends), divisor)
        if (x, y) == (self.remainder(dividends[0], divisor), self.remainder(dividends[1], divisor)):
            return self.remainder(self.selection(condition, *dividends), divisor)
        return None

    def _toward_zero(self, condition: Expr, x: LinearForm, y: LinearForm) -> LinearForm | None:
        """``where(x < 0, (x + n - 1)//n, x//n)`` is ``tdiv(x, n)``."""
        atom = y.single()
        if atom is None or atom.op != "floordiv" or atom.args[1].op != "const" or condition.op != "lt":
            return None
        dividend, divisor = map(self.inner, atom.args)
        below = dividend.times(-1)
        if condition not in (self.at_least_zero(below), self.at_least_zero(below.shifted(-1))):
            return None
        rounded_up = self.quotient(dividend.shifted(divisor.constant - 1), divisor)
        return self.truncated(dividend, divisor) if x == rounded_up else None

    def _as_extreme(self, condition: Expr, x: LinearForm, y: LinearForm) -> LinearForm | None:
        """``where(x < y, x, y)`` is ``min(x, y)``, and so on; so is any selection of the lesser term."""
        difference = x.plus(y, -1)
        compared = next((a for a in condition.args if a.op != "const"), None) if condition.op in ("lt", "le") else None
        is_compared = compared is not None and self.inner(compared).terms.keys() == difference.terms.keys()
        if not is_compared and x.terms and y.terms and any(a.op in ("floordiv", "min") for a in difference.terms):
            # comparisons of quotients and of extremes are read as others
            is_compared = self.variables.of(condition) == self.variables.of(to_expr(difference))
        for op, above in (("max", difference), ("min", difference.times(-1))) if is_compared else ():
            if condition in (self.at_least_zero(above), self.at_least_zero(above.shifted(-1))):
                return self.extreme(op, [x, y])
        return self._as_extreme_by_bounds(condition, x, y) if is_compared or compared is not None else None

    def _as_extreme_by_bounds(self, condition: Expr, x: LinearForm, y: LinearForm) -> LinearForm | None:
        """``where(x < 0, 0, min(x, 7))`` is ``max(0, min(x, 7))``: by bounds the greater is chosen in both cases."""
        difference = x.plus(y, -1)
        if not difference.terms or not self.variables.of(to_expr(difference)) & self.variables.of(condition):
            return None
        there, elsewhere = self.assuming(condition), self.assuming(self.negate(condition))
        if there is None or elsewhere is None or not all(self.is_defined(to_expr(form)) for form in (x, y)):
            return None
        for op, above in (("max", difference), ("min", difference.times(-1))):
            if there.bounds(above)[0] >= 0 and elsewhere.bounds(above)[1] <= 0:
                return self.extreme(op, [x, y])
        return None

    def _branch(self, term: Expr, condition: Expr) -> LinearForm | None:
        """The form of ``term`` where ``condition`` holds; ``None`` if it never does."""
        if not self.variables.of(term) & self.variables.of(condition):
            return self.forms[term]
        theory = self.assuming(condition)
        return None if theory is None else self._form_assuming(theory, term)

    def _form_assuming(self, theory: Self, term: Expr) -> LinearForm:
        """The form of ``term`` under a theory that knows more, without quotients that only that knows to be sums."""
        form = theory.form(term)
        equations = theory.equations(self)
        if not equations:
            return form
        inside = to_expr(form)
        plain = without_quotients(inside, equations)
        return form if plain is inside else self.form(plain)


_INTEGER_STEPS: dict[str, Callable[[LinearArithmetic, LinearForm, LinearForm], LinearForm]] = {
    "sub": lambda theory, x, y: x.plus(y, -1),
    "mul": LinearArithmetic.times,
    "floordiv": LinearArithmetic.quotient,
    "mod": LinearArithmetic.remainder,
    "tdiv": LinearArithmetic.truncated,
    "tmod": LinearArithmetic._truncated_remainder,
    "shl": LinearArithmetic._shift_left,
    "shr": LinearArithmetic._shift_right,
    "bitand": lambda theory, x, y: theory.bitwise("bitand", x, y),
    "bitor": lambda theory, x, y: theory.bitwise("bitor", x, y),
    "bitxor": lambda theory, x, y: theory.bitwise("bitxor", x, y),
    "min": lambda theory, x, y: theory.extreme("min", [x, y]),
    "max": lambda theory, x, y: theory.extreme("max", [x, y]),
}


def _decided_by_bounds(op: str, x: Expr, y: Expr) -> tuple[Expr, int] | None:
    """The operand, and what is added to it, that an operation is by the bounds of its operands as they are written.

    A sum of remainders has the bounds of a number in digits; its normal form, where they are sums, does not show them.
    """
    if op == "mod" and y.vmin == y.vmax > 0:
        q = x.vmin // y.vmin
        return (x, -q * y.vmin) if q == x.vmax // y.vmin else None
    if op in ("min", "max") and (x.vmax <= y.vmin or y.vmax <= x.vmin):
        return (x if (x.vmax <= y.vmin) == (op == "min") else y), 0
    return None


def _solved(equation: LinearForm, atom: Expr) -> LinearForm | None:
    """What ``atom`` is if ``equation`` is zero, where that is a sum of integer multiples."""
    scale = -equation.terms[atom]
    if abs(scale) != gcd(equation.content(), equation.constant):
        return None
    rest = {other: k // scale for other, k in equation.terms.items() if other is not atom}
    return LinearForm(rest, equation.constant // scale)


def _division(form: LinearForm) -> tuple[Expr, Expr] | None:
    """Dividend and divisor of the one quotient in ``form`` whose divisor is no literal."""
    quotients = {f for a in form.terms for f in factors(a) if f.op == "floordiv" and f.args[1].op != "const"}
    return quotients.pop().args if len(quotients) == 1 else None  # type: ignore[return-value]
