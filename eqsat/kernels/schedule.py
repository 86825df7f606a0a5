"""How the loops of a kernel run: the same stores over other loops, before they become C.

:func:`split` gives the digits of a flat index loops of their own, so that its ``//`` and ``%`` disappear;
:func:`arranged` merges loops that run through memory as one, takes the others in the order of the output, and a
transposition in tiles. Both map kernels over flat arrays to equal ones: every element gets the same value by the same
operations, though elements may be stored in another order. Loops of reductions stay as they are, since the order of a
floating-point sum counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby, pairwise

from eqsat.kernels.kernel import Kernel, Store, equal_store, fresh
from eqsat.lang.expr import FALSE, TRUE, Expr, any_var, const, make, rebuild, substitute
from eqsat.lang.ops import DIVISIONS, REDUCTIONS
from eqsat.lang.properties import has_reductions, misfits, outside_addresses
from eqsat.lang.traversal import extent, index_level, topological, variables
from eqsat.lang.validation import require
from eqsat.theory.forms import LinearForm, to_expr
from eqsat.theory.linear import LinearArithmetic

#: Elements per side of a tile of a transposition: this number of rows is in the first-level cache at once.
TILE = 8

#: Elements that are up to this many apart in memory are still read fast along a row; a store whose rows read elements
#: farther apart is tiled.
NEAR = 4


def split(kernel: Kernel) -> Kernel:
    """The kernel with a loop for each digit of a variable that ``//`` and ``%`` take apart; without such, ``kernel``.

    A loop over ``[0, n)`` is split at ``d`` if some quotient or remainder changes its behaviour every ``d`` steps and
    ``d`` divides ``n``. Terms are substituted, not simplified.

    >>> from eqsat.lang.expr import buffer, var
    >>> a, b, k = buffer("A", "f32", (24,)), buffer("B", "f32", (24,)), var("k", 0, 23)
    >>> split(Kernel("turn", [Store(b[k], a[k % 4 * 6 + k // 4], [k])])).stores[0].over
    (Expr('k_1'), Expr('k_0'))
    """
    require(kernel, Kernel, "a kernel")
    taken = kernel.names
    stores: list[Store] = []
    for over, group in groupby(kernel.stores, lambda s: s.over):
        together = list(group)
        terms = [part for s in together for part in s.parts]
        digits = {v: _digits(v, _steps(v, terms), str(v.value), taken) for v in over}
        replacement = {v: _from_digits(parts) for v, parts in digits.items() if len(parts) > 1}
        loops = [digit for v in over for digit, _ in digits[v]]
        stores += [_substituted(s, loops, replacement) if replacement else s for s in together]
    return kernel if stores == [*kernel.stores] else Kernel(kernel.name, tuple(stores))


def arranged(kernel: Kernel) -> Kernel:
    """The kernel with its loops merged, in the order of the output, and transpositions in tiles.

    Stores that share loops keep them, to share what they compute. So do stores that give an element several values, of
    which the last must remain.

    >>> from eqsat.lang.expr import buffer, var
    >>> a, b, i, j = buffer("A", "f32", (512,)), buffer("B", "f32", (512,)), var("i", 0, 15), var("j", 0, 31)
    >>> arranged(Kernel("copy", [Store(b[i*32 + j], a[i*32 + j], [i, j])]))
    Kernel(name='copy', stores=(Store('B[i_j] = A[i_j] for i_j'),))
    """
    require(kernel, Kernel, "a kernel")
    taken = kernel.names
    stores: list[Store] = []
    for together in sharing_loops(kernel.stores):
        if len(together) == 1 and writes_once(together[0]):
            together = _tiled(_merged(_in_output_order(together[0]), taken), taken)
        stores += together
    return Kernel(kernel.name, tuple(stores))


def sharing_loops(stores: Iterable[Store]) -> list[list[Store]]:
    """The stores in order, in groups that may share their loops without changing what the arrays hold at the end.

    Stores of a group range over the same variables. Two that store to one array either store to the same element in
    every iteration, or never to the same element.
    """
    nests: list[list[Store]] = []
    # those of the last nest, by the names of their arrays
    last: dict[str, list[Store]] = {}
    for store in stores:
        own = last.get(store.array.name, [])
        if nests and nests[-1][0].over == store.over and all(_may_take_turns(s, store) for s in own):
            nests[-1].append(store)
        else:
            nests.append([store])
            last = {}
        last.setdefault(store.array.name, []).append(store)
    return nests


def _may_take_turns(first: Store, second: Store) -> bool:
    """Whether two stores to one array may be done in turn in their loops, not all of ``first`` before ``second``."""
    if not first.over:
        return True
    place, other = first.target.args[1], second.target.args[1]
    theory = LinearArithmetic()
    if theory.condition(place.eq(other)) is TRUE:
        # a later iteration could store to the element again what ``second`` then leaves
        return second.when is TRUE or writes_once(first)
    elsewhere = {v: any_var(f"#{v.value}", v.vmin, v.vmax) for v in second.over}
    return theory.condition(place.eq(substitute([other], elsewhere)[0])) is FALSE


def writes_once(store: Store) -> bool:
    """Whether no two iterations store to the same element: each stride is more than all smaller ones reach."""
    form = LinearArithmetic().form(store.target.args[1])
    strides = {v: abs(form.terms.get(v, 0)) for v in store.over if v.vmin < v.vmax}
    rest = LinearForm({a: c for a, c in form.terms.items() if a not in strides}, 0)
    if any(v in set(variables(rest.terms)) for v in strides):
        return False
    reach = 0
    for variable, stride in sorted(strides.items(), key=lambda item: item[1]):
        if stride <= reach:
            return False
        reach += stride * (extent(variable) - 1)
    return True


def _substituted(store: Store, over: Sequence[Expr], replacement: dict[Expr, Expr]) -> Store:
    """The store over other loops, with its old variables replaced, and with linear addresses as plain sums."""
    theory = LinearArithmetic()

    def linear(term: Expr) -> Expr:
        if theory.late_or_raise():
            return term
        form = theory.form(term)
        # the sum of literals may not fit 64 bits where each of them does
        plain = to_expr(form) if form.is_affine() else term
        return term if misfits([plain]) else plain

    return equal_store(store, _readdressed(substitute(store.parts, replacement), linear), over)


def _readdressed(parts: Sequence[Expr], rewrite: Callable[[Expr], Expr]) -> list[Expr]:
    """The parts of a store with every address, that of the store and those of loads, rewritten."""
    place, value, when = rebuild(
        parts, lambda term, args: make("load", args[0], rewrite(args[1])) if term.op == "load" else None
    )
    return [rewrite(place), value, when]


def _steps(variable: Expr, terms: Iterable[Expr]) -> set[int]:
    """The numbers of steps of ``variable`` after which a remainder begins anew, or a quotient grows by one."""
    theory = LinearArithmetic()
    # after how many steps of the variable each term grows by one
    steps = {variable: 1}
    found = set()
    for term in topological(terms):
        if theory.late_or_raise():
            break
        if term.op not in DIVISIONS or term.args[1].op != "const" or term.args[1].vmin < 2:
            continue
        moving = [(steps[a], abs(c)) for a, c in theory.form(term.args[0]).terms.items() if a in steps]
        if len(moving) == 1:
            ((step, stride),) = moving
            divisor = term.args[1].vmin
            if divisor % stride == 0:
                found.add(step * (divisor // stride))
                whole = theory.form(term).single()
                if term.op == "floordiv" and whole is not None:
                    steps[whole] = step * (divisor // stride)
    return found


def _digits(variable: Expr, steps: Iterable[int], stem: str, taken: set[str]) -> list[tuple[Expr, int]]:
    """The digits of a variable and their weights, the most significant first: ``steps`` that divide one another."""
    if variable.vmin != 0:
        return [(variable, 1)]
    weights = [1]
    for step in sorted(steps):
        if step > weights[-1] and step % weights[-1] == 0 and extent(variable) % step == 0 and step < extent(variable):
            weights.append(step)
    if len(weights) == 1:
        return [(variable, 1)]
    sizes = [high // low for low, high in pairwise([*weights, extent(variable)])]
    places = list(enumerate(zip(sizes, weights, strict=True)))[::-1]
    return [(fresh(f"{stem}_{n}", taken, size), weight) for n, (size, weight) in places]


def in_digits(stores: Sequence[Store]) -> tuple[list[Store], dict[Expr, list[Expr]]]:
    """The stores with the digits of an index in its place, and the loops of each such index, outermost first.

    That is done for the indices of floating-point sums and products from 0 to a literal, whose values are still taken
    in the same order, unless integers are reduced over the same index; other reductions may nest instead
    (:func:`eqsat.kernels.ranges.in_cheapest_ranges`).
    """
    if not (digits := _digits_of_indices(stores)):
        return [*stores], {}
    images = {index: _from_digits(own) for index, own in digits.items()}
    theory = LinearArithmetic()

    def apart(term: Expr, args: tuple[Expr, ...]) -> Expr | None:
        if term.op in REDUCTIONS:
            return make(term.op, args[0], term.args[1], *args[2:])
        if term.op == "load" and args[1] is not term.args[1]:
            return make("load", args[0], theory.simplify(args[1]))
        if term.op == "fwhere" and args[0] is not term.args[0]:
            return make("fwhere", theory.condition(args[0]), *args[1:])
        return images.get(term)

    found = [equal_store(s, [s.parts[0], *rebuild(s.parts[1:], apart)], s.over) for s in stores]
    if misfits([part for s in found for part in s.parts]):
        # a normal form may not fit 64 bits where the given term does
        return [*stores], {}
    return found, {index: [digit for digit, _ in own] for index, own in digits.items()}


def _digits_of_indices(stores: Sequence[Store]) -> dict[Expr, list[tuple[Expr, int]]]:
    """The digits, with their weights, of the indices of reductions that :func:`in_digits` takes apart."""
    reductions: dict[Expr, list[Expr]] = {}
    for term in topological([part for s in stores for part in s.parts]):
        if term.op in REDUCTIONS:
            reductions.setdefault(term.args[1], []).append(term)
    found: dict[Expr, list[tuple[Expr, int]]] = {}
    for index, own in reductions.items():
        in_order = any(t.op in ("fsum_over", "fprod_over") for t in own)
        # to linear arithmetic a sum of integers whose body has digits for its index would be a sum of equal steps
        if not in_order or not all(t.element for t in own):
            continue
        if {t.args[2:] for t in own} != {(const(0), const(extent(index)))}:
            continue
        # names that no variable of a kernel can have
        digits = _digits(index, _steps(index, [t.args[0] for t in own]), f"$r{index_level(index)}", set())
        if len(digits) > 1:
            found[index] = digits
    return found


def _from_digits(digits: Sequence[tuple[Expr, int]]) -> Expr:
    """The number that has these digits, which are given with their weights."""
    return sum([digit * weight for digit, weight in digits], const(0))


def _addresses(store: Store) -> tuple[list[LinearForm], set[Expr]]:
    """The addresses of a store as linear forms, the target's first; and the variables that are used outside of them."""
    theory = LinearArithmetic()
    loads = [t for t in topological([store.value, store.when]) if t.op == "load"]
    forms = [theory.form(t.args[1]) for t in (store.target, *loads)]
    atoms = variables([a for f in forms for a in f.terms if a.op != "var"])
    return forms, {*atoms, *[t for t in outside_addresses([store.value, store.when]) if t.op == "var"]}


def _in_output_order(store: Store) -> Store:
    """The store with its loops in the order of their strides in the output, the largest outermost."""
    if has_reductions([store.value, store.when]):
        # one might run more often in another order
        return store
    form = LinearArithmetic().form(store.target.args[1])
    over = sorted(store.over, key=lambda v: -abs(form.terms.get(v, 0)))
    return equal_store(store, store.parts, over)


def _merged(store: Store, taken: set[str]) -> Store:
    """The store with two adjacent loops as one wherever every address runs on from the end of a row to the next row."""
    place, form = 0, LinearArithmetic().form
    while place + 1 < len(store.over):
        outer, inner = store.over[place : place + 2]
        forms, elsewhere = _addresses(store)
        goes_on = all(f.terms.get(outer, 0) == f.terms.get(inner, 0) * extent(inner) for f in forms)
        if goes_on and outer.vmin == inner.vmin == 0 and not {outer, inner} & elsewhere:
            name = _name_of_both(str(outer.value), str(inner.value))
            both = fresh(name, taken, extent(outer) * extent(inner))
            over = [*store.over[:place], both, *store.over[place + 2 :]]
            # as sums, since some addresses are sums only within the ranges of the loops that go
            parts = _readdressed(store.parts, lambda address: to_expr(form(address)))
            if misfits(parts):
                return store
            store = _substituted(equal_store(store, parts, store.over), over, {outer: const(0), inner: both})
            # the new loop may merge with the one around it
            place = max(0, place - 1)
        else:
            place += 1
    return store


def _name_of_both(outer: str, inner: str) -> str:
    """``k_21`` for the digits ``k_2`` and ``k_1``, else both names."""
    outer_stem, _, digits = outer.rpartition("_")
    inner_stem, _, digit = inner.rpartition("_")
    return f"{outer}{digit}" if outer_stem == inner_stem and (digits + digit).isdigit() else f"{outer}_{inner}"


def _tiled(store: Store, taken: set[str]) -> list[Store]:
    """The store in square tiles if it goes along the rows of its output but the columns of an input, and the rest."""
    if not (tiled := _column_and_row(store)):
        return [store]
    rest = []
    nests = []
    for v in tiled:
        tiles = extent(v) // TILE
        if tiles * TILE < extent(v):
            uncovered = fresh(f"{v.value}_rest", taken, extent(v) - tiles * TILE)
            rest.append(_with_loop_replaced(store, v, [uncovered], uncovered + tiles * TILE))
        # tiles in blocks, so that few pages of memory are in use at a time
        together = max(n for n in range(1, TILE + 1) if tiles % n == 0)
        sizes = {"block": tiles // together, "tile": together, "in": TILE}
        nest = [fresh(f"{v.value}_{part}", taken, size) if size > 1 else const(0) for part, size in sizes.items()]
        loops = [loop for loop in nest if loop.op == "var"]
        store = _with_loop_replaced(store, v, loops, (nest[0] * together + nest[1]) * TILE + nest[2])
        nests.append(nest)
    columns, rows = nests
    # within a tile the input goes along its rows
    inner = [columns[0], rows[0], columns[1], rows[1], rows[2], columns[2]]
    over = [*[v for v in store.over if v not in inner], *[v for v in inner if v.op == "var"]]
    return [equal_store(store, store.parts, over), *rest]


def _column_and_row(store: Store) -> list[Expr]:
    """The two loops that a store is tiled along, if the innermost loop runs down the columns of an input; else none."""
    if has_reductions([store.value, store.when]) or len(store.over) < 2:
        return []
    row = store.over[-1]
    far = [f for f in _addresses(store)[0][1:] if abs(f.terms.get(row, 0)) > NEAR]
    columns = [v for v in store.over[:-1] if any(abs(f.terms.get(v, 0)) == 1 for f in far)]
    loops = [*columns[:1], row]
    return loops if columns and all(extent(v) >= TILE and not v.vmin for v in loops) else []


def _with_loop_replaced(store: Store, variable: Expr, loops: Sequence[Expr], value: Expr) -> Store:
    """The store with other loops in the place of that over ``variable``, which has a ``value`` in their terms."""
    place = store.over.index(variable)
    over = [*store.over[:place], *loops, *store.over[place + 1 :]]
    return _substituted(store, over, {variable: value})
