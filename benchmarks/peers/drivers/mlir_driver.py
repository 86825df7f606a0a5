"""MLIR as a peer, in IREE's build of it.

Variables are induction variables of ``affine.for``, so that MLIR knows their ranges; sums, quotients and remainders by
literals are ``affine.apply``, everything else is ``arith``. Modes: canonicalisation of that, which composes and
simplifies affine maps; and after it IREE's integer arithmetic optimisation, which works on ranges. Gates and
constraints it cannot use.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.metadata import version
from typing import Any

from iree.compiler import ir, passmanager
from wire import Alternative, Case, Clock, Table, from_peer, serve

PIPELINES = {
    "affine": "builtin.module(canonicalize,cse,canonicalize,cse)",
    "ranges": "builtin.module(iree-util-optimize-int-arithmetic,canonicalize,cse)",
}

#: ``affine.apply`` of two operands; the second one of a division is written into the map.
AFFINE = {"add": "d0 + d1", "sub": "d0 - d1", "floordiv": "d0 floordiv {}", "mod": "d0 mod {}"}
ARITH = {"mul": "muli", "floordiv": "floordivsi", "tdiv": "divsi", "tmod": "remsi", "min": "minsi", "max": "maxsi"}
CONDITIONS = {"and": "andi", "or": "ori", "min": "andi", "max": "ori", "eq": "cmpi eq,", "ne": "cmpi ne,"}
COMPARISONS = {"lt": "slt", "le": "sle", "eq": "eq", "ne": "ne"}

FROM_ARITH = {
    "arith.addi": "add", "arith.subi": "sub", "arith.muli": "mul", "arith.floordivsi": "floordiv",
    "arith.divui": "floordiv", "arith.remui": "mod", "arith.divsi": "tdiv", "arith.remsi": "tmod",
    "arith.minsi": "min", "arith.minui": "min", "arith.maxsi": "max", "arith.maxui": "max",
    "arith.select": "where", "arith.andi": "and", "arith.ori": "or", "arith.shli": "shl", "arith.shrui": "shr",
    "arith.shrsi": "shr",
}  # fmt: skip
#: The predicates of ``arith.cmpi`` by number; unsigned ones are used where nothing is negative.
PREDICATES = ("eq", "ne", "lt", "le", "gt", "ge", "lt", "le", "gt", "ge")


class Source:
    """The text of a module that computes the roots of a case."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.lines: list[str] = []
        self.is_bool = case.conditions()
        self.temporaries = 0
        loops = []
        for index, (kind, *rest) in enumerate(case.nodes):
            if kind == "var" and rest[1] < rest[2]:
                loops.append(f"affine.for %{index} = {rest[1]} to {rest[2] + 1} {{")
            elif kind == "var":
                self._set(index, f"arith.constant {rest[1]} : index")
            elif kind == "const":
                self._set(index, f"arith.constant {rest[0]} : index")
            elif kind == "bool":
                self._set(index, f"arith.constant {'true' if rest[0] else 'false'}")
            else:
                self._operation(index, kind, rest)
        roots = ", ".join(f"%{root}" for root in case.roots)
        types = ", ".join("i1" if self.is_bool[root] else "index" for root in case.roots)
        body = [*loops, "%true = arith.constant true", *self.lines, f'"peer.roots"({roots}) : ({types}) -> ()']
        self.text = "\n".join(["func.func @f() {", *body, "}" * len(loops), "return }"])

    def _set(self, index: int | str, value: str) -> None:
        self.lines.append(f"%{index} = {value}")

    def _temporary(self, value: str) -> str:
        self.temporaries += 1
        self._set(f"t{self.temporaries}", value)
        return f"t{self.temporaries}"

    def _literal(self, index: int) -> int | None:
        kind, *rest = self.case.nodes[index]
        return int(rest[0]) if kind == "const" else None

    def _operation(self, index: int, kind: str, rest: Sequence[int]) -> None:
        sort = "i1" if self.is_bool[rest[-1]] else "index"
        names = ", ".join(f"%{i}" for i in rest)
        if kind == "not":
            self._set(index, f"arith.xori {names}, %true : i1")
        elif kind == "where":
            self._set(index, f"arith.select {names} : {sort}")
        elif sort == "i1":
            self._set(index, f"arith.{CONDITIONS[kind]} {names} : i1")
        elif kind in COMPARISONS:
            self._set(index, f"arith.cmpi {COMPARISONS[kind]}, {names} : index")
        elif kind == "neg":
            self._set(index, f"affine.apply affine_map<(d0) -> (-d0)>({names})")
        elif kind in ("add", "sub"):
            self._set(index, f"affine.apply affine_map<(d0, d1) -> ({AFFINE[kind]})>({names})")
        elif kind in ("floordiv", "mod") and (literal := self._literal(rest[1])) is not None:
            self._set(index, self._divided(kind, str(rest[0]), literal))
        elif kind == "mul" and (scaled := self._scaled(*rest)):
            self._set(index, scaled)
        elif kind == "mod":
            quotient = self._temporary(f"arith.floordivsi {names} : index")
            product = self._temporary(f"arith.muli %{quotient}, %{rest[1]} : index")
            self._set(index, f"arith.subi %{rest[0]}, %{product} : index")
        elif kind in ARITH:
            self._set(index, f"arith.{ARITH[kind]} {names} : index")
        else:
            raise ValueError(f"no counterpart of {kind}")

    def _scaled(self, x: int, y: int) -> str:
        """The product of a literal and something else; empty if neither is a literal."""
        for factor, other in ((x, y), (y, x)):
            if (literal := self._literal(factor)) is not None:
                return f"affine.apply affine_map<(d0) -> (d0 * {literal})>(%{other})"
        return ""

    def _divided(self, kind: str, x: str, divisor: int) -> str:
        """``x // divisor`` or ``x % divisor``; maps divide by positive literals alone."""
        if divisor > 0:
            return f"affine.apply affine_map<(d0) -> ({AFFINE[kind].format(divisor)})>(%{x})"
        if kind == "floordiv":
            return f"affine.apply affine_map<(d0) -> ((-d0) floordiv {-divisor})>(%{x})"
        return f"affine.apply affine_map<(d0) -> (-((-d0) mod {-divisor}))>(%{x})"


