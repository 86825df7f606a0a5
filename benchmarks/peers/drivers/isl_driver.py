"""isl, the integer set library, as a peer.

An integer term is a piecewise quasi-affine function of the variables, a condition is a set of their values, both over
the box of the ranges cut by the constraints and the root's gate. ``gist`` simplifies against that domain,
``ast_build`` spells the result. A term that is not quasi-affine (a product or quotient of two variables) is a variable
of its own. Modes: every quotient simplified against the box of ranges as it is built, or the whole at the end alone;
remainders as ``%`` or as floors. A root on which isl exceeds its limit of operations stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import islpy as isl
from wire import LEAVES, Alternative, Case, Clock, OutOfTimeError, Table, from_peer, serve

#: isl's own measure of work, for one root.
OPERATIONS = 300_000

#: The time after which no other root is simplified as a whole: one alone may take seconds.
WHOLE_SECONDS = 0.5

#: Whether ``%`` is preferred, by the name of the style.
STYLES = {"mod": True, "floor": False}


class Problem:
    """One case as functions and sets over its domain."""

    def __init__(self, case: Case, stepwise: bool) -> None:
        self.case, self.stepwise = case, stepwise
        self.is_bool = case.conditions()
        # what isl takes for parameters, with their positions: variables, and terms that are not quasi-affine
        parameters = [index for index, node in enumerate(case.nodes) if node[0] == "var" or not self._affine(node)]
        self.parameters = {index: position for position, index in enumerate(parameters)}
        ranges = [
            f"{low} <= {_name(index)} <= {high}"
            for index in self.parameters
            if case.nodes[index][0] == "var"
            for low, high in [case.nodes[index][2:]]
        ]
        names = ", ".join(map(_name, self.parameters))
        self.box = isl.Set(f"[{names}] -> {{ : {' and '.join(ranges) or '0 = 0'} }}")
        self.space = self.box.get_space()
        self.universe = isl.Set.universe(self.space)
        self.values: dict[int | None, dict[int, Any]] = {}
        self.domains: dict[int | None, Any] = {}

    def _affine(self, node: Sequence[Any]) -> bool:
        kind, *rest = node
        literal = [self.case.nodes[i][0] == "const" for i in rest] if kind not in LEAVES else []
        if kind == "mul":
            return any(literal)
        return kind not in ("floordiv", "mod", "tdiv", "tmod", "shl", "shr") or literal[1]

    def value(self, root: int, gate: int | None = None) -> Any:
        """The function or set of a node where the gate holds."""
        values = self.values.setdefault(gate, {})
        domain = self.domain(gate) if self.stepwise else self.universe
        stack = [root]
        while stack:
            index = stack[-1]
            kind, *rest = self.case.nodes[index]
            leaf = kind in LEAVES or index in self.parameters
            waiting = [] if leaf else [i for i in rest if i not in values]
            if index in values:
                stack.pop()
            elif waiting:
                stack.extend(waiting)
            else:
                stack.pop()
                value = self._build(index, [values.get(i) for i in rest])
                values[index] = value.gist_params(domain) if kind in BY_LITERAL and not leaf else value
        return values[root]

    def _build(self, index: int, operands: list[Any]) -> Any:
        kind, *rest = self.case.nodes[index]
        if index in self.parameters:
            local = isl.LocalSpace.from_space(self.space)
            return isl.PwAff.var_on_domain(local, isl.dim_type.param, self.parameters[index])
        if kind == "const":
            return isl.PwAff.val_on_domain(self.universe, isl.Val(rest[0]))
        if kind == "bool":
            return self.universe if rest[0] else isl.Set.empty(self.space)
        if kind in BY_LITERAL:
            return BY_LITERAL[kind](operands[0], isl.Val(self.case.nodes[rest[1]][1]))
        if kind == "mul":
            return operands[0].mul(operands[1])
        value = (ON_SETS if self.is_bool[rest[-1]] else ON_FUNCTIONS)[kind](*operands)
        return value.coalesce() if kind in ("where", "min", "max", "and", "or") else value

    def domain(self, gate: int | None) -> Any:
        """The values of the variables that count."""
        if gate not in self.domains:
            # a fact is read in the box of the ranges, where the domain is not known yet
            self.domains[gate] = self.box
            domain = self.box
            for fact in [*self.case.constraints, *([] if gate is None else [gate])]:
                domain = domain.intersect(self.value(fact, gate))
            self.domains[gate] = domain.coalesce()
            self.values.pop(gate, None)
        return self.domains[gate]


def _name(index: int) -> str:
    """The name of a parameter: no name of a variable is taken for a word of isl's language."""
    return f"p{index}"


def _floordiv(x: Any, d: Any) -> Any:
    return x.scale_down_val(d).floor()


def _mod(x: Any, d: Any) -> Any:
    return x.mod_val(d) if d.is_pos() else x.sub(_floordiv(x, d).scale_val(d))


