"""tinygrad's symbolic simplifier on a corpus: what it leaves, what that costs, how long it takes.

``python benchmarks/peers/tinygrad_peer.py IN.jsonl -o OUT.jsonl [--gates]`` writes a row per plain case, in order:
``{"id", "out", "lets", "ms", "divmod", "cost", "wrong"}``, or ``{"id", "error"}``. ``out`` and ``lets`` are as in
``eqsat corpus``; ``ms`` is tinygrad's rewriting alone, both conversions excluded, in CPU time, so that a busy machine
does not count against it; ``divmod`` and ``cost`` count distinct nodes over all roots; ``wrong`` is null, or a point at
which a root differs from the input.

All roots of a case are one ``SINK``, rewritten once by ``sym``, the largest rule set of tinygrad's pipeline (a second
run leaves as many div/mod). With ``--gates`` the gate of a root and the constraints are told to tinygrad in its own
way, as ``gate.where(root, Invalid)``. ``//`` and ``%`` (FLOORDIV, FLOORMOD) floor in tinygrad too.
"""

from __future__ import annotations

import argparse
import json
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from time import process_time
from types import FrameType
from typing import Any, cast

from rich.console import Console
from rich.progress import track
from tinygrad.dtype import Invalid, dtypes
from tinygrad.uop import Ops
from tinygrad.uop.divandmod import fold_divmod_general
from tinygrad.uop.ops import UOp, graph_rewrite
from tinygrad.uop.symbolic import sym

from eqsat.cases import Case, one_line, read_case
from eqsat.corpus import Row
from eqsat.expr import TRUE, Expr, as_expr, const, make, maximum, minimum, tdiv, tmod, topological, where
from eqsat.extract.cost import Latency
from eqsat.ops import DIVISIONS
from eqsat.optimize import cost_of
from eqsat.text import to_program
from eqsat.verify import check_equal

