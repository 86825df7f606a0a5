"""What runs beside the rules in every round, as egglog text: the sorts and tables, the analyses, and what facts say.

The analyses: bounds ``lo`` and ``hi``; alignment, all values being ``remainder`` modulo ``modulus`` (0: no other
value); a divisor ``fac`` of all values; the ``size`` of the smallest term. Where classes unite the larger modulus is
kept: both congruences hold, and each alone is true.

What keeps e-graphs small: literals are part of the node, so that they are never addends; a node that contains its own
class is subsumed, and so is every other node of a class known to be a literal; and a rule that builds terms matches
only terms within :data:`SLACK` operators of the smallest equal one.
"""

from __future__ import annotations

from eqsat.egraph.compiling import CONSTRUCTORS, REDUCERS, CompiledRule, common_divisor, floor_parts
from eqsat.lang.ops import OPS, REDUCTIONS

#: A rule that builds terms matches only those with at most this number of operators more than the smallest equal one.
SLACK = 2

SORTS = """
(sort T)
(constructor Num (i64) T) (constructor Var (String) T) (constructor Ref (i64) T)
(constructor True () T) (constructor False () T) (relation Contradiction ())
(constructor AddK (T i64) T) (constructor MulK (T i64) T) (constructor DivK (T i64) T) (constructor ModK (T i64) T)
(function lo (T) i64 :merge (max old new))
(function hi (T) i64 :merge (min old new))
(function fac (T) i64 :merge (max old new))
(function modulus (T) i64 :merge (* (min 1 (min old new)) (max old new)))
(function remainder (T i64) i64 :merge (min old new))
(function size (T) i64 :merge (min old new))
(ruleset bounds)
(constructor Idx (i64) T) (constructor Load (T i64) T) (constructor Cons (T T) T) (constructor Nil () T)
(relation free (T i64)) (relation range (T T)) (relation extent (T T i64))
""" + "\n".join(
    [
        *[f"(constructor {c} ({' '.join('T' * len(OPS[n].takes))}) T)" for n, c in CONSTRUCTORS.items()],
        *[f"(constructor {c} (T T T i64) T)" for c in REDUCERS.values()],
    ]
)

_FOUR = "(= p (* a c)) (= q (* a d)) (= r (* b c)) (= s (* b d))"
_X, _Y = "(= a (lo x)) (= b (hi x))", "(= c (lo y)) (= d (hi y))"


def _corner_quotients() -> str:
    facts = [floor_parts(f"{i}{j}_", i, j) for i in "ab" for j in "cd"]
    quotients = [f[1] for f in facts]
    low = f"(min (min {quotients[0]} {quotients[1]}) (min {quotients[2]} {quotients[3]}))"
    return f"{' '.join(f[0] for f in facts)} (= l {low}) (= h {low.replace('min', 'max')})"


def _floors(divisor: str) -> str:
    low, high = floor_parts("l_", "a", divisor), floor_parts("h_", "b", divisor)
    return f"{low[0]} {high[0]}"


def _congruence(letter: str, modulus: str, remainder: str) -> str:
    """Facts that give the congruence of a class; that of a literal, modulo 0, is not one."""
    return f"(= {modulus} (modulus {letter})) (= {remainder} (remainder {letter} {modulus})) (> {modulus} 0)"


