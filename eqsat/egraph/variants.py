"""What is matched for a rule: its left side in each direction, with other signs, with literals for terms.

A rule whose two sides are one node of the encoding needs no match (:func:`by_representation`). To tell the shapes that
the others need (:func:`needed_by`) takes less time than to compile them (:mod:`eqsat.egraph.compilation`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, partial, reduce
from itertools import chain, combinations

from eqsat.egraph.patterns import (
    LITERALS,
    MEASURES,
    TERMS,
    Pattern,
    as_sum,
    ends_in,
    is_condition_letter,
    is_literal_letter,
    is_number,
    is_sum,
    letter_of,
    moved_letter,
    operands_of,
)
from eqsat.egraph.program import CONTAINERS
from eqsat.egraph.rule import Rule
from eqsat.egraph.shapes import Shape, shapes_of, written_in
from eqsat.lang.expr import Expr, const, make, rebuild, replaced, substitute, var
from eqsat.lang.traversal import buffers, chain_members, is_index, topological, variables


@cache
def by_representation(rule: Rule) -> bool:
    """Whether both sides of ``rule`` are one node of the encoding, as those of commutativity are.

    >>> from eqsat.egraph.rule import Rule
    >>> by_representation(Rule("associates", "(x + y) + z", "x + (y + z)"))
    True
    >>> by_representation(Rule("distributes", "(x + y) * z", "x*z + y*z"))
    False
    """
    pattern = rule.pattern
    if pattern.binds_index:
        return False
    return _encoded(pattern.left) == _encoded(pattern.right)


def _encoded(term: Expr) -> object:
    """A pattern as the encoding holds it."""
    if is_sum(term) or is_number(term):
        constant, addends = as_sum(term)
        numbers = [(c, _encoded(a)) for c, a in addends]
        if all(c.op == "const" for c, _ in numbers):
            total: dict[str, int] = {}
            for c, shape in numbers:
                total[repr(shape)] = total.get(repr(shape), 0) + c.vmin
            if len(total) == 1 and constant.op == "const" and not constant.vmin and set(total.values()) == {1}:
                return numbers[0][1]
            return "sum", constant, tuple(sorted(total.items()))
        return "sum", _factors(constant), tuple(sorted((_factors(c), repr(shape)) for c, shape in numbers))
    if term.op in CONTAINERS:
        return term.op, tuple(sorted(repr(_encoded(m)) for m in operands_of(term, term.op)))
    return (term.op, term.value, tuple(map(_encoded, term.args))) if term.args else term


def _factors(number: Expr) -> list[str]:
    """What a number of a pattern is a product of, in one order."""
    return sorted(map(repr, chain_members(number, "mul")))


@cache
def needed_by(rule: Rule, thoroughly: bool = False) -> tuple[tuple[frozenset[Shape], Pattern], ...]:
    """The shapes that each pattern of ``rule`` needs, which is quicker to tell than to compile it."""
    return tuple([(shapes_of(pattern), pattern) for _, pattern in matched_patterns(rule, thoroughly)])


def written_for(rule: Rule) -> tuple[frozenset[Shape], ...]:
    """For each direction of a shipped rule some of the shapes that it needs, which are known before it is parsed."""
    sides = [f"{rule.left} {rule.beside}", *([rule.right] if rule.both_ways else [])]
    return tuple(map(written_in, sides))


def matched_patterns(rule: Rule, thoroughly: bool = False) -> Iterator[tuple[Rule, Pattern]]:
    """What is matched for a rule: its left side in each direction, one about reductions also with literals and zeros.

    ``thoroughly`` also with other signs, and with the branches of selections swapped.
    """
    for one in [rule, rule.reverse()] if rule.both_ways else [rule]:
        if letter_of(one.pattern.left) is None:
            patterns: Iterable[Pattern] = [one.pattern]
            if one.pattern.binds_index:
                patterns = chain.from_iterable(map(_with_literals, _with_index_alone(one.pattern)))
            elif thoroughly:
                patterns = chain.from_iterable(map(_with_signs, _with_branches_swapped(one.pattern)))
            for pattern in patterns:
                yield one, pattern


def _with_branches_swapped(pattern: Pattern) -> Iterator[Pattern]:
    """The pattern, and its copies in which conditions that only select are denied.

    ``where(p, x, x*y)`` of a ``p`` that is ``not q`` is ``where(q, x*y, x)``, and so is ``where(not q, x, x*y)``.
    """
    yield pattern
    letters = [term for term in topological([pattern.left]) if is_condition_letter(term)]
    known = {_without_names(pattern.left, {})}
    for count in range(len(letters) + 1) if pattern.beside is None else ():
        for denied in combinations(letters, count):
            left, right = rebuild([pattern.left, pattern.right], partial(_deny, denied))
            if left is right or letter_of(left) is not None:
                # all that the rule does is to deny twice
                continue
            only_select = not any(term.op == "not" and term.args[0] in denied for term in topological([left]))
            if only_select and (shape := _without_names(left, {})) not in known:
                known.add(shape)
                yield Pattern(left, right, pattern.when)


def _deny(conditions: Sequence[Expr], term: Expr, args: tuple[Expr, ...]) -> Expr | None:
    """What a term becomes where ``conditions`` are denied, if it is not the same operator."""
    if term in conditions:
        return make("not", term)
    if term.op == "not" and args[0].op == "not":
        return args[0].args[0]
    if term.op == "where" and args[0].op == "not":
        return make("where", args[0].args[0], args[2], args[1])
    return None


def _without_names(term: Expr, places: dict[Expr, int]) -> object:
    """A pattern with each letter as the place where it first stands."""
    if term.op == "var":
        return places.setdefault(term, len(places))
    return term.op, term.value, *[_without_names(arg, places) for arg in term.args]


def _with_signs(pattern: Pattern) -> Iterator[Pattern]:
    """The pattern, and those in which a letter is negated where that leaves products with other signs.

    ``x*x + x*y*2 + y*y`` of an ``x`` and ``-y`` is ``x*x - x*y*2 + y*y``.
    """
    yield pattern
    known = {repr(_encoded(pattern.left))}
    measured = {str(v.value) for v in variables([pattern.right])} & MEASURES.keys()
    asked = {str(v.value) for v in variables([pattern.when])} | measured
    for letter in [v for v in variables([pattern.left]) if letter_of(v)] if pattern.beside is None else ():
        name = str(letter.value)
        left = None if any(name in measure.split("_") for measure in asked) else _negated(pattern.left, letter)
        if left is None:
            continue
        # a sum is matched up to a factor
        same = [left] if left.is_bool else [left, make("neg", left)]
        if known.isdisjoint(shapes := [repr(_encoded(term)) for term in same]):
            known.update(shapes)
            right, when = substitute([pattern.right, pattern.when], {letter: make("neg", letter)})
            yield Pattern(left, right, when)


def _negated(term: Expr, letter: Expr) -> Expr | None:
    """A part of a pattern with a letter negated, which stands in sums and in their products alone; else nothing."""
    if letter not in topological([term]):
        return term
    if is_sum(term):
        constant, addends = as_sum(term)
        total = constant
        for coefficient, addend in addends:
            factors = operands_of(addend, "mul")
            others = [factor for factor in factors if factor is not letter]
            negated = _all_negated(others, letter)
            if negated is None:
                return None
            product = reduce(partial(make, "mul"), [*[letter] * factors.count(letter), *negated])
            if factors.count(letter) % 2:
                coefficient = make("mul", coefficient, const(-1))
            total = make("add", total, make("mul", product, coefficient))
        return total
    if letter in term.args:
        return None
    args = _all_negated(term.args, letter)
    return None if args is None else make(term.op, *args)


def _all_negated(parts: Sequence[Expr], letter: Expr) -> list[Expr] | None:
    """As :func:`_negated`, of several parts; nothing if there is none of one of them."""
    found = [negated for part in parts if (negated := _negated(part, letter)) is not None]
    return found if len(found) == len(parts) else None


def _with_literals(pattern: Pattern) -> Iterator[Pattern]:
    """The pattern of a rule about reductions, and its copies in which a factor is a literal.

    A multiple of a term is a term of a sum with that coefficient, not a product.
    """
    yield pattern
    used = {str(v.value) for v in variables([pattern.left, pattern.right])}
    unused = next((x for x in LITERALS if x not in used), None)
    if unused is None:
        return
    asked = variables([pattern.right, pattern.when])
    for letter in _lone_factors(pattern):
        literal = var(unused, letter.vmin, letter.vmax)
        measures = [v for v in asked if str(v.value).split("_")[1:2] == [letter.value]]
        # both bounds of a literal are its value
        bounds = [v for v in measures if str(v.value).startswith(("vmin_", "vmax_"))]
        if all(v in bounds or str(v.value).startswith("free_") for v in measures):
            images = dict.fromkeys([letter, *bounds], literal)
            yield Pattern(*substitute([pattern.left, pattern.right, pattern.when], images))


def _lone_factors(pattern: Pattern) -> Iterator[Expr]:
    """The letters of terms that stand once on the left, as a factor, and nowhere at another index on the right."""
    moved = {moved_letter(array) for array in buffers([pattern.right])}
    ends = ends_in(pattern.left)
    order = topological([pattern.left])
    uses = Counter(chain.from_iterable([term.args for term in order]))
    for term in order:
        for letter in dict.fromkeys(term.args) if term.op == "mul" and term not in ends else ():
            name = letter_of(letter)
            if name is None or name not in TERMS or name in moved or uses[letter] > 1:
                continue
            # else it is a multiple as it is
            if not all(is_number(other) for other in term.args if other is not letter):
                yield letter


def _with_index_alone(pattern: Pattern) -> Iterator[Pattern]:
    """The pattern of a rule about reductions, and its copy in which nothing is added to an index.

    An index is no sum, so ``i + x`` matches only where ``x`` is not 0.
    """
    yield pattern
    ends = ends_in(pattern.left)
    for term in topological([pattern.left]):
        if term.op == "add" and term not in ends and all(arg.op == "var" for arg in term.args):
            letter, index = sorted(term.args, key=is_index)
            if not is_index(index) or is_literal_letter(letter):
                continue
            free = [v for v in variables([pattern.when]) if v.value == f"free_{letter.value}"]
            images = {term: index, letter: const(0), **dict.fromkeys(free, const(1))}
            left, right, when = replaced([pattern.left, pattern.right, pattern.when], images)
            if _encoded(left) != _encoded(right):
                yield Pattern(left, right, when)
            return