#: How each operator is written in tinygrad: what its users write, where that is not one of its own operations.
TO_TINYGRAD: dict[str, Callable[..., UOp]] = {
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


def to_tinygrad(roots: Sequence[Expr]) -> dict[Expr, UOp]:
    """The UOp of every term below ``roots``; variables are scalar parameters of a kernel, with their range."""
    uops: dict[Expr, UOp] = {}
    for term in topological(roots):
        if term.op == "var":
            uops[term] = UOp.variable(cast(str, term.value), term.vmin, term.vmax, param=True)
        elif not term.args:
            uops[term] = UOp.const(cast(int, term.value))
        else:
            uops[term] = TO_TINYGRAD[term.op](*[uops[arg] for arg in term.args])
    return uops


def _opposite(x: Expr) -> Expr | None:
    """``-x``, if ``x`` is a negation or a multiple by a negative literal."""
    if x.op == "mul" and x.args[1].op == "const" and x.args[1].vmin < 0:
        return x.args[0] * -x.args[1].vmin
    return x.args[0] if x.op == "neg" else None


def _add(x: Expr, y: Expr) -> Expr:
    if (subtracted := _opposite(y)) is not None:
        return x - subtracted
    subtracted = _opposite(x)
    return x + y if subtracted is None else y - subtracted


def _mul(x: Expr, y: Expr) -> Expr:
    if x is const(-1):
        x, y = y, x
    return -x if y is const(-1) else x * y


def _lt(x: Expr, y: Expr) -> Expr:
    if x.op == "neg" and y.op == "const":
        return const(-y.vmin) < x.args[0]
    if y.op == "neg" and x.op == "const":
        return y.args[0] < const(-x.vmin)
    return x < y


_NEGATION = {"lt": "le", "le": "lt", "eq": "ne", "ne": "eq"}


def _not(x: Expr) -> Expr:
    if x.op not in _NEGATION:
        return x.args[0] if x.op == "not" else ~x
    return make(_NEGATION[x.op], *(x.args[::-1] if x.op in ("lt", "le") else x.args))


def _ne(x: Expr, y: Expr) -> Expr:
    if x is TRUE:
        x, y = y, x
    return _not(x) if y is TRUE else x.ne(y)


def _complemented(x: Expr) -> Expr | None:
    """The ``e`` of which ``x`` is the bitwise complement ``-1 - e``, if that is how it is spelled."""
    if x.op == "const":
        return const(-1 - x.vmin)
    return x.args[1] if x.op == "sub" and x.args[0] is const(-1) else None


def _max(x: Expr, y: Expr) -> Expr:
    # tinygrad writes min(x, y) as ~max(~x, ~y)
    a, b = _complemented(x), _complemented(y)
    return maximum(x, y) if a is None or b is None else const(-1) - minimum(a, b)


def _xor(x: Expr, y: Expr) -> Expr:
    if x.is_bool:
        return x.ne(y)
    if x is const(-1):
        x, y = y, x
    if y is not const(-1):
        raise ValueError("tinygrad answers with a bitwise operation")
    inner = _complemented(x)
    return const(-1) - x if inner is None else inner


#: How each operation of tinygrad is spelled here; it has no subtraction, negation, ``<=`` or ``not`` of its own, and
#: charging it for that would be unfair.
FROM_TINYGRAD: dict[Ops, Callable[..., Expr]] = {
    Ops.ADD: _add,
    Ops.MUL: _mul,
    Ops.FLOORDIV: lambda x, y: x // y,
    Ops.FLOORMOD: lambda x, y: x % y,
    Ops.CDIV: tdiv,
    Ops.CMOD: tmod,
    Ops.SHL: lambda x, y: x << y,
    Ops.SHR: lambda x, y: x >> y,
    Ops.MAX: _max,
    Ops.CMPLT: _lt,
    Ops.CMPNE: _ne,
    Ops.XOR: _xor,
    # bitwise on integers in tinygrad; integer operands are refused here
    Ops.AND: lambda x, y: x & y,
    Ops.OR: lambda x, y: x | y,
    Ops.WHERE: where,
}


def from_tinygrad(roots: Sequence[UOp], variables: dict[str, Expr]) -> list[Expr]:
    """The terms that ``roots`` stand for; a root that is Invalid, whose value never matters, is 0.

    Raises
    ------
    ValueError
        If an operation has no counterpart.
    """
    terms: dict[UOp, Expr] = {}
    for uop in UOp.sink(*roots).toposort():
        if uop.op is Ops.PARAM:
            terms[uop] = variables[uop.arg.name]
        elif uop.is_invalid:
            terms[uop] = const(0)
        elif uop.op is Ops.CONST:
            terms[uop] = as_expr(uop.val)
        elif uop.op in FROM_TINYGRAD:
            terms[uop] = FROM_TINYGRAD[uop.op](*[terms[source] for source in uop.src])
        elif uop.op not in (Ops.SINK, Ops.STACK):
            raise ValueError(f"tinygrad answers with {uop.op}, which has no counterpart")
    return [terms[root] for root in roots]


def simplify(case: Case, gates: bool) -> tuple[list[Expr], float]:
    """The roots of ``case`` as tinygrad leaves them, and the milliseconds of CPU time it took."""
    uops = to_tinygrad([*case.exprs, *case.constraints])
    roots = [uops[root] for root in case.exprs]
    if gates:
        for index, gate in enumerate(case.gates or [None] * len(roots)):
            known = [uops[fact] for fact in [*case.constraints, gate] if fact is not None]
            # tinygrad uses a gate for indices alone
            if known and not case.exprs[index].is_bool:
                roots[index] = reduce(lambda x, y: x & y, known).where(roots[index], UOp.const(Invalid))
    sink = UOp.sink(*roots)
    # a memo across kernels: without this the time would depend on which kernels came before
    fold_divmod_general.cache_clear()
    start = process_time()
    result = graph_rewrite(sink, sym)
    milliseconds = 1e3 * (process_time() - start)
    return from_tinygrad([root.get_idx() for root in result.src], case.variables), milliseconds


def run_case(case: Case, gates: bool) -> Row:
    """The row of one case: simplified, converted back, compared with the input at sampled points."""
    out, milliseconds = simplify(case, gates)
    divisors = dict.fromkeys(term.args[1] for term in topological(case.exprs) if term.op in DIVISIONS)
    check = check_equal(
        case.exprs,
        out,
        constraints=[*case.constraints, *[d.ne(0) for d in divisors if d.vmin <= 0 <= d.vmax]],
        gates=case.gates if gates else (),
        most=20_000,
        samples=2_000,
    )
    lets, texts = to_program(out, taken=case.variables)
    return {
        "id": case.id,
        "out": texts,
        "lets": [list(pair) for pair in lets],
        "ms": round(milliseconds, 3),
        "divmod": sum(term.op in DIVISIONS for term in topological(out)),
        "cost": cost_of(out, Latency()),
        "wrong": check.counterexample,
    }


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    def stop(signum: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"stopped after {seconds:g} seconds")

    previous = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def run_line(line: str, gates: bool, seconds: float) -> Row:
    """The row of one line of a corpus; a case that cannot be read, simplified or converted gives an error row."""
    try:
        with _time_limit(seconds):
            return run_case(read_case(line), gates)
    except Exception as error:  # whatever is raised over a case is its result
        return {"id": json.loads(line)["id"], "error": one_line(f"{type(error).__name__}: {error}")}


def summary(rows: Sequence[Row]) -> str:
    """Totals over the rows of a run, in one line."""
    done = [row for row in rows if "error" not in row]
    times = sorted(row["ms"] for row in done)
    if not times:
        return f"{len(rows)} cases, none done"
    return (
        f"{len(rows)} cases, {len(rows) - len(done)} failed, {sum(row['wrong'] is not None for row in done)} wrong: "
        f"div/mod {sum(row['divmod'] for row in done)}, cost {sum(row['cost'] for row in done)}, "
        f"{sum(times):.0f} ms (median {times[len(times) // 2]:.2f}, p95 {times[len(times) * 95 // 100]:.1f})"
    )


def main() -> None:
    """Read the command line, run the corpus, print the totals."""
    parser = argparse.ArgumentParser(description="Run tinygrad's simplifier over a corpus.")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--gates", action="store_true", help="tell tinygrad the gates and constraints")
    parser.add_argument("--seconds", type=float, default=60.0, help="limit for one case (default 60)")
    options = parser.parse_args()
    lines = options.corpus.read_text(encoding="utf-8").splitlines()
    plain = [line for line in lines if json.loads(line).get("kind", "plain") == "plain"]
    # tinygrad compiles its patterns at their first use: not at the expense of the first case
    run_line('{"id": "warm-up", "vars": {"x": [0, 9]}, "exprs": ["(x + 8) // 4 % 2 < x * 2"]}', False, options.seconds)
    console = Console(stderr=True)
    rows: list[dict[str, Any]] = []
    with options.output.open("w", encoding="utf-8") as output:
        for line in track(plain, "simplifying", console=console, disable=not console.is_terminal):
            rows.append(run_line(line, options.gates, options.seconds))
            output.write(json.dumps(rows[-1]) + "\n")
    print(summary(rows))


if __name__ == "__main__":
    main()
