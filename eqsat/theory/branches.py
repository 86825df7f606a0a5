"""Selections in normal form. Each branch is normalised under the condition, or its complement.

Terms that both branches have leave the selection. A selection of the lesser term is a minimum. A correction by the sign
or the remainder of a sum makes a remainder or a rounded quotient. What is left is an atom ``where(condition, x, y)``.
"""

from __future__ import annotations

from math import gcd

from eqsat.lang.expr import FALSE, TRUE, Expr, const, make
from eqsat.theory.arithmetic import Arithmetic, is_negative, kept
from eqsat.theory.forms import LinearForm, atom_form, factors, literal_divisor, number, to_expr, without_quotients


def normal_selection(theory: Arithmetic, term: Expr) -> LinearForm:
    """The normal form of a selection whose operands have theirs."""
    condition = theory.conditions[term.args[0]]
    if condition is TRUE or condition is FALSE:
        return theory.forms[term.args[1] if condition is TRUE else term.args[2]]
    yes, no = term.args[1:]
    if (extreme := _as_extreme_of_compared(theory, term)) is not None:
        return extreme
    if is_negative(condition):
        condition, yes, no = theory.negate(condition), no, yes
    if (extreme := _as_extreme(theory, condition, theory.forms[yes], theory.forms[no])) is not None:
        return extreme
    x, y = _branch(theory, yes, condition), _branch(theory, no, theory.negate(condition))
    if x is None or y is None:
        return theory.forms[no if x is None else yes]
    is_known_better = (x, y) != (theory.forms[yes], theory.forms[no])
    if is_known_better and (extreme := _as_extreme(theory, condition, x, y)) is not None:
        return extreme
    return selection_of(theory, condition, x, y)


@kept("answers")
def selection_of(theory: Arithmetic, condition: Expr, x: LinearForm, y: LinearForm) -> LinearForm:
    """The normal form of ``where(condition, x, y)``; each branch knows the condition already."""
    if x == y or _equals_assuming(theory, condition, y, x):
        return y
    if _equals_assuming(theory, theory.negate(condition), x, y):
        return x
    pulled = _selected_division(theory, condition, x, y) or _toward_zero(theory, condition, x, y)
    if pulled is not None:
        return pulled
    x, y = _at_ends(theory, condition, x, y)
    if x == y:
        return x
    common = LinearForm({a: c for a, c in x.terms.items() if y.terms.get(a) == c}, 0)
    x, y = x.plus(common, -1), y.plus(common, -1)
    read = (
        wrapped(theory, condition, common, x, y)
        or _off_its_end(theory, condition, common, x, y)
        or _two_periods(theory, condition, x, y)
    )
    if read is not None:
        return common.plus(read)
    literal = _literal_outside(x, y)
    x, y = x.shifted(-literal), y.shifted(-literal)
    factor = _factor_outside(x, y)
    x, y = x.divided(factor), y.divided(factor)
    for atom in (*x.terms, *y.terms):
        if atom.op == "where":
            # now, or the bounds of a thousand nested selections would be computed recursively, from the outermost
            theory.range(atom)
    selection = theory.atom(make("where", condition, to_expr(x), to_expr(y)))
    return common.shifted(literal).plus(selection, factor)


def _literal_outside(x: LinearForm, y: LinearForm) -> int:
    """What both branches of a selection add, as far as a literal tells."""
    literal = 0
    if bool(x.terms) != bool(y.terms) and any(atom.op == "var" for atom in x.terms or y.terms):
        # where(p, x - 2, 0) is where(p, x, 2) - 2; branches of quotients stay, since rules match staircases of them
        literal = (x if x.terms else y).constant
    if x.terms or y.terms:
        # where(p, x*4 + 5, 1) is where(p, x*4 + 4, 0) + 1: modulo what divides the rest, both constants are the same
        literal += (y.constant - literal) % gcd(*x.terms.values(), *y.terms.values(), x.constant - y.constant)
    return literal


def _factor_outside(x: LinearForm, y: LinearForm) -> int:
    """The common factor of two branches, with the sign of the second one's constant, or else of what comes next."""
    signs = (y.constant, x.constant, y.terms and y.sign(), x.terms and x.sign())
    sign = -1 if next(s for s in signs if s) < 0 else 1
    return sign * gcd(*x.terms.values(), *y.terms.values(), x.constant, y.constant)


