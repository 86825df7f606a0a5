"""Halide's simplifier (``Halide::Internal::simplify``) as a peer.

The wheel ships the headers and the library; ``halide_driver.cpp`` is compiled against them, once, beside the
environment. Halide divides as Euclid does, which is floor division for positive divisors: ``x // -d`` goes in as
``-x // d`` and ``x % -d`` as ``-(-x % d)``. Terms are simplified at every shared subterm, operands first, and to a
fixpoint; constraints and the gate of a root are assumptions.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import blake2b
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from wire import Alternative, Case, Clock, Node, Table, attempt, bottom_up, from_peer, serve, to_peer

SOURCE = Path(__file__).with_name("halide_driver.cpp")

#: Operators that Halide has under the same meaning.
SAME = ("or", "and", "not", "lt", "le", "eq", "ne", "add", "sub", "mul", "min", "max", "where")

#: Rounds after which a simplification that does not settle is stopped.
ROUNDS = 5


def compiled() -> Path:
    """The library of ``halide_driver.cpp``, compiled if it is not there yet."""
    found = find_spec("halide")
    assert found is not None
    assert found.origin is not None
    package = Path(found.origin).parent
    key = blake2b(SOURCE.read_bytes(), digest_size=4).hexdigest()
    library = Path(sys.prefix) / f"halide_driver-{key}.so"
    if not library.exists():
        unfinished = library.with_suffix(".tmp")
        command = ["g++", "-std=c++17", "-O1", "-shared", "-fPIC", str(SOURCE), "-o", str(unfinished)]
        libraries = package / "lib64"
        command += [f"-I{package / 'include'}", f"-L{libraries}", "-lHalide", f"-Wl,-rpath,{libraries}"]
        subprocess.run(command, check=True, capture_output=True, text=True)
        unfinished.rename(library)
    return library


class Halide:
    """The C interface, in Python's terms; one case at a time."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL(str(compiled()))
        self.library.peer_const.argtypes = [ctypes.c_int64]
        self.library.peer_variable.argtypes = [ctypes.c_char_p, ctypes.c_int64, ctypes.c_int64]
        self.library.peer_address.restype = ctypes.c_void_p
        self.library.peer_parts.restype = ctypes.c_char_p

    def leaf(self, node: Node) -> int:
        kind, *rest = node
        if kind == "var":
            name, low, high = rest
            return int(self.library.peer_variable(name.encode(), low, high))
        return int(self.library.peer_const(rest[0]) if kind == "const" else self.library.peer_bool(rest[0]))

    def apply(self, kind: str, *operands: int) -> int:
        handle = int(self.library.peer_apply(kind.encode(), (ctypes.c_int * len(operands))(*operands), len(operands)))
        if handle < 0:
            raise ValueError(f"Halide has no {kind}")
        return handle

    def assume(self, facts: list[int]) -> None:
        self.library.peer_assume((ctypes.c_int * len(facts))(*facts), len(facts))

    def simplify(self, handle: int) -> int:
        return int(self.library.peer_simplify(handle, ROUNDS))

    def parts(self, handle: int) -> tuple[str, list[int]]:
        kind, *operands = self.library.peer_parts(handle).decode().split("\n")
        return kind, [int(operand) for operand in operands]

    def literal(self, handle: int) -> int | None:
        kind, _ = self.parts(handle)
        return int(kind.split()[1]) if kind.startswith("const ") else None

    def divide(self, kind: str, x: int, d: int) -> int:
        """Our ``x // d`` or ``x % d``."""
        value = self.literal(d)
        if value is not None and value < 0:
            # x // -d == -x // d and x % -d == -(-x % d)
            quotient = self.apply(kind, self.negate(x), self.leaf(["const", -value]))
            return quotient if kind == "floordiv" else self.negate(quotient)
        if value is None and not self.library.peer_positive(d):
            raise ValueError("a divisor that Halide cannot show to be positive")
        return self.apply(kind, x, d)

    def negate(self, x: int) -> int:
        """``-x``, for which Halide has no node."""
        return self.apply("sub", self.leaf(["const", 0]), x)

    def operators(self) -> dict[str, Callable[..., int]]:
        """How each of our operators is built."""
        return {
            **{kind: partial(self.apply, kind) for kind in SAME},
            "floordiv": partial(self.divide, "floordiv"),
            "mod": partial(self.divide, "mod"),
            "neg": self.negate,
            "shl": lambda x, y: self.apply("mul", x, self.power_of_two(y)),
            "shr": lambda x, y: self.apply("floordiv", x, self.power_of_two(y)),
        }

    def power_of_two(self, amount: int) -> int:
        value = self.literal(amount)
        if value is None:
            raise ValueError("a shift by a variable")
        return self.leaf(["const", 1 << value])


def _node(parts: tuple[str, list[int]], below: list[int], table: Table) -> int:
    kind, *value = parts[0].split(maxsplit=1)
    match kind:
        case "var":
            return table.add("var", value[0])
        case "const" | "bool":
            return table.add(kind, int(value[0]))
        case "floordiv" | "mod" if _literal(table, below[1]) < 0:
            divisor = table.add("const", -_literal(table, below[1]))
            rest = table.add(kind, below[0], divisor)
            return table.add("neg", rest) if kind == "floordiv" else rest
        case "call" | "unknown":
            raise ValueError(f"Halide answers with {' '.join(value) or 'an operation'} that has no counterpart")
    return table.add(kind, *below)


def _literal(table: Table, index: int) -> int:
    """The value of a literal, 0 for other nodes."""
    kind, *rest = table.nodes[index]
    return int(rest[0]) if kind == "const" else 0


def simplify(halide: Halide, case: Case, clock: Clock) -> Iterator[Alternative]:
    """One mode: neither 32 bits nor roots alone change an answer."""
    halide.library.peer_reset()
    operators = halide.operators()
    exact = to_peer(case, halide.leaf, operators)
    facts = [exact[index] for index in case.constraints]
    halide.assume(facts)

    terms = bottom_up(case, clock, halide.leaf, operators, halide.simplify)
    roots = [terms[root] for root in case.roots]
    for index, gate in enumerate(case.gates):
        if gate is not None:
            halide.assume([*facts, terms[gate]])
            roots[index] = attempt(clock, halide.simplify, roots[index])
    parts: dict[int, tuple[str, list[int]]] = {}

    def operands(handle: int) -> list[int]:
        if handle not in parts:
            parts[handle] = halide.parts(handle)
        return parts[handle][1]

    table = Table()
    address = halide.library.peer_address
    found = from_peer(roots, address, operands, lambda handle, below: _node(parts[handle], below, table))
    yield "simplify", table, found


if __name__ == "__main__":
    serve(version("halide"), partial(simplify, Halide()))
