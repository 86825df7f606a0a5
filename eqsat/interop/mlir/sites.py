"""Rewriting MLIR's affine maps where they are applied, subscripts of affine loads and stores, and bounds of loops."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import reduce

from eqsat.extract.cost import CostModel, PriceError
from eqsat.extract.graph import reached
from eqsat.interop.affine import Affine, affine_text
from eqsat.interop.limits import INTEROP_LIMITS
from eqsat.interop.mlir.emit import Emitted
from eqsat.interop.mlir.proposals import Program, Proposal
from eqsat.interop.mlir.terms import AFFINE_FOR, APPLY, NotReadError, Terms, fits
from eqsat.interop.mlir.text import TOKEN, Statement, Value
from eqsat.lang.costs import costs_alone
from eqsat.lang.expr import Expr, const, rebuild
from eqsat.lang.functions import maximum, minimum
from eqsat.lang.ops import FLOORS, SUMS
from eqsat.lang.traversal import chain_members, term_count, topological, variables
from eqsat.theory.linear import LinearArithmetic

#: The kind of expressions that are the bounds of a loop; see :func:`_expressions`.
_LOOP = "for"
#: Of each kind of expressions, the operators that join the parts of the answers.
_JOINED = {"min": ("min",), "max": ("max",), _LOOP: ("max", "min")}
_SYMBOL = re.compile(r"symbol\(%(\d+)\)")
_VARIABLE = re.compile(r"\b(v\d+_\d+)\b")


class _Composed(Terms):
    """Terms that see through the maps applied to operands, in normal form where that is shorter."""

    def result(self, value: Value, type_: str) -> Expr | None:
        term = super().result(value, type_)
        if term is None or not term.args or not _is_apply(value):
            return term
        return min(term, LinearArithmetic().simplify(term), key=lambda t: term_count([t]))


class Sites:
    """The places of a module that hold affine expressions."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.model: CostModel = Affine(program.model)
        #: Terms that see through the maps applied to operands; and terms that see through nothing.
        self.composed = _Composed(program.module, program.terms, lambda value: not _is_apply(value), self._is_atom)
        self.composed.read(program.module.statements)
        self.own = Terms(program.module, program.terms, lambda value: True)

    def _is_atom(self, term: Expr) -> bool:
        """Whether the term of an applied map is not seen through: one that is kept together, or that has grown long."""
        atoms = self.program.atoms
        return term_count([term]) > INTEROP_LIMITS.composed or (atoms is not None and atoms(term))

    def rewrite(self, statement: Statement) -> None:
        """Rewrite the affine expressions of a statement, if that saves anything."""
        if statement.replacement is not None or "affine." not in statement.normalised[0]:
            return
        proposals: list[Proposal | None] = []
        for terms in (self.composed, self.own):
            try:
                proposals.append(self._proposal(statement, terms))
            except PriceError:
                raise
            except (NotReadError, ValueError, TypeError):
                # an expression that is not known stays
                continue
        self.program.apply_best(proposals)

    def remove_unread(self) -> None:
        """Take out the maps that nothing reads any more, since what read them was rewritten later than they were."""
        for statement in reversed(self.program.module.statements):
            if statement.replacement and any(_is_apply(v) and not v.users for v in statement.results):
                self.program.remove([statement, *self.program.dead([statement], statement.operands, [])])

    def _proposal(self, statement: Statement, terms: Terms) -> Proposal | None:
        kind, given = _expressions(statement, terms)
        if not given or self.program.is_over(statement):
            return None
        if (answers := self.program.answers(given, terms, statement.block, self.model, "tree")) is None:
            return None
        is_needless = kind not in ("", _LOOP) and not answers[0].args
        if list(answers) == given and not is_needless:
            return None
        members = _members(kind, answers)
        parts = [part for some in members for part in some]
        # a variable that only facts name may not be allowed as a dim
        if not all(_is_affine(part) for part in parts) or not set(variables(parts)) <= set(variables(given)):
            raise NotReadError
        if kind == _LOOP:
            changed = [None if a is g else some for some, a, g in zip(members, answers, given, strict=True)]
            emitted, lost = _looped(statement, changed, terms)
        else:
            emitted, lost = self._mapped(statement, kind, parts, terms)
        if not all(v in statement.operands or self.program.is_visible(v, statement) for v in emitted.used):
            raise NotReadError
        return self._priced(statement, emitted, lost, answers, is_needless)

    def _mapped(
        self, statement: Statement, kind: str, parts: Sequence[Expr], terms: Terms
    ) -> tuple[Emitted, list[Value]]:
        """An applied map, or subscripts, with other expressions, and the values that it had in them."""
        symbols = self._read_symbols(statement, terms)
        if not kind:
            return _subscripted(statement, parts, symbols, terms)
        applied = kind if len(parts) > 1 else "apply"
        return self._applied(statement, applied, parts, symbols, terms), list(statement.operands)

    def _read_symbols(self, statement: Statement, terms: Terms) -> set[Value]:
        """The values that a statement, or what it sees through, reads as symbols."""
        seen = reached([statement], lambda s: [value.statement for value in _seen_through(s, terms)])
        read = [terms.of(value, "index") for s in seen for value in _read_as_symbols(s)]
        return {terms.values[x] for x in variables(read)}

    def _priced(
        self, statement: Statement, emitted: Emitted, lost: Sequence[Value], answers: Sequence[Expr], is_needless: bool
    ) -> Proposal:
        """A proposal; it saves 1 at equal prices if it has fewer operators, or if the operation was needless."""
        before, after = (_without_differences(e) for e in (_expressions(statement, self.own)[1], answers))
        old, new = (sum(costs_alone(roots, self.program.model)[r] for r in roots) for roots in (before, after))
        saving = old - new or int(is_needless or term_count(before) > term_count(after))
        return self.program.proposal({statement: emitted}, lost, saving)

    def _applied(
        self, statement: Statement, kind: str, parts: Sequence[Expr], symbols: set[Value], terms: Terms
    ) -> Emitted:
        """An applied map with other expressions; a variable or a literal if it is one."""
        if len(parts) == 1 and parts[0].op == "var":
            return Emitted(same_as=terms.values[parts[0]])
        if len(parts) == 1 and parts[0].op == "const":
            line: list[str | Value] = [f" = arith.constant {parts[0].vmin} : index\n"]
        else:
            line = [f" = affine.{kind} ", *_map(parts, symbols, terms), "\n"]
        return _replacing(statement, [statement.indentation, statement.results[0], *line])