def _at_ends(theory: Arithmetic, condition: Expr, x: LinearForm, y: LinearForm) -> tuple[LinearForm, LinearForm]:
    """Branches that differ by a literal where the condition, or its complement, says what a sum is.

    For an ``x`` from 0 on, ``x < 1`` says that ``x`` is 0: ``where(x < 1, y + x, y + 3)`` has the branches ``y`` and
    ``y + 3``.
    """
    difference = x.plus(y, -1)
    if difference.terms:
        for is_there, zero in zip((True, False), theory.outermost().ends(condition), strict=True):
            if zero.terms.keys() == difference.terms.keys():
                left = difference.plus(zero, -difference.scale_of(zero))
                if not left.terms:
                    return (y.shifted(left.constant), y) if is_there else (x, x.shifted(-left.constant))
    return x, y


def _two_periods(theory: Arithmetic, condition: Expr, x: LinearForm, y: LinearForm) -> LinearForm | None:
    """``where(A < n, 0, k)`` is ``k*(A // n)`` for ``A`` in ``[0, 2n)``, if ``n`` is a literal or ``k``."""
    step = y.plus(x, -1)
    if condition.op != "lt" or step.content() > 1 or len(step.terms) > 1:
        return None
    left, right = map(theory.inner, condition.args)
    if not step.terms:
        return None if x.terms or right.terms else _stepped(theory, x, step, left, right)
    if theory.bounds(step)[1] < 0:
        # the branches, and the sides of the comparison, the other way round
        x, y, step, left, right = y, x, step.times(-1), right, left.shifted(1)
    if theory.bounds(step)[0] <= 0:
        return None
    # left < right says A < n of A = n + left - right, and n <= A of A = n - 1 - left + right
    gap = left.plus(right, -1)
    return _stepped(theory, x, step, step.plus(gap), step) or _stepped(
        theory, y, step.times(-1), step.plus(gap, -1).shifted(-1), step
    )


def wrapped(theory: Arithmetic, condition: Expr, common: LinearForm, x: LinearForm, y: LinearForm) -> LinearForm | None:
    """The form of ``where(condition, x, y)``, if it wraps or rounds ``common``, to which it is added.

    ``A + where(A < 0, n, 0)`` is ``A % n`` for an ``A`` in ``[-n, n)``; ``A//n + where(A % n < 1, 0, 1)`` is
    ``(A + n - 1) // n``.
    """
    gap = _gap(theory, condition)
    if x.terms or y.terms or gap is None:
        return None
    step = x.constant - y.constant
    if (rounded_up := rounding_up(theory, gap, common, step)) is not None:
        # the second branch is that of what is divisible, or the first is
        return (y if gap.constant else x).plus(rounded_up)
    if not (period := _rounded_by(gap, common, step)):
        if _first_scale(gap, common) < 0:
            # the second branch is where the opposite, less 1, is never negative
            gap, step, y = gap.times(-1).shifted(-1), -step, x
        period = _wrapped_by(gap, common, step)
    # by the bounds that hold everywhere: outside a gate or branch, the quotient must not have a third value
    low, high = theory.outermost().bounds(gap)
    if period and -period <= low and high < period:
        return y.plus(theory.quotient_by(gap.shifted(period), period), step)
    return None


def _off_its_end(
    theory: Arithmetic, condition: Expr, common: LinearForm, x: LinearForm, y: LinearForm
) -> LinearForm | None:
    """The form of ``where(condition, x, y)``, if it moves ``common``, to which it is added, off an end of its range.

    ``A + where(A < 1, 1, 0)`` is ``max(A, 1)`` for an ``A`` from 0 on.
    """
    gap = _gap(theory, condition)
    if x.terms or y.terms or gap is None:
        return None
    low, high = theory.bounds(gap)
    # what is 0 in one branch and positive in the other, and by how much the first branch is more
    for is_end, rest, above, step in (
        (high == 0, y, gap.times(-1), x.constant - y.constant),
        (low == -1, x, gap.shifted(1), y.constant - x.constant),
    ):
        if is_end and above.terms and all(common.terms.get(a) == step * k for a, k in above.terms.items()):
            return rest.plus(theory.extreme("max", [above, number(1)]).plus(above, -1), step)
    return None


def _gap(theory: Arithmetic, condition: Expr) -> LinearForm | None:
    """What is never negative where an order holds, and negative elsewhere; ``None`` of other conditions."""
    return None if condition.op == "eq" else theory.difference(condition)


