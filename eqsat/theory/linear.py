"""Linear integer arithmetic: a normal form for every term.

The normal form of an integer term is a :class:`eqsat.theory.forms.LinearForm`, a sum of integer multiples of *atoms*
plus a constant. ``x % n`` is ``x - n*(x // n)``, so every div-mod identity is cancellation; a remainder is an atom only
where its dividend has more quotients than are taken apart. A condition normalises to comparisons of a form with a
constant, joined by ``and`` and ``or``. Terms with equal normal forms are equal. Normal forms do not depend on the order
of operands, but for some of nested minima: an operand that another one makes redundant may simplify a third before.

The interface of a theory and its tables are in :mod:`eqsat.theory.arithmetic`. :class:`LinearArithmetic` traverses
terms. The classes that it inherits from implement the rest of the interface: :mod:`eqsat.theory.intervals` (bounds, and
quotients read as divisions), :mod:`eqsat.theory.facts` (what is known), :mod:`eqsat.theory.quotients` (products and
floor division), :mod:`eqsat.theory.comparisons`, :mod:`eqsat.theory.junctions` and :mod:`eqsat.theory.witnesses`
(sample points). The other modules have functions that take a theory: :mod:`eqsat.theory.bits` (bit operators),
:mod:`eqsat.theory.extremes` (``min`` and ``max``), :mod:`eqsat.theory.branches` (selections),
:mod:`eqsat.theory.reduce` (reductions), :mod:`eqsat.theory.adjacent` and :mod:`eqsat.theory.nested` (reductions over
parts and over digits of a range), :mod:`eqsat.theory.refutation` (what cannot hold) and :mod:`eqsat.theory.digits`
(digits compared one by one).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Self

from eqsat.lang.errors import TooWideError
from eqsat.lang.expr import FALSE, TRUE, Expr, make
from eqsat.lang.ops import FLOATS, REDUCTIONS, SUMS, Bounds
from eqsat.lang.properties import is_wide
from eqsat.lang.traversal import is_long_chain, long_partial_chains, topological_until
from eqsat.theory.adjacent import JOINS, as_one_range, difference, joined
from eqsat.theory.arithmetic import begun
from eqsat.theory.bits import bitwise, differing
from eqsat.theory.branches import normal_selection, selection_of
from eqsat.theory.comparisons import Comparisons
from eqsat.theory.definedness import may_be_undefined
from eqsat.theory.extremes import extreme_of
from eqsat.theory.facts import Facts
from eqsat.theory.forms import ZERO, LinearForm, atom_form, combination, number, to_expr
from eqsat.theory.intervals import Intervals
from eqsat.theory.junctions import Junctions
from eqsat.theory.limits import LIMITS
from eqsat.theory.quotients import Quotients
from eqsat.theory.ranges import inside_reduction
from eqsat.theory.reduce import normal_reduction
from eqsat.theory.refutation import never_negative
from eqsat.theory.witnesses import Witnesses

#: Atoms that may be known to equal other forms.
_REPLACEABLE = frozenset({"floordiv", "tdiv", "where", "min"})


class LinearArithmetic(Comparisons, Junctions, Quotients, Facts, Intervals, Witnesses):
    """Normal forms under known facts; all results are memoised.

    Parameters
    ----------
    facts : iterable of bool Expr
        Conditions known to hold wherever the terms are evaluated.

    Raises ``ValueError`` if the facts contradict each other.

    >>> from eqsat.lang.expr import var
    >>> i, j = var("i", 0, 7), var("j", 0, 31)
    >>> LinearArithmetic().simplify((i*32 + j) // 32 * 32 + (i*32 + j) % 32)
    Expr('i*32 + j')
    """

    difference_of_ranges = difference
    extreme = extreme_of
    inside = inside_reduction
    is_never_negative = never_negative
    joined_ranges = joined
    may_be_undefined = may_be_undefined
    selection = selection_of

    def form(self, root: Expr) -> LinearForm:
        return self.forms.get(root) or self._traverse(root).forms[root]

    def condition(self, root: Expr) -> Expr:
        found = self.conditions.get(root)
        return self._traverse(root).conditions[root] if found is None else found

    def _traverse(self, root: Expr) -> Self:
        """Normalise ``root`` and all terms below it, except partial chains of a long chain."""
        done = self._is_done if self.parent else self.traversed.__contains__
        if not is_long_chain(root, LIMITS.wide_chain):
            self.traverse(topological_until([root], done))
            return self
        order: dict[Expr, None] = {}
        for term in topological_until([root], lambda term: term in order or done(term)):
            order[term] = None
        self.traverse(order, long_partial_chains(order, LIMITS.wide_chain))
        return self

    def traverse(self, order: Iterable[Expr], parts: Collection[Expr] = ()) -> None:
        """Normalise terms, which come after their operands; ``parts``, the partial chains, get no form of their own."""
        done = self.traversed
        for place, term in enumerate(order, 1):
            if place % LIMITS.terms_per_look == 0:
                # this may raise where no term looks at the clock
                self.late_or_raise()
            if term not in done and term not in parts:
                if term.is_bool:
                    self.conditions[term] = self._condition(term)
                else:
                    self.forms[term] = self._form_or_atom(term)
                done.add(term)

    def assert_equal(self, equalities: Iterable[tuple[Expr, Expr]]) -> None:
        """Add equalities of terms in normal form, simpler ones first, and what follows for the terms that use them.

        The caller has proved them under the facts.
        """
        changed = self.rewrite(equalities)
        for _ in range(LIMITS.consequences):
            found = {} if self.late_or_raise() else self._consequences(changed)
            if not found:
                break
            changed = self.rewrite(sorted(found.items(), key=lambda item: self.simplicity[item[0]]))

    def _consequences(self, changed: set[Expr]) -> dict[Expr, Expr]:
        """Atoms and what they equal, as the terms with ``changed`` operands say, which now have a second normal form.

        ``(A//n)//m`` has the normal form ``A//(n*m)``, without ``A//n``: an equality of ``A//n`` does not rewrite it.
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
        content = form.content()
        return content, form.constant % content if content else form.constant

    def _is_done(self, term: Expr) -> bool:
        """Whether a term is done; its form is the parent's if no fact of this theory is about its variables."""
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
        """The normal form of a term; the term itself as an atom, where the form has much wider terms.

        ``x % n`` is below ``n``, but the terms of ``x - n*(x//n)`` are not: if remainders are multiplied again and
        again, these soon exceed all machine integers, and then the widest numbers that are accepted.
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
        has_reduction = JOINS.get(op) in [a.op for a in args]
        if has_reduction and self.is_canonical and (whole := as_one_range(self, term)) is not None:
            return self.form(whole)
        if op in ("min", "max") and not (args[0] in forms and args[1] in forms):
            return self.extreme(op, operands_in(forms, term))
        if (step := _INTEGER_STEPS.get(op)) is not None:
            if (written := _decided_by_bounds(op, *args)) is not None:
                return forms[written[0]].shifted(written[1])
            if op in ("floordiv", "tdiv") and self.parent is not None and forms[args[1]] == ZERO:
                return self._never_evaluated(term)
            return step(self, forms[args[0]], forms[args[1]])
        if op in REDUCTIONS and not term.element:
            return normal_reduction(self, term)
        if (of_term := _STEPS.get(op)) is not None:
            return of_term(self, term)
        if term.element:
            # nothing is known of a rounded value
            return atom_form(term)
        if op in ("load", "buffer"):
            return self._variable(self._loaded(term))
        # an operator without laws here
        made = make(op, *[to_expr(forms[a]) for a in args])
        return number(made.vmin) if made.vmin == made.vmax else atom_form(made)

    def _never_evaluated(self, quotient: Expr) -> LinearForm:
        """The form of a quotient whose divisor is zero here: any value is right, but it must be the same everywhere.

        The outermost theory simplifies ``n//n`` to 1 in all terms that contain it; so it is 1 also where ``n`` is zero.
        """
        elsewhere = to_expr(self.outermost().form(quotient))
        if elsewhere is quotient or quotient in self._replacing:
            return ZERO
        with begun(self._replacing, quotient):
            return self.form(elsewhere)

    def _sum(self, term: Expr) -> LinearForm:
        """The form of an addition and of the partial sums in it that have none of their own."""
        addends = operands_in(self.forms, term)
        if len(addends) == 2:
            return addends[0].plus(addends[1])
        return combination([(form, 1) for form in addends], 0)

    def _condition(self, term: Expr) -> Expr:
        if term.vmin == term.vmax:
            return TRUE if term.vmin else FALSE
        if term.op == "buffer":
            return term
        result = term if term.op in FLOATS else self._loaded(term) if term.op == "load" else self._of_operands(term)
        return self.known.get(result, result)

    def _of_operands(self, term: Expr) -> Expr:
        """A junction, a complement, a selection or a comparison, by the normal forms of its operands."""
        op, args = term.op, term.args
        if op in ("and", "or"):
            return self.junction(op, operands_in(self.conditions, term))
        if op == "not":
            return self.negate(self.conditions[args[0]])
        if op == "where" or args[0].is_bool:
            return self._choice(term)
        x, y = self.forms[args[0]], self.forms[args[1]]
        if op in ("lt", "le"):
            return self.at_least_zero(y.plus(x, -1).shifted(-1 if op == "lt" else 0))
        equal = self.equal_zero(differing(self, x.plus(y, -1)))
        return equal if op == "eq" else self.negate(equal)

    def _loaded(self, term: Expr) -> Expr:
        """A load with its indices in normal form; a buffer is one already."""
        indices = [to_expr(self.forms[a]) for a in term.args[1:]]
        return make("load", term.args[0], *indices) if indices else term

    def _variable(self, term: Expr) -> LinearForm:
        """The form of a variable, or of an element of an array at indices in normal form."""
        low, high = self.range(term)
        if low == high:
            return number(low)
        if (solved := self.solved.get(term)) is None:
            return atom_form(term)
        return combination([(self.atom(atom), k) for atom, k in solved.terms.items()], solved.constant)

    def bounds_of(self, term: Expr) -> Bounds:
        """Inclusive bounds of an integer term: those of its normal form, or its own where they are closer."""
        low, high = self.bounds(self.form(term))
        return max(low, term.vmin), min(high, term.vmax)

    def simplify(self, term: Expr) -> Expr:
        """The normal form of ``term`` as a term."""
        return self.condition(term) if term.is_bool else to_expr(self.form(term))


#: The normal form of a term with the operator, those of its operands being known.
_STEPS: dict[str, Callable[[LinearArithmetic, Expr], LinearForm]] = {
    "add": LinearArithmetic._sum,
    "neg": lambda theory, term: theory.forms[term.args[0]].times(-1),
    "var": LinearArithmetic._variable,
    "where": normal_selection,
}
#: The normal form of the operator on two normal forms.
_INTEGER_STEPS: dict[str, Callable[[LinearArithmetic, LinearForm, LinearForm], LinearForm]] = {
    "sub": lambda theory, x, y: x.plus(y, -1),
    "mul": lambda theory, x, y: theory.times(x, y),
    "floordiv": LinearArithmetic.quotient,
    "mod": LinearArithmetic.remainder,
    "tdiv": LinearArithmetic.truncated,
    "tmod": lambda theory, x, y: x.plus(theory.times(y, theory.truncated(x, y)), -1),
    "shl": lambda theory, x, y: theory._shifted("shl", x, y),
    "shr": lambda theory, x, y: theory._shifted("shr", x, y),
    "bitand": lambda theory, x, y: bitwise(theory, "bitand", x, y),
    "bitor": lambda theory, x, y: bitwise(theory, "bitor", x, y),
    "bitxor": lambda theory, x, y: bitwise(theory, "bitxor", x, y),
    "min": lambda theory, x, y: theory.extreme("min", [x, y]),
    "max": lambda theory, x, y: theory.extreme("max", [x, y]),
}


def operands_in[Value](values: Mapping[Expr, Value], term: Expr) -> list[Value]:
    """The values of the operands of a chain; of a partial chain without a value, those of its operands."""
    op, joined, stack = term.op, list[Value](), [term]
    while stack:
        part = stack.pop()
        if part.op == op and part not in values:
            stack.extend(reversed(part.args))
        else:
            joined.append(values[part])
    return joined


def _decided_by_bounds(op: str, x: Expr, y: Expr) -> tuple[Expr, int] | None:
    """The operand, and a number to add to it, that an operation equals by the bounds of its operands as written.

    The bounds of a sum of remainders are lost in its normal form, where each remainder is a sum.
    """
    if op == "mod" and y.vmin == y.vmax > 0:
        q = x.vmin // y.vmin
        return (x, -q * y.vmin) if q == x.vmax // y.vmin else None
    if op in ("min", "max") and (x.vmax <= y.vmin or y.vmax <= x.vmin):
        return (x if (x.vmax <= y.vmin) == (op == "min") else y), 0
    return None


def _solved(equation: LinearForm, atom: Expr) -> LinearForm | None:
    """The form that ``atom`` equals if ``equation`` is zero; ``None`` if its coefficients are not integers."""
    scale = -equation.terms[atom]
    if abs(scale) != equation.common_factor():
        return None
    rest = {other: k // scale for other, k in equation.terms.items() if other is not atom}
    return LinearForm(rest, equation.constant // scale)