BY_LITERAL: dict[str, Callable[[Any, Any], Any]] = {
    "floordiv": _floordiv,
    "mod": _mod,
    "tdiv": lambda x, d: x.tdiv_q(isl.PwAff.val_on_domain(x.domain(), d)),
    "tmod": lambda x, d: x.tdiv_r(isl.PwAff.val_on_domain(x.domain(), d)),
    "shl": lambda x, d: x.scale_val(isl.Val(1 << d.to_python())),
    "shr": lambda x, d: _floordiv(x, isl.Val(1 << d.to_python())),
}
ON_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{op: getattr(isl.PwAff, op) for op in ("add", "sub", "neg", "min", "max")},
    **{op: getattr(isl.PwAff, f"{op}_set") for op in ("lt", "le", "eq", "ne")},
    "where": lambda c, x, y: x.intersect_params(c).union_add(y.intersect_params(c.complement())),
}
ON_SETS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("and", "min"), isl.Set.intersect),
    **dict.fromkeys(("or", "max"), isl.Set.union),
    "not": isl.Set.complement,
    "eq": lambda x, y: x.intersect(y).union(x.complement().intersect(y.complement())),
    "ne": lambda x, y: x.subtract(y).union(y.subtract(x)),
    "where": lambda c, x, y: c.intersect(x).union(y.subtract(c)),
}

Operator = isl.ast_expr_op_type
FROM_ISL = {
    **{getattr(Operator, op): op for op in ("eq", "le", "lt", "ge", "gt", "max", "min", "add", "sub", "mul")},
    Operator.and_: "and",
    Operator.and_then: "and",
    Operator.or_: "or",
    Operator.or_else: "or",
    Operator.minus: "neg",
    Operator.div: "floordiv",
    Operator.fdiv_q: "floordiv",
    Operator.pdiv_q: "floordiv",
    Operator.pdiv_r: "mod",
    Operator.zdiv_r: "mod",
    Operator.cond: "where",
    Operator.select: "where",
}


def _spell(value: Any, domain: Any, is_bool: bool, remainders: bool) -> Any:
    """``value`` on ``domain`` as isl spells it: an expression of an AST."""
    isl.DEFAULT_CONTEXT.set_ast_build_prefer_pdiv(int(remainders))
    build = isl.AstBuild.from_context(domain)
    if is_bool:
        return build.expr_from_set(value.intersect(domain).coalesce().gist(domain))
    return build.expr_from_pw_aff(value.intersect_params(domain).coalesce().gist_params(domain))


def simplify(case: Case, clock: Clock) -> Iterator[Alternative]:
    """Every mode; roots for which no time is left stay as they are."""
    ungated = [None] * len(case.roots)
    for strategy, stepwise, seconds in (("steps", True, clock.seconds), ("whole", False, WHOLE_SECONDS)):
        problem = Problem(case, stepwise)
        limited = clock.part(seconds)
        for style, remainders in STYLES.items():
            for gates in (ungated, case.gates) if case.gates != ungated else (ungated,):
                answer = _Answer(problem, limited, remainders)
                roots = answer.roots(gates)
                yield f"{strategy}, {style}{', no gates' * (gates != case.gates)}", answer.table, roots


@dataclass
class _Answer:
    """The answer of one mode."""

    problem: Problem
    clock: Clock
    remainders: bool
    table: Table = field(default_factory=Table)
    parameters: dict[str, int] = field(default_factory=dict)

    def roots(self, gates: Sequence[int | None]) -> list[int]:
        """The indices of the roots in the table."""
        case = self.problem.case
        for index in self.problem.parameters:
            kind, *rest = case.nodes[index]
            parts = rest[:1] if kind == "var" else [self.spelled(i, None) for i in rest]
            self.parameters[_name(index)] = self.table.add(kind, *parts)
        return [self.spelled(root, gate) for root, gate in zip(case.roots, gates, strict=True)]

    def spelled(self, index: int, gate: int | None) -> int:
        """The index in the table of a node as isl spells it, or as it was if that takes too much."""
        context = isl.DEFAULT_CONTEXT
        context.reset_operations()
        context.set_max_operations(OPERATIONS)
        is_bool = self.problem.is_bool[index]
        try:
            with self.clock.running():
                domain = self.problem.domain(gate)
                ast = _spell(self.problem.value(index, gate), domain, is_bool, self.remainders)
        except (isl.Error, OutOfTimeError):
            return self.keep(index)
        finally:
            context.set_max_operations(0)
        [found] = from_peer([ast], id, _operands, self._node)
        literal = self.table.nodes[found]
        return self.table.add("bool", literal[1]) if is_bool and literal[0] == "const" else found

    def _node(self, ast: Any, below: list[int]) -> int:
        match ast.get_type():
            case isl.ast_expr_type.int:
                return self.table.add("const", ast.int_get_val().to_python())
            case isl.ast_expr_type.id:
                return self.parameters[ast.id_get_id().get_name()]
        operator = FROM_ISL[ast.op_get_type()]
        if operator in ("and", "or", "min", "max"):
            return self.table.fold(operator, below)
        return self.table.add(operator, *below)

    def keep(self, root: int) -> int:
        """The index in the table of a node as it was."""
        nodes = self.problem.case.nodes

        def operands(index: int) -> list[int]:
            return [] if nodes[index][0] in LEAVES else nodes[index][1:]

        def node(index: int, below: list[int]) -> int:
            # of a variable the name, of a literal the value
            return self.table.add(nodes[index][0], *(below or nodes[index][1:2]))

        [found] = from_peer([root], lambda index: index, operands, node)
        return found


def _operands(ast: Any) -> list[Any]:
    if ast.get_type() != isl.ast_expr_type.op:
        return []
    return [ast.op_get_arg(i) for i in range(ast.op_get_n_arg())]


if __name__ == "__main__":
    isl.DEFAULT_CONTEXT.set_on_error(0)
    isl.DEFAULT_CONTEXT.set_ast_build_detect_min_max(1)
    serve(version("islpy"), simplify)