def rounding_up(theory: Arithmetic, gap: LinearForm, common: LinearForm, step: int) -> LinearForm | None:
    """``k*((A + d - 1)//d - A//d)`` for a term ``k*(A//d)`` of ``common`` and a ``d`` that is no literal.

    ``None`` unless ``gap``, which is compared with 0, is whether the remainder is at least 1, and ``step``, the
    difference of the branches, is that multiple.
    """
    for atom, k in common.terms.items():
        sign = -1 if gap.constant == 0 else 1
        if atom.op != "floordiv" or atom.args[1].op == "const" or k != sign * step or gap.constant not in (0, -1):
            continue
        dividend, divisor = map(theory.inner, atom.args)
        remainder = dividend.plus(theory.times(divisor, atom_form(atom)), -1)
        if theory.bounds(divisor)[0] > 0 and gap == remainder.times(sign).shifted(gap.constant):
            return theory.quotient(dividend.plus(divisor).shifted(-1), divisor).plus(atom_form(atom), -1).times(k)
    return None


def _rounded_by(gap: LinearForm, common: LinearForm, step: int) -> int:
    """The literal divisor of a quotient in ``common`` that a selection by its remainder, ``gap``, rounds; else 0."""
    for atom, k in gap.terms.items():
        cancels = common.terms.get(atom, 0) == (-step if k > 0 else step)
        if cancels and literal_divisor(atom) == abs(k):
            return abs(k)
    return 0


def _first_scale(gap: LinearForm, common: LinearForm) -> int:
    """The multiple of ``gap`` that ``common`` has, by the first term."""
    atom, k = next(iter(gap.terms.items()))
    return common.terms.get(atom, 0) // k


def _wrapped_by(gap: LinearForm, common: LinearForm, step: int) -> int:
    """The ``n`` for which ``step`` is as many times ``-n`` as ``common`` has ``gap``; 0 if it has no multiple of it."""
    scale = _first_scale(gap, common)
    period, rest = divmod(-step, scale) if scale else (0, 1)
    is_whole = not rest and all(common.terms.get(a) == scale * c for a, c in gap.terms.items())
    return period if is_whole else 0


def _stepped(
    theory: Arithmetic, start: LinearForm, step: LinearForm, dividend: LinearForm, divisor: LinearForm
) -> LinearForm | None:
    """``start + step*(dividend // divisor)``, if the quotient is 0 or 1, and one atom."""
    # also outside gates, branches and loops the quotient must have no other value
    if not theory.outermost().is_proper_remainder(dividend, divisor.times(2)):
        return None
    if not (theory.is_defined(to_expr(start)) and theory.is_defined(to_expr(step))):
        # the sum evaluates both branches everywhere
        return None
    quotient = theory.quotient(dividend, divisor)
    atom = quotient.single()
    is_one = atom is not None and atom.op == "floordiv"
    # a variable of two values is such a quotient itself
    is_variable = divisor == number(1) and [a.op for a in quotient.terms] == ["var"]
    return start.plus(theory.times(step, quotient)) if is_one or is_variable else None


def _equals_assuming(theory: Arithmetic, condition: Expr, form: LinearForm, other: LinearForm) -> bool:
    """Whether ``form`` is ``other`` where the condition holds."""
    term = to_expr(form)
    if not theory.variables.of(term) & theory.variables.of(condition):
        return False
    inside = theory.assuming(condition)
    if inside is None or inside is theory:
        return False
    return inside.is_defined(term) and _form_assuming(theory, inside, term) == other


def _selected_division(theory: Arithmetic, condition: Expr, x: LinearForm, y: LinearForm) -> LinearForm | None:
    """``where(c, x // d, y // d)`` is ``where(c, x, y) // d``, and so for the remainder, if ``d`` is no literal."""
    one, other = _division(x), _division(y)
    if one is None or other is None or one[1] is not other[1]:
        return None
    divisor = theory.inner(one[1])
    dividends = theory.inner(one[0]), theory.inner(other[0])
    for divided in (theory.quotient, theory.remainder):
        if [x, y] == [divided(dividend, divisor) for dividend in dividends]:
            return divided(selection_of(theory, condition, *dividends), divisor)
    return None


def _toward_zero(theory: Arithmetic, condition: Expr, x: LinearForm, y: LinearForm) -> LinearForm | None:
    """``where(x < 0, (x + n - 1)//n, x//n)`` is ``tdiv(x, n)``."""
    atom = y.single()
    if atom is None or not literal_divisor(atom) or condition.op != "lt":
        return None
    dividend, divisor = map(theory.inner, atom.args)
    below = dividend.times(-1)
    if condition not in (theory.at_least_zero(below), theory.at_least_zero(below.shifted(-1))):
        return None
    rounded_up = theory.quotient(dividend.shifted(divisor.constant - 1), divisor)
    return theory.truncated(dividend, divisor) if x == rounded_up else None


