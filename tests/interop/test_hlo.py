"""HLO text: what XLA prints is read; what is wrong is said in one line with its number."""

from __future__ import annotations

import pytest

from eqsat.interop import hlo
from eqsat.interop.hlo import Shape
from eqsat.interop.indexing_analysis import indexing_maps

PRINTED = """
HloModule jit_f, entry_computation_layout={(f32[4,8]{1,0})->f32[32]{0}}

%sum.1 (a.1: f32[], b: f32[]) -> f32[] {
  %a.1 = f32[] parameter(0), metadata={op_name="jit(f" source_line=7}
  %b = f32[] parameter(1)
  ROOT %add-2 = f32[] add(f32[] %a.1, f32[] %b)  // a comment
}

ENTRY %main (x: f32[4,8]) -> f32[32] {
  %c = s32[2,2]{1,0} constant({ { 1, 2 },
    { 3, 4 } })
  %big = s32[9]{0} constant({...})
  %x = f32[4,8]{1,0} parameter(0)
  %zero = f32[] constant(-inf)
  %pair = (f32[4]{0}, /*index=1*/f32[4]{0}) reduce(%x, %x, %zero, %zero), dimensions={1},
    to_apply=%sum.1
  %one = f32[4]{0} get-tuple-element((f32[4]{0}, f32[4]{0}) %pair), index=1
  %copy = f32[4, 8]{0,1} copy(%x)
  ROOT %r = f32[32]{0} reshape(f32[4,8]{0,1} %copy)
}
"""


def test_what_xla_prints() -> None:
    module = hlo.parse(PRINTED)
    assert list(module.computations) == ["sum.1", "main"]
    by_name = {i.name: i for i in module.entry.instructions}
    assert module.entry.root is by_name["r"]
    assert module.entry.parameters == (by_name["x"],)
    pair = by_name["pair"]
    assert [str(s) for s in pair.shapes] == ["f32[4]", "f32[4]"]
    assert [i.name for i in pair.operands] == ["x", "x", "zero", "zero"]
    assert pair.called is module.computations["sum.1"]
    assert pair.dimensions("dimensions") == (1,)
    assert by_name["one"].operands == (pair,)
    assert by_name["copy"].shapes == (Shape("f32", (4, 8), (0, 1)),)
    assert not by_name["c"].operands
    assert str(by_name["zero"]) == "%zero = f32[] constant(-inf)"
    assert repr(by_name["r"]) == "reshape 'r'"


def test_an_instruction_goes_on_behind_its_shape() -> None:
    """As the texts of XLA's tests are broken, which have blanks before layouts, too."""
    module = hlo.parse("""ENTRY e {
  p = f32[4, 8] {0, 1} parameter(0)
  pair =
    (f32[8]{0}, f32[8])
    tuple(p, p)
  ROOT r = f32[8, 4]
    transpose(f32[4, 8] {0, 1} p), dimensions={1, 0}
}""")
    assert [i.opcode for i in module.entry.instructions] == ["parameter", "tuple", "transpose"]
    assert module.entry.parameters[0].shapes[0].layout == (0, 1)
    with pytest.raises(ValueError, match="line 2 of the HLO text: cannot parse 'ROOT c = f32"):
        hlo.parse("ENTRY e {\n  ROOT c = f32[4]\n}")


STACK_FRAMES = """
HloModule jit_f, is_scheduled=true

FileNames
1 "f.py"

FunctionNames
1 "<module>"
2 "f"

FileLocations
1 {file_name_id=1 function_name_id=1 line=8 end_line=8 column=7 end_column=29}

StackFrames
1 {file_location_id=1 parent_frame_id=1}


%half (p.1: f32[8]) -> f32[8] {
  ROOT %p.1 = f32[8]{0} parameter(0), metadata={op_name="f" stack_frame_id=1}
}, execution_thread="parallel"

ENTRY %main (p: f32[8]) -> f32[8] {
  %p = f32[8]{0} parameter(0)
  ROOT %c = f32[8]{0} call(%p), to_apply=%half
  %
}
"""


