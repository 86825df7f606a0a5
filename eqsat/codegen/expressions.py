"""C99 source for expressions: one function that computes any number of roots over shared variables.

Every operation is exact: it is emitted at the width that :mod:`eqsat.lang.dtypes` gives it, so nothing overflows, and
floor division is written by what the bounds allow: a shift or mask for a power of two; for another literal a product
and a shift, whose multiplier is exact on the range of the dividend (a C compiler, not knowing the range, must correct
the product); plain ``/`` and ``%`` for operands that are never negative, else a small helper. Every operation is also
total, so terms may be computed where a ``where`` would not need them: a divisor whose range contains 0 is replaced by 1
or -1 where it is 0. Those of floating-point values are written in the order in which they stand, each in its own type.

A right shift of a negative value is implementation-defined in C99, and so is the conversion of a large unsigned value;
both are taken to be arithmetic and modular, as gcc and clang define them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from math import copysign, isinf, isnan
from typing import cast

from eqsat.codegen.limits import CODE_LIMITS
from eqsat.extract.cost import exact_multiplier, is_power_of_two
from eqsat.lang.dtypes import LIMITS, select_width, width_of, widths
from eqsat.lang.expr import Expr, brief, rebuild, refuse_array, refuse_escaped
from eqsat.lang.ops import FLOATS, LETTERS, OWN, REDUCTIONS, Op, for_each_own, linear_bounds
from eqsat.lang.properties import may_divide_by_zero
from eqsat.lang.text import free_name
from eqsat.lang.traversal import Buffer, array_of, topological, tree_size, use_counts, variables
from eqsat.lang.validation import list_of, require
from eqsat.theory.forms import read

#: C's name of each element type.
C_TYPES = {"bool": "bool", "i32": "int32_t", "i64": "int64_t", "f32": "float", "f64": "double"}

#: Helper functions by name: parameters and statements. ``T`` stands for the type of the width, ``U`` for its unsigned
#: twin.
HELPERS = {
    "floor_div_by_positive": ("T x, T y", ["return x / y - (x % y < 0);"]),
    "floor_mod_by_positive": ("T x, T y", ["const T r = x % y;", "return r < 0 ? r + y : r;"]),
    "floor_div": ("T x, T y", ["return x / y - (x % y != 0 && (x < 0) != (y < 0));"]),
    # the least integer % -1 overflows, though its value is 0
    "floor_mod": ("T x, T y", ["const T r = y == -1 ? 0 : x % y;", "return r != 0 && (r < 0) != (y < 0) ? r + y : r;"]),
    "trunc_mod": ("T x, T y", ["return y == -1 ? 0 : x % y;"]),
    # for a dividend that is never negative, which C would have to find out
    "unsigned_quotient": ("T x, T y", ["return (T)((U)x / (U)y);"]),
    "unsigned_remainder": ("T x, T y", ["return (T)((U)x % (U)y);"]),
    # by a product that is exact for every dividend that occurs
    "quotient": ("T x, T y, U multiplier, int shift", ["(void)y;", "return (T)((U)x * multiplier >> shift);"]),
    "remainder": ("T x, T y, U multiplier, int shift", ["return x - (T)((U)x * multiplier >> shift) * y;"]),
    "long_quotient": (
        "T x, T y, uint64_t multiplier, int shift",
        ["(void)y;", "return (T)((uint64_t)x * multiplier >> shift);"],
    ),
    "long_remainder": (
        "T x, T y, uint64_t multiplier, int shift",
        ["return x - (T)((uint64_t)x * multiplier >> shift) * y;"],
    ),
    "nonzero": ("T y, T otherwise", ["return y != 0 ? y : otherwise;"]),
    "shift_left": ("T x, int y", ["return (T)((U)x << y);"]),
    "min": ("T x, T y", ["return x < y ? x : y;"]),
    "max": ("T x, T y", ["return x > y ? x : y;"]),
    # a tile of 8 rows of 8 elements, by what vector instructions do best: neighbours, pairs and halves change places
    "transpose_block": (
        "const void *from, int64_t from_stride, void *to, int64_t to_stride",
        [
            "typedef T row __attribute__((vector_size(8 * sizeof(T)), aligned(sizeof(T)), may_alias));",
            "row x[8], y[8];",
            "for (int i = 0; i < 8; i++)",
            "    x[i] = *(const row *)((const T *)from + i * from_stride);",
            "for (int i = 0; i < 8; i += 2) {",
            "    y[i] = __builtin_shufflevector(x[i], x[i + 1], 0, 8, 2, 10, 4, 12, 6, 14);",
            "    y[i + 1] = __builtin_shufflevector(x[i], x[i + 1], 1, 9, 3, 11, 5, 13, 7, 15);",
            "}",
            "for (int i = 0; i < 8; i += i % 4 == 1 ? 3 : 1) {",
            "    x[i] = __builtin_shufflevector(y[i], y[i + 2], 0, 1, 8, 9, 4, 5, 12, 13);",
            "    x[i + 2] = __builtin_shufflevector(y[i], y[i + 2], 2, 3, 10, 11, 6, 7, 14, 15);",
            "}",
            "for (int i = 0; i < 4; i++) {",
            "    *(row *)((T *)to + i * to_stride) = "
            "__builtin_shufflevector(x[i], x[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);",
            "    *(row *)((T *)to + (i + 4) * to_stride) = "
            "__builtin_shufflevector(x[i], x[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);",
            "}",
        ],
    ),
}


@for_each_own
def _add_helper(op: Op) -> None:
    if op.c:
        operands = LETTERS[: len(op.takes)]
        HELPERS[f"eqsat_{op.name}"] = ", ".join(f"T {x}" for x in operands), [f"return {op.c};"]


#: Names that a C compiler (C99 to C23), ``<stdbool.h>``, ``<stdint.h>``, ``<math.h>`` or a helper may have taken.
_TAKEN = re.compile(
    r"_.*|eqsat_\w*|[if](32|64)x\d+|\w*_t|(U?INT|PTRDIFF|SIG_ATOMIC|SIZE|WCHAR|WINT)\w*|main"
    r"|alignas|alignof|asm|auto|bool|break|case|char|const|constexpr|continue|default|do|double|else|enum|extern|false"
    r"|float|for|fortran|goto|if|inline|int|long|nullptr|register|restrict|return|short|signed|sizeof|static"
    r"|static_assert|struct|switch|thread_local|true|typedef|typeof|typeof_unqual|union|unsigned|void|volatile|while"
    r"|(a?(cos|sin|tan)h?|atan2|cbrt|ceil|copysign|erfc?|exp(2|m1)?|fabs|fdim|floor|fma|fmax|fmin|fmod|frexp|hypot"
    r"|ilogb|ldexp|lgamma|(l?l)?r(int|ound)|log(10|1p|2|b)?|modf|nan|nearbyint|nextafter|nexttoward|pow|remainder"
    r"|remquo|scalbl?n|sqrt|tgamma|trunc)[fl]?"
    r"|fpclassify|is(finite|inf|nan|normal|unordered|(greater|less)(equal)?|lessgreater)|signbit|math_errhandling"
    r"|is(zero|eqsig|signaling|subnormal|canonical)|linux|unix|i386|HUGE|MAXFLOAT|DOMAIN|SING|(OVER|UNDER)FLOW|[PT]LOSS"
    r"|INFINITY|NAN|HUGE_VAL[FL]?|(FP|MATH|M|X)_\w*|mem(cmp|cpy|move|set)"
    rf"|({'|'.join(HELPERS)})_i(32|64)"
)

#: Names of functions that a C compiler knows or calls, which arguments may have, but functions may not.
_FUNCTIONS = re.compile(
    r"([jy][01n]|l?gamma(_r)?|drem|finite|scalb|significand|exp10|pow10|sincos|roundeven|canonicalize|u?fromfpx?"
    r"|next(up|down)|llogb|f(max|min)mag|(set|get)payload(sig)?|totalorder(mag)?)[fl]?|signgam"
    r"|c(abs|arg|imag|real|proj|pow|sqrt|exp|log(10)?|a?(cos|sin|tan)h?)[fl]?|conj[fl]?"
    r"|(ll?|imax)?abs|ffs(ll?)?|abort|exit|malloc|[cr]ealloc|calloc|free|alloca|v?(f|s|sn)?(printf|scanf)"
    r"|f?put[cs]|putchar|is(w?(alnum|alpha|blank|cntrl|digit|graph|lower|print|punct|space|upper|xdigit)|ascii)"
    r"|tow?(lower|upper)|toascii|r?index|mem(chr|pcpy)|b(cmp|copy|zero)|st[pr]n?cpy"
    r"|str(n?cat|r?chr|n?(case)?cmp|c?spn|n?len|pbrk|str|n?dup|fmon|ftime)|d?c?gettext|exec([lv][ep]?|vpe)|fork"
    r"|(omp|GOMP)_\w*"
)

#: How tightly C's operators bind.
TERNARY, OR, AND, BIT_OR, BIT_XOR, MASK, EQUAL, LESS, SHIFT, ADD, MUL, PREFIX, ATOM = *range(3, 15), 100


@dataclass(frozen=True, slots=True)
class Code:
    """A C expression: its text, how tightly its outermost operator binds, and the width of its C type."""

    text: str
    precedence: int
    width: int

    def within(self, least: int) -> str:
        """The text as an operand that must bind at least as tightly as ``least``."""
        return self.text if self.precedence >= least else f"({self.text})"


@dataclass(frozen=True, slots=True)
class Function:
    """A C function: its name, its text without what it includes, and the helpers (name, width) that it calls."""

    name: str
    text: str
    helpers: frozenset[tuple[str, int]]


def to_c(roots: Sequence[Expr], name: str = "kernel", order: Sequence[Expr] | None = None) -> str:
    """C99 source of a function ``void name(variables..., pointers to the results...)``; it compiles on its own.

    Parameters
    ----------
    roots : sequence of Expr
        Terms used more than once, by one root or by several, are computed once.
    name : str
        The name of the function: a C identifier.
    order : sequence of Expr, optional
        The variables in the order of the arguments, by default sorted by name; may name variables that no root uses.
        An argument is called like its variable, unless C has taken that name.

    Raises
    ------
    ValueError
        If a term does not fit 64 bits, if ``name`` cannot name a C function, if ``roots`` is empty, if ``order``
        lacks a variable, or if there are loads, reductions or floating-point values: those take a kernel.
    TypeError
        If ``roots`` is no list of expressions.

    >>> from eqsat.lang.expr import var
    >>> i, j = var("i", 0, 7), var("j", -4, 31)
    >>> print(to_c([(i*32 + j) // 32, (i*32 + j) % 7]))
    #include <stdbool.h>
    #include <stdint.h>
    <BLANKLINE>
    static inline int32_t remainder_i32(int32_t x, int32_t y, uint32_t multiplier, int shift)
    {
        return x - (int32_t)((uint32_t)x * multiplier >> shift) * y;
    }
    <BLANKLINE>
    /* for i in [0, 7], j in [-4, 31]:
     *   out0 = (i*32 + j)//32
     *   out1 = (i*32 + j)%7
     */
    void kernel(int32_t i, int32_t j, int32_t *out0, int32_t *out1)
    {
        const int32_t t0 = i * 32 + j;
        *out0 = t0 >> 5;
        *out1 = remainder_i32(t0 + 7, 7, 293u, 11);
    }
    <BLANKLINE>
    """
    written = function(list_of(Expr, roots, "the expressions to lower"), name, order)
    return preamble([written]) + "\n" + written.text


def _refuse_unwritten(roots: Sequence[Expr], remedy: str) -> None:
    """Refuse terms that no C expression computes."""
    for root in roots:
        refuse_array(root)
        refuse_escaped(root)
    unwritten = {"load", *REDUCTIONS, *FLOATS, "float"}
    if (other := next((t for t in topological(roots) if t.op in unwritten), None)) is not None:
        raise ValueError(f"{brief(other)!r} needs an array, a loop or floating-point values: {remedy}")


def function(roots: Sequence[Expr], name: str, order: Sequence[Expr] | None = None, storage: str = "") -> Function:
    """The function that :func:`to_c` prints, without what it needs before it; ``storage`` may be ``"static "``."""
    if not roots:
        raise ValueError("there is no expression to lower: give at least one")
    check_name(name)
    _refuse_unwritten(roots, "give it as a store of a kernel (eqsat.Kernel)")
    order, written = arguments(roots, order), by_products(roots)
    writer = Writer(written, name, order)
    results = [free_name(f"out{index}", writer.names) for index in range(len(roots))]
    stored: dict[Expr, list[str]] = defaultdict(list)
    for root, result in zip(written, results, strict=True):
        stored[root].append(result)
    users = use_counts(written)
    lines: list[str] = []
    for term in users:
        if term.op != "var":
            writer.code[term] = writer.written(term)
        if term.args and (users[term] > 1 or len(writer.code[term].text) > CODE_LIMITS.text):
            lines.append(writer.as_local(term))
        lines += [f"*{result} = {writer.value(term)};" for result in stored[term]]
    ranges = ", ".join(f"{v.value} in [{v.vmin}, {v.vmax}]" for v in order)
    texts = [f" *   {result} = {brief(root, 200)}" for result, root in zip(results, roots, strict=True)]
    comment = [f"/* for {ranges}:" if ranges else "/* constant:", *texts, " */"]
    pointers = [f"{c_type(root)} *{result}" for result, root in zip(results, roots, strict=True)]
    return writer.function(comment, storage, [*writer.declared(), *pointers], lines)


def by_products(roots: Sequence[Expr]) -> list[Expr]:
    """``roots`` with products in place of selections that a term which is 0 or 1 makes between two literals.

    Compilers do not know that it is 0 or 1. They compile a selection to a test, a move and loads of the literals, but a
    product to one instruction. Its result comes a cycle later, which other instructions hide.
    """

    def product(term: Expr, args: tuple[Expr, ...]) -> Expr | None:
        if term.op != "where" or args[0].op != "lt" or any(a.op != "const" for a in args[1:]):
            return None
        decider, bound = args[0].args
        step = args[2].vmin - args[1].vmin
        if (decider.vmin, decider.vmax) != (0, 1) or (bound.vmin, bound.vmax) != (1, 1):
            return None
        if width_of(min(0, step), max(0, step)) != select_width(term):
            return None
        scaled = decider * step if step != 1 else decider
        return scaled + args[1] if args[1].vmin else scaled

    return rebuild(roots, product)


def expression(root: Expr, order: Sequence[Expr] = (), taken: str = "") -> str:
    """``root`` as one C expression over its variables, for a place where no local can stand, such as a loop header.

    It may call :data:`HELPERS`. Shared subterms are repeated. ``order`` has all variables: in expressions with the same
    order a variable has the same name, and none is called ``taken``.

    Raises ``ValueError`` if that makes more than ``CODE_LIMITS.repeated_terms`` operators and leaves, or ``root`` needs
    arrays, loops or floating-point values.
    """
    most = CODE_LIMITS.repeated_terms
    if tree_size(root) > most:
        raise ValueError(
            f"one C expression for {brief(root)!r} repeats what it shares, which makes over {most} operators: "
            "compute it before, and give a variable"
        )
    _refuse_unwritten([root], "compute it before, and give a variable")
    writer = Writer([root], taken, order or variables([root]))
    for term in topological([root]):
        if term.op != "var":
            writer.code[term] = writer.written(term)
    return writer.value(root)


def arguments(roots: Sequence[Expr], order: Sequence[Expr] | None) -> list[Expr]:
    """The variables of a function in the order of its arguments: ``order``, or those of ``roots`` sorted by name.

    Raises ``ValueError`` if ``order`` lacks a variable of ``roots``, or a name has two ranges.
    """
    used = variables(roots)
    if order is None:
        return used
    order = list_of(Expr, order, "the arguments of a function")
    if other := [term for term in order if term.op != "var"]:
        raise TypeError(f"{brief(other[0])!r} is among the arguments of a function: give variables")
    variables([*used, *order])
    if missing := [str(v.value) for v in used if v not in set(order)]:
        raise ValueError(f"the order of arguments lacks the variables {', '.join(missing)}")
    return list(dict.fromkeys(order))


def preamble(functions: Iterable[Function]) -> str:
    """What must precede ``functions`` in one C file: headers and the helpers that they call."""
    parts = ["#include <stdbool.h>\n#include <stdint.h>\n"]
    for helper, width in sorted({h for f in functions for h in f.helpers}):
        parameters, statements = HELPERS[helper]
        kind = "T" if any("return" in statement for statement in statements) else "void"
        head = f"static inline {kind} {helper}_i{width}({parameters})"
        text = "\n".join([head, "{", *["    " + s for s in statements], "}", ""])
        parts.append(re.sub(r"\bT\b", f"int{width}_t", re.sub(r"\bU\b", f"uint{width}_t", text)))
    return "\n".join(parts)


def points_function(roots: Sequence[Expr], name: str, order: Sequence[Expr]) -> str:
    """C source of ``name_points``: the function ``name`` applied to ``count`` points held in arrays.

    Its type is the same for every kernel: ``(count, in, out)``, with one array of int64 per argument in ``in``, and one
    of int64 or bool per root in ``out``. What has 32 bits and is never negative is widened as an unsigned value, for
    which x86-64 and AArch64 need no instruction.
    """
    results = [f"o{index}" for index in range(len(roots))]
    inputs = [f"({c_type(v)})in[{index}][p]" for index, v in enumerate(order)]
    lines = [
        f"static void {name}_points(int64_t count, const int64_t *const *in, void *const *out)",
        "{",
        *["    (void)in;"] * (not inputs),
        "    for (int64_t p = 0; p < count; p++) {",
        *[f"        {c_type(root)} {result};" for root, result in zip(roots, results, strict=True)],
        f"        {name}({', '.join(inputs + ['&' + result for result in results])});",
    ]
    for index, (root, result) in enumerate(zip(roots, results, strict=True)):
        value = f"(uint32_t){result}" if _is_unsigned(root) else result
        lines.append(f"        (({'bool' if root.is_bool else 'int64_t'} *)out[{index}])[p] = {value};")
    return "\n".join([*lines, "    }", "}", ""])


def _is_unsigned(term: Expr) -> bool:
    """Whether a term is an integer of 32 bits that is known to be never negative, as ``x*8 - y - x`` may be."""
    if term.is_bool or select_width(term) != 32:
        return False
    if term.vmin >= 0 or tree_size(term) > CODE_LIMITS.repeated_terms:
        return term.vmin >= 0
    form = read(term)
    return linear_bounds(form.constant, [((a.vmin, a.vmax), k) for a, k in form.terms.items()])[0] >= 0


def c_type(term: Expr) -> str:
    """The C type of a term."""
    return C_TYPES[term.element] if term.element else "bool" if term.is_bool else f"int{select_width(term)}_t"


def check_name(name: str, of: str = "function") -> None:
    """Refuse what cannot name a function, or whatever ``of`` says, in C."""
    require(name, str, f"the name of a C {of}")
    if _is_taken(name, of) or not name.isascii() or not name.isidentifier():
        raise ValueError(f"{name!r} cannot name a C {of}: use a-z, digits and underscores, but no word of C's")


def _is_taken(name: str, of: str) -> bool:
    """Whether C has the name; a function would replace one of C's, where an argument only hides it."""
    return bool(_TAKEN.fullmatch(name) or (of == "function" and _FUNCTIONS.fullmatch(name)))


def internal_name(name: str, taken: Collection[str] = (), of: str = "function") -> str:
    """A name that neither C nor ``taken`` has, made of any text, for what only the same C file refers to."""
    name = "".join(c if c.isascii() and (c.isalnum() or c == "_") else f"u{ord(c):x}" for c in name)
    while not name.isidentifier() or _is_taken(name, of) or name in taken:
        name = f"v_{name}_"
    return name


class Writer:
    """Writes the terms of one function: what each is in C, over the variables ``order``."""

    def __init__(self, roots: Sequence[Expr], name: str, order: Sequence[Expr]) -> None:
        self.name = name
        self.order = order
        self.widths = widths([*order, *roots])
        self.helpers: set[tuple[str, int]] = set()
        self.names: set[str] = {name}
        self.code: dict[Expr, Code] = {}
        self.locals = 0
        # the names of arrays, and the loads that are known to be inside theirs
        self.arrays: dict[str, str] = {}
        self.inside = frozenset[Expr]()
        for variable in order:
            self.code[variable] = Code(self.argument_name(cast(str, variable.value)), ATOM, select_width(variable))

    def argument_name(self, name: str) -> str:
        """A name that C and nothing else here has, made of that of a variable."""
        name = internal_name(name, self.names, "argument")
        self.names.add(name)
        return name

    def local(self, prefix: str) -> str:
        """The name of a new local; locals are numbered one after the other."""
        self.locals += 1
        return free_name(f"{prefix}{self.locals - 1}", self.names)

    def as_local(self, term: Expr) -> str:
        """The declaration of a local with the value of ``term``, which has its name from then on."""
        name = self.local("t")
        line = f"const {c_type(term)} {name} = {self.value(term)};"
        self.code[term] = Code(name, ATOM, value_width(term))
        return line

    def declared(self) -> list[str]:
        """How the variables are declared."""
        return [f"{c_type(v)} {self.code[v].text}" for v in self.order]

    def function(
        self, comment: Iterable[str], storage: str, parameters: Iterable[str], body: Sequence[str]
    ) -> Function:
        """The function with this body; its head is broken between parameters where it is long."""
        start = f"{storage}void {self.name}("
        head = [start]
        for parameter in parameters:
            if len(head[-1]) + len(parameter) > 110:
                head.append(" " * len(start))
            head[-1] += parameter + ", "
        declaration = "\n".join([line.rstrip() for line in head])[:-1] + ")"
        text = "\n".join([*comment, declaration, "{", *indented(body), "}", ""])
        return Function(self.name, text, frozenset(self.helpers))

    def value(self, term: Expr) -> str:
        """The text of ``term``, cast where its C type is wider than its value."""
        return self.code[term].text if term.is_bool or term.element else self.at(term, select_width(term)).text

    def at(self, term: Expr, width: int) -> Code:
        """``term`` as an expression of type ``width``, which must hold its value; a floating-point value as it is."""
        code = self.code[term]
        if code.width == width or term.element:
            return code
        return Code(f"(int{width}_t){code.within(PREFIX)}", PREFIX, width)

    def operands(self, term: Expr) -> list[Code]:
        """The operands of an arithmetic term, cast so that C computes it at its width."""
        width = self.widths[term]
        if width == 32:
            return [self.at(a, 32) for a in term.args]
        codes = [self.code[a] for a in term.args]
        if not any(c.width == 64 for c in codes):
            # C widens the others; a literal is never the one to cast if there is another
            index = next((i for i, a in enumerate(term.args) if a.op != "const"), 0)
            codes[index] = self.at(term.args[index], 64)
        return codes

    def call(self, helper: str, width: int, *operands: str) -> Code:
        """A call of a helper, which is then defined in the preamble."""
        self.helpers.add((helper, width))
        return Code(f"{helper}_i{width}({', '.join(operands)})", ATOM, width)

    def helper(self, term: Expr, name: str) -> Code:
        """A call of helper ``name`` on the operands of ``term``; C converts the arguments."""
        return self.call(name, self.widths[term], *[self.code[a].text for a in term.args])

    def written(self, term: Expr) -> Code:
        """A term over the code of its operands."""
        if term.op not in OWN:
            return WRITE[term.op](self, term)
        if not OWN[term.op].c:
            raise ValueError(f"operator {term.op!r} has no C: define it with c=, its value in C")
        return self.helper(term, f"eqsat_{term.op}")

    def literal(self, term: Expr) -> Code:
        number = cast(int, term.value)
        width = select_width(term)
        if number == LIMITS[width][0]:
            return Code(f"INT{width}_MIN", ATOM, width)
        digits = _digits(abs(number))
        return Code("-" + digits, PREFIX, width) if number < 0 else Code(digits, ATOM, width)

    def infix(self, term: Expr, symbol: str, precedence: int) -> Code:
        """Arithmetic that associates to the left."""
        left, right = self.operands(term)
        text = f"{left.within(precedence)} {symbol} {right.within(precedence + 1)}"
        return Code(text, precedence, self.widths[term])

    def compare(self, term: Expr, symbol: str, precedence: int) -> Code:
        left, right = [self.code[a].within(SHIFT) for a in term.args]
        return Code(f"{left} {symbol} {right}", precedence, 32)

    def bits(self, term: Expr, symbol: str, precedence: int) -> Code:
        """A bit operator; C binds it more loosely than comparisons, so other operators within are in brackets."""
        left, right = self.operands(term)
        first = left.within(precedence if left.precedence == precedence else PREFIX)
        return Code(f"{first} {symbol} {right.within(PREFIX)}", precedence, self.widths[term])

    def negate(self, term: Expr) -> Code:
        (operand,) = self.operands(term)
        # C would read two signs in a row as a decrement
        text = operand.within(ATOM if operand.text.startswith("-") else PREFIX)
        return Code("-" + text, PREFIX, self.widths[term])

    def both(self, term: Expr) -> Code:
        return Code(" && ".join(self.code[a].within(AND) for a in term.args), AND, 32)

    def either(self, term: Expr) -> Code:
        operands = [self.code[a] for a in term.args]
        texts = [c.text if c.precedence == OR else c.within(MASK) for c in operands]
        return Code(" || ".join(texts), OR, 32)

    def choose(self, term: Expr) -> Code:
        condition, yes, no = [self.code[a] for a in term.args]
        text = f"{condition.within(OR)} ? {yes.within(OR)} : {no.within(TERNARY)}"
        return Code(text, TERNARY, max(yes.width, no.width))

    def floor_div(self, term: Expr) -> Code:
        shift = _log2(term.args[1])
        return self.floored(term, "quotient", "/", "floor_div") if shift is None else self.shift_right(term, str(shift))

    def floor_mod(self, term: Expr) -> Code:
        x, y = term.args
        if _log2(y) is None:
            return self.floored(term, "remainder", "%", "floor_mod")
        code = self.at(x, self.widths[term])
        return Code(f"{code.within(PREFIX)} & {_digits(y.vmax - 1)}", MASK, code.width)

    def floored(self, term: Expr, by_literal: str, symbol: str, helper: str) -> Code:
        """A floor division by no power of two: by a product, by C's operator, or by the helper of such a divisor."""
        x, y = term.args
        if (product := self.divide_by_literal(term, by_literal)) is not None:
            return product
        if x.vmin >= 0 and y.vmin >= 0:
            return self.divide(term, symbol)
        return self.divide_by_helper(term, f"{helper}_by_positive" if y.vmin >= 0 else helper)

    def truncated(self, term: Expr, by_literal: str, symbol: str) -> Code:
        """A division that rounds toward zero, as C's do; the least integer % -1 overflows, though its value is 0."""
        x, y = term.args
        if symbol == "%" and x.vmin == LIMITS[self.widths[term]][0] and y.vmin <= -1 <= y.vmax:
            return self.divide_by_helper(term, "trunc_mod")
        product = self.divide_by_literal(term, by_literal) if x.vmin >= 0 else None
        return product or self.divide(term, symbol)

    def divide_by_literal(self, term: Expr, helper: str) -> Code | None:
        """Floor division by a positive literal, ``"quotient"`` or ``"remainder"``; None where plain C is as good.

        A product and a shift, at the width of the product. A dividend that may be negative is raised by a multiple of
        the divisor first, and is unsigned where the product does not fit 64 bits.
        """
        x, y = term.args
        width, divisor = self.widths[term], y.vmin
        if y.op != "const" or divisor < 2:
            return None
        raised = max(0, -(x.vmin // divisor))
        most = x.vmax + raised * divisor
        if most > LIMITS[width][1]:
            return None
        multiplier, shift = exact_multiplier(divisor, most)
        # the product must fit, and C cannot shift by a whole width
        bits = max((most * multiplier).bit_length(), shift + 1)
        dividend = self.at(x, width)
        operands = [dividend.text, self.code[y].text]
        if raised:
            operands[0] = f"{dividend.within(ADD)} + {_digits(raised * divisor)}"
        if bits > 64 and not raised:
            return None
        if bits > 64:
            code = self.call(f"unsigned_{helper}", width, *operands)
        else:
            code = self.call("long_" * (bits > width) + helper, width, *operands, f"{multiplier}u", str(shift))
        return Code(f"{code.text} - {_digits(raised)}", ADD, width) if raised and helper == "quotient" else code

    def divide(self, term: Expr, symbol: str) -> Code:
        """A division that C has an operator for."""
        if not may_divide_by_zero(term):
            return self.infix(term, symbol, MUL)
        left = self.at(term.args[0], self.widths[term])
        return Code(f"{left.within(MUL)} {symbol} {self.divisor(term).text}", MUL, left.width)

    def divide_by_helper(self, term: Expr, helper: str) -> Code:
        """A division that C has no operator for, such as one that rounds down."""
        return self.call(helper, self.widths[term], self.code[term.args[0]].text, self.divisor(term).text)

    def divisor(self, term: Expr) -> Code:
        """The divisor of ``term``, with 1 in place of 0, or with -1 if only that is in its range."""
        y = term.args[1]
        if not may_divide_by_zero(term):
            return self.code[y]
        return self.call("nonzero", self.widths[term], self.code[y].text, "-1" if y.vmin < 0 == y.vmax else "1")

    def shift_left(self, term: Expr) -> Code:
        x, y = term.args
        width = self.widths[term]
        factor = 1 << y.vmax
        if y.op == "const" and factor <= LIMITS[width][1]:
            # a shifted negative value is undefined in C, a multiplied one is not
            return Code(f"{self.at(x, width).within(MUL)} * {_digits(factor)}", MUL, width)
        return self.call("shift_left", width, self.code[x].text, self.code[y].text)

    def shift_right(self, term: Expr, amount: str | None = None) -> Code:
        code = self.at(term.args[0], self.widths[term])
        amount = amount or self.code[term.args[1]].within(PREFIX)
        return Code(f"{code.within(PREFIX)} >> {amount}", SHIFT, code.width)

    def element(self, array: Buffer, index: str) -> str:
        return f"{self.arrays[array.name]}[{index}]"

    def load(self, term: Expr) -> Code:
        array, place = array_of(term), term.args[1]
        index = self.code[place]
        text, width = self.element(array, index.text), element_width(term)
        if term in self.inside:
            return Code(text, ATOM, width)
        tests = [f"0 <= {index.within(ADD)}"] * (place.vmin < 0)
        tests += [f"{index.within(ADD)} < {array.size}"] * (place.vmax >= array.size)
        return Code(f"({' && '.join(tests)} ? {text} : 0)", ATOM, width)

    def float_literal(self, term: Expr) -> Code:
        value = cast(float, term.value)
        if isnan(value):
            return Code("NAN", ATOM, 0)
        text = "INFINITY" if isinf(value) else repr(abs(value)) + "f" * (term.element == "f32")
        return Code(text, ATOM, 0) if copysign(1, value) > 0 else Code("-" + text, PREFIX, 0)

    def float_extreme(self, term: Expr) -> Code:
        x, y = [self.code[a].within(ATOM) for a in term.args]
        branches = f"{x} : {y}" if term.op == "fmin" else f"{y} : {x}"
        return Code(f"({x} < {y} ? {branches})", ATOM, 0)

    def float_call(self, term: Expr) -> Code:
        return Code(f"{term.op}{'f' * (term.element == 'f32')}({self.code[term.args[0]].text})", ATOM, 0)

    def converted(self, term: Expr) -> Code:
        return Code(f"({c_type(term)}){self.code[term.args[0]].within(PREFIX)}", PREFIX, 0)


def indented(lines: Sequence[str]) -> list[str]:
    """Lines of C as they stand inside braces; preprocessor lines stay at the margin."""
    return [line if line.startswith("#") else "    " + line for line in lines]


def value_width(term: Expr) -> int:
    """The bits of an integer's C type; 0 for a floating-point value."""
    return 0 if term.element else select_width(term)


def element_width(load: Expr) -> int:
    """The width of the C type of an element that is loaded; 0 for a floating-point value."""
    return 0 if load.element else 64 if array_of(load).element == "i64" else 32


def _log2(divisor: Expr) -> int | None:
    """The exponent of a literal power of two."""
    return divisor.vmin.bit_length() - 1 if divisor.op == "const" and is_power_of_two(divisor.vmin) else None


def _digits(number: int) -> str:
    """A literal that is not negative, of the narrowest type that holds it."""
    return str(number) if number <= LIMITS[32][1] else f"INT64_C({number})"


#: How each operator is written.
WRITE: dict[str, Callable[[Writer, Expr], Code]] = {
    "const": Writer.literal,
    "bool": lambda writer, term: Code("true" if term.value else "false", ATOM, 32),
    "or": Writer.either,
    "and": Writer.both,
    "not": lambda writer, term: Code("!" + writer.code[term.args[0]].within(PREFIX), PREFIX, 32),
    "lt": lambda writer, term: writer.compare(term, "<", LESS),
    "le": lambda writer, term: writer.compare(term, "<=", LESS),
    "eq": lambda writer, term: writer.compare(term, "==", EQUAL),
    "ne": lambda writer, term: writer.compare(term, "!=", EQUAL),
    "add": lambda writer, term: writer.infix(term, "+", ADD),
    "sub": lambda writer, term: writer.infix(term, "-", ADD),
    "mul": lambda writer, term: writer.infix(term, "*", MUL),
    "neg": Writer.negate,
    "floordiv": Writer.floor_div,
    "mod": Writer.floor_mod,
    "tdiv": lambda writer, term: writer.truncated(term, "quotient", "/"),
    "tmod": lambda writer, term: writer.truncated(term, "remainder", "%"),
    "bitor": lambda writer, term: writer.bits(term, "|", BIT_OR),
    "bitxor": lambda writer, term: writer.bits(term, "^", BIT_XOR),
    "bitand": lambda writer, term: writer.bits(term, "&", MASK),
    "shl": Writer.shift_left,
    "shr": Writer.shift_right,
    "min": lambda writer, term: writer.both(term) if term.is_bool else writer.helper(term, "min"),
    "max": lambda writer, term: writer.either(term) if term.is_bool else writer.helper(term, "max"),
    "where": Writer.choose,
}
# most operators of floating-point values are written as those of integers
WRITE |= {op.name: WRITE[op.integer] for op in FLOATS.values() if op.integer}
WRITE |= {
    "load": Writer.load,
    "float": Writer.float_literal,
    "fdiv": lambda writer, term: writer.infix(term, "/", MUL),
    **dict.fromkeys(("fmin", "fmax"), Writer.float_extreme),
    **dict.fromkeys(("exp", "log", "sqrt"), Writer.float_call),
    **dict.fromkeys(("to_float", "to_double"), Writer.converted),
}
