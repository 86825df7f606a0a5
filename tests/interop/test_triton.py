"""Triton's TTIR with cheaper index arithmetic: the same addresses and masks; kernels compile for a GPU without one."""

import re
from pathlib import Path
from random import Random

import pytest
from ttir_evaluator import run

from eqsat.interop import triton as drop_in
from eqsat.interop.mlir import rewriting
from eqsat.lang.costs import LATENCY
from eqsat.optimizer.front import DEFAULT_BUDGET

DIVISION = re.compile(r"\barith\.(?:div|rem)[su]i\b")
#: What a kernel is started with at most, and arguments that are tried.
PROGRAMS = 1000
STARTED = [0, 1, 2, 7, 61, 999]
ARGUMENTS = [(100, 3), (1, 1), (2**31 - 1, -(2**31)), (-5, 2**31 - 1)]


def kernel(body, arguments="%n: i32, %m: i32"):
    return f"""module {{
  tt.func public @kernel(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, {arguments}) attributes {{noinline = false}} {{
{body}
    tt.return
  }}
}}
"""


#: ``i`` is where an element of a block stands, of all elements.
PLACES = """    %pid = tt.get_program_id x : i32
    %size = arith.constant 32 : i32
    %first = arith.muli %pid, %size : i32
    %range = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
    %firsts = tt.splat %first : i32 -> tensor<32xi32>
    %i = arith.addi %firsts, %range : tensor<32xi32>
    %c1 = arith.constant dense<1> : tensor<32xi32>
    %c2 = arith.constant dense<2> : tensor<32xi32>
    %c32 = arith.constant dense<32> : tensor<32xi32>
    %c60 = arith.constant dense<60> : tensor<32xi32>
    %c64 = arith.constant dense<64> : tensor<32xi32>
    %c7680 = arith.constant dense<7680> : tensor<32xi32>
"""
STORE = """    %ptrs = tt.splat %x : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>>
    %at = tt.addptr %ptrs, %offset : tensor<32x!tt.ptr<f32>>, tensor<32xi32>
    %value = tt.load %at : tensor<32x!tt.ptr<f32>>
    %others = tt.splat %y : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>>
    %place = tt.addptr %others, %i : tensor<32x!tt.ptr<f32>>, tensor<32xi32>
    tt.store %place, %value : tensor<32x!tt.ptr<f32>>"""


def elementwise(*lines):
    """A kernel that computes ``%offset`` from ``%i``."""
    return kernel(PLACES + "".join(f"    %{line} : tensor<32xi32>\n" for line in lines) + STORE)


