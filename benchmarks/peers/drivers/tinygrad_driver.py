"""tinygrad's symbolic simplifier as a peer.

All roots of a case are one ``SINK``, rewritten once by ``sym``, the largest rule set of tinygrad's pipeline (a second
run leaves as many div/mod). Constraints and the gate of a root are told in tinygrad's own way, as
``gate.where(root, Invalid)``; ``//`` and ``%`` (FLOORDIV, FLOORMOD) floor in tinygrad too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from importlib.metadata import version

from tinygrad.dtype import Invalid, dtypes
from tinygrad.uop import Ops
from tinygrad.uop.divandmod import fold_divmod_general
from tinygrad.uop.ops import UOp, graph_rewrite
from tinygrad.uop.symbolic import sym
from wire import Alternative, Case, Clock, Node, Table, from_peer, serve, to_peer

#: How each operator is written in tinygrad: what its users write, where that is not one of its own operations.
OPERATORS: dict[str, Callable[..., UOp]] = {
    "or": lambda x, y: x | y,
    "and": lambda x, y: x & y,
    "not": lambda x: x.logical_not(),
    "lt": lambda x, y: x < y,
    "le": lambda x, y: (y < x).logical_not(),
    "eq": lambda x, y: x.eq(y),
    "ne": lambda x, y: x.ne(y),
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "floordiv": lambda x, y: x.alu(Ops.FLOORDIV, y),
    "mod": lambda x, y: x.alu(Ops.FLOORMOD, y),
    "neg": lambda x: -x,
    "tdiv": lambda x, y: x.alu(Ops.CDIV, y),
    "tmod": lambda x, y: x.alu(Ops.CMOD, y),
    "shl": lambda x, y: x * 2**y.val if y.op is Ops.CONST else x.alu(Ops.SHL, y),
    "shr": lambda x, y: x // 2**y.val if y.op is Ops.CONST else x.alu(Ops.SHR, y),
    "min": lambda x, y: x & y if x.dtype is dtypes.bool else x.minimum(y),
    "max": lambda x, y: x | y if x.dtype is dtypes.bool else x.maximum(y),
    "where": lambda c, x, y: c.where(x, y),
}

#: Our name of each operation that means the same; AND and OR are bitwise on integers, which ours refuse.
NAMES = {
    Ops.ADD: "add",
    Ops.MUL: "mul",
    Ops.FLOORDIV: "floordiv",
    Ops.FLOORMOD: "mod",
    Ops.CDIV: "tdiv",
    Ops.CMOD: "tmod",
    Ops.SHL: "shl",
    Ops.SHR: "shr",
    Ops.MAX: "max",
    Ops.CMPLT: "lt",
    Ops.CMPNE: "ne",
    Ops.AND: "and",
    Ops.OR: "or",
    Ops.WHERE: "where",
}
#: The same of booleans.
OF_BOOLEANS = {Ops.ADD: "or", Ops.MUL: "and", Ops.MAX: "or"}


def _leaf(node: Node) -> UOp:
    kind, *rest = node
    if kind == "var":
        # a variable is a scalar parameter of a kernel, with its range
        name, low, high = rest
        return UOp.variable(name, low, high, param=True)
    return UOp.const(bool(rest[0]) if kind == "bool" else rest[0])


def _node(uop: UOp, below: list[int], table: Table) -> int:
    if uop.op is Ops.PARAM:
        return table.add("var", uop.arg.name)
    if uop.is_invalid:
        # a value that never matters
        return table.add("const", 0)
    if uop.op is Ops.CONST:
        return table.add("bool" if isinstance(uop.val, bool) else "const", int(uop.val))
    if uop.op is Ops.XOR:
        if uop.dtype is dtypes.bool:
            return table.add("ne", *below)
        return _complement(below, table)
    if uop.op not in NAMES:
        raise ValueError(f"tinygrad answers with {uop.op}, which has no counterpart")
    if uop.dtype is dtypes.bool and uop.op in OF_BOOLEANS:
        return table.add(OF_BOOLEANS[uop.op], *below)
    return table.add(NAMES[uop.op], *below)


def _complement(below: list[int], table: Table) -> int:
    """``x ^ -1``, which is ``-1 - x``."""
    ones = table.add("const", -1)
    others = [index for index in below if index != ones]
    if len(others) != 1:
        raise ValueError("tinygrad answers with a bitwise operation")
    kind, *rest = table.nodes[others[0]]
    # a complement of a complement is the term itself
    return rest[1] if kind == "sub" and rest[0] == ones else table.add("sub", ones, others[0])


def simplify(case: Case, clock: Clock) -> Iterator[Alternative]:
    """One mode."""
    uops = to_peer(case, _leaf, OPERATORS)
    roots = []
    for root, gate in zip(case.roots, case.gates, strict=True):
        known = [uops[fact] for fact in [*case.constraints, *([] if gate is None else [gate])]]
        # tinygrad uses a gate for indices alone
        gated = known and uops[root].dtype is not dtypes.bool
        roots.append(reduce(lambda x, y: x & y, known).where(uops[root], UOp.const(Invalid)) if gated else uops[root])
    sink = UOp.sink(*roots)
    # a memo across kernels: without this the time would depend on which kernels came before
    fold_divmod_general.cache_clear()
    with clock.running():
        result = graph_rewrite(sink, sym)
    table = Table()
    indices = from_peer(
        [root.get_idx() for root in result.src],
        lambda uop: uop,
        lambda uop: () if uop.op in (Ops.PARAM, Ops.CONST) else uop.src,
        lambda uop, below: _node(uop, below, table),
    )
    yield "sym", table, indices


if __name__ == "__main__":
    serve(version("tinygrad"), simplify)
