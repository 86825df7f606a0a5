"""Cases of a corpus: JSON objects read into expressions, one object a line.

A case names its variables with inclusive ranges, its roots as text, and what is known (constraints, gates). Some kinds
of case write their roots in another way, and are read into the same: a masked index (``gate``), an access through a
view (``shapetracker``), a term that is unrolled (``expand``). The keys of each are in ``docs/corpora.md``.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any, cast

from eqsat.cli.files import write_whole
from eqsat.interop.views import INVALID, Access, View, split_gate
from eqsat.lang.expr import Expr, bounds_of, buffer, is_name, shortened, var
from eqsat.lang.infinity import is_finite
from eqsat.lang.text import array_names, parse_program, to_program
from eqsat.lang.traversal import names_of, topological
from eqsat.lang.validation import counted, did_you_mean, list_of, shown

Record = Mapping[str, Any]
Gates = list[Expr | None]
Id = str | int | float
#: The longest line that is read, in characters: of an HLO module, say.
MAX_LINE = 10_000_000
#: What to do about an unknown variable; double braces are for ``str.format``.
REMEDY = 'give its range, "vars": {{"{name}": [0, N]}}'
#: What JSON calls the values that it has.
_JSON_NAMES: dict[type, str] = {
    dict: "an object",
    list: "a list",
    str: "a text",
    int: "an integer",
    float: "a number",
    bool: "true or false",
    type(None): "null",
}
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
        ranges = {name: json_ends(term) for name, term in self.variables.items() if term.op == "var"}
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
    lines = Path(source).read_bytes().split(b"\n") if isinstance(source, str | Path) else source
    cases = []
    for number, line in numbered_lines(lines):
        name = f"line {number}"
        try:
            cases.append(case_of(load(line), name))
        except ValueError as error:
            if leave_out is None:
                raise ValueError(f"{name}: {error}") from None
            leave_out(f"{name}: {one_line(error)}")
    return cases


def numbered_lines(lines: Iterable[str | bytes]) -> list[tuple[int, str | bytes]]:
    """The lines of a corpus that are not blank, each with its number."""
    return [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]


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
    if repeated := _repeated(names):
        raise ValueError(f"the name {repeated[0]!r} is given twice among vars, buffers and lets")
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


def load(line: str | bytes) -> dict[str, Any]:
    """The JSON object on one line of a corpus."""
    if not isinstance(line, str | bytes):
        raise TypeError(f"a line of a corpus is given as {shown(line)}: give its text")
    if len(line) > MAX_LINE:
        raise ValueError(f"a line of {len(line)} characters: give at most {MAX_LINE}, in more cases")
    try:
        text = line if isinstance(line, str) else line.decode()
        # some editors begin a file with a mark of its encoding
        record = json.loads(text.removeprefix("\ufeff"), object_pairs_hook=_without_repeats, parse_int=_integer)
    except ValueError as error:
        raise ValueError(f"not a line of JSON: {one_line(error)}") from None
    except RecursionError:
        raise ValueError("not a line of JSON: lists and objects nest too deep") from None
    if not isinstance(record, dict):
        raise ValueError(f"not a case: a JSON object is wanted, not {_json_name(type(record))}")
    return record


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if repeated := _repeated(key for key, _ in pairs):
        raise ValueError(f"the key {repeated[0]!r} is given twice")
    return dict(pairs)


def _integer(digits: str) -> int:
    most = sys.get_int_max_str_digits()
    if 0 < most < len(digits.lstrip("-")):
        raise ValueError(f"a number of {len(digits.lstrip('-'))} digits: give at most {most}")
    return int(digits)


def _repeated(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def id_of(record: Record, name: str) -> Id:
    """The id of a case as it is given, or ``name`` if it has none."""
    if (given := record.get("id")) is None:
        return name
    if isinstance(given, bool) or not isinstance(given, Id):
        raise ValueError(f"'id' must be a text or a number, not {_json_name(type(given))}")
    if isinstance(given, float) and not isfinite(given):
        raise ValueError(f"'id' must be a text or a number, not {given}")
    return given


def one_line(message: object) -> str:
    """``message`` as one line of up to 300 characters."""
    return shortened(" ".join(str(message).split()), 300)


def reason(error: BaseException) -> str:
    """What is wrong with a case, in one line; what is no ``ValueError`` is named by its type too."""
    return one_line(error if isinstance(error, ValueError) else f"{type(error).__name__}: {error}")


def kind_of(record: Record) -> str:
    return cast(str, get(record, "kind", str, "plain"))


def refuse_unknown(kind: str, others: Iterable[str] = ()) -> None:
    """Raise ``ValueError`` unless there are cases of a kind: those that are lists of expressions, and ``others``."""
    known = [*_KINDS, "reduce", *others]
    if kind in known:
        return
    near = did_you_mean(kind, known)
    if others:
        raise ValueError(f"cases of kind {kind!r} are unknown: docs/corpora.md lists the kinds{near}")
    raise ValueError(f"a case of kind {kind!r}: only those of {', '.join(known)} are lists of expressions{near}")


def get(record: Record, key: str, kind: type, default: Any = None) -> Any:
    """The value of ``key``, which must be of type ``kind``; ``null`` is as if it were not there."""
    value = record.get(key)
    value = default if value is None else value
    if value is None:
        raise ValueError(f"the key {key!r} is missing")
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ValueError(f"{key!r} must be {_json_name(kind)}, not {_json_name(type(value))}")
    return value


def _json_name(kind: type) -> str:
    """What JSON calls the values of a type of Python."""
    return _JSON_NAMES.get(kind, f"a {kind.__name__}")


def get_texts(record: Record, key: str, default: Any = None) -> list[str]:
    texts = get(record, key, list, default)
    for text in texts:
        if not isinstance(text, str):
            raise ValueError(f"{key!r} must be a list of texts, not of {_json_name(type(text))}")
    return cast(list[str], texts)


def get_variables(record: Record, default: Any = None) -> dict[str, Expr]:
    return {name: variable(name, bounds) for name, bounds in get(record, "vars", dict, default).items()}


def as_conditions(terms: Sequence[Expr], texts: Sequence[str]) -> list[Expr]:
    """``terms`` if each of them is a condition; ``texts`` are what to call them otherwise."""
    for term, text in zip(terms, texts, strict=True):
        if not term.is_bool:
            raise ValueError(f"the constraint {text!r} is not a condition")
    return list(terms)


def variable(name: str, bounds: Any) -> Expr:
    return var(name, *ends(name, bounds))


def ends(name: str, bounds: Any) -> tuple[int, int]:
    """The two ``bounds`` of a variable in a JSON list, ``null`` for none; the first may be greater."""
    match bounds:
        case [int() | None as low, int() | None as high] if not isinstance(low, bool) and not isinstance(high, bool):
            return bounds_of(name, low, high)
    raise ValueError(f"the range of variable {name!r} must be two integers, not {bounds!r} (null: no bound)")


def json_ends(variable: Expr) -> list[int | None]:
    """The two bounds of a variable as JSON has them: the inverse of :func:`variable`."""
    return [end if is_finite(end) else None for end in (variable.vmin, variable.vmax)]


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
    return [number_text(n, key) for key, numbers in parts.items() for n in numbers]


def number_text(number: Any, key: str) -> str:
    """The text of a number that a case gives at ``key`` as an integer or a text."""
    if isinstance(number, bool) or not isinstance(number, int | str):
        raise ValueError(f"numbers of {key!r} must be integers or texts, not {number!r}")
    return str(number)


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
