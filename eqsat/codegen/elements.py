"""C of single values of every element type: literals, operators, functions, and loads that stay inside their arrays.

Integers and conditions are those of :mod:`eqsat.codegen.expressions`. Floating-point operations are written in the
order in which they stand, each in its own type.
"""

from __future__ import annotations

from math import isinf, isnan
from typing import cast

from eqsat.codegen.expressions import ADD, ATOM, MUL, PREFIX, WRITE, Code, Writer, c_type
from eqsat.kernels.kernel import Kernel
from eqsat.lang.dtypes import select_width
from eqsat.lang.expr import Expr
from eqsat.lang.ops import FLOATS, Buffer
from eqsat.lang.traversal import array_of

#: C's name of each element type.
C_TYPES = {"bool": "bool", "i32": "int32_t", "i64": "int64_t", "f32": "float", "f64": "double"}


class ElementWriter(Writer):
    """Writes terms over the arrays and parameters of a kernel."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__([t for s in kernel.stores for t in s.parts], kernel.name, kernel.parameters)
        self.kernel = kernel
        self.arrays = {b.name: self.argument_name(b.name) for b in (*kernel.inputs, *kernel.outputs)}
        # the loads that are known to be inside their arrays
        self.inside = frozenset[Expr]()

    def parameters(self) -> list[str]:
        """How arrays and parameters are declared."""
        return [
            *[f"const {C_TYPES[b.element]} *restrict {self.arrays[b.name]}" for b in self.kernel.inputs],
            *[f"{C_TYPES[b.element]} *restrict {self.arrays[b.name]}" for b in self.kernel.outputs],
            *[f"{self.type_of(v)} {self.code[v].text}" for v in self.order],
        ]

    def element(self, array: Buffer, index: str) -> str:
        return f"{self.arrays[array.name]}[{index}]"

    def type_of(self, term: Expr) -> str:
        return C_TYPES[term.element] if term.element else c_type(term)

    def width_of(self, term: Expr) -> int:
        """The bits of an integer's C type; 0 for a floating-point value."""
        return 0 if term.element else select_width(term)

    def at(self, term: Expr, width: int) -> Code:
        return self.code[term] if term.element else super().at(term, width)

    def value(self, term: Expr) -> str:
        return self.code[term].text if term.element else super().value(term)

    def element_width(self, load: Expr) -> int:
        """The width of the C type of an element that is loaded; 0 for a floating-point value."""
        return 0 if load.element else 64 if array_of(load).element == "i64" else 32

    def load(self, term: Expr) -> Code:
        array, index = array_of(term), self.code[term.args[1]]
        text = self.element(array, index.text)
        width = self.element_width(term)
        if term in self.inside:
            return Code(text, ATOM, width)
        size = array.size
        place = term.args[1]
        tests = [f"0 <= {index.within(ADD)}"] * (place.vmin < 0)
        tests += [f"{index.within(ADD)} < {size}"] * (place.vmax >= size)
        return Code(f"({' && '.join(tests)} ? {text} : 0)", ATOM, width)

    def float_literal(self, term: Expr) -> Code:
        value = cast(float, term.value)
        if isinf(value):
            return Code("INFINITY" if value > 0 else "-INFINITY", ATOM if value > 0 else PREFIX, 0)
        if isnan(value):
            return Code("NAN", ATOM, 0)
        text = repr(value) + ("f" if term.element == "f32" else "")
        return Code(text, PREFIX if text[0] == "-" else ATOM, 0)

    def float_extreme(self, term: Expr) -> Code:
        x, y = [self.code[a].within(ATOM) for a in term.args]
        branches = f"{x} : {y}" if term.op == "fmin" else f"{y} : {x}"
        return Code(f"({x} < {y} ? {branches})", ATOM, 0)

    def float_call(self, term: Expr) -> Code:
        suffix = "f" if term.element == "f32" else ""
        return Code(f"{term.op}{suffix}({self.code[term.args[0]].text})", ATOM, 0)

    def converted(self, term: Expr) -> Code:
        return Code(f"({self.type_of(term)}){self.code[term.args[0]].within(PREFIX)}", PREFIX, 0)


ElementWriter.writers = WRITE | {
    "load": ElementWriter.load,
    "float": ElementWriter.float_literal,
    **{op.name: WRITE[op.integer] for op in FLOATS.values() if op.integer},
    "fdiv": lambda w, t: w.infix(t, "/", MUL),
    **dict.fromkeys(("fmin", "fmax"), ElementWriter.float_extreme),
    **dict.fromkeys(("exp", "log", "sqrt"), ElementWriter.float_call),
    **dict.fromkeys(("to_float", "to_double"), ElementWriter.converted),
}
