"""Cases of a corpus: JSON objects read into expressions, one object a line.

A case names its variables with inclusive ranges, its roots as text, and what is known (constraints, gates). Some kinds
of case write their roots in another way, and are read into the same: a masked index (``gate``), an access through a
view (``shapetracker``), a term that is unrolled (``expand``). The keys of each are in ``docs/corpora.md``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eqsat.cli import records
from eqsat.cli.files import content_of_file, write_whole
from eqsat.cli.records import REMEDY, Id, Record, get, get_texts, get_variables, id_of, kind_of, load
from eqsat.interop.views import INVALID, Access, View, split_gate
from eqsat.lang.expr import Expr, buffer, is_name
from eqsat.lang.text import array_names, parse_program, to_program
from eqsat.lang.traversal import names_of, topological
from eqsat.lang.validation import counted, did_you_mean, list_of, shown

Gates = list[Expr | None]
#: Called for each case that is left out, with one line that says which and why.
LeaveOut = Callable[[str], object]


@dataclass(frozen=True)
class Case:
    """One case of a corpus.

    Attributes
    ----------
    id : str or number
        Its name in rows and messages.
    variables : dict
        Name to variable.
    lets : list of (str, str)
        Named subterms, in order; ``exprs``, ``constraints`` and gates use them.
    exprs, constraints : list of Expr
        The roots, and the conditions known to hold.
    gates : list of (Expr or None)
        Per root the condition under which its value matters; empty if there are none.
    expected, forbidden : list of (str or None)
        Per root what the source expects, and what must not be produced.
    tags : list of str
        What it is about, for tests.

    >>> read_case('{"id": "a", "vars": {"i": [0, 31]}, "exprs": ["i*8 // 8"]}').variables
    {'i': Expr('i')}
    """

    id: Id
    variables: dict[str, Expr]
    lets: list[tuple[str, str]]
    exprs: list[Expr]
    constraints: list[Expr] = field(default_factory=list)
    gates: list[Expr | None] = field(default_factory=list)
    expected: list[str | None] = field(default_factory=list)
    forbidden: list[str | None] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)

    def parse(self, text: str) -> Expr:
        """The expression in ``text``, in the names of this case."""
        return parse_program(self.lets, [text], self.variables)[0]

    def record(self) -> dict[str, Any]:
        """The case as a JSON object, one of kind ``plain`` whatever it was read from; gates become further roots.

        The names of ``lets`` are new; what ``expected`` and ``forbidden`` may mention is kept beside them.

        Raises
        ------
        ValueError
            If an array is another than cases have: of ``i32``, without a shape.
        """
        for name, term in self.variables.items():
            if term.op == "buffer" and term is not buffer(name):
                raise ValueError(f"the array {name!r} cannot be written: those of cases hold i32 and have no shape")
        gates = [gate for gate in dict.fromkeys(self.gates) if gate is not None]
        further = [gate for gate in gates if gate not in self.exprs]
        roots = [*self.exprs, *further]
        lets, texts = to_program([*roots, *self.constraints], [*self.variables, *[name for name, _ in self.lets]])
        if self.expected or self.forbidden:
            lets = [*self.lets, *lets]
        index = {root: place for place, root in enumerate(roots)}
        places = [None if gate is None else index[gate] for gate in self.gates] + [None] * len(further)
        given = {
            "lets": [list(pair) for pair in lets],
            "constraints": texts[len(roots) :],
            "gates": places if gates else [],
            "buffers": [name for name, term in self.variables.items() if term.op == "buffer"],
            **{key: getattr(self, key) for key in ("expected", "forbidden", "tags")},
        }
        ranges = {name: records.json_ends(term) for name, term in self.variables.items() if term.op == "var"}
        first = {"id": self.id, "vars": ranges, "exprs": texts[: len(roots)]}
        return first | {key: value for key, value in given.items() if value}


def read_case(line: str | bytes) -> Case:
    """The case that one line of a corpus holds.

    Parameters
    ----------
    line : str or bytes
        A JSON object.

    Raises
    ------
    ValueError
        If it is not a case: half-written JSON, missing keys, an empty range, a syntax error; one line that says what.

    >>> case = read_case('{"id": "a", "vars": {"i": [0, 31]}, "exprs": ["i*8 // 8"]}')
    >>> case.id, case.exprs
    ('a', [Expr('i*8//8')])
    """
    return case_of(load(line))


def read_corpus(source: str | Path | Iterable[str | bytes], leave_out: LeaveOut | None = None) -> list[Case]:
    """The cases of a corpus, in order; blank lines are skipped, and cases without an id are called after their lines.

    Parameters
    ----------
    source : str, Path or iterable of lines
        A file of JSON lines, or its lines.
    leave_out : callable, optional
        Takes one line for each case that cannot be read, which says which and why; without it the first is an error.

    Raises
    ------
    ValueError
        If a line is no case, or one of a kind that is no list of expressions (``docs/corpora.md``); the message names
        it.
    OSError
        If the file cannot be read.

    >>> cases = read_corpus(['{"vars": {"i": [0, 31]}, "exprs": ["i*8//8", "i%4"]}', "{}"], leave_out=print)
    line 2: the key 'exprs' is missing
    >>> [case.id for case in cases if any(root.op == "mod" for root in case.exprs)]
    ['line 1']
    """
    if not isinstance(source, str | Path | Iterable):
        raise TypeError(f"a corpus is given as {shown(source)}: give a file, or a list of lines")
    lines = content_of_file(Path(source)).split(b"\n") if isinstance(source, str | Path) else source
    cases = []
    for number, line in records.numbered_lines(lines):
        name = f"line {number}"
        try:
            cases.append(case_of(load(line), name))
        except ValueError as error:
            if leave_out is None:
                raise ValueError(f"{name}: {error}") from None
            leave_out(f"{name}: {records.one_line(error)}")
    return cases


def write_corpus(cases: Iterable[Case], path: str | Path) -> None:
    """Write cases as a corpus that :func:`read_corpus` and ``eqsat corpus`` read, one a line.

    Parameters
    ----------
    cases : iterable of Case
        Its cases.
    path : str or Path
        The file.

    Raises
    ------
    OSError
        If it cannot be written.

    >>> from tempfile import TemporaryDirectory
    >>> from eqsat import var
    >>> i = var("i", 0, 31)
    >>> with TemporaryDirectory() as folder:
    ...     write_corpus([case([i*8 // 8], id="one")], f"{folder}/mine.jsonl")
    ...     read_corpus(f"{folder}/mine.jsonl")[0].exprs
    [Expr('i*8//8')]
    """
    write_whole(Path(path), "".join([json.dumps(case.record()) + "\n" for case in list_of(Case, cases, "the cases")]))


def case(exprs: Iterable[Expr], *, id: Id, constraints: Iterable[Expr] = (), gates: Iterable[Expr | None] = ()) -> Case:
    """A case of terms.

    Parameters
    ----------
    exprs : iterable of Expr
        Its roots.
    id : str or number
        What it is called.
    constraints : iterable of Expr
        The conditions known to hold.
    gates : iterable of (Expr or None)
        Per root the condition under which its value matters; empty for none.

    >>> from eqsat import var
    >>> case([var("i", 0, 31) * 8 // 8], id="one").record()
    {'id': 'one', 'vars': {'i': [0, 31]}, 'exprs': ['i*8//8']}
    """
    roots, known, gates = list_of(Expr, exprs, "the roots"), list_of(Expr, constraints, "the constraints"), [*gates]
    terms = [*roots, *known, *list_of(Expr, [gate for gate in gates if gate is not None], "the gates")]
    return Case(id, names_of(terms), [], [*roots], [*known], gates)


def case_of(record: Record, name: str = "") -> Case:
    """The case that a JSON object holds, called ``name`` if it has no id; see :func:`read_case`."""
    kind = kind_of(record)
    refuse_unknown(kind)
    if kind == "reduce":
        kind, record = "plain", _reduction(record)
    texts_of, roots_of = _KINDS[kind]
    texts, conditions = texts_of(record), get_texts(record, "constraints", [])
    variables, arrays = get_variables(record), get_texts(record, "buffers", [])
    lets = [_let(pair) for pair in get(record, "lets", list, [])]
    names = [*variables, *arrays, *[name for name, _ in lets]]
    if twice := records.repeated(names):
        raise ValueError(f"the name {twice[0]!r} is given twice among vars, buffers and lets")
    if kind == "gate" and "INVALID" in names:
        raise ValueError("'INVALID' is the index of an access that does not happen: rename the variable")
    variables |= {name: buffer(name) for name in arrays}
    known = variables | {"INVALID": INVALID} if kind == "gate" else variables
    terms = parse_program(lets, [*texts, *conditions], known, REMEDY)
    exprs, gates = roots_of(record, terms[: len(texts)], variables)
    constraints = as_conditions(terms[len(texts) :], conditions)
    remarks = {key: get(record, key, list, []) for key in ("expected", "forbidden", "tags")}
    return Case(id_of(record, name), variables, lets, exprs, constraints, gates, **remarks)


def _reduction(record: Record) -> Record:
    """A case of kind "reduce" as one of roots; its functions, as in ``f(r)``, are loads of unknown buffers."""
    texts = [get(record, key, str) for key in ("before", "after") if key == "before" or record.get(key) is not None]
    forbidden = [get(record, "forbidden", str)] if record.get("forbidden") is not None else []
    names = array_names([*texts, *forbidden])
    return {**record, "exprs": texts[:1], "expected": texts[1:], "forbidden": forbidden, "buffers": names}


def refuse_unknown(kind: str, others: Iterable[str] = ()) -> None:
    """Raise ``ValueError`` unless there are cases of a kind: those that are lists of expressions, and ``others``."""
    known = [*_KINDS, "reduce", *others]
    if kind in known:
        return
    near = did_you_mean(kind, known)
    if others:
        raise ValueError(f"cases of kind {kind!r} are unknown: docs/corpora.md lists the kinds{near}")
    raise ValueError(f"a case of kind {kind!r}: only those of {', '.join(known)} are lists of expressions{near}")


def as_conditions(terms: Sequence[Expr], texts: Sequence[str]) -> list[Expr]:
    """``terms`` if each of them is a condition; ``texts`` are what to call them otherwise."""
    for term, text in zip(terms, texts, strict=True):
        if not term.is_bool:
            raise ValueError(f"the constraint {text!r} is not a condition")
    return list(terms)


def _let(pair: Any) -> tuple[str, str]:
    match pair:
        case [str(name), str(text)]:
            if not is_name(name):
                raise ValueError(f"{name!r} is no name for one of 'lets': use letters, digits and underscores")
            return name, text
    raise ValueError(f"each of 'lets' must be a name and a text, not {str(pair)[:60]!r}")


def _gates(record: Record, exprs: list[Expr]) -> Gates:
    gates: Gates = []
    for index in get(record, "gates", list, []):
        if index is not None and (type(index) is not int or not 0 <= index < len(exprs)):
            raise ValueError(f"the gate {index!r} is not the index of one of the {len(exprs)} roots")
        gate = None if index is None else exprs[index]
        if gate is not None and not gate.is_bool:
            raise ValueError(f"the gate {index} is root {str(gate)[:60]!r}, which is not a condition")
        gates.append(gate)
    if gates and len(gates) != len(exprs):
        raise ValueError(
            f"{counted(len(gates), 'gate')} for {counted(len(exprs), 'root')}: give one, or null, for each"
        )
    return gates


def _plain_texts(record: Record) -> list[str]:
    if not (texts := get_texts(record, "exprs")):
        raise ValueError("'exprs' is empty: give at least one root")
    return texts


def _access(access: Access) -> tuple[list[Expr], Gates]:
    """A masked index as two roots: the index, gated by the condition, and the condition."""
    return [access.index, access.valid], [access.valid, None]


def _view_texts(record: Record) -> list[str]:
    limits: list[Any] = []
    for pair in get(record, "mask", list, []):
        if not isinstance(pair, list) or len(pair) != 2:
            raise ValueError(f"each of 'mask' must be a low and a high index, not {pair!r}")
        limits += pair
    shape, strides = [get(record, key, list) for key in ("shape", "strides")]
    parts = {"offset": [get(record, "offset", object, 0)], "shape": shape, "strides": strides, "mask": limits}
    return [records.number_text(n, key) for key, numbers in parts.items() for n in numbers]


def _viewed(record: Record, terms: list[Expr], variables: dict[str, Expr]) -> tuple[list[Expr], Gates]:
    """An access through a view; its indices are the variables, in order, that the view itself does not mention."""
    for term in terms:
        if term.is_bool or term.element:
            raise ValueError(f"the part {str(term)[:60]!r} of a view must be an integer")
    offset, *parts = terms
    sizes = [len(record["shape"]), len(record["strides"])]
    shape, strides, limits = parts[: sizes[0]], parts[sizes[0] : sum(sizes)], parts[sum(sizes) :]
    mask = list(zip(limits[::2], limits[1::2], strict=True)) if limits else None
    mentioned = set(topological(terms))
    indices = [v for v in variables.values() if v not in mentioned]
    return _access(View(shape, strides, offset, mask).access(indices[: len(shape)]))


def _unrolled(record: Record, terms: list[Expr], variables: dict[str, Expr]) -> tuple[list[Expr], Gates]:
    """One root for each combination of values of the variables that ``unroll`` names."""
    names = get_texts(record, "unroll", [])
    for name in names:
        if name not in variables:
            raise ValueError(f"the variable {name!r} of 'unroll' has no range in 'vars'")
    from eqsat.codegen.loops import expand

    return expand(terms[0], [variables[name] for name in names]), []


_Texts = Callable[[Record], list[str]]
_Roots = Callable[[Record, list[Expr], dict[str, Expr]], tuple[list[Expr], Gates]]

#: How cases of a kind are read: their texts, and the roots and gates that the terms of these are.
_KINDS: Mapping[str, tuple[_Texts, _Roots]] = {
    "plain": (_plain_texts, lambda record, terms, _: (terms, _gates(record, terms))),
    "gate": (lambda record: [get(record, "before", str)], lambda _, terms, __: _access(split_gate(terms[0]))),
    "shapetracker": (_view_texts, _viewed),
    "expand": (lambda record: [get(record, "expr", str)], _unrolled),
}