#: Interval analysis: what is known of a node from what is known of its operands.
_BOUNDS = [
    ("(= e (Num l))", "(= h l)"),
    ("(= e (AddK x k))", f"{_X} (= l (+ a k)) (= h (+ b k))"),
    ("(= e (MulK x k))", f"{_X} (= p (* a k)) (= q (* b k)) (= l (min p q)) (= h (max p q))"),
    ("(= e (DivK x k))", f"{_X} {_floors('k')} (= l (min l_q h_q)) (= h (max l_q h_q))"),
    ("(= e (ModK x k))", "(> k 0) (= l 0) (= h (- k 1))"),
    ("(= e (ModK x k))", "(< k 0) (= l (+ k 1)) (= h 0)"),
    ("(= e (ModK x k))", "(> k 0) (= l 0) (= h (hi x)) (>= (lo x) 0)"),
    (
        "(= e (ModK x k))",
        f"(> k 0) {_congruence('x', 'm', 'r')} (= g {common_divisor('m', 'k')}) (= l (% r g)) (= h (+ (- k g) l))",
    ),
    ("(= e (Add x y))", f"{_X} {_Y} (= l (+ a c)) (= h (+ b d))"),
    ("(= e (Mul x y))", f"{_X} {_Y} {_FOUR} (= l (min (min p q) (min r s))) (= h (max (max p q) (max r s)))"),
    ("(= e (Div x y))", f"{_X} {_Y} (> c 0) {_corner_quotients()}"),
    ("(= e (Div x y))", f"{_X} {_Y} (< d 0) {_corner_quotients()}"),
    ("(= e (Mod x y))", f"{_Y} (> c 0) (= l 0) (= h (- d 1))"),
    ("(= e (Mod x y))", f"{_Y} (< d 0) (= l (+ c 1)) (= h 0)"),
    ("(= e (Mod x y))", "(> (lo y) 0) (>= (lo x) 0) (= l 0) (= h (hi x))"),
    ("(= e (Min x y))", f"{_X} {_Y} (= l (min a c)) (= h (min b d))"),
    ("(= e (Max x y))", f"{_X} {_Y} (= l (max a c)) (= h (max b d))"),
    ("(= e (Where w x y))", f"{_X} {_Y} (= l (min a c)) (= h (max b d))"),
]

_OF_X, _OF_Y = _congruence("x", "a", "b"), _congruence("y", "c", "d")
_PRODUCT = (
    f"(= p (* a c)) (= q (* a d)) (= g {common_divisor('p', 'q')}) (= s (* c b)) (= m {common_divisor('g', 's')})"
)
#: Two classes of which either may be a literal.
_EITHER = "(= a (modulus x)) (= b (remainder x a)) (= c (modulus y)) (= d (remainder y c))"
_JOIN = f"{_EITHER} (= g {common_divisor('a', 'c')}) (= h (- b d)) (= m {common_divisor('g', 'h')}) (= r b)"

#: Congruences: a node is ``r`` modulo ``m``. No row means that none is known; so where a product overflows.
_CONGRUENCES = [
    ("(= (Num c) (ModK e k))", "(= m (abs k)) (= r c)"),
    ("(= e (AddK x k))", f"{_OF_X} (= m a) (= r (+ b k))"),
    ("(= e (MulK x k))", "(= m (abs k)) (= r 0)"),
    ("(= e (MulK x k))", f"{_OF_X} (= m (* a (abs k))) (= r (* b k))"),
    ("(= e (ModK x k))", f"{_OF_X} (= m {common_divisor('a', 'k')}) (= r b)"),
    ("(= e (DivK x k))", f"{_OF_X} (> k 0) (= 0 (% a k)) (= m (/ a k)) (= r (/ b k))"),
    ("(= e (Add x y))", f"{_OF_X} {_OF_Y} (= m {common_divisor('a', 'c')}) (= r (+ b d))"),
    ("(= e (Mul x y))", "(= m (fac x)) (= r 0)"),
    ("(= e (Mul x y))", "(= m (fac y)) (= r 0)"),
    ("(= e (Mul x y))", f"{_OF_X} {_OF_Y} {_PRODUCT} (= r (* b d))"),
    ("(= e (Min x y))", _JOIN),
    ("(= e (Max x y))", _JOIN),
    ("(= e (Where w x y))", _JOIN),
]
#: How a congruence of ``e`` is set, its remainder brought into ``[0, m)``; and what follows for ``fac``.
_ALIGNED = "(> m 1) (= n (% (+ (% r m) m) m))", "(set (modulus e) m) (set (remainder e m) n)"
_DIVISOR = f"(= r (remainder e m)) (> m 1) (= f {common_divisor('m', 'r')}) (> f 1)", "(set (fac e) f)"

