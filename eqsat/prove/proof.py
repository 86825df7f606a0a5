"""Is a rule true? Every combination of small values, and proofs by z3 for all integers.

A rule claims nothing where its guard fails or where a divisor of its left side or guard is zero; elsewhere both sides
must be equal, and a divisor of the right side that is zero refutes it. A rule makes this claim for each alternative of
its guard, and if it goes both ways, in both. ``vmin(x)``, ``vmax(x)``, ``factor(x)``, ``modulus(x)`` and
``remainder(x)`` stand for all that may be known of ``x``, not for the best of it.

A proof (:func:`prove_rule`) has a kind. ``symbolic``: z3, for all integers. ``instantiated``: z3, for all integers as
terms, the literals, factors and moduli being each combination of small numbers. ``exhaustive``: terms, too, are small.
``bit-vectors``: z3, for all terms and literals of 32 bits, where the rule has bit operators; of 8 bits, where it also
divides or multiplies. ``small ranges``: of a rule about reductions, z3, for each small range and whatever the elements
(:mod:`eqsat.prove.binding`). z3 works under limits of its own steps in a fresh context: a proof that is found in time
comes out the same on every machine. What the end of the time leaves open is said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, reduce
from importlib.util import find_spec
from itertools import combinations, combinations_with_replacement, permutations, product
from math import gcd, inf
from time import monotonic
from typing import Any, Literal

from eqsat.egraph.patterns import CONDITIONS, LARGEST, LITERALS, TERMS, Pattern, alternatives, mentioned, shown
from eqsat.egraph.rule import Counterexample, Rule
from eqsat.lang.evaluation import evaluate
from eqsat.lang.expr import TRUE, Expr, const, make, replaced, substitute, var
from eqsat.lang.ops import BITWISE, DIVISIONS, MAX_SHIFT, OWN, Array, np
from eqsat.lang.properties import divisors
from eqsat.lang.sampling import all_hold
from eqsat.lang.traversal import topological, variables
from eqsat.lang.validation import refuse_seconds, require
from eqsat.prove import binding
from eqsat.prove.binding import seconds_until
from eqsat.prove.smt import Quotient, Quotients, limited, to_bit_vectors, to_z3, z3

Kind = Literal["symbolic", "instantiated", "exhaustive", "bit-vectors", "small ranges"]

#: Seconds that the proof of a rule may take unless its caller says otherwise: three times the longest of a shipped one.
RULE_SECONDS = 120.0
#: About how many points are tried of a rule. Each letter and measure gets as many values as that allows, up to the
#: second number.
_POINTS = 2_000_000
_MOST_VALUES = 19
#: About how many combinations of literals are proved one by one, and z3's limit for each, in steps of its own.
_INSTANCES = 250
_INSTANCE_STEPS = 200_000
#: The bits of the letters of a rule with bit operators: without divisions and products, and with them, which take z3
#: long; and z3's limit for the proof.
_BITS, _BITS_DIVIDED = 32, 8
_BITS_STEPS = 50_000_000
#: What such a rule may have: letters that stand for any integer, and bounds of terms.
_BIT_LETTERS = frozenset(TERMS + LITERALS) - {"s"} | {f"{end}_{x}" for end in ("vmin", "vmax") for x in TERMS}

#: Comparisons of guards that terms do not have, and what they are with their sides exchanged.
_SWAPPED = {"gt": "lt", "ge": "le"}


@dataclass(frozen=True)
class Proof:
    """What is known of the truth of a rule.

    Attributes
    ----------
    rule : str
        Its name.
    kinds : tuple of {"symbolic", "instantiated", "exhaustive", "bit-vectors", "small ranges"}
        The proofs that it has; empty if it is false, if the time ended before anything was proved, or if it is about
        reductions over ranges that are all too long to try.
    how : str
        What the proof used: lemmas, numbers of instances and points; or when it was left open.
    counterexample : Counterexample or None
        What refutes it.
    left_open : bool
        Whether the time ended before all was tried.
    """

    rule: str
    kinds: tuple[Kind, ...]
    how: str
    counterexample: Counterexample | None = None
    left_open: bool = False


@dataclass(frozen=True)
class Example:
    """Values of the letters and measures of a rule for which it applies, and the value of both its sides."""

    values: dict[str, int]
    value: str


def prove_rule(rule: Rule, seconds: float = RULE_SECONDS) -> Proof:
    """Prove ``rule`` for all integers if z3 can, else for small literals, else for small numbers; or refute it.

    Rules about reductions are proved for each small range.

    Parameters
    ----------
    rule : Rule
        The rule.
    seconds : float
        How long that may take. Then the answer is what is proved by then, and says that the rest was left open.

    Raises
    ------
    ModuleNotFoundError
        If z3 is not installed (the extra ``check``).
    ValueError, TypeError
        If ``seconds`` is no time.

    >>> prove_rule(Rule("mod-core", "x % n + (x // n)*n", "x")).kinds
    ('symbolic',)
    >>> prove_rule(Rule("wrong", "x // 300 // 300", "0", "vmin(x) >= 0")).how
    'refuted by z3'
    """
    refuse_seconds(seconds)
    until = monotonic() + seconds
    tried: tuple[Kind, ...] = ()
    try:
        if (counterexample := _refuted_small(rule, until)) is not None:
            return Proof(rule.name, (), "refuted by a small example", counterexample)
        tried = ("exhaustive",)
        return _proved(rule, until)
    except TimeoutError:
        return Proof(rule.name, tried, f"left open after {seconds:g} s", left_open=True)


def _proved(rule: Rule, until: float) -> Proof:
    """The best proof of a rule that no small example refutes; raise ``TimeoutError`` when the time is over."""
    if find_spec("z3") is None:
        raise ModuleNotFoundError("proofs of rules need z3: pip install 'eqsat[check]'")
    if rule.pattern.binds_index:
        return _proved_over_ranges(rule, until)
    if rule.pattern.has_bits:
        return _proved_by_bits(rule, until)
    used: dict[str, None] = {}
    for pattern in _claims(rule):
        found = _by_lemmas(rule.name, pattern, until)
        if found is None:
            return _partly_proved(rule, until)
        if isinstance(found, Counterexample):
            return Proof(rule.name, (), "refuted by z3", found)
        used[found] = None
    return Proof(rule.name, ("symbolic",), ", ".join(used))


def _proved_over_ranges(rule: Rule, until: float) -> Proof:
    """The proof of a rule about reductions."""
    if any(next(binding.instances(way), None) is None for way in _ways(rule)):
        return Proof(rule.name, (), "not proved: no small range meets its guard")
    if not all(binding.proved(way, until) for way in _ways(rule)):
        return Proof(rule.name, ("exhaustive",), "one content of the arrays for each small range")
    return Proof(rule.name, ("small ranges",), "by z3 for each small range, whatever the elements")


def _by_lemmas(name: str, pattern: Pattern, until: float) -> str | Counterexample | None:
    """The first of the attempts by which z3 proves a claim, or what refutes the claim; ``None`` if none decides."""
    (conjuncts,) = alternatives(pattern.when)
    # what the guard says of bits is no help to z3: the claim is stronger without
    kept = [c for c in conjuncts if not any(t.op in BITWISE for t in topological(c[1:]))]
    without_bits = Pattern(pattern.left, pattern.right, _guard(kept))
    for attempt, (steps, lemmas) in _ATTEMPTS.items():
        claim = _Claim.of(without_bits, z3.Context(), {})
        instances = lemmas(claim.quotients)
        if not instances and attempt != "no lemma":
            continue
        answer = claim.decide(steps, until, instances)
        if isinstance(answer, dict) and (counterexample := _refuted(name, pattern, answer)):
            return counterexample
        if answer is True:
            return attempt
    return None


def _proved_by_bits(rule: Rule, until: float) -> Proof:
    """A proof for all terms and literals of some bits: what a bit operator does to one bit it does to every one."""
    points = f"{sum(_grid(pattern)[1].size for pattern in _claims(rule))} points"
    sizes = []
    for pattern in _claims(rule):
        if (size := _holds_on_bits(pattern, until)) is None:
            return Proof(rule.name, ("exhaustive",), points)
        sizes.append(size)
    return Proof(rule.name, ("bit-vectors", "exhaustive"), f"letters of {min(sizes)} bits, {points}")


def _holds_on_bits(pattern: Pattern, until: float) -> int | None:
    """The bits of the letters for which z3 proves a claim; ``None`` if it does not, or asks for more than bounds."""
    letters = variables([pattern.left, pattern.right, pattern.when])
    order = topological([pattern.left, pattern.right, pattern.when])
    if not _BIT_LETTERS.issuperset(str(v.value) for v in letters) or any(t.op in OWN for t in order):
        return None
    size = _BITS_DIVIDED if any(map(_takes_long, order)) else _BITS
    narrow = {v: var(str(v.value), -(2 ** (size - 1)), 2 ** (size - 1) - 1) for v in letters}
    left, right, when = substitute([pattern.left, pattern.right, pattern.when], narrow)
    safe, unsafe = divisors([left]) + divisors([when]), divisors([right])
    context = z3.Context()
    encoded = to_bit_vectors([left, right, when], context)
    solver = limited(z3.Solver(ctx=context), _BITS_STEPS, seconds_until(until))
    solver.add(*[z3.And(encoded[v] >= v.vmin, encoded[v] <= v.vmax) for v in narrow.values() if v in encoded])
    by_name = {str(v.value): encoded[v] for v in narrow.values() if v in encoded}
    for name, value in by_name.items():
        function, _, of = name.partition("_")
        if of:
            solver.add(value <= by_name[of] if function == "vmin" else by_name[of] <= value)
    solver.add(encoded[when], *[encoded[d] != 0 for d in safe])
    solver.add(z3.Or(encoded[left] != encoded[right], *[encoded[d] == 0 for d in unsafe]))
    answer = solver.check()
    if answer == z3.unknown:
        # what the end of the time left undecided is no answer
        seconds_until(until)
    return size if answer == z3.unsat else None


def _takes_long(term: Expr) -> bool:
    """Whether an operator on bit-vectors takes z3 long: a division, or a product of two that are no literals."""
    return term.op in DIVISIONS or (term.op == "mul" and all(a.op != "const" for a in term.args))


def _partly_proved(rule: Rule, until: float) -> Proof:
    """A proof for each combination of small literals, or, where z3 finds none, what was tried at small values."""
    points = f"{sum(_grid(pattern)[1].size for pattern in _claims(rule))} points"
    instances = 0
    for pattern in _claims(rule):
        for claim in _instances(pattern):
            if claim.decide(_INSTANCE_STEPS, until) is not True:
                return Proof(rule.name, ("exhaustive",), points)
            instances += 1
    return Proof(rule.name, ("instantiated", "exhaustive"), f"{instances} instances, {points}")


def refuse_false(rules: Iterable[Rule]) -> None:
    """Check rules that a user brings, each once per process, by :func:`check_rule`: milliseconds.

    Raises ``ValueError`` if a rule that asks for its check is false; the message has the counterexample.
    """
    for rule in rules:
        if rule.check and (counterexample := _checked(rule)):
            raise ValueError(str(counterexample))


def _ways(rule: Rule) -> list[Rule]:
    """The rule, and if it goes both ways its reverse."""
    return [rule, rule.reverse()] if rule.both_ways else [rule]


def _claims(rule: Rule) -> list[Pattern]:
    """The rule in each direction and for each alternative of its guard, which alone must suffice."""
    pattern = rule.pattern
    ways = [(pattern.left, pattern.right), (pattern.right, pattern.left)]
    guards = [_guard(conjuncts) for conjuncts in alternatives(pattern.when)]
    return [Pattern(*sides, when) for sides in ways[: 1 + rule.both_ways] for when in guards]


def _guard(conjuncts: Iterable[tuple[str, Expr, Expr]]) -> Expr:
    """The condition that all conjuncts hold."""
    terms = [make(_SWAPPED[op], y, x) if op in _SWAPPED else make(op, x, y) for op, x, y in conjuncts]
    return reduce(Expr.__and__, terms, TRUE)


def check_rule(rule: Rule) -> Counterexample | None:
    """Look for values that refute ``rule``: every combination of small ones, negative ones and zero included.

    Values next to the literals that the rule mentions are among them; of a rule about reductions every small range.

    Parameters
    ----------
    rule : Rule
        The rule.

    >>> check_rule(Rule("mod-core", "x % n + (x // n)*n", "x")) is None
    True
    >>> print(check_rule(Rule("wrong", "x // c // d", "x // (c*d)")))
    rule 'wrong' is false: with c = -2, d = -1, x = -1 the left side is 0, the right side -1
    """
    return _refuted_small(rule, inf)


def _refuted_small(rule: Rule, until: float) -> Counterexample | None:
    """As :func:`check_rule`; raise ``TimeoutError`` when the time is over."""
    require(rule, Rule, "a rule")
    found: Iterable[Counterexample | None]
    if rule.pattern.binds_index:
        found = (binding.check(way, until) for way in _ways(rule))
    else:
        found = (_search(rule.name, pattern) for pattern in _claims(rule) if seconds_until(until))
    return next((counterexample for counterexample in found if counterexample is not None), None)


#: :func:`check_rule`, once for each rule.
_checked = cache(check_rule)


def _search(name: str, pattern: Pattern) -> Counterexample | None:
    """The smallest of the small values that refute ``pattern``, the rule of that name."""
    pattern = _widened(pattern)
    return _refutation(name, pattern, *_grid(pattern))


def _refutation(name: str, pattern: Pattern, values: dict[str, Array], allowed: Array) -> Counterexample | None:
    """As :func:`_search`, among these values, where they are ``allowed`` together."""
    left, right, holds = evaluate([pattern.left, pattern.right, pattern.when], values, total=True)
    defined = _is_defined([pattern.left, pattern.when], values)
    unsafe = ~_is_defined([pattern.right], values)
    bad = allowed & holds & defined & (unsafe | (left != right))
    if (at := _smallest(values, bad, allowed.shape)) is None:
        return None
    found = {shown(letter): at(value) for letter, value in values.items()}
    return Counterexample(name, found, str(at(left)), "undefined" if at(unsafe) else str(at(right)))


def _smallest(values: Mapping[str, Array], wanted: Array, shape: tuple[int, ...]) -> Callable[[Array], int] | None:
    """A function that reads an array at the smallest point that is ``wanted``; ``None`` if no point is."""
    wanted = np.broadcast_to(wanted, shape)
    if not wanted.any():
        return None
    sizes = sum(np.abs(v) for v in values.values()) + np.zeros(shape, dtype=np.int64)
    where = np.unravel_index(int(np.argmin(np.where(wanted, sizes, inf))), shape)
    return lambda array: int(np.broadcast_to(array, shape)[where])


def example(rule: Rule) -> Example | None:
    """Small values for which a rule applies; none if it is about reductions, or applies to large ones alone."""
    if rule.pattern.binds_index:
        return None
    for pattern in map(_widened, _claims(rule)):
        values, allowed = _grid(pattern)
        left, holds = evaluate([pattern.left, pattern.when], values, total=True)
        applies = allowed & holds & _is_defined([pattern.left, pattern.when], values)
        # numbers other than 0 and 1 show more
        for telling in ([v > 1 for v in values.values()], [np.abs(v) > 1 for v in values.values()], ()):
            at = _smallest(values, reduce(np.logical_and, telling, applies), allowed.shape)
            if at is not None:
                return Example({shown(letter): at(value) for letter, value in values.items()}, str(at(left)))
    return None


def _widened(pattern: Pattern) -> Pattern:
    """``pattern`` with letters as wide as its literals: bounds decide in how many bits evaluation computes."""
    largest = max([LARGEST, *map(abs, mentioned(pattern))])
    letters = [v for v in variables([pattern.left, pattern.right, pattern.when]) if v.vmax == LARGEST]
    wide = {v: var(str(v.value), -largest if v.vmin < 0 else v.vmin, largest) for v in letters}
    return Pattern(*substitute([pattern.left, pattern.right, pattern.when], wide))


def _grid(pattern: Pattern) -> tuple[dict[str, Array], Array]:
    """Values for the letters and measures of ``pattern`` as broadcastable arrays, and where they agree."""
    names = _names(pattern)
    axes = [n for n in names if not n.startswith("gcd_")]
    most = max(1, round(_POINTS ** (1 / max(1, len(axes)))))
    further = mentioned(pattern)[: max(0, most - 3)]
    each = min(_MOST_VALUES, most - len(further))
    values: dict[str, Array] = dict(zip(axes, np.ix_(*[_values(name, each, further) for name in axes]), strict=True))
    allowed: Array = np.ones(np.broadcast_shapes(*[v.shape for v in values.values()]), dtype=bool)
    for name in axes:
        function, _, letter = name.partition("_")
        if function == "vmin":
            allowed = allowed & (values[name] <= values[letter])
        elif function == "vmax":
            allowed = allowed & (values[letter] <= values[name])
        elif function == "factor":
            allowed = allowed & (values[letter] % values[name] == 0)
        elif function == "remainder":
            allowed = allowed & (values[letter] % values[f"modulus_{letter}"] == values[name])
    return values | _gcds(names, values, np.gcd), allowed


def _gcds[T](names: Iterable[str], values: Mapping[str, T], gcd: Callable[[T, T], T]) -> dict[str, T]:
    """The values of all ``gcd(x, d)`` in ``names``, from those of ``factor(x)`` and ``d``."""
    operands = {name: name.split("_")[1:] for name in names if name.startswith("gcd_")}
    return {name: gcd(values[f"factor_{term}"], values[literal]) for name, (term, literal) in operands.items()}


def _names(pattern: Pattern) -> list[str]:
    """The letters and measures of ``pattern``, and the measures by which those are defined; sorted."""
    names = {str(v.value) for v in variables([pattern.left, pattern.right, pattern.when])}
    measures = [(function, of[0]) for function, *of in (name.split("_") for name in names) if of]
    return sorted(names | {f"{other}_{term}" for function, term in measures for other in _NEEDS.get(function, ())})


#: The measures by which a measure is defined.
_NEEDS = {"gcd": ("factor",), "modulus": ("remainder",), "remainder": ("modulus",)}


def _values(name: str, count: int, further: Iterable[int] = ()) -> Array:
    """``count`` small values for a letter or measure, around zero, and those of ``further`` that it may have."""
    low, high = -((count - 1) // 2), count // 2
    least, most = -inf, inf
    if name in CONDITIONS:
        return np.arange(2)
    if name == "s":
        low, high, least, most = 0, min(count, 4) - 1, 0, MAX_SHIFT
    elif name.startswith(("factor_", "modulus_")):
        low, high, least = 1, min(count, 7), 1
    elif name.startswith("remainder_"):
        low, high, least = 0, min(count, 7) - 1, 0
    found = [*range(low, high + 1), *(n for n in further if least <= n <= most and not low <= n <= high)]
    return np.array(found, dtype=np.int64 if max(map(abs, found)) < 2**62 else object)


def _is_defined(terms: Iterable[Expr], values: Mapping[str, Array]) -> Array:
    """Where no divisor in ``terms`` is zero."""
    return all_hold([divisor.ne(0) for divisor in divisors(terms)], values)


@dataclass(frozen=True)
class _Claim:
    """What z3 is asked: whether ``facts`` imply each of ``goals``."""

    letters: dict[str, Any]
    facts: list[Any]
    goals: list[Any]
    quotients: list[Quotient]

    @classmethod
    def of(cls, pattern: Pattern, context: Any, numbers: Mapping[str, int]) -> _Claim:
        """The claim of ``pattern``, with ``numbers`` for some of its letters and measures."""
        letters = {n: z3.IntVal(numbers[n], context) if n in numbers else z3.Int(n, context) for n in _names(pattern)}
        quotients = Quotients()
        encoded = to_z3([pattern.left, pattern.right, pattern.when], quotients, letters, context)
        facts = [encoded[pattern.when], *(fact for name in letters for fact in _facts_of(name, letters, quotients))]
        facts += [encoded[d] != 0 for side in (pattern.left, pattern.when) for d in divisors([side])]
        facts += [quotient.definition() for quotient in quotients.found]
        goals = [encoded[pattern.left] == encoded[pattern.right]]
        goals += [encoded[divisor] != 0 for divisor in divisors([pattern.right])]
        return cls(letters, facts, goals, quotients.found)

    def decide(self, steps: int, until: float, lemmas: Iterable[Any] = ()) -> bool | dict[str, int] | None:
        """True if proved, values that refute a goal, or None if z3 does not decide within ``steps`` per goal.

        Raises ``TimeoutError`` when the time is over.
        """
        context = self.facts[0].ctx
        sums = z3.With(z3.Tactic("simplify", context), som=True)
        prepare = [z3.Tactic(name, context) for name in ("simplify", "propagate-values", "solve-eqs")]
        for goal in self.goals:
            solver = limited(z3.Then(*prepare, sums, z3.Tactic("smt", context)).solver(), steps, seconds_until(until))
            solver.add(*self.facts, *lemmas, z3.Not(goal))
            answer = solver.check()
            if answer == z3.sat:
                model = solver.model()
                return {name: model.eval(letter, True).as_long() for name, letter in self.letters.items()}
            if answer == z3.unknown:
                seconds_until(until)
                return None
        return True


def _facts_of(name: str, letters: Mapping[str, Any], quotients: Quotients) -> list[Any]:
    """What the name of a measure, or the letter of shift amounts, says of its value."""
    value = letters[name]
    if name == "s":
        return [value >= 0, value <= MAX_SHIFT]
    function, *of = name.split("_")
    if not of:
        return []
    if function == "vmin":
        return [value <= letters[of[0]]]
    if function == "vmax":
        return [letters[of[0]] <= value]
    if function == "remainder":
        return [value == quotients.divide("mod", letters[of[0]], letters[f"modulus_{of[0]}"])]
    if function == "modulus":
        return [value >= 1]
    # a common divisor will do for the greatest
    multiples = [letters[of[0]]] if function == "factor" else [letters[f"factor_{of[0]}"], letters[of[1]]]
    times = [z3.Int(f"{name}_times_{index}", value.ctx) for index in range(len(multiples))]
    return [value >= 1, *(multiple == value * t for multiple, t in zip(multiples, times, strict=True))]


def bucket_lemma(of: Quotient, number: Any) -> Any:
    """``a // b == k`` exactly if ``a`` lies in the bucket ``[b*k, b*k + b)``, mirrored for a negative ``b``."""
    a, b, start = of.dividend, of.divisor, of.divisor * number
    below = z3.Implies(b > 0, (of.quotient == number) == z3.And(start <= a, a < start + b))
    above = z3.Implies(b < 0, (of.quotient == number) == z3.And(start >= a, a > start + b))
    return z3.And(below, above)


