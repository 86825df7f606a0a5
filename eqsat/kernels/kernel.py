"""Kernels: arrays in, arrays out, by stores over ranges of variables.

A :class:`Store` gives each element of an output a value made of loads, arithmetic and reductions; a :class:`Kernel` is
a list of stores. Variables that no store ranges over are parameters of the kernel.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from eqsat.lang.display import Displayed, html_table
from eqsat.lang.dtypes import bounds_text
from eqsat.lang.errors import ContradictionError
from eqsat.lang.evaluation import evaluate
from eqsat.lang.expr import (
    TRUE,
    Expr,
    ExprLike,
    any_var,
    as_expr,
    as_float,
    brief,
    buffer,
    digits,
    make,
    rebuild,
    refuse_array,
    refuse_escaped,
)
from eqsat.lang.functions import where
from eqsat.lang.ops import ELEMENTS, is_finite, np
from eqsat.lang.sampling import grid
from eqsat.lang.text import free_name
from eqsat.lang.traversal import Buffer, array_of, buffers, extent, variables
from eqsat.lang.validation import integer_of, require, shortened, shown
from eqsat.theory.linear import LinearArithmetic

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

#: Arrays by name.
type Arrays = dict[str, NDArray[Any]]

#: What NumPy calls each element type.
DTYPES = {"bool": "bool", "i32": "int32", "i64": "int64", "f32": "float32", "f64": "float64"}


def set_fields(frozen: object, **fields: object) -> None:
    """Set fields of a new object whose class is frozen."""
    for name, value in fields.items():
        object.__setattr__(frozen, name, value)


@dataclass(frozen=True)
class Store:
    """``target = value`` for all values of ``over``, outermost loop first, where ``when`` holds.

    Parameters
    ----------
    target : Expr
        An element of the output: a buffer with a shape, subscripted.
    value : Expr, int or float
        Converted to a floating-point value if the elements are.
    over : sequence of Expr
        The variables of the loops, outermost first.
    when : Expr, optional
        A condition; where it does not hold nothing is stored.

    Raises
    ------
    ValueError, TypeError
        If a loop has no end, an index can leave its axis, or the value does not fit the elements.

    >>> from eqsat.lang.expr import var
    >>> a, b, i = buffer("A", "i32", (8,)), buffer("B", "i32", (8,)), var("i", 0, 7)
    >>> Store(b[i], a[7 - i], [i])
    Store('B[i] = A[7 - i] for i')
    """

    target: Expr
    value: Expr
    over: tuple[Expr, ...]
    when: Expr

    def __init__(self, target: Expr, value: ExprLike, over: Iterable[Expr] = (), when: ExprLike = TRUE) -> None:
        if not isinstance(over, Iterable):
            raise TypeError(f"a store ranges over {shown(over)}: give a list of variables, such as [i]")
        set_fields(self, target=target, over=tuple(over), value=as_expr(value), when=as_expr(when))
        refuse_array(self.value)
        refuse_array(self.when)
        if not isinstance(target, Expr) or target.op != "load":
            stated = repr(brief(target)) if isinstance(target, Expr) else type(target).__name__
            raise TypeError(f"the target of a store is an element such as C[i], not {stated}")
        array = self.array
        if array.element in ("f32", "f64") and not self.value.is_bool:
            set_fields(self, value=as_float(self.value, self.target))
        self._check_value(array)
        if not self.when.is_bool:
            raise TypeError(f"the guard of a store is a condition, not {brief(self.when)!r}")
        for variable in self.over:
            if not isinstance(variable, Expr) or variable.op != "var" or self.over.count(variable) > 1:
                raise ValueError(f"a store ranges over distinct variables, not over {brief(as_expr(variable))!r}")
            refuse_endless(variable)
        self._check_indices(array)

    def __repr__(self) -> str:
        over = ", ".join(map(str, self.over))
        guard = "" if self.when is TRUE else f" where {self.when}"
        return f"Store('{self.target} = {self.value}{' for ' * bool(over)}{over}{guard}')"

    @property
    def array(self) -> Buffer:
        """The output that is stored to."""
        return array_of(self.target)

    @property
    def parts(self) -> tuple[Expr, Expr, Expr]:
        """Where a store to a flat array stores, what, and under which condition."""
        return self.target.args[1], self.value, self.when

    def where_stored(self) -> list[Expr]:
        """The index of each axis, the value, and the condition.

        Where the condition fails, the others are 0: as they are written, they may divide by zero there.
        """
        return [*[where(self.when, t, zero_like(t)) for t in (*self.target.args[1:], self.value)], self.when]

    def _check_value(self, array: Buffer) -> None:
        value = self.value
        if array.element not in DTYPES:
            raise ValueError(f"the elements of {array.name!r} have no size: use one of {', '.join(DTYPES)}")
        if (array.element == "bool") is not value.is_bool:
            kind = "a condition" if value.is_bool else "a number"
            raise TypeError(f"{brief(value)!r} is {kind}, but the elements of {array.name!r} are {array.element}")
        if value.element and not array.element.startswith("f"):
            raise TypeError(f"{brief(value)!r} is a floating-point value, the elements of {array.name!r} are integers")
        low, high = ELEMENTS[array.element]
        if not value.element and not (low <= value.vmin and value.vmax <= high):
            raise ValueError(
                f"{brief(value)!r} has range {bounds_text(value.vmin, value.vmax)}, which {array.element}, the element "
                f"type of {array.name!r}, does not hold: bound it by minimum and maximum"
            )

    def _check_indices(self, array: Buffer) -> None:
        if array.shape is None:
            raise ValueError(f"buffer {array.name!r} has no shape: an output needs one")
        try:
            theory = LinearArithmetic([self.when])
        except ContradictionError:
            # nothing is ever stored
            return
        for axis, (index, size) in enumerate(zip(self.target.args[1:], array.shape, strict=True)):
            low, high = theory.bounds_of(index)
            if low < 0 or high >= size:
                raise ValueError(
                    f"the index {brief(index)!r} of {brief(self.target)!r} has range {bounds_text(low, high)}, but "
                    f"axis {axis} has extent {size}: narrow the range, or give the store a guard (when=...)"
                )


@dataclass(frozen=True)
class Kernel(Displayed):
    """Stores, done one after the other, as one function.

    Parameters
    ----------
    name : str
        What messages call it, and its C function, where C has such a name.
    stores : sequence of Store
        In the order in which they are done.

    Raises
    ------
    TypeError
        If something else than a :class:`Store` is among the stores.
    ValueError
        If there is no store, a buffer has no shape or two, a name means two things, or an output is also loaded.

    >>> from eqsat import sum_over, var
    >>> a, b, c = buffer("A", "f32", (4, 8)), buffer("B", "f32", (8, 5)), buffer("C", "f32", (4, 5))
    >>> i, j, k = var("i", 0, 3), var("j", 0, 4), var("k", 0, 7)
    >>> matmul = Kernel("matmul", [Store(c[i, j], sum_over(a[i, k] * b[k, j], k, 0, 8), [i, j])])
    >>> [b.name for b in matmul.inputs], [b.name for b in matmul.outputs], matmul.parameters
    (['A', 'B'], ['C'], [])
    """

    name: str
    stores: tuple[Store, ...]

    def __init__(self, name: str, stores: Iterable[Store]) -> None:
        require(name, str, "the name of a kernel")
        if isinstance(stores, Store):
            raise TypeError(f"kernel {name!r} takes a list of stores: give it [Store(...)]")
        require(stores, Iterable, f"the list of stores of kernel {name!r}")
        set_fields(self, name=name, stores=tuple(stores))
        for store in self.stores:
            if not isinstance(store, Store):
                raise TypeError(f"kernel {name!r} takes a list of stores, and {type(store).__name__} is no Store")
        if not self.stores:
            raise ValueError(f"kernel {self.name!r} stores nothing: give it at least one Store")
        self._check_arrays()
        self._check_loops()

    def _repr_html_(self) -> str:
        rows = []
        for store in self.stores:
            over = ", ".join(f"{v} in [{v.vmin}, {v.vmax}]" for v in store.over)
            guard = "" if store.when is TRUE else brief(store.when)
            rows.append([over, guard, f"{brief(store.target)} = {brief(store.value)}"])
        return html_table(["for", "where", "store"], rows, f"kernel {self.name}")

    def _check_arrays(self) -> None:
        """Raise unless each array is either loaded from or stored to, and has a shape and a name of its own."""
        outputs = {b.name for b in self.outputs}
        for array in self.inputs:
            if array.name in outputs:
                raise ValueError(
                    f"kernel {self.name!r} loads from {array.name!r}, which it also stores to: "
                    "load from it in a kernel of its own, to be run afterwards"
                )
            if array.shape is None:
                raise ValueError(f"buffer {array.name!r} has no shape: the arrays of a kernel need one")
        names = [str(v.value) for v in self.variables]
        for array in (*self.inputs, *self.outputs):
            if array.name in names:
                raise ValueError(f"{array.name!r} is both a buffer and a variable of kernel {self.name!r}")

    def _check_loops(self) -> None:
        """Raise if a variable is a loop of one store and a parameter of another."""
        ranged = {v for s in self.stores for v in s.over}
        for store in self.stores:
            for part in (store.target, store.value, store.when):
                refuse_escaped(part, store.over)
            for v in variables([store.target, store.value, store.when]):
                if v in ranged and v not in store.over:
                    raise ValueError(
                        f"{str(v.value)!r} is a parameter of one store of kernel {self.name!r} and a loop of another: "
                        "rename one of them"
                    )

    @cached_property
    def roots(self) -> list[Expr]:
        """Every term of every store."""
        return [t for s in self.stores for t in (*s.target.args[1:], s.value, s.when, *s.over)]

    @cached_property
    def inputs(self) -> list[Buffer]:
        """The arrays that are loaded from, by name."""
        return [cast(Buffer, b.value) for b in buffers(self.roots)]

    @cached_property
    def outputs(self) -> list[Buffer]:
        """The arrays that are stored to, by name."""
        return [cast(Buffer, b.value) for b in buffers([s.target.args[0] for s in self.stores])]

    @cached_property
    def variables(self) -> list[Expr]:
        """All variables but the indices of reductions, by name."""
        return variables(self.roots)

    @property
    def names(self) -> set[str]:
        """The names of its buffers and variables."""
        return {str(v.value) for v in self.variables} | {b.name for b in (*self.inputs, *self.outputs)}

    @cached_property
    def parameters(self) -> list[Expr]:
        """The variables over which no store ranges, by name."""
        ranged = {v for s in self.stores for v in s.over}
        return [v for v in self.variables if v not in ranged]

    @property
    def arguments(self) -> list[str]:
        """The names of what a call is given: the inputs, then the parameters."""
        return [*[b.name for b in self.inputs], *[str(v.value) for v in self.parameters]]

    def reference(self, arrays: Mapping[str, ArrayLike], /, **parameters: int) -> Arrays:
        """The outputs as the expressions' own evaluator computes them; elements that no store reaches are 0.

        Raises
        ------
        TypeError, ValueError
            If an input or a parameter is missing, an input has another shape or another kind of elements, or a
            parameter is out of range.
        ZeroDivisionError
            If an element that is stored, or its place, needs a quotient by zero; the message names it.
        """
        self._check_arguments(arrays, parameters)
        found: Arrays = {
            b.name: np.zeros(cast(tuple[int, ...], b.shape), dtype=DTYPES[b.element]) for b in self.outputs
        }
        for store in self.stores:
            full = tuple([extent(v) for v in store.over])
            values = evaluate(store.where_stored(), {**parameters, **grid(store.over)}, arrays)
            *places, value, when = [np.broadcast_to(x, full) for x in values]
            # a value of f64 that is too large for f32 is infinite there
            with np.errstate(over="ignore"):
                found[store.array.name][tuple([p[when] for p in places])] = value[when]
        return found

    def _check_arguments(self, arrays: Mapping[str, ArrayLike], parameters: Mapping[str, int]) -> None:
        require(arrays, Mapping, f"what the arrays of kernel {self.name!r} hold")
        missing = [b.name for b in self.inputs if b.name not in arrays]
        missing += [str(v.value) for v in self.parameters if v.value not in parameters]
        if missing:
            raise TypeError(f"kernel {self.name!r} lacks {', '.join(missing)}")
        for b in self.inputs:
            given = np.asarray(arrays[b.name])
            if given.shape != b.shape:
                raise ValueError(f"array {b.name!r} has shape {given.shape}, not {b.shape}")
            if not np.can_cast(given.dtype, DTYPES[b.element], "same_kind"):
                raise TypeError(f"array {b.name!r} has elements of type {given.dtype}, not {b.element}: convert it")
        for v in self.parameters:
            name = str(v.value)
            number = integer_of(parameters[name], f"the value of {name!r}")
            if not v.vmin <= number <= v.vmax:
                stated, within = shortened(digits(number), 60), bounds_text(v.vmin, v.vmax)
                raise ValueError(f"variable {name!r} is given {stated}, outside its range {within}")


def refuse_endless(variable: Expr) -> None:
    """Raise ``ValueError`` if no loop can run over all values of a variable."""
    if not is_finite(variable.vmin, variable.vmax):
        raise ValueError(f"the loop over {brief(variable)!r} has no end: give the variable bounds")


def zero_like(term: Expr) -> bool | float:
    """The literal 0 of the kind of ``term``: false, an integer, or a floating-point value."""
    return False if term.is_bool else 0.0 if term.element else 0


def flat_store(store: Store) -> Store:
    """The store with loads and targets in flat arrays, in row-major order."""

    def flat_load(term: Expr, args: tuple[Expr, ...]) -> Expr | None:
        if term.op != "load":
            return None
        array = array_of(term)
        place = args[1]
        for index, size in zip(args[2:], cast(tuple[int, ...], array.shape)[1:], strict=True):
            place = place * size + index
        return make("load", buffer(array.name, array.element, (array.size,)), place)

    target, value, when = rebuild([store.target, store.value, store.when], flat_load)
    return equal_store(store, [target.args[1], value, when], store.over, target.args[0])


def flattened(kernel: Kernel) -> Kernel:
    """The kernel with flat arrays, and otherwise as it is."""
    require(kernel, Kernel, "a kernel")
    return Kernel(kernel.name, map(flat_store, kernel.stores))


def equal_store(store: Store, parts: Sequence[Expr], over: Sequence[Expr], array: Expr | None = None) -> Store:
    """``store`` with other parts and loops, which store the same values at the same places (of ``array`` if given).

    They are not checked again: what was checked of ``store`` holds for them, but their bounds may not show it.
    """
    new = object.__new__(Store)
    place, value, when = parts
    target = make("load", store.target.args[0] if array is None else array, place)
    set_fields(new, target=target, value=value, over=tuple(over), when=when)
    return new


def fresh(name: str, taken: set[str], size: int) -> Expr:
    """A variable with the values from 0 to ``size - 1``, by a name that is not ``taken``, which gains that name."""
    return any_var(free_name(name, taken), 0, size - 1)
