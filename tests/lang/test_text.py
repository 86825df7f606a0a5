"""The text form: what is read, what is printed, and that one undoes the other."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from strategies import expressions

from eqsat.extract.graph import reached
from eqsat.lang.expr import Expr, buffer, const, from_rows, to_rows, var
from eqsat.lang.functions import maximum, minimum, sum_over, tdiv, where
from eqsat.lang.text import parse, parse_program, to_program, to_text
from eqsat.lang.traversal import term_count

NAMES = {name: var(name, -8, 8) for name in ("i", "j", "k", "größe", "if")} | {"n": var("n", 1, 9)}

PRINTED = [
    # given, printed
    ("(i)", "i"),
    ("i+j*k", "i + j*k"),
    ("(i+j)*k", "(i + j)*k"),
    ("i - (j - k)", "i - (j - k)"),
    ("i - j - k", "i - j - k"),
    ("i*(j*k)", "i*(j*k)"),
    ("i//n%3", "i//n%3"),
    ("i//(n%3+1)", "i//(n%3 + 1)"),
    ("-i*3", "-i*3"),
    ("-(i*3)", "-(i*3)"),
    ("- 3", "-3"),
    ("i - -3", "i - -3"),
    ("1_000", "1000"),
    ("i > j", "j < i"),
    ("i >= j", "j <= i"),
    ("0 <= i < n", "0 <= i and i < n"),
    ("i < j or i < k and not i == 3", "i < j or i < k and not i == 3"),
    ("(i < j or i < k) and True", "(i < j or i < k) and True"),
    ("min(i, j, k)", "min(i, min(j, k))"),
    ("where(i < j, i, min(j, 3))", "where(i < j, i, min(j, 3))"),
    ("tdiv(i, 2) + tmod(i, 2)", "tdiv(i, 2) + tmod(i, 2)"),
    ("i << 2", "i << 2"),
    ("shr(i, n)", "i >> n"),
    ("i >> n << 1", "i >> n << 1"),
    ("i >> (n << 1)", "i >> (n << 1)"),
    ("i + 1 << 2", "i + 1 << 2"),
    ("(i << 2) + 1", "(i << 2) + 1"),
    ("i | j ^ k & n << 1", "i | j ^ k & n << 1"),
    ("((i | j) ^ k) & n", "((i | j) ^ k) & n"),
    ("i & (j & k)", "i & (j & k)"),
    ("i & 7 == 3", "i & 7 == 3"),
    ("i & (7 == n)", "i & where(7 == n, 1, 0)"),
    ("~i & 0b111", "-1 - i & 7"),
    ("~-5 ^ 0x1F", "4 ^ 31"),
    ("-i ^ -1", "-i ^ -1"),
    ("0xFFFF_FFFF & i", "4294967295 & i"),
    ("(i < j) & (i < k) | ~(i < n)", "i < j and i < k or not i < n"),
    ("(i < j) ^ (i < k)", "(i < j) != (i < k)"),
    ("(i < j) + 1", "where(i < j, 1, 0) + 1"),
    ("größe//2 + if", "größe//2 + if"),
    ("+i - +(j)", "i - j"),
    ("0x10 + i", "16 + i"),
    ("0o17 + 00 + i", "15 + 0 + i"),
    ("abs(i - 3)", "max(i - 3, -(i - 3))"),
    ("ceildiv(i + j, n)", "-(-(i + j)//n)"),
    ("i if i < j else j", "where(i < j, i, j)"),
    ("i + 1 if not i < j or k < 0 else j*2", "where(not i < j or k < 0, i + 1, j*2)"),
    ("i if i < j else j if j < k else k", "where(i < j, i, where(j < k, j, k))"),
    ("min(i if i < j else j, (k if k < 0 else 0) + 1)", "min(where(i < j, i, j), where(k < 0, k, 0) + 1)"),
    ("if if if < i else i", "where(if < i, if, i)"),
    ("sum(r if r < n else 0, r, 0, 9)", "sum(where(r1 < n, r1, 0), r1, 0, 9)"),
    ("sum_over(prod_over(r + s, s, 0, 2), r, 0, 9)", "sum(prod(r2 + r1, r1, 0, 2), r2, 0, 9)"),
]


@pytest.mark.parametrize(("given_text", "printed"), PRINTED)
def test_printed(given_text, printed):
    term = parse(given_text, NAMES)
    assert str(term) == printed
    assert parse(printed, NAMES) is term


#: Floating-point values: printed as they are read, but for the digits that a type has.
ARRAYS = {n: buffer(n, e, (4,)) for n, e in (("F", "f32"), ("D", "f64"), ("N", "i32"))}
FLOATS = [
    ("D[i] * 0.1", "D[i]*0.1"),
    ("D[i] == 1e-50", "D[i] == 1e-50"),
    ("0.1 * F[i]", "0.10000000149011612*F[i]"),
    ("F[i] * inf()", "F[i]*inf()"),
    ("D[i] - -inf()", "D[i] - -inf()"),
    ("min(-inf(), D[inf])", "min(-inf(), D[inf])"),
    ("F[i] != nan()", "F[i] != nan()"),
    ("F[i] * -(0.5)", "F[i]*-(0.5)"),
    ("F[i] * -0.5", "F[i]*-0.5"),
    ("D[i] + N[i]", "D[i] + to_double(N[i])"),
    ("D[i] + to_float(N[i])", "D[i] + to_float(N[i])"),
    ("F[i] * i", "F[i]*to_float(i)"),
    ("D[i] * +0.1", "D[i]*0.1"),
]


@pytest.mark.parametrize(("given_text", "printed"), FLOATS)
def test_floating_point_values_are_printed(given_text, printed):
    names = NAMES | ARRAYS | {"inf": var("inf", 0, 3), "nan": buffer("nan", "f32", (4,))}
    term = parse(given_text, names)
    assert str(term) == printed
    assert parse(printed, names) is term


REFUSED = [
    ("", "an operand is missing"),
    ("i +", "an operand is missing"),
    ("i j", "an operator is missing before 'j'"),
    ("(i", "a closing bracket is missing"),
    ("i)", "unexpected ')'"),
    ("i +* j", "unexpected '*'"),
    ("i ** j", "the exponent 'j' is not a number from 0 to 1000"),
    ("i / 2", "/ divides floating-point values, and 'i' is an integer: use // for whole quotients, or write to_float"),
    ("1.5 + i", "1.5 is a floating-point value, and 'i' is an integer: write to_float(...) around it"),
    ("sqrt(i)", "sqrt takes a floating-point value, and 'i' is an integer: write to_float(...) around it"),
    ("i = 3", "unexpected '=': write == at column 3"),
    ("i ≤ 3", "unexpected '≤': write <="),
    ("i mod 3", "unexpected 'mod': write %"),
    ("i ceildiv 3", "unexpected 'ceildiv': write ceildiv(x, y)"),
    ("i <> 3", "unexpected '<>': write !="),
    ("select(i < 3, i, 3)", "unknown function 'select': write where"),
    ("FloorDiv(i, 3)", "unknown function 'FloorDiv': write x//y"),
    ("i floordiv 3", "unexpected 'floordiv': write //"),
    ("i[3]", "unexpected '[': only arrays are indexed, and 'i' is none"),
    ("010 + i", "the number '010' begins with 0, as octal ones do in C: write 0o7 or 7"),
    ("i, j", "unexpected ','"),
    ("min(i)", "min takes 2 arguments, not 1"),
    ("where(i < j, i)", "where takes 3 arguments, not 2"),
    ("expo(i)", "unknown function 'expo'"),
    ("q + 1", "unknown variable 'q'"),
    ("i // 0", "division by zero"),
    ("i and j", "needs a condition"),
    ("i << 70", "shift amount"),
    ("i ? j", "unexpected '?': write a if c else b"),
    ("i < 3 && j < 2", "unexpected '&&': write and"),
    ("i < 3 || j < 2", "unexpected '||': write or"),
    ("!(i < 3)", "unexpected '!': write not"),
    ("i & & j", "unexpected '&'"),
    ("min(i, j", "a closing bracket is missing"),
    ("(", "an operand is missing"),
    ("()", "unexpected ')'"),
    ("2i", "an operator is missing before 'i'"),
    ("lambda: 1", "unexpected ':'"),
    ("__import__('os')", "unexpected"),
    ("1" * 5000, "...': a number of 5000 digits is too long at column 1"),
    ("i + 1_", "cannot parse 'i + 1_': misplaced '_' in the number '1_' at column 5"),
    ("1_.5", "misplaced '_' in the number '1_.5' at column 1"),
    ("i*-1__0", "misplaced '_' in the number '1__0' at column 4"),
    ("1" + "_" * 5000, "misplaced '_' in the number '1____"),
    ("1e999", "cannot parse '1e999': the number '1e999' is too large at column 1"),
    ("i < -1" + "0" * 400 + ".5", "the number '1000"),
    ("F[i]*1e50", "cannot parse 'F[i]*1e50': the literal 1e+50 is too large for f32, at column 10"),
    ("D[i]*10**400", "an integer of 1329 bits is too large for f64"),
    ("inf + 1", "unknown variable 'inf'"),
    ("i if i < j", "an else is missing"),
    ("(i if i < j)", "unexpected ')'"),
    ("i else j", "unexpected 'else'"),
    ("i if j if k < 0 else i else k", "unexpected 'else'"),
    ("abs(i, j)", "abs takes 1 argument, not 2"),
    ("ceildiv(i, 0)", "division by zero"),
    ("i if i + 1 else j", "needs a condition"),
    ("2inf()", "an operator is missing before 'inf()'"),
    ("sum(i, not, 0, 4)", "cannot parse 'sum(i, not, 0, 4)': 'not' is not a variable name"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_refused_with_one_line(text, message):
    with pytest.raises(ValueError, match=r".") as caught:
        parse(text, NAMES | ARRAYS)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


@given(expressions())
def test_parsing_undoes_printing(drawn):
    term, inputs = drawn
    assert parse(to_text(term), {v.value: v for v in inputs}) is term


@given(expressions())
def test_a_program_undoes_into_the_same_terms(drawn):
    term, inputs = drawn
    lets, texts = to_program([term, *term.args])
    assert parse_program(lets, texts, {v.value: v for v in inputs}) == [term, *term.args]


@given(expressions())
def test_rows_undo_into_the_same_term(drawn):
    assert from_rows(to_rows(drawn[0])) is drawn[0]


def test_a_name_in_another_form_of_its_letters():
    # Python reads the micro sign, which is on keyboards, as the Greek letter in names of arguments, not in texts
    micro, greek = "\N{MICRO SIGN}", "\N{GREEK SMALL LETTER MU}"
    assert parse(f"{micro} + 1", {greek: var(greek, 0, 9)}) == var(greek, 0, 9) + 1
    assert parse(micro, {micro: var(micro, 0, 9)}) == var(micro, 0, 9)


def test_a_name_that_means_no_term_is_refused():
    with pytest.raises(TypeError, match=r"^the name 'i' means \(0, 7\): give it a term"):
        parse("i + 1", {"i": (0, 7)})


def test_shared_subterms_are_named_once():
    i = NAMES["i"]
    term: Expr = i
    for _ in range(60):
        term = (term + term) % 97 + term
    lets, texts = to_program([term])
    assert sum(len(text) for _, text in lets) < 2000
    assert parse_program(lets, texts, NAMES) == [term]


def test_a_root_that_another_root_uses_is_named_too():
    quotient = NAMES["i"] // 3
    assert to_program([quotient, quotient * 2]) == ([("t0", "i//3")], ["t0", "t0*2"])
    assert to_program([quotient]) == ([], ["i//3"])


def test_what_is_nested_deep_is_cut_into_terms_that_are_not() -> None:
    term = NAMES["i"]
    for _ in range(500):
        term = (term + 1) % 97
    lets, texts = to_program([term])
    assert max(text.count("(") for text in [*texts, *dict(lets).values()]) < 50
    assert parse_program(lets, texts, NAMES) == [term]


def test_let_names_avoid_variables():
    t0 = var("t0", 0, 9)
    lets, _ = to_program([(t0 + 1) * (t0 + 1)])
    assert lets == [("t1", "t0 + 1")]


def test_an_index_is_no_variable_of_a_named_term():
    # both have the name r1 and the range [0, 7]
    r1, i = var("r1", 0, 7), var("i", 0, 7)
    shared = (r1 + 1) * (r1 + 3)
    roots = [sum_over(shared * i, i, 0, 8), shared * 3]
    lets, texts = to_program(roots)
    assert (lets, texts) == ([("t0", "(r1 + 1)*(r1 + 3)")], ["sum(t0*r1, r1, 0, 8)", "t0*3"])
    assert parse_program(lets, texts, {"r1": r1}) == roots
    assert parse("sum(t, r1, 0, 8)", {"t": r1}) == sum_over(r1, i, 0, 8)


def test_a_brief_text_of_a_huge_term_is_cheap():
    i = NAMES["i"]
    term = i
    for _ in range(200):
        term = term + term
    assert len(to_text(term, most=100)) < 1000


@pytest.mark.parametrize("template", ["({})", "-{}", "({} + 1)", "min({}, 3)", "not ({})"])
def test_five_thousand_levels(template):
    head, tail = template.split("{}")
    inner = "i < 3" if template.startswith("not") else "i"
    term = parse(head * 5000 + inner + tail * 5000, NAMES)
    lets, texts = to_program([term])
    assert parse_program(lets, texts, NAMES) == [term]


def test_five_thousand_lets():
    lets = [("t0", "i + 1")] + [(f"t{n}", f"t{n - 1}//2 + {n % 7}") for n in range(1, 5000)]
    (term,) = parse_program(lets, ["t4999"], NAMES)
    assert term_count([term]) > 5000


def test_names_are_looked_up_not_copied():
    # copies for each text of a program took time that grew with the square of its length
    class Names(Mapping):
        def __getitem__(self, name):
            return NAMES[name]

        def __iter__(self):
            pytest.fail("copied")

        __len__ = __iter__

    assert parse("sum(i + j, i, 0, i) + i", Names()) is parse("sum(i + j, i, 0, i) + i", NAMES)


def test_indices_are_named_for_each_text_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    # once all terms below each let were looked at, which took time that grew with the square of their number
    looked_at: list[Expr] = []

    def reaching(roots, below):
        looked_at.extend(found := reached(roots, below))
        return found

    monkeypatch.setattr("eqsat.lang.text.reached", reaching)
    term, r = NAMES["i"], var("r", 0, 9)
    for step in range(500):
        term = (term + sum_over(r * step, r, 0, term)) % 97
    lets, texts = to_program([term])
    assert len(looked_at) < 30 * len(lets)
    assert parse_program(lets, texts, NAMES) == [term]


def test_a_literal_beyond_64_bits():
    assert parse(f"i + {2**70}", NAMES) is NAMES["i"] + const(2**70)


def test_a_text_beyond_all_size_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eqsat.lang.text.pieces", lambda term: pytest.fail("printed"))
    monkeypatch.setattr("eqsat.lang.text.brief", lambda term: "x")
    term = var("x", 0, 9)
    for n in range(200):
        term = maximum(term, term - n)
    with pytest.raises(ValueError, match="has over 10000000 characters"):
        str(term)


def test_a_text_beyond_all_size_is_refused_and_shown_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eqsat.lang.text.MAX_LENGTH", 100_000)
    term = var("x", 0, 9)
    for n in range(200):
        term = maximum(term, term * 2 - n)
    with pytest.raises(ValueError, match=r"has over 100000 characters: print it by eqsat\.lang\.text\.to_program"):
        str(term)
    assert repr(term).startswith("Expr('max(max(max(")
    assert repr(term).endswith("...')")
    assert to_text(term, names={term.args[0]: "t"}) == "max(t, t*2 - 199)"


@pytest.mark.parametrize("name", ["min", "max", "where", "tdiv", "sum", "prod", "max_over", "abs", "shl", "inf"])
def test_an_array_may_be_named_as_a_function(name):
    array, i, n = buffer(name), var("i", 0, 9), var("n", 1, 9)
    element = array[i]
    for term in (
        minimum(element, i) + maximum(element, n),
        where(element < 3, element, n),
        tdiv(element, n) + (element << 2),
        sum_over(sum_over(array[i, n] * i, i, 0, n), n, 0, 4),
    ):
        names = {name: array, "i": i, "n": n}
        assert parse(to_text(term), names) is term
        lets, texts = to_program([term, term + 1], names)
        assert parse_program(lets, texts, names) == [term, term + 1]