def _as_extreme_of_compared(theory: Arithmetic, term: Expr) -> LinearForm | None:
    """``where(x < y, x, y)`` is ``min(x, y)`` whatever the normal form of the comparison is."""
    condition, yes, no = term.args
    while condition.op == "not":
        condition, yes, no = condition.args[0], no, yes
    if condition.op not in ("lt", "le"):
        return None
    compared, branches = [theory.forms.get(x) for x in condition.args], [theory.forms[yes], theory.forms[no]]
    if compared not in (branches, branches[::-1]):
        return None
    return theory.extreme("min" if compared == branches else "max", branches)


def _as_extreme(theory: Arithmetic, condition: Expr, x: LinearForm, y: LinearForm) -> LinearForm | None:
    """``where(x < y, x, y)`` is ``min(x, y)``, and so on; so is any selection of the lesser term."""
    difference = x.plus(y, -1)
    compared = next((a for a in condition.args if a.op != "const"), None) if condition.op in ("lt", "le") else None
    if compared is None:
        return None
    is_compared = theory.inner(compared).terms.keys() == difference.terms.keys()
    for op, above in (("max", difference), ("min", difference.times(-1))) if is_compared else ():
        if condition in (theory.at_least_zero(above), theory.at_least_zero(above.shifted(-1))):
            return theory.extreme(op, [x, y])
    return _as_extreme_by_bounds(theory, condition, x, y)


def _as_extreme_by_bounds(theory: Arithmetic, condition: Expr, x: LinearForm, y: LinearForm) -> LinearForm | None:
    """``where(x < 0, 0, min(x, 7))`` is ``max(0, min(x, 7))``: bounds show that the greater is chosen in both cases."""
    difference = x.plus(y, -1)
    if not difference.terms or not theory.variables.of(to_expr(difference)) & theory.variables.of(condition):
        return None
    there, elsewhere = theory.assuming(condition), theory.assuming(theory.negate(condition))
    if there is None or elsewhere is None or not all(theory.is_defined(to_expr(form)) for form in (x, y)):
        return None
    for op, above in (("max", difference), ("min", difference.times(-1))):
        if there.bounds(above)[0] >= 0 and elsewhere.bounds(above)[1] <= 0:
            return theory.extreme(op, [x, y])
    return None


def _branch(theory: Arithmetic, term: Expr, condition: Expr) -> LinearForm | None:
    """The form of ``term`` where ``condition`` holds; ``None`` if it never does."""
    if not theory.variables.of(term) & theory.variables.of(condition):
        return theory.forms[term]
    inside = theory.assuming(condition)
    return None if inside is None else _form_assuming(theory, inside, term)


def _form_assuming(theory: Arithmetic, inside: Arithmetic, term: Expr) -> LinearForm:
    """The form of ``term`` under ``inside``, a child of ``theory``, with its equations used to remove quotients."""
    form = inside.form(term)
    if equations := inside.equations(theory):
        written = to_expr(form)
        plain = without_quotients(written, equations)
        form = form if plain is written else theory.form(plain)
    return _with_steps(theory, inside, form)


def _with_steps(theory: Arithmetic, inside: Arithmetic, form: LinearForm) -> LinearForm:
    """The form with selections in place of quotients that have two values under ``inside``, but more elsewhere.

    Powers of two are left: a shift costs less than a selection.
    """
    for atom, k in form.terms.items():
        divisor = literal_divisor(atom)
        if divisor > 0 and divisor & (divisor - 1):
            low, high = inside.bounds(atom_form(atom))
            if low + 1 == high and theory.bounds(atom_form(atom)) != (low, high):
                values = make("where", make("lt", atom.args[0], const(high * divisor)), const(low), const(high))
                form = form.plus(atom_form(atom), -k).plus(theory.form(values), k)
    return form


def _division(form: LinearForm) -> tuple[Expr, Expr] | None:
    """Dividend and divisor of the one quotient in ``form`` whose divisor is no literal."""
    quotients = {f for a in form.terms for f in factors(a) if f.op == "floordiv" and f.args[1].op != "const"}
    if len(quotients) != 1:
        return None
    dividend, divisor = quotients.pop().args
    return dividend, divisor