def _values(pieces: Iterable[str | Value]) -> list[Value]:
    return [piece for piece in pieces if isinstance(piece, Value)]


def _replacing(statement: Statement, line: list[str | Value]) -> Emitted:
    """A line in the place of a statement, which reads all values in it but those that the statement defines."""
    return Emitted([line], [value for value in _values(line) if value.statement is not statement])


def _map(parts: Sequence[Expr], symbols: set[Value], terms: Terms) -> list[str | Value]:
    """An affine map whose results are ``parts``, and its operands."""
    leaves = _leaves(parts, terms)
    groups = [[v for v in leaves.values() if v not in symbols], [v for v in leaves.values() if v in symbols]]
    names = {v: f"{letter}{k}" for letter, group in zip("ds", groups, strict=True) for k, v in enumerate(group)}
    texts = [_VARIABLE.sub(lambda m: names[leaves[m[1]]], affine_text(p)) for p in parts]
    dims, syms = ([names[v] for v in group] for group in groups)
    head = f"({', '.join(dims)})" + (f"[{', '.join(syms)}]" if syms else "")
    operands: list[str | Value] = ["(", *_separated(groups[0]), ")"]
    operands += ["[", *_separated(groups[1]), "]"] if syms else []
    return [f"affine_map<{head} -> ({', '.join(texts)})>", *operands]


def _looped(statement: Statement, bounds: Sequence[Sequence[Expr] | None], terms: Terms) -> tuple[Emitted, list[Value]]:
    """An ``affine.for`` with other bounds, ``None`` for one that stays, and the values that it had in them."""
    text, values = statement.normalised
    if (found := AFFINE_FOR.fullmatch(text)) is None:
        raise NotReadError
    line: list[str | Value] = [statement.indentation, *_pieces(text[: found.start(2)], values)]
    lost: list[Value] = []
    for place, bound, word in zip((2, 3), bounds, ("max", "min"), strict=True):
        old = _pieces(found[place], values)
        if bound is None:
            line += old
        else:
            lost += _values(old)
            line += _bound(bound, word, terms)
        if place == 2:
            line.append(" to ")
    line += [*_pieces(text[found.end(3) :], values), "\n"]
    return _replacing(statement, line), lost


def _bound(parts: Sequence[Expr], word: str, terms: Terms) -> list[str | Value]:
    """The extreme of terms, as a bound of a loop."""
    if len(parts) == 1 and parts[0].op == "const":
        return [str(parts[0].vmin)]
    # always a map: a value alone would have to be a symbol, while whatever may be a symbol may be a dim
    return [f"{word} "] * (len(parts) > 1) + _map(parts, set(), terms)


def _pieces(text: str, values: Sequence[Value]) -> list[str | Value]:
    """Normalised text with its values again."""
    return [values[int(piece)] if k % 2 else piece for k, piece in enumerate(re.split(r"%(\d+)", text))]