#: One form of literal operands, and the tripwires.
_ALTERNATIVE = [
    ("(= e (Add x y)) (= y (Num k))", "(union e (AddK x k)) (subsume (Add x y))"),
    ("(= e (Add y x)) (= y (Num k))", "(union e (AddK x k)) (subsume (Add y x))"),
    ("(= e (Mul x y)) (= y (Num k))", "(union e (MulK x k)) (subsume (Mul x y))"),
    ("(= e (Mul y x)) (= y (Num k))", "(union e (MulK x k)) (subsume (Mul y x))"),
    ("(= e (Div x y)) (= y (Num k)) (!= k 0)", "(union e (DivK x k)) (subsume (Div x y))"),
    ("(= e (Mod x y)) (= y (Num k)) (!= k 0)", "(union e (ModK x k)) (subsume (Mod x y))"),
    ("(> (lo e) (hi e))", "(Contradiction)"),
    ("(= (Num a) (Num b)) (!= a b)", "(Contradiction)"),
    ("(= (True) (False))", "(Contradiction)"),
]

#: What a fact says about its operands; true of any graph, needed only where something is known to hold.
FACT_RULES = [
    ("(= (True) (And x y))", "(union x (True)) (union y (True))"),
    ("(= (False) (Or x y))", "(union x (False)) (union y (False))"),
    ("(= (True) (Not x))", "(union x (False))"),
    ("(= (False) (Not x))", "(union x (True))"),
    ("(= (True) (Eq x y))", "(union x y)"),
    ("(= (True) (Lt x y)) (= h (- (hi y) 1))", "(set (hi x) h)"),
    ("(= (True) (Lt x y)) (= l (+ (lo x) 1))", "(set (lo y) l)"),
    ("(= (False) (Lt x y)) (= h (hi x))", "(set (hi y) h)"),
    ("(= (False) (Lt x y)) (= l (lo y))", "(set (lo x) l)"),
    ("(= (False) (Eq x (Num k))) (= k (lo x)) (= l (+ k 1))", "(set (lo x) l)"),
    ("(= (False) (Eq x (Num k))) (= k (hi x)) (= h (- k 1))", "(set (hi x) h)"),
    ("(= e (AddK x k)) (= l (- (lo e) k)) (= h (- (hi e) k))", "(set (lo x) l) (set (hi x) h)"),
    ("(= e (Add x y)) (= l (- (lo e) (hi y))) (= h (- (hi e) (lo y)))", "(set (lo x) l) (set (hi x) h)"),
    ("(= e (Add y x)) (= l (- (lo e) (hi y))) (= h (- (hi e) (lo y)))", "(set (lo x) l) (set (hi x) h)"),
    (
        f"(= e (MulK x k)) (> k 0) (= a (- 0 (lo e))) (= b (hi e)) {_floors('k')} (= l (- 0 l_q))",
        "(set (lo x) l) (set (hi x) h_q)",
    ),
    (
        f"(= e (MulK x n)) (< n 0) (= k (- 0 n)) (= a (hi e)) (= b (- 0 (lo e))) {_floors('k')} (= l (- 0 l_q))",
        "(set (lo x) l) (set (hi x) h_q)",
    ),
    (
        "(= e (DivK x k)) (> k 0) (= l (* k (lo e))) (= h (+ (* k (hi e)) (- k 1)))",
        "(set (lo x) l) (set (hi x) h)",
    ),
    (
        "(= e (AddK x k)) (= m (modulus e)) (> m 1) (= n (% (+ (% (- (remainder e m) k) m) m) m))",
        _ALIGNED[1].replace(" e", " x"),
    ),
    ("(= (Num c) (ModK x k)) (!= (lo x) (hi x))", "(union x (AddK (MulK (DivK x k) k) c))"),
]

#: How many classes a node of each constructor refers to.
ARITIES = {
    **dict.fromkeys(("Num", "Var", "True", "False", "Idx", "Nil"), 0),
    **dict.fromkeys(("AddK", "MulK", "DivK", "ModK", "Load"), 1),
    "Cons": 2,
    **dict.fromkeys(REDUCERS.values(), 3),
    **{CONSTRUCTORS[name]: len(OPS[name].takes) for name in CONSTRUCTORS},
}
#: Constructors whose last operand is a literal or a number.
WITH_LITERAL = frozenset({"Num", "Var", "AddK", "MulK", "DivK", "ModK", "Idx", "Load", *REDUCERS.values()})


def _row(constructor: str, arity: int) -> str:
    operands = [f"x{index}" for index in range(arity)]
    return f"({' '.join([constructor, *operands, *(['k'] if constructor in WITH_LITERAL else [])])})"