def test_stack_frames_and_threads_are_skipped() -> None:
    module = hlo.parse(STACK_FRAMES.replace("  %\n", ""))
    assert module.entry.root.called is module.computations["half"]
    with pytest.raises(ValueError, match="line 25 of the HLO text"):
        hlo.parse(STACK_FRAMES)


SHAPES = [
    # the text, the layout, the tiles
    ("f32[8,128]{1,0:T(8,128)}", (1, 0), "(8,128)"),
    ("bf16[16,256]{0,1:T(8,128)(2,1)S(1)}", (0, 1), "(8,128)(2,1)"),
    ("f32[32]{0:S(1)}", (0,), ""),
    ("f32[]{:T(128)S(6)}", (), "(128)"),
]


@pytest.mark.parametrize(("text", "layout", "tiles"), SHAPES)
def test_tiles_and_memory_spaces(text: str, layout: tuple[int, ...], tiles: str) -> None:
    shape = Shape.parse(text)
    assert (shape.layout, shape.tiles) == (layout, tiles)
    module = hlo.parse(f"ENTRY e {{\n p = {text} parameter(0)\n r = ({text}, {text}) tuple({text} p, {text} p)\n}}")
    assert module.entry.root.shapes == (shape, shape)


def test_a_tuple_may_hold_tuples() -> None:
    """As the operations that start another do: the others of the module can be analysed."""
    module = hlo.parse("""
%copied (p: f32[4,8]) -> f32[4,8] {
  %p = f32[4,8]{1,0} parameter(0)
  ROOT %c = f32[4,8]{0,1} copy(%p)
}

ENTRY %main (x: f32[4,8], y: ((f32[2], s32[]), f32[8])) -> f32[8,4] {
  %x = f32[4,8]{1,0} parameter(0)
  %y = ((f32[2]{0}, s32[]), f32[8]{0}) parameter(1)
  %start = ((f32[4,8]{1,0}), f32[4,8]{0,1}, /*index=2*/u32[]) async-start(f32[4,8]{1,0} %x), calls=%copied
  %done = f32[4,8]{0,1} async-done(((f32[4,8]{1,0}), f32[4,8]{0,1}, u32[]) %start)
  %first = (f32[2]{0}, s32[]) get-tuple-element(((f32[2]{0}, s32[]), f32[8]{0}) %y), index=0
  %second = f32[8]{0} get-tuple-element(%y), index=1
  %made = ((f32[2]{0}, s32[]), f32[8]{0}) tuple(%first, %second)
  ROOT %t = f32[8,4]{1,0} transpose(%x), dimensions={1,0}
}""")
    by_name = {i.name: i for i in module.entry.instructions}
    assert list(map(str, by_name["start"].shapes)) == ["tuple[]", "f32[4,8]", "u32[]"]
    assert by_name["done"].operands == (by_name["start"],)
    assert str(indexing_maps(by_name["t"])[0][0]).startswith("(d0, d1) -> (d1, d0)")
    for name, index, reads in (("second", 0, {0: 0, 1: 1}), ("made", 1, {0: 0, 1: 0, 2: 1})):
        assert {n: len(maps) for n, maps in indexing_maps(by_name[name], output=index).items()} == reads
    for name, output in (("first", 0), ("first", 1), ("made", 0)):
        with pytest.raises(ValueError, match=rf"'{name}' has a tuple in a tuple: analyse"):
            indexing_maps(by_name[name], output=output)
    assert {n: len(maps) for n, maps in indexing_maps(module.entry).items()} == {0: 1, 1: 0, 2: 0}