SHUFFLE = elementwise(
    "n_ = arith.divsi %i, %c7680",
    "r = arith.remsi %i, %c7680",
    "c = arith.divsi %r, %c60",
    "p = arith.remsi %r, %c60",
    "half = arith.remsi %c, %c2",
    "pair = arith.divsi %c, %c2",
    "a = arith.muli %half, %c64",
    "b = arith.addi %a, %pair",
    "d = arith.muli %b, %c60",
    "e = arith.muli %n_, %c7680",
    "f = arith.addi %d, %e",
    "offset = arith.addi %f, %p",
)
JOINED = elementwise(
    "q = arith.divsi %i, %c64",
    "r = arith.remsi %i, %c64",
    "s = arith.muli %q, %c64",
    "offset = arith.addi %r, %s",
)
#: Where an element stands in its block, if its place among all does not wrap around.
BLOCK = elementwise("offset = arith.remsi %i, %c32")
#: Rows and columns of a tile of a matrix with 64 columns, its element ``(i, j)`` at ``(i*64 + j)``.
TILE = kernel("""    %pid = tt.get_program_id x : i32
    %c8 = arith.constant 8 : i32
    %c16 = arith.constant 16 : i32
    %row = arith.divsi %pid, %c8 : i32
    %column = arith.remsi %pid, %c8 : i32
    %r0 = arith.muli %row, %c16 : i32
    %c0 = arith.muli %column, %c8 : i32
    %r1 = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
    %c1 = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>
    %r2 = tt.splat %r0 : i32 -> tensor<16xi32>
    %c2 = tt.splat %c0 : i32 -> tensor<8xi32>
    %r3 = arith.addi %r2, %r1 : tensor<16xi32>
    %c3 = arith.addi %c2, %c1 : tensor<8xi32>
    %r4 = tt.expand_dims %r3 {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
    %c4 = tt.expand_dims %c3 {axis = 0 : i32} : tensor<8xi32> -> tensor<1x8xi32>
    %k64 = arith.constant dense<64> : tensor<16x1xi32>
    %r5 = arith.muli %r4, %k64 : tensor<16x1xi32>
    %r6 = tt.broadcast %r5 : tensor<16x1xi32> -> tensor<16x8xi32>
    %c6 = tt.broadcast %c4 : tensor<1x8xi32> -> tensor<16x8xi32>
    %flat = arith.addi %r6, %c6 : tensor<16x8xi32>
    %w64 = arith.constant dense<64> : tensor<16x8xi32>
    %q = arith.divsi %flat, %w64 : tensor<16x8xi32>
    %m1 = arith.remsi %flat, %w64 : tensor<16x8xi32>
    %w100 = arith.constant dense<100> : tensor<16x8xi32>
    %o = arith.muli %q, %w100 : tensor<16x8xi32>
    %limit = tt.splat %n : i32 -> tensor<16x8xi32>
    %mask = arith.cmpi slt, %m1, %limit : tensor<16x8xi32>
    %base = tt.splat %x : !tt.ptr<f32> -> tensor<16x8x!tt.ptr<f32>>
    %p0 = tt.addptr %base, %o : tensor<16x8x!tt.ptr<f32>>, tensor<16x8xi32>
    %p1 = tt.addptr %p0, %m1 : tensor<16x8x!tt.ptr<f32>>, tensor<16x8xi32>
    %v = tt.load %p1, %mask : tensor<16x8x!tt.ptr<f32>>
    tt.store %p1, %v, %mask : tensor<16x8x!tt.ptr<f32>>""")


def candidates(text, programs=PROGRAMS):
    return drop_in.simplified(text, drop_in.Options((programs,) * 3, LATENCY, DEFAULT_BUDGET))


def simplified(text, programs=PROGRAMS):
    """The candidate with the fewest divisions."""
    return min(candidates(text, programs), key=divisions, default=text)


def divisions(text):
    return len(DIVISION.findall(text))


def assert_equal(before, after, programs=STARTED):
    for program in programs:
        for arguments in ARGUMENTS:
            assert run(after, program, arguments) == run(before, program, arguments), (program, arguments)


@pytest.mark.parametrize(("text", "left"), [(SHUFFLE, 3), (JOINED, 0), (TILE, 2)], ids=["shuffle", "joined", "tile"])
def test_kernels_have_the_same_addresses_and_divide_less(text, left):
    found = simplified(text)
    assert divisions(found) == left
    assert_equal(text, found)


def test_a_scalar_is_computed_once_and_an_axis_in_its_own_shape():
    found = simplified(TILE)
    assert not re.search(r"arith\.(?:div|rem)\w+ .*: tensor<16x8", found)
    assert re.search(r"arith\.(?:div|rem)\w+ .*: i32", found)


def test_what_may_wrap_around_stays():
    # 2**31 programs of 32 elements: the place of an element has no 32 bits
    assert simplified(BLOCK, drop_in.MOST_PROGRAMS) == BLOCK
    assert simplified(BLOCK, 2**26 + 1) == BLOCK
    found = simplified(BLOCK, 2**26)
    assert divisions(found) == 0
    assert_equal(BLOCK, found, [0, 5, 2**26 - 1])


def promising(text, *lines):
    first, rest = text.split("    %size", 1)
    return first + "".join(f"    {line}\n" for line in lines) + "    %size" + rest


LIMIT = "%limit = arith.constant 4096 : i32"
BELOW = "%below = arith.cmpi slt, %pid, %limit : i32"
ASSUME = "llvm.intr.assume %below : i1"