def _size(constructor: str, arity: int) -> tuple[str, str]:
    """The rule that counts the operators and leaves of a class's smallest term."""
    total = "1"
    for index in range(arity):
        total = f"(+ {total} (size x{index}))"
    return f"(= e {_row(constructor, arity)}) (= s {total})", "(set (size e) s)"


#: How many steps a reduction has, at least and at most.
_STEPS = "(= least (max 0 (- (lo v) (hi u)))) (= most (max 0 (- (hi v) (lo u))))"


def _reduction_bounds() -> list[tuple[str, str]]:
    """Bounds of reductions from those of the body and of the ends of the range; products keep those that they have."""
    by_steps = "(= l (min (* least (lo x)) (* most (lo x)))) (= h (max (* least (hi x)) (* most (hi x))))"
    found = [(f"(= e (SumOver x u v i)) {_STEPS} {by_steps}", "(set (lo e) l) (set (hi e) h)")]
    for name in ("max_over", "min_over"):
        node, identity = f"(= e ({REDUCERS[name]} x u v i))", REDUCTIONS[name].identity
        found += [
            (f"{node} (< (hi u) (lo v)) (= l (lo x)) (= h (hi x))", "(set (lo e) l) (set (hi e) h)"),
            (f"{node} (= l (min (lo x) {identity})) (= h (max (hi x) {identity}))", "(set (lo e) l) (set (hi e) h)"),
        ]
    return found


def of_reductions() -> list[tuple[str, str]]:
    """What runs beside ``analysis`` in a graph with reductions; all of it only grows.

    ``(free x i)``: one node of ``x`` does not speak of the index ``i``. ``(extent u v c)``: ``v - u == c``, for the
    ends of a range, which are also compared, for guards to ask.
    """
    found = _reduction_bounds()
    for constructor, arity in ARITIES.items():
        row = _row(constructor, arity)
        free = "".join([f" (free x{operand} i)" for operand in range(arity)])
        if constructor in REDUCERS.values():
            found += [
                (f"(= e {row}){free}", "(free e i)"),
                (f"(= e {row}) (free x1 k) (free x2 k)", "(free e k)"),
                (f"(= e {row})", "(range x1 x2) (Lt x1 x2) (Lt x2 x1)"),
            ]
        elif constructor == "Idx":
            found.append(("(= e (Idx k)) (= f (Idx i)) (!= k i)", "(free e i)"))
        else:
            found.append((f"(= f (Idx i)) (= e {row}){free}", "(free e i)"))
    return [
        *found,
        ("(range u v) (= u (Num a)) (= v (Num b)) (= c (- b a))", "(extent u v c)"),
        ("(range u v) (= v (AddK u c))", "(extent u v c)"),
        ("(range u v) (= u (AddK v d)) (= c (- 0 d))", "(extent u v c)"),
        ("(range u v) (= u (AddK w a)) (= v (AddK w b)) (= c (- b a))", "(extent u v c)"),
    ]


def fence(part: CompiledRule) -> str:
    """Match only terms that are little larger than the smallest term known to equal them."""
    if part.writes <= {"Num", "True", "False"}:
        return ""
    total = str(part.operators - SLACK)
    for letter in part.letters:
        total = f"(+ {total} (size {letter}))"
    return f" (= within {total}) (<= within (size e))"


def analysis() -> list[tuple[str, str]]:
    """What runs before the rules in every round: bounds, congruences, sizes, literals, and the tripwires."""
    found = [(f"{node} {facts}", "(set (lo e) l) (set (hi e) h)") for node, facts in _BOUNDS]
    found += [(f"{node} {facts} {_ALIGNED[0]}", _ALIGNED[1]) for node, facts in _CONGRUENCES]
    found += [("(= e (Num k))", "(set (modulus e) 0) (set (remainder e 0) k)"), _DIVISOR, *_ALTERNATIVE]
    for constructor, arity in ARITIES.items():
        row = _row(constructor, arity)
        found.append(_size(constructor, arity))
        found += [(f"(= x{operand} {row})", f"(subsume {row})") for operand in range(arity)]
        # a remainder known to be a literal still speaks of its operand
        if constructor not in ("Num", "True", "False", "ModK", "Idx"):
            found.append((f"(= e {row}) (= e (Num value))", f"(subsume {row})"))
    return found