def test_elements_of_tuples_may_be_operands() -> None:
    """As XLA's dumps have them, ``x#1`` for a get-tuple-element."""
    module = hlo.parse("""
%body (pair: (s32[], f32[4,8])) -> (f32[8,4], s32[]) {
  %pair = (s32[], f32[4,8]{1,0}) parameter(0)
  %t = f32[8,4]{1,0} transpose(%pair#1), dimensions={1,0}
  %sum = f32[8,4]{1,0} add(f32[8,4]{1,0} %t, %t)
  ROOT %made = (f32[8,4]{1,0}, s32[]) tuple(%sum, %pair#0)
}

ENTRY %main (x: f32[4,8], n: s32[]) -> f32[8,4] {
  %x = f32[4,8]{1,0} parameter(0)
  %n = s32[] parameter(1)
  %both = (s32[], f32[4,8]{1,0}) tuple(%n, %x)
  %called = (f32[8,4]{1,0}, s32[]) call(%both), to_apply=%body
  ROOT %c = f32[8,4]{1,0} copy((f32[8,4]{1,0}, s32[]) %called#0)
}""")
    turned = "(d0, d1) -> (d1, d0), domain: d0 in [0, 7], d1 in [0, 3]"
    for of, number in ((module.computations["body"], 1), (module.entry, 0)):
        assert [str(m) for m in indexing_maps(of)[number]] == [turned]
    assert [i.name for i in module.computations["body"].instructions] == [
        "pair",
        "pair#1",
        "t",
        "sum",
        "pair#0",
        "made",
    ]
    for operand, message in (("%pair#2", "has no such element: 'pair' has fewer"), ("%one#0", "is not defined")):
        with pytest.raises(ValueError, match=message):
            hlo.parse(f"ENTRY e {{\n %pair = (s32[], f32[4]) parameter(0)\n ROOT r = f32[4] negate({operand})\n}}")


def test_of_a_bounded_size_the_bound_is_read() -> None:
    module = hlo.parse("ENTRY e {\n p = f32[<=4, 8,<=3]{2,1,0} parameter(0)\n}")
    assert module.entry.root.shapes == (Shape("f32", (4, 8, 3), (2, 1, 0)),)


def test_an_unknown_size_refuses_what_reads_it() -> None:
    module = hlo.parse("""
f {
  q = f32[?,4]{1,0} parameter(0)
  r = f32[4,8] parameter(1)
  n = f32[?,4] negate(q)
  u = f32[8,4] transpose(r), dimensions={1,0}
  ROOT w = (f32[?,4], f32[8,4]) tuple(n, u)
}
ENTRY e {
  p = f32[?,4]{1,0} parameter(0)
  x = f32[4,8] parameter(1)
  both = (f32[?,4], f32[8,4]) fusion(p, x), kind=kLoop, calls=f
  first = f32[?,4] get-tuple-element(both), index=0
  scalar = f32[] get-tuple-element(both), index=0
  flat = f32[32] reshape(p)
  pair = (f32[], f32[8,4]) tuple(p, x)
  ROOT second = f32[8,4] get-tuple-element(both), index=1
}""")
    assert [len(maps) for maps in indexing_maps(module.entry).values()] == [0, 1]
    for name in ("first", "scalar", "flat"):
        of = next(i for i in module.entry.instructions if i.name == name)
        with pytest.raises(ValueError, match=rf"'{name}' has a size that is not known: analyse"):
            indexing_maps(of)
    for name, output, message in (("both", 0, "'w' has a size that"), ("pair", 0, "do not have the shapes")):
        of = next(i for i in module.entry.instructions if i.name == name)
        with pytest.raises(ValueError, match=message):
            indexing_maps(of, output=output)
    with pytest.raises(ValueError, match="'p' has a size that is not known"):
        indexing_maps(hlo.parse("ENTRY e {\n p = f32[ ?] parameter(0)\n}").entry)


def test_the_last_instruction_is_the_root_unless_one_is_marked() -> None:
    module = hlo.parse("f {\n a = f32[] parameter(0)\n b = f32[] negate(a)\n}")
    assert module.entry.root.name == "b"