def _is_apply(value: Value) -> bool:
    return value.statement.normalised[0].startswith("%0 = affine.apply")


def _expressions(statement: Statement, terms: Terms) -> tuple[str, list[Expr]]:
    """``apply``, ``min`` or ``max`` and its term; ``_LOOP`` and the bounds of a loop; or ``""`` and subscripts."""
    if subscripts := terms.subscripts(statement):
        return "", subscripts
    text, values = statement.normalised
    if found := APPLY.fullmatch(text):
        results = terms.function(found[2], found[3], found[4], values)
        extreme = {"min": minimum, "max": maximum}.get(found[1])
        return found[1], [reduce(extreme, results)] if extreme else results
    if AFFINE_FOR.fullmatch(text):
        return _LOOP, [bound for loop in terms.loops(statement) for bound in (loop.first, loop.last)]
    return "", []


def _members(kind: str, answers: Sequence[Expr]) -> list[list[Expr]]:
    """Of each answer the operands of the extreme that it is, if expressions of that kind are extremes; else itself."""
    if kind not in _JOINED:
        return [[answer] for answer in answers]
    return [chain_members(answer, op) for answer, op in zip(answers, _JOINED[kind], strict=True)]


def _without_differences(terms: Iterable[Expr]) -> list[Expr]:
    """The terms as MLIR keeps them: a difference is a sum with a product by -1, whichever way it is written."""

    def replace(term: Expr, args: tuple[Expr, ...]) -> Expr | None:
        if term.op == "neg":
            return _opposite(args[0])
        return args[0] + _opposite(args[1]) if term.op == "sub" else None

    return rebuild(terms, replace)


def _opposite(term: Expr) -> Expr:
    if term.op == "const":
        return const(-term.vmin)
    if term.op == "mul" and term.args[1].op == "const":
        return term.args[0] * -term.args[1].vmin
    return term * -1


def _is_affine(term: Expr) -> bool:
    """Whether MLIR can write ``term`` as an affine expression, none of whose parts may wrap."""
    for t in topological([term]):
        if t.is_bool or not fits(t, "index"):
            return False
        if t.op == "mul" or t.op in FLOORS:
            if t.args[1].op != "const":
                return False
        elif t.args and t.op not in SUMS:
            return False
    return True


def _read_as_symbols(statement: Statement) -> set[Value]:
    text, values = statement.normalised
    found = {values[int(n)] for n in _SYMBOL.findall(text)}
    if applied := APPLY.fullmatch(text):
        found |= {values[int(n)] for n in re.findall(r"%(\d+)", applied[4] or "")}
    return found


def _seen_through(statement: Statement, terms: Terms) -> list[Value]:
    """The results of applied maps that a statement reads, but not as symbols, and whose terms are known."""
    inner = set(statement.normalised[1][1:]) - _read_as_symbols(statement)
    return [v for v in inner if v.is_result and _is_apply(v) and v in terms.known and v in terms.computed]


def _leaves(parts: Sequence[Expr], terms: Terms) -> dict[str, Value]:
    """What the variables of terms stand for, by their names."""
    return {str(x.value): terms.values[x] for x in variables(parts)}


def _separated(values: Sequence[Value]) -> list[str | Value]:
    return [piece for v in values for piece in (", ", v)][1:]


def _split_at(piece: str | Value, bracket: str) -> tuple[str, str] | None:
    """The text before and behind the first such bracket outside of comments and strings; None if there is none."""
    if isinstance(piece, str):
        for found in TOKEN.finditer(piece):
            if found["bracket"] == bracket:
                return piece[: found.start()], piece[found.end() :]
    return None


def _subscripted(
    statement: Statement, parts: Sequence[Expr], symbols: set[Value], terms: Terms
) -> tuple[Emitted, list[Value]]:
    """A load or store with other subscripts, and the values that it had in them."""
    pieces = statement.pieces
    start = [k for k, piece in enumerate(pieces) if isinstance(piece, Value)][1] + 1
    end = next(k for k in range(start, len(pieces)) if _split_at(pieces[k], "]") is not None)
    around, behind = _split_at(pieces[start], "["), _split_at(pieces[end], "]")
    if around is None or behind is None:
        raise NotReadError
    head, tail = around[0], behind[1]
    leaves, written = _leaves(parts, terms), list[str | Value]()
    for k, text in enumerate(_VARIABLE.split(", ".join(map(affine_text, parts)))):
        if not k % 2:
            written.append(text)
        elif leaves[text] in symbols:
            written += ["symbol(", leaves[text], ")"]
        else:
            written.append(leaves[text])
    line = [*pieces[:start], f"{head}[", *written, f"]{tail}", *pieces[end + 1 :]]
    return _replacing(statement, line), _values(pieces[start:end])