def small_lemma(of: Quotient) -> Any:
    """A quotient rounded toward zero is zero of a dividend that is smaller than the divisor."""
    return z3.Implies(z3.And(-of.divisor < of.dividend, of.dividend < of.divisor), of.quotient == 0)


def congruence_lemma(one: Quotient, other: Quotient, number: Any) -> Any:
    """Dividends that are ``k`` divisors apart have equal remainders, and quotients that are ``k`` apart."""
    apart = z3.And(
        one.divisor != 0, one.divisor == other.divisor, one.dividend - other.dividend == one.divisor * number
    )
    return z3.Implies(apart, z3.And(one.quotient == other.quotient + number, one.remainder == other.remainder))


def multiple_lemma(of: Quotient, number: Any) -> Any:
    """For a positive ``b``, ``b*k <= a`` exactly if ``k <= a // b``."""
    return z3.Implies(of.divisor > 0, (of.divisor * number <= of.dividend) == (number <= of.quotient))


def _buckets(found: list[Quotient]) -> list[Any]:
    buckets = [bucket_lemma(one, other.quotient) for one, other in permutations(found, 2) if not one.truncates]
    return buckets + [small_lemma(of) for of in found if of.truncates]


def _congruences(found: list[Quotient]) -> list[Any]:
    floors = _floors(found)
    apart = [one.quotient * other.quotient for one, other in combinations_with_replacement(floors, 2)]
    pairs = [pair for pair in combinations(floors, 2) if pair[0].divisor.eq(pair[1].divisor)]
    return [congruence_lemma(*pair, sign * number) for pair in pairs for number in apart for sign in (1, -1)]


