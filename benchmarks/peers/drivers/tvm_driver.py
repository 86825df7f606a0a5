"""TVM's arithmetic analyzer (``tvm.sym.Analyzer``, formerly ``tvm.arith``) as a peer.

Modes: rewriting alone, canonicalisation alone, both in turn with every extension on, the same with conditions put to
``can_prove`` (which asks z3 where TVM was built with it), and last ``iter_map_simplify`` on the roots of that. Terms
are simplified at every shared subterm, operands first, since TVM's passes walk trees. Constraints and the gate of a
root are constraint scopes. Floor division and modulo are TVM's own; everything is int64.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from importlib.metadata import version
from typing import Any

import tvm
import tvm_ffi
from tvm import sym, tirx
from wire import Alternative, Case, Clock, Node, Table, attempt, bottom_up, from_peer, serve, to_peer

#: Rounds after which a pair of simplifiers that undo each other is stopped.
ROUNDS = 4

#: For one condition.
Z3_MILLISECONDS = 100
ALL_EXTENSIONS = sym.Extension(15)

OPERATORS: dict[str, Callable[..., Any]] = {
    "or": tirx.Or,
    "and": tirx.And,
    "not": tirx.Not,
    "lt": tirx.LT,
    "le": tirx.LE,
    "eq": tirx.EQ,
    "ne": tirx.NE,
    "add": tirx.Add,
    "sub": tirx.Sub,
    "mul": tirx.Mul,
    "floordiv": tirx.FloorDiv,
    "mod": tirx.FloorMod,
    "tdiv": tirx.Div,
    "tmod": tirx.Mod,
    "neg": lambda x: tirx.Sub(tirx.IntImm("int64", 0), x),
    "min": tirx.Min,
    "max": tirx.Max,
    "where": tirx.Select,
    "shl": lambda x, y: tirx.Mul(x, _power_of_two(y)),
    "shr": lambda x, y: tirx.FloorDiv(x, _power_of_two(y)),
}
NAMES = {
    "Or": "or", "And": "and", "Not": "not", "LT": "lt", "LE": "le", "GT": "gt", "GE": "ge", "EQ": "eq", "NE": "ne",
    "Add": "add", "Sub": "sub", "Mul": "mul", "FloorDiv": "floordiv", "FloorMod": "mod", "Div": "tdiv", "Mod": "tmod",
    "Min": "min", "Max": "max", "Select": "where",
}  # fmt: skip


def _power_of_two(amount: Any) -> Any:
    if not isinstance(amount, tirx.IntImm):
        raise ValueError("TVM's analyzer knows no shift by a variable")
    return tirx.IntImm("int64", 1 << amount.value)


def _operands(term: Any) -> Sequence[Any]:
    match type(term).__name__:
        case "Var" | "IntImm":
            return ()
        case "Not":
            return (term.a,)
        case "Select":
            return (term.condition, term.true_value, term.false_value)
        case "Call":
            return list(term.args)
        case "Cast":
            return (term.value,)
    return (term.a, term.b)


def _node(term: Any, below: list[int], table: Table) -> int:
    kind = type(term).__name__
    match kind:
        case "Var":
            return table.add("var", term.name)
        case "IntImm":
            return table.add("bool" if _is_bool(term) else "const", int(term.value))
        case "Cast":
            return table.add("where", below[0], table.add("const", 1), table.add("const", 0))
        case "LShift" | "RShift":
            return table.add("shl" if kind == "LShift" else "shr", *below)
        case "Call":
            if term.op.name == "tirx.if_then_else":
                return table.add("where", *below)
            raise ValueError(f"TVM answers with {term.op.name}, which has no counterpart")
    if kind not in NAMES:
        raise ValueError(f"TVM answers with {kind}, which has no counterpart")
    return table.add(NAMES[kind], *below)


def _is_bool(term: Any) -> bool:
    return str(term.ty) == "bool"


def _integer(value: int) -> Any:
    return tirx.IntImm("int64", value)


Step = Callable[[Any, Any], Any]


def _both(analyzer: Any, term: Any) -> Any:
    return _fixpoint(lambda x: analyzer.simplify(x, 2), term)


def _extended(analyzer: Any, term: Any) -> Any:
    analyzer.enabled_extensions = ALL_EXTENSIONS
    return _both(analyzer, term)


def _proving(analyzer: Any, term: Any) -> Any:
    if _is_bool(term) and not isinstance(term, tirx.IntImm):
        for value, claim in ((1, term), (0, tirx.Not(term))):
            if analyzer.can_prove(claim, sym.ProofStrength.SYMBOLIC_BOUND):
                return tirx.IntImm("bool", value)
    return _extended(analyzer, term)


def _fixpoint(step: Callable[[Any], Any], term: Any) -> Any:
    for _ in range(ROUNDS):
        before, term = term, step(term)
        if tvm_ffi.structural_equal(before, term):
            break
    return term


MODES: dict[str, Step] = {
    "rewrite": lambda analyzer, term: _fixpoint(analyzer.rewrite_simplify, term),
    "canonical": lambda analyzer, term: _fixpoint(analyzer.canonical_simplify, term),
    "both": _both,
    "extended": _extended,
    "proving": _proving,
}


def _variables(case: Case) -> tuple[dict[str, Any], dict[Any, Any]]:
    """The variables of a case by name, and the range of each."""
    ranges = {
        name: tvm.ir.Range.from_min_extent(_integer(low), _integer(high - low + 1))
        for _, name, low, high in (node for node in case.nodes if node[0] == "var")
    }
    variables = {name: tirx.Var(name, "int64") for name in ranges}
    return variables, {variables[name]: bounds for name, bounds in ranges.items()}


def _knowing(ranges: dict[Any, Any], facts: Sequence[Any], scopes: ExitStack) -> Any:
    """An analyzer that knows ``ranges`` and, until ``scopes`` closes, ``facts``."""
    analyzer = sym.Analyzer()
    if analyzer.is_z3_enabled:
        analyzer.set_z3_timeout_ms(Z3_MILLISECONDS)
    for variable, bounds in ranges.items():
        analyzer.bind(variable, bounds)
    for fact in facts:
        scopes.enter_context(analyzer.constraint_scope(fact))
    return analyzer


def _leaf(node: Node, variables: dict[str, Any]) -> Any:
    if node[0] == "var":
        return variables[node[1]]
    return _integer(node[1]) if node[0] == "const" else tirx.IntImm("bool", node[1])


def _iterators(ranges: dict[Any, Any], root: Any) -> Any:
    """An integer root through ``iter_map_simplify``."""
    return root if _is_bool(root) else sym.iter_map_simplify([root], ranges, check_level="surjective")[0]


def simplify(case: Case, clock: Clock) -> Iterator[Alternative]:
    """Every mode; each without the gates first, which may be slow."""
    variables, ranges = _variables(case)
    leaf = partial(_leaf, variables=variables)
    exact = to_peer(case, leaf, OPERATORS)
    facts = [exact[index] for index in case.constraints]
    for name, step in MODES.items():
        with ExitStack() as scopes:
            terms = bottom_up(case, clock, leaf, OPERATORS, partial(step, _knowing(ranges, facts, scopes)))
        roots = [terms[root] for root in case.roots]
        if any(gate is not None for gate in case.gates):
            yield f"{name}, no gates", *_written(roots)
            for index, gate in enumerate(case.gates):
                if gate is not None:
                    with ExitStack() as scopes:
                        analyzer = _knowing(ranges, [*facts, terms[gate]], scopes)
                        roots[index] = attempt(clock, partial(step, analyzer), roots[index])
        yield name, *_written(roots)
        if name == "extended":
            yield "iter_map", *_written([attempt(clock, partial(_iterators, ranges), root) for root in roots])
        if clock.late:
            return


def _written(roots: list[Any]) -> tuple[Table, list[int]]:
    table = Table()
    indices = from_peer(
        roots, lambda term: term.__chandle__(), _operands, lambda term, below: _node(term, below, table)
    )
    return table, indices


if __name__ == "__main__":
    serve(version("apache-tvm"), simplify)