class Affine:
    """A part of an affine map and the values of its dimensions and symbols."""

    def __init__(self, expression: Any, dimensions: Sequence[Any], symbols: Sequence[Any]) -> None:
        self.expression, self.dimensions, self.symbols = expression, dimensions, symbols

    def operands(self) -> list[Any]:
        match self.expression:
            case ir.AffineDimExpr(position=position):
                return [self.dimensions[position]]
            case ir.AffineSymbolExpr(position=position):
                return [self.symbols[position]]
            case ir.AffineConstantExpr():
                return []
        return [Affine(side, self.dimensions, self.symbols) for side in (self.expression.lhs, self.expression.rhs)]

    def node(self, below: list[int], table: Table) -> int:
        if isinstance(self.expression, ir.AffineConstantExpr):
            return table.add("const", self.expression.value)
        if len(below) == 1:
            return below[0]
        kind = type(self.expression).__name__
        if kind not in FROM_AFFINE:
            raise ValueError(f"MLIR answers with {kind}, which has no counterpart")
        return table.add(FROM_AFFINE[kind], *below)


FROM_AFFINE = {"AffineAddExpr": "add", "AffineMulExpr": "mul", "AffineFloorDivExpr": "floordiv", "AffineModExpr": "mod"}


class Reader:
    """The roots of a module as a table."""

    def __init__(self, module: Any, names: Sequence[str]) -> None:
        self.names = list(names)
        self.table = Table()
        self.roots: list[Any] = []
        self.arguments: dict[Any, str] = {}
        module.operation.walk(self._visit)
        self.indices = from_peer(self.roots, self._key, self._operands, self._node)

    def _visit(self, operation: Any) -> Any:
        """Loops are met from the inside out: the variables' names in reverse."""
        if operation.name in ("affine.for", "scf.for"):
            self.arguments[operation.regions[0].blocks[0].arguments[0]] = self.names.pop()
        elif operation.name == "peer.roots":
            self.roots = list(operation.operands)
        return ir.WalkResult.ADVANCE

    def _key(self, term: Any) -> Any:
        return id(term) if isinstance(term, Affine) else term

    def _operands(self, term: Any) -> list[Any]:
        if isinstance(term, Affine):
            return term.operands()
        if term in self.arguments:
            return []
        operation = term.owner
        if operation.name == "affine.apply":
            affine = operation.attributes["map"].value
            values = list(operation.operands)
            return [Affine(affine.results[0], values[: affine.n_dims], values[affine.n_dims :])]
        return list(operation.operands)

    def _node(self, term: Any, below: list[int]) -> int:
        if isinstance(term, Affine):
            return term.node(below, self.table)
        if term in self.arguments:
            return self.table.add("var", self.arguments[term])
        operation = term.owner
        match operation.name:
            case "affine.apply" | "arith.index_cast" | "arith.index_castui" | "arith.extui":
                return below[0]
            case "arith.constant":
                value = operation.attributes["value"]
                return self.table.add("bool" if str(term.type) == "i1" else "const", int(value.value))
            case "arith.cmpi":
                return self.table.add(PREDICATES[operation.attributes["predicate"].value], *below)
            case "arith.xori":
                return self.table.add("ne", *below)
        if operation.name not in FROM_ARITH:
            raise ValueError(f"MLIR answers with {operation.name}, which has no counterpart")
        return self.table.add(FROM_ARITH[operation.name], *below)


def simplify(case: Case, clock: Clock) -> Iterator[Alternative]:
    """Every mode, each from the result of the one before it."""
    source = Source(case)
    names = [node[1] for node in case.nodes if node[0] == "var" and node[2] < node[3]]
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        context.enable_multithreading(False)
        module = ir.Module.parse(source.text)
        for mode, pipeline in PIPELINES.items():
            passes = passmanager.PassManager.parse(pipeline)
            with clock.running():
                passes.run(module.operation)
            reader = Reader(module, names)
            yield mode, reader.table, reader.indices


if __name__ == "__main__":
    serve(version("iree-base-compiler"), simplify)