def test_a_kernel_promises_how_many_programs_there_are():
    text = promising(BLOCK, LIMIT, BELOW, ASSUME)
    found = simplified(text, drop_in.MOST_PROGRAMS)
    assert divisions(found) == 0
    assert_equal(text, found)
    # what is promised is promised still
    assert BELOW in found
    assert ASSUME in found


def test_promises_that_contradict_each_other_are_no_error():
    text = promising(BLOCK, LIMIT, "%below = arith.cmpi sgt, %pid, %limit : i32", ASSUME)
    assert simplified(text, 8) == text


def test_a_promise_holds_from_where_it_is_made():
    check = '"tt.assert"(%below) : (i1) -> ()'
    for lines in ([LIMIT, BELOW], [LIMIT, BELOW, check, ASSUME]):
        text = promising(BLOCK, *lines)
        assert simplified(text, drop_in.MOST_PROGRAMS) == text


def test_an_answer_may_only_leave_operations_out():
    body = """    %c1 = arith.constant 1 : i32
    %q = arith.divsi %n, %c1 : i32
    %p = tt.addptr %x, %q : !tt.ptr<f32>, i32
    %v = tt.load %p : !tt.ptr<f32>
    tt.store %p, %v : !tt.ptr<f32>"""
    assert divisions(simplified(kernel(body))) == 0


@pytest.mark.parametrize(("other", "left"), [("ne", 0), ("ult", 1)])
def test_what_is_promised_of_a_divisor_is_known_together(other, left):
    body = f"""    %zero = arith.constant 0 : i32
    %some = arith.cmpi sle, %zero, %n : i32
    llvm.intr.assume %some : i1
    %other = arith.cmpi {other}, %n, %zero : i32
    llvm.intr.assume %other : i1
    %r = arith.remsi %n, %n : i32
    %p = tt.addptr %x, %r : !tt.ptr<f32>, i32
    %v = tt.load %p : !tt.ptr<f32>
    tt.store %p, %v : !tt.ptr<f32>"""
    assert divisions(simplified(kernel(body))) == left


@pytest.mark.parametrize(("divisor", "left"), [(16, 0), (5, 1)])
def test_what_divides_an_argument_is_known(divisor, left):
    body = f"""    %c = arith.constant {divisor} : i32
    %r = arith.remsi %n, %c : i32
    %p = tt.addptr %x, %r : !tt.ptr<f32>, i32
    %v = tt.load %p : !tt.ptr<f32>
    tt.store %p, %v : !tt.ptr<f32>"""
    text = kernel(body, "%n: i32 {tt.divisibility = 16 : i32}, %m: i32")
    assert divisions(simplified(text)) == left


def test_offsets_that_may_wrap_around_together_are_added_in_turn():
    body = """    %a = tt.addptr %x, %n : !tt.ptr<f32>, i32
    %p = tt.addptr %a, %m : !tt.ptr<f32>, i32
    %v = tt.load %p : !tt.ptr<f32>
    tt.store %p, %v : !tt.ptr<f32>"""
    assert simplified(kernel(body)) == kernel(body)
    # though something else changes
    most = "    %most = arith.maxsi %m, %m : i32\n"
    assert simplified(kernel(most + body.replace("%m :", "%most :"))) == kernel(body)


def test_a_selection_among_tensors_names_the_type_of_its_condition():
    rolled = elementwise(
        "q = arith.divsi %i, %c60",
        "r = arith.remsi %i, %c60",
        "s = arith.addi %r, %c2",
        "t = arith.remsi %s, %c60",
        "u = arith.muli %q, %c60",
        "offset = arith.addi %t, %u",
    )
    selections = [line for text in candidates(rolled) for line in text.splitlines() if "arith.select" in line]
    assert selections
    assert all(line.endswith(" : tensor<32xi1>, tensor<32xi32>") for line in selections)
    for found in candidates(rolled):
        assert_equal(rolled, found)