def _multiples(found: list[Quotient]) -> list[Any]:
    floors = _floors(found)
    ends = [one.quotient * (other.quotient + end) for one, other in permutations(floors, 2) for end in (0, 1)]
    return _buckets(found) + [multiple_lemma(of, number) for of in floors for number in ends]


def _floors(found: list[Quotient]) -> list[Quotient]:
    return [quotient for quotient in found if not quotient.truncates]


#: What is tried in turn: z3's limit in steps, and instances of lemmas that it does not think of itself.
_ATTEMPTS: dict[str, tuple[int, Callable[[list[Quotient]], list[Any]]]] = {
    "no lemma": (600_000, lambda found: []),
    "buckets": (4_000_000, _buckets),
    "congruences": (1_000_000, _congruences),
    "multiples": (4_000_000, _multiples),
}


def _instances(pattern: Pattern) -> Iterator[_Claim]:
    """The claim of ``pattern`` for every combination of small literals and factors."""
    names = _names(pattern)
    axes = [n for n in names if n in LITERALS or n.startswith(("factor_", "modulus_"))]
    context = z3.Context()
    for values in product(*[_values(name, round(_INSTANCES ** (1 / max(1, len(axes))))) for name in axes]):
        numbers = {name: int(value) for name, value in zip(axes, values, strict=True)}
        yield _Claim.of(pattern, context, numbers | _gcds(names, numbers, gcd))


def _refuted(name: str, pattern: Pattern, values: dict[str, int]) -> Counterexample | None:
    """The counterexample that z3 claims, if evaluation agrees: a common divisor of z3's need not be the greatest."""
    values = values | _gcds(values, values, gcd)
    sides = [pattern.left, pattern.right, pattern.when]
    there = replaced(sides, {v: const(values[str(v.value)]) for v in variables(sides)})
    point = {letter: np.array([value], dtype=object) for letter, value in values.items()}
    return _refutation(name, Pattern(*there), point, np.array([True]))