REFUSED = [
    # the text, a part of the error
    ("", "0 of 0 computations are marked as ENTRY"),
    ("p = f32[4] parameter(0)", "line 1 of the HLO text: 'p = .*' is outside of a computation: put it on a line"),
    ("f {\n a = f32[] parameter(0)\n}\ng {\n a = f32[] parameter(0)\n}", "0 of 2 computations are marked as ENTRY"),
    ("ENTRY e {\n}", "line 1 .* the computation 'e' is empty"),
    ("ENTRY e {\n a = f32[] parameter(0)\n", "line 1 .* the computation 'e' has no end"),
    (
        "f {\n a = f32[] parameter(0)\n}\nf {\n a = f32[] parameter(0)\n}",
        "line 4 .* the computation 'f' is defined twice",
    ),
    ("ENTRY e {\n a = f32[] parameter(0)\n a = f32[] negate(a)\n}", "line 3 .* 'a' is defined twice"),
    ("ENTRY e {\n ROOT a = f32[] parameter(0)\n ROOT b = f32[] negate(a)\n}", "line 3 .* a second ROOT beside 'a'"),
    ("ENTRY e {\n a = f32[] negate(b)\n}", "line 2 .* the operand 'b' of 'a' is not defined"),
    ("ENTRY e {\n a = f32[] fusion(), calls=g\n}", "line 2 .* the computation 'g' is not defined: define it above 'a'"),
    ("ENTRY e {\n a = f32[] call(), to_apply=e\n}", "the computation 'e' is not defined"),
    ("ENTRY e {\n a = f32[] parameter(x)\n}", "parameter 'a' has no number"),
    ("ENTRY e {\n a = f32[] parameter(1)\n}", "the parameters of 'e' must be numbered from 0, each once"),
    ("ENTRY e {\n a = f32[] parameter(0)\n b = f32[] parameter(0)\n}", "the parameters of 'e' must be numbered from 0"),
    (
        "ENTRY e {\n a = f32[4]{1} parameter(0)\n}",
        r"the layout of 'f32\[4\]\{1\}' must name each dimension once",
    ),
    ("ENTRY e {\n a = f32[4]{0:T(8} parameter(0)\n}", "cannot parse"),
    ("ENTRY e {\n a = f32[4]{0:tiled} parameter(0)\n}", "cannot parse the layout of 'f32.*': write tiles and memory"),
    ("ENTRY e {\n a = f32[<4] parameter(0)\n}", "line 2 .* '<4' is no list of integers"),
    ("ENTRY e {\n a = f32[4?] parameter(0)\n}", r"line 2 .* cannot parse the shape 'f32\[4\?\]'"),
    ("ENTRY e {\n a = f32[?,4]{0} parameter(0)\n}", "must name each dimension once"),
    ("ENTRY e {\n a = f32[4<=] parameter(0)\n}", "line 2 .* '4<=' is no list of integers"),
    ("ENTRY e {\n a = (f32[4], (f32[4]) parameter(0)\n}", "cannot parse|has no end"),
    ("ENTRY e {\n a = parameter(0)\n}", "cannot parse 'a = parameter"),
    ("ENTRY e {\n a = f32[] negate(\n}", "no end|cannot parse|has no end"),
    ("ENTRY e {\n knit purl\n}", "line 2 .* cannot parse 'knit purl'"),
    (
        f"ENTRY e {{\n a = f32[{'9' * 5000}] parameter(0)\n}}",
        "line 2 .* '9+' is no list of integers, of 18 digits at most",
    ),
    (f"ENTRY e {{\n a = f32[] parameter({'9' * 5000})\n}}", "line 2 .* parameter 'a' has no number"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_refused_in_one_line(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        hlo.parse(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["f32", "f32[4", "f32[4]{0,0}", "f32[x]", "(f32[4])", "f32[-1]", "f32[?]"])
def test_no_shape(text: str) -> None:
    with pytest.raises(ValueError, match=r"cannot parse the shape|must name each"):
        Shape.parse(text)


HOSTILE = ["/*" * 10**5, '\\"' * 10**5, "(" * 10**5, "x = f32[] f(" + "a" * 10**6, "{" * 10**5, "[,(" * 10**5]
#: The heads of computations.
HOSTILE_HEADS = [f"x ({')->' * 10**5} }}", "x" * 10**5 + " {", f"x ({') ' * 10**5} {{"]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_ends(text: str) -> None:
    with pytest.raises(ValueError, match=r"line|ENTRY") as caught:
        hlo.parse(f"ENTRY e {{\n{text}\n}}")
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("text", HOSTILE_HEADS, ids=range(len(HOSTILE_HEADS)))
def test_hostile_heads_end(text: str) -> None:
    """A head with many arrows took time by their square, and errors quoted names of any length."""
    with pytest.raises(ValueError, match="line 1") as caught:
        hlo.parse(text)
    assert len(str(caught.value)) < 300