def random_kernel(seed):
    random = Random(seed)
    types = ["i32", "tensor<8xi32>", "tensor<8x1xi32>", "tensor<1x4xi32>", "tensor<8x4xi32>"]
    values = {t: [] for t in types}
    lines = []

    def new(type_, text):
        name = f"%t{len(lines)}"
        lines.append(f"    {name} = {text}")
        values.setdefault(type_, []).append(name)
        return name

    pid = new("i32", "tt.get_program_id x : i32")
    values["i32"].append("%n")
    eight = new("tensor<8xi32>", "tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>")
    new("tensor<8x1xi32>", f"tt.expand_dims {eight} {{axis = 1 : i32}} : tensor<8xi32> -> tensor<8x1xi32>")
    four = new("tensor<4xi32>", "tt.make_range {end = 6 : i32, start = 2 : i32} : tensor<4xi32>")
    new("tensor<1x4xi32>", f"tt.expand_dims {four} {{axis = 0 : i32}} : tensor<4xi32> -> tensor<1x4xi32>")
    for source in ("tensor<8x1xi32>", "tensor<1x4xi32>"):
        new("tensor<8x4xi32>", f"tt.broadcast {values[source][0]} : {source} -> tensor<8x4xi32>")
    new("tensor<8x4xi32>", f"tt.splat {pid} : i32 -> tensor<8x4xi32>")
    for _ in range(22):
        type_ = random.choice(types)
        number = random.choice([1, 2, 3, 4, 6, 8, 12, -4])
        literal = f"dense<{number}>" if type_ != "i32" else number
        constant = new(type_, f"arith.constant {literal} : {type_}")
        values[type_].remove(constant)
        x = random.choice(values[type_] or [constant])
        kind = random.random()
        if kind < 0.45:
            op = random.choice(["divsi", "remsi", "muli", "addi", "andi", "ori", "xori"])
            new(type_, f"arith.{op} {x}, {constant} : {type_}")
        elif kind < 0.7:
            op = random.choice(["addi", "subi", "minsi", "maxsi", "xori"])
            new(type_, f"arith.{op} {x}, {random.choice(values[type_] or [constant])} : {type_}")
        elif kind < 0.8:
            condition = new("i1", f"arith.cmpi {random.choice(['slt', 'sge', 'eq'])}, {x}, {constant} : {type_}")
            kinds = f"{type_.replace('i32', 'i1')}, {type_}" if type_ != "i32" else "i32"
            new(type_, f"arith.select {condition}, {x}, {constant} : {kinds}")
        elif type_ == "i32":
            target = random.choice(types[1:])
            new(target, f"tt.splat {x} : i32 -> {target}")
        elif type_ == "tensor<8xi32>":
            new("tensor<8x1xi32>", f"tt.expand_dims {x} {{axis = 1 : i32}} : {type_} -> tensor<8x1xi32>")
        elif type_ != "tensor<8x4xi32>":
            new("tensor<8x4xi32>", f"tt.broadcast {x} : {type_} -> tensor<8x4xi32>")
    base = new("p", "tt.splat %x : !tt.ptr<f32> -> tensor<8x4x!tt.ptr<f32>>")
    for offset in values["tensor<8x4xi32>"][-2:]:
        base = new("p", f"tt.addptr {base}, {offset} : tensor<8x4x!tt.ptr<f32>>, tensor<8x4xi32>")
    value = new("v", f"tt.load {base} : tensor<8x4x!tt.ptr<f32>>")
    lines.append(f"    tt.store {base}, {value} : tensor<8x4x!tt.ptr<f32>>")
    return kernel("\n".join(lines))


@pytest.mark.parametrize("seed", range(25))
def test_random_kernels_have_the_same_addresses(seed):
    text = random_kernel(seed)
    for found in candidates(text):
        assert_equal(text, found, [0, 1, 5, 999])


