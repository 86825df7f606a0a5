"""The encoding: which sorts and tables the e-graph has, and the rules that build it from rows and keep its index.

Egglog reads what belongs to one constructor, or one kind of rows, once it is needed: that is most of the text.

A class is an ``E``. A sum is ``(Sum terms constant)``, its terms a multiset of ``(Sc coefficient class)``; a product,
conjunction, disjunction, minimum, maximum or bit operator is a constructor over a multiset of classes. So
commutativity and associativity hold by representation. Rules match the sums that are ``open``: of the ways to write
one value as a sum there are exponentially many, so Python chooses some. The tables ``at`` and ``in`` index the
members: which sum has a multiple of a class, which multiset has a class. ``(A n)`` is the class with that number in
Python; ``(nf class terms constant)`` is a class's normal form, and ``lo hi fac modulus remainder`` say what the theory
knows of its values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from eqsat.lang.ops import Op, for_each_own


class Constructor(NamedTuple):
    """A constructor with a fixed number of operands."""

    name: str
    arity: int


class RowTable(NamedTuple):
    """The table of the rows of a kind: each begins with ``number`` there, and ``width`` numbers follow."""

    name: str
    number: int
    width: int

    @property
    def ruleset(self) -> str:
        """The ruleset that builds nodes of these rows."""
        return f"build{self.number}"


class Kind:
    """The kinds of rows that are no nodes of one operator."""

    #: Of sums: what equals a class, what rules match besides, and what is its normal form besides.
    EQUAL, OPEN, NORMAL = "equal", "open", "normal"
    #: Of what is known of a class: bounds and a divisor, of an atom too, a number, nothing. A hyphen keeps them apart
    #: from operators, which a user may name.
    KNOWN, ATOM, NUMBER, UNKNOWN = "row-known", "row-atom", "row-number", "row-unknown"
    #: Of what else is: that a condition holds or fails, the remainder of all values by a modulus.
    HOLDS, FAILS, ALIGNED = "row-holds", "row-fails", "row-aligned"


#: Constructors over a multiset of classes, by operator.
CONTAINERS = {
    "mul": "Prod",
    "and": "And",
    "or": "Or",
    "min": "Min",
    "max": "Max",
    "bitand": "BitAnd",
    "bitor": "BitOr",
    "bitxor": "BitXor",
}
#: Those in which a member that stands twice counts twice.
COUNTED = frozenset({"mul", "bitxor"})
#: Constructors with a fixed number of operands, by operator.
PLAIN = {
    "floordiv": Constructor("Div", 2),
    "mod": Constructor("Mod", 2),
    "tdiv": Constructor("TDiv", 2),
    "tmod": Constructor("TMod", 2),
    "lt": Constructor("Lt", 2),
    "eq": Constructor("Eq", 2),
    "not": Constructor("Not", 1),
    "where": Constructor("Where", 3),
    "shl": Constructor("Shl", 2),
    "shr": Constructor("Shr", 2),
    # the body, the index, and the ends of its range
    "sum_over": Constructor("SumOver", 4),
    "prod_over": Constructor("ProdOver", 4),
    "max_over": Constructor("MaxOver", 4),
    "min_over": Constructor("MinOver", 4),
}
#: By operator, the constructors that a rule reads of its nodes: `x <= y` is `not y < x`.
CONSTRUCTORS = {
    "sum": ("Sum",),
    "le": ("Not", "Lt"),
    "ne": ("Not", "Eq"),
    **{op: (name,) for op, name in CONTAINERS.items()},
    **{op: (name,) for op, (name, _) in PLAIN.items()},
}
#: Sums and containers of up to this number of members have a table for each length; longer ones are text.
MOST_COLUMNS = 12
#: What an infinite bound is to egglog. Then it is given no finite number beyond the other one: what a guard computes of
#: two of these is far from infinite, and what it computes of an infinite bound lies beyond them all.
INFINITE, LARGEST_FINITE = 2**62 - 1, 2**30 - 1
#: The kinds of rows share tables of these widths, since each table costs.
_WIDTHS = (8, 2 + 2 * MOST_COLUMNS)

_SORTS = """
(sort E) (datatype T (Sc i64 E))
(sort MT (MultiSet T)) (sort ME (MultiSet E))
(sort FT (UnstableFn (MT T) i64)) (sort FE (UnstableFn (ME E) i64))
(sort FTT (UnstableFn (T) T)) (sort FTU (UnstableFn (T) Unit)) (sort FTE (UnstableFn (T) E))
(constructor A (i64) E) (constructor Yes () E) (constructor No () E)
(constructor Sum (MT i64) E)
(relation nf (E MT i64)) (relation open (E MT i64)) (relation lone (E T))
(function lit (E) i64 :merge (min old new))
(function lo (E) i64 :merge (max old new)) (function hi (E) i64 :merge (min old new))
(function fac (E) i64 :merge (max old new))
(function modulus (E) i64 :merge (max old new)) (function remainder (E i64) i64 :merge old)
(function idx (MT T) i64 :merge (max old new)) (function midx (ME E) i64 :merge (max old new))
(function atom-of (T) E :merge old) (relation at (MT T E i64)) (relation in (ME E))
(relation ask (MT E i64)) (relation seek (MT E)) (relation piece (MT E i64 MT i64))
(relation covers (MT E i64 MT i64))
(function touched (MT MT i64 T) Unit :merge old) (function left (MT MT i64 T) T :merge old)
(ruleset fill) (ruleset index) (ruleset ones)
(ruleset ask0) (ruleset ask1) (ruleset ask2) (ruleset ask3)
"""

#: By ruleset and name, the query and the actions of the rules that keep the index, and answer what others ask.
_KEPT = [
    ("fill", "fill", "(open e m k)", '(unstable-multiset-fill-index m (unstable-fn "idx"))'),
    ("index", "index", "(= n (idx m t)) (= t (Sc c a))", "(at m t a c)"),
    ("index", "atom-of", "(= t (Sc c a))", "(set (atom-of t) a)"),
    ("index", "index-members", "(= n (midx m a))", "(in m a)"),
    # a term found by a primitive is looked up by a rule of its own: in one rule every pair would be tried
    ("fill", "lone", "(= s (Sum m 0)) (= 1 (multiset-length m))", "(lone s (multiset-pick m))"),
    ("ones", "value-Sum", "(= e (Sum m k)) (= v (lit e)) (< 0 (multiset-length m))", "(subsume (Sum m k))"),
    ("ones", "one-term", "(lone s t) (= t (Sc 1 a))", "(union s a)"),
    (
        "ones",
        "literal",
        # larger ones might be taken for more than an infinite bound; those that are none are rows
        f"(= s (Sum m k)) (= 0 (multiset-length m)) (<= (abs k) {LARGEST_FINITE})",
        "(set (lit s) k)",
    ),
    ("ask0", "seek", "(seek m x) (nf x p k) (at p t a c) (at m u a d) (= 0 (% d c)) (= s (/ d c))", "(ask m x s)"),
    ("ask1", "ask", "(ask m x s) (nf x p k) (< 0 (multiset-length p))", "(covers m x s p k)"),
    (
        "ask2",
        "touched",
        # what is left is a number that egglog holds, as `left` has it unless it is zero
        "(covers m x s p k) (at p t a c) (at m u a d) (= e (- d (* s c)))",
        "(set (touched m p s u) ())",
    ),
    (
        "ask2",
        "left",
        "(covers m x s p k) (at p t a c) (at m u a d) (= e (- d (* s c))) (!= 0 e)",
        "(set (left m p s u) (Sc e a))",
    ),
    (
        "ask3",
        "piece",
        # not where an atom stands twice after classes were united: what is left of it would be counted twice
        """(covers m x s p k)
        (= b (unstable-multiset-map (unstable-fn "atom-of") m)) (= (multiset-length m) (multiset-length b))
        (= (multiset-length m) (multiset-length (multiset-reset-counts b)))
        (= v (unstable-multiset-map (unstable-fn "atom-of") p)) (= (multiset-length p) (multiset-length v))
        (= (multiset-length p) (multiset-length (multiset-reset-counts v)))
        (= z (unstable-multiset-filter-not (unstable-fn "touched" m p s) m))
        (= (multiset-length p) (- (multiset-length m) (multiset-length z)))
        (= y (multiset-sum z (unstable-multiset-map (unstable-fn "left" m p s) m)))
        (< (multiset-length y) (multiset-length m))""",
        "(piece m x s y k)",
    ),
]
#: How the names of rules begin that read tables which egglog does not see change. They run after the rules that fill
#: these tables, once for each row of their query.
_UNTRACKED = ("fill", "piece")


def negated[T](op: str, operands: Sequence[T]) -> tuple[str, Sequence[T]] | None:
    """The comparison that egglog negates instead of this one, if it does: ``x <= y`` is ``not y < x`` there."""
    if op == "le":
        return "lt", operands[::-1]
    return ("eq", operands) if op == "ne" else None


def program() -> str:
    """The egglog text of the encoding, but for what belongs to one constructor or kind of rows."""
    lines = [_SORTS]
    for table, width in {table: width for table, _, width in ROWS.values()}.items():
        lines.append(f"(relation {table} ({' '.join(['i64'] * (width + 1))}))")
    for ruleset, name, query, actions in _KEPT:
        lines.append(_rule(ruleset, name, query, actions))
    return "\n".join(lines)


def constructors_in(text: str) -> list[str]:
    """The constructors that a text names, but for that of sums."""
    return [name for name in (*CONTAINERS.values(), *[name for name, _ in PLAIN.values()]) if f"({name} " in text]


def constructor_text(name: str) -> str:
    """A constructor, and the rules that keep the index of its members, and leave out nodes that nothing needs."""
    arity = dict(PLAIN.values()).get(name)
    operands = ["m"] if arity is None else [f"x{i}" for i in range(arity)]
    row = f"({name} {' '.join(operands)})"
    lines = [f"(constructor {name} ({'ME' if arity is None else ' '.join(['E'] * arity)}) E)"]
    if arity is None:
        filled = '(unstable-multiset-fill-index m (unstable-fn "midx"))'
        lines.append(_rule("fill", f"fill-{name}", f"(= s {row})", filled))
        lines.append(_rule("ones", f"one-{name}", f"(in m a) (= s {row}) (= 1 (multiset-length m))", "(union s a)"))
    # a class that is known to be one value, or a node over its own class, needs no other node
    lines.append(_rule("ones", f"value-{name}", f"(= e {row}) (= v (lit e))", f"(subsume {row})"))
    for own in [] if arity is None else operands:
        node = f"({name} {' '.join(['e' if x == own else x for x in operands])})"
        lines.append(_rule("ones", f"own-{name}-{own}", f"(= e {node})", f"(subsume {node})"))
    for place, (node, query, value) in enumerate(_decided(name)):
        lines.append(
            _rule("ones", f"known-{name}{place}", f"(= e {node}) {query}", f"(union e {value}) (subsume {node})")
        )
    return "\n".join(lines)


def _rule(ruleset: str, name: str, query: str, actions: str) -> str:
    mark = " :unsafe-seminaive" if name.startswith(_UNTRACKED) else ""
    return f'(rule ({query}) ({actions}) :ruleset {ruleset}{mark} :name "{name}")'


def _decided(name: str) -> Iterator[tuple[str, str, str]]:
    """The nodes of a constructor that a known condition decides: each with a query, and with what it is.

    Else rules scale the other branch of a selection without end.
    """
    for known, other, branch, junction in (("(Yes)", "(No)", "x", "And"), ("(No)", "(Yes)", "y", "Or")):
        if name == "Where":
            yield f"(Where {known} x y)", "", branch
        elif name == "Not":
            yield f"(Not {known})", "", other
        elif name == junction:
            yield f"({name} m)", f"(in m {other})", other
            yield f"({name} m)", f"(in m {known}) (< 1 (multiset-length m))", f"({name} (multiset-remove m {known}))"


def container_text(op: str, members: str) -> str:
    """The node of an operator over a multiset; a member counts once, but for products and exclusive or."""
    return f"({CONTAINERS[op]} {members if op in COUNTED else f'(multiset-reset-counts {members})'})"


def of_length(kind: str, members: int) -> str:
    """The kind of rows of a sum or a container with a number of members.

    >>> of_length("max", 3)
    'max of 3'
    """
    return f"{kind} of {members}"


def _built() -> Iterator[tuple[str, str, str]]:
    """The kinds of rows by name: their columns, and what is done with one."""
    facts = "(set (lo (A i)) l) (set (hi (A i)) h) (set (fac (A i)) f)"
    yield Kind.KNOWN, "i l h f", facts
    alone = f"(let m (multiset-of (Sc 1 (A i)))) {_is('(Sum m 0)')} (nf e m 0)"
    yield Kind.ATOM, "i l h f", f"{alone} {facts}"
    measures = "(set (lo e) k) (set (hi e) k) (set (fac e) (max 1 (abs k)))"
    yield Kind.NUMBER, "i k", f"(let m (multiset-of)) {_is('(Sum m k)')} (open e m k) (set (lit e) k) {measures}"
    yield Kind.UNKNOWN, "i", "(A i)"
    yield Kind.HOLDS, "i", _is("(Yes)")
    yield Kind.FAILS, "i", _is("(No)")
    yield Kind.ALIGNED, "i m r", "(set (modulus (A i)) m) (set (remainder (A i) m) r)"
    for op, (constructor, arity) in PLAIN.items():
        yield _node(op, arity, f"({constructor} {{}})")
    # what is not below is at most, and what is not equal differs
    yield _node("ne", 2, "(Not (Eq {}))")
    yield "le", "i a0 a1", _is("(Not (Lt (A a1) (A a0)))")
    for n in range(MOST_COLUMNS + 1):
        pairs = [(f"c{i}", f"a{i}") for i in range(n)]
        columns = " ".join(["i", "k", *(name for pair in pairs for name in pair)])
        terms = f"(multiset-of {' '.join(f'(Sc {c} (A {a}))' for c, a in pairs)})"
        built = f"(let m {terms}) {_is('(Sum m k)')}"
        yield of_length(Kind.EQUAL, n), columns, built
        yield of_length(Kind.OPEN, n), columns, f"{built} (open e m k)"
        yield of_length(Kind.NORMAL, n), columns, f"{built} (open e m k) (nf e m k)"
    for op in CONTAINERS:
        for n in range(2, MOST_COLUMNS + 1):
            kind, columns, action = _node(op, n, container_text(op, "(multiset-of {})"))
            yield of_length(kind, n), columns, action


def _node(op: str, arity: int, built: str) -> tuple[str, str, str]:
    operands = " ".join(f"(A a{i})" for i in range(arity))
    return op, " ".join(["i", *[f"a{i}" for i in range(arity)]]), _is(built.format(operands))


def _is(node: str) -> str:
    """The actions that add a node to the class ``i``, named ``e``.

    To unite a name with a new node, egglog writes one row; of two nodes it would make two classes, and rebuild all
    tables.
    """
    return f"(let e (A i)) (union e {node})"


#: By kind of row, its columns, and what is done with one.
_BUILT = {kind: (columns, actions) for kind, columns, actions in _built()}


def _tables() -> Iterator[tuple[str, RowTable]]:
    for number, (kind, (columns, _)) in enumerate(_BUILT.items()):
        width = len(columns.split())
        width = next(most for most in _WIDTHS if most >= width)
        yield kind, RowTable(f"rows{width}", number, width)


#: By kind of row, where such rows are.
ROWS = dict(_tables())


@for_each_own
def _add_constructor(op: Op) -> None:
    """Add a user's own operator. It has a fixed number of operands; the number of its rows follows all others."""
    arity = len(op.takes)
    PLAIN[op.name] = Constructor(f"Own-{op.name}", arity)
    CONSTRUCTORS[op.name] = (f"Own-{op.name}",)
    width = next(most for most in _WIDTHS if most > arity)
    ROWS[op.name] = RowTable(f"rows{width}", len(ROWS), width)
    _, columns, actions = _node(op.name, arity, f"(Own-{op.name} {{}})")
    _BUILT[op.name] = columns, actions


def building_text(kind: str) -> str:
    """The ruleset that builds nodes of the rows of a kind."""
    (columns, actions), rows = _BUILT[kind], ROWS[kind]
    row = " ".join([str(rows.number), columns, *["0"] * (rows.width - len(columns.split()))])
    return f'(ruleset {rows.ruleset}) (rule (({rows.name} {row})) ({actions}) :ruleset {rows.ruleset} :name "{kind}")'