def test_values_of_an_enclosing_block_are_spread_where_they_are_read():
    text = kernel(
        PLACES
        + """    %zero = arith.constant 0 : i32
    %three = arith.constant 3 : i32
    %one = arith.constant 1 : i32
    scf.for %k = %zero to %three step %one : i32 {
      %ks = tt.splat %k : i32 -> tensor<32xi32>
      %a = arith.muli %i, %c64 : tensor<32xi32>
      %b = arith.addi %a, %ks : tensor<32xi32>
      %q = arith.divsi %b, %c64 : tensor<32xi32>
      %r = arith.remsi %b, %c64 : tensor<32xi32>
      %s = arith.addi %q, %r : tensor<32xi32>
      %ptrs = tt.splat %x : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>>
      %at = tt.addptr %ptrs, %s : tensor<32x!tt.ptr<f32>>, tensor<32xi32>
      %v = tt.load %at : tensor<32x!tt.ptr<f32>>
      tt.store %at, %v : tensor<32x!tt.ptr<f32>>
    }"""
    )
    found = simplified(text)
    assert divisions(found) == 0
    assert_equal(text, found)


# ---- in Triton's compiler


@pytest.fixture
def compiler(monkeypatch, tmp_path):
    """Compile a TTIR for a GPU that need not be there: the kernel's stages."""
    triton = pytest.importorskip("triton", minversion="3.6")
    from triton.backends.compiler import GPUTarget

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    drop_in.reset_statistics()

    def compiled(text):
        path = Path(tmp_path, "kernel.ttir")
        path.write_text(text)
        return triton.compile(str(path), target=GPUTarget("cuda", 80, 32), options={"num_warps": 1})

    yield compiled
    drop_in.uninstall()


@pytest.mark.parametrize(("options", "error"), [({"cost": "latancy"}, ValueError), ({"budget": 3}, TypeError)])
def test_options_that_are_none_are_refused_at_once(options, error):
    with pytest.raises(error, match=str(*options.values())):
        drop_in.install(**options)


def test_what_was_on_before_enabled_is_on_again_behind_it():
    knobs = pytest.importorskip("triton").knobs

    drop_in.install(programs=8)
    try:
        before = knobs.runtime.add_stages_inspection_hook()
        with drop_in.enabled(programs=9):
            drop_in.uninstall()
        assert knobs.runtime.add_stages_inspection_hook() == before
    finally:
        drop_in.uninstall()
    assert knobs.runtime.add_stages_inspection_hook is None


@pytest.mark.parametrize("text", [SHUFFLE, JOINED, TILE], ids=["shuffle", "joined", "tile"])
def test_triton_compiles_the_answers_to_no_more_instructions(compiler, text):
    def instructions(text):
        return len(drop_in._INSTRUCTION.findall(compiler(text).asm["ptx"]))

    assert min(map(instructions, candidates(text))) <= instructions(text)


@pytest.mark.parametrize("seed", range(25))
def test_triton_takes_the_answers_to_random_kernels(seed, tmp_path):
    triton = pytest.importorskip("triton", minversion="3.6")
    from triton._C.libtriton import ir

    context = ir.context()
    ir.load_dialects(context)
    triton.backends.backends["nvidia"].compiler(triton.backends.compiler.GPUTarget("cuda", 80, 32)).load_dialects(
        context
    )
    for text in candidates(random_kernel(seed)):
        path = Path(tmp_path, "kernel.ttir")
        path.write_text(text)
        # an error if it does not
        ir.parse_mlir_module(str(path), context)


def shuffle(x, y, n, BLOCK: "tl.constexpr"):  # noqa: F821, N803
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)  # noqa: F821
    rest = i % 7680
    source = i // 7680 * 7680 + (rest // 60 % 2 * 64 + rest // 60 // 2) * 60 + rest % 60
    tl.store(y + i, tl.load(x + source, mask=i < n), mask=i < n)  # noqa: F821


def shuffled(monkeypatch):
    """What Triton compiles a kernel of its own language to."""
    import triton
    from triton.backends.compiler import GPUTarget

    monkeypatch.setitem(globals(), "tl", triton.language)
    signature = {"x": "*fp32", "y": "*fp32", "n": "i32", "BLOCK": "constexpr"}
    source = triton.compiler.ASTSource(triton.jit(shuffle), signature, {"BLOCK": 1024})
    return triton.compile(source, target=GPUTarget("cuda", 80, 32)).asm


def test_kernels_are_compiled_with_and_without(compiler, monkeypatch):
    plain = shuffled(monkeypatch)
    assert drop_in.statistics().kernels == 0
    with drop_in.enabled(programs=PROGRAMS):
        cheaper = shuffled(monkeypatch)
    done = drop_in.statistics()
    assert (done.kernels, done.changed, done.kept) == (1, 1, {})
    assert (done.divisions_before, done.divisions_after) == (divisions(plain["ttir"]), divisions(cheaper["ttir"]))
    assert 2 * done.divisions_after <= done.divisions_before
    lengths = [len(drop_in._INSTRUCTION.findall(asm["ptx"])) for asm in (cheaper, plain)]
    assert lengths[0] < lengths[1]
    # code that is kept is of one kind
    assert shuffled(monkeypatch)["ptx"] == plain["ptx"]


def test_why_a_kernel_stays_is_counted(compiler, monkeypatch):
    pytest.importorskip("triton")
    answers = {"costs no less": [], "not taken": ["no MLIR"]}
    for reason, answer in answers.items():
        monkeypatch.setattr(drop_in, "simplified", lambda text, options, answer=answer: answer)
        drop_in.reset_statistics()
        with drop_in.enabled(programs=4 + len(answer)):
            shuffled(monkeypatch)
        done = drop_in.statistics()
        assert (done.kernels, done.changed, done.kept) == (1, 0, {reason: 1})


def test_a_kernel_that_cannot_be_optimised_is_compiled_as_it_is(compiler, monkeypatch):
    pytest.importorskip("triton")

    def fails(text, options):
        raise KeyError("a defect")

    monkeypatch.setattr(drop_in, "simplified", fails)
    drop_in.reset_statistics()
    with drop_in.enabled(programs=7):
        shuffled(monkeypatch)
    assert drop_in.statistics().kept == {"error": 1}


def test_the_hook_of_another_is_kept_and_caches_are_apart(compiler):
    from triton import knobs

    calls = []

    def other(*arguments):
        calls.append(len(arguments))
        return "other", "hash"

    knobs.runtime.add_stages_inspection_hook = other
    try:
        with drop_in.enabled(programs=8):
            first = knobs.runtime.add_stages_inspection_hook()
        with drop_in.enabled(programs=9):
            second = knobs.runtime.add_stages_inspection_hook()
        assert first[0].startswith("other")
        assert len({first, second, ("other", "hash")}) == 3
        assert knobs.runtime.add_stages_inspection_hook is other
        assert calls == [0, 0]
    finally:
        knobs.runtime.add_stages_inspection_hook = None


def test_plain_mlir_on_tensors_is_read_by_elements():
    text = """func.func @f(%a: tensor<4xi8>) -> tensor<4xi32> {
  %c = arith.constant dense<8> : tensor<4xi32>
  %x = arith.extsi %a : tensor<4xi8> to tensor<4xi32>
  %m = arith.muli %x, %c : tensor<4xi32>
  %q = arith.divsi %m, %c : tensor<4xi32>
  return %q : tensor<4xi32>
}
"""
    found = rewriting(text).text
    assert "divsi" not in found
    assert "tt." not in found
    assert "return %x" in found or "%q = arith.extsi %a" in found


@pytest.mark.parametrize("type_", ["index", "i32"])
def test_tensors_of_indices_are_read(type_):
    text = f"""func.func @f(%a: tensor<4xindex>) {{
  %c = arith.constant dense<8> : tensor<4xindex>
  %q = arith.divsi %a, %c : tensor<4xindex>
  %m = arith.muli %q, %c : tensor<4xindex>
  %r = arith.remsi %a, %c : tensor<4xindex>
  %s = arith.addi %m, %r : tensor<4xindex>
  %t = arith.index_cast %s : tensor<4xindex> to tensor<4xi32>
  "k.use"(%{"s" if type_ == "index" else "t"}) : (tensor<4x{type_}>) -> ()
}}
"""
    found = rewriting(text).text
    assert "divsi" not in found
    assert ('"k.use"(%a)' if type_ == "index" else "arith.index_cast %a : tensor<4xindex>") in found
