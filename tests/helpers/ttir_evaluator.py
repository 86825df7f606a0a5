"""Runs Triton's TTIR: tensors are arrays of Python's integers, and what a program loads and stores is its trace."""

import re

import numpy as np
from mlir_evaluator import Machine, parse, wrapped

TENSOR = re.compile(r"tensor<(?:\d+x)+([^<>]*(?:<\w+>)?)>")


def run(text, program, arguments):
    """The trace of one program of a kernel: ``program`` says which, ``arguments`` are the values of its integers."""
    [function] = [op for op in walk(parse(text)[0]) if op.text.startswith("tt.func")]
    machine = TritonMachine(program)
    given = iter(arguments)
    env = {}
    for name, type_ in re.findall(r"(%\w+): ([!\w.<>]+)", function.text):
        env[name] = (name, 0) if type_.startswith("!tt.ptr") else wrapped(next(given), type_)
    machine.block(function.regions[0], env)
    return machine.trace


def walk(ops):
    for op in ops:
        yield op
        for region in op.regions:
            yield from walk(region)


def shape(text):
    """That of the last type of an operation."""
    found = re.findall(r"tensor<((?:\d+x)+)", text)
    return tuple(map(int, found[-1].split("x")[:-1])) if found and text.rstrip().endswith(">") else ()


def elements(function, *arrays):
    """A function applied to each element, tuples among them."""
    return np.frompyfunc(function, len(arrays), 1)(*arrays)


def array_of(pairs, extents):
    found = np.empty(extents, dtype=object)
    found[...] = pairs
    return found


class TritonMachine(Machine):
    def __init__(self, program):
        super().__init__({})
        self.program = program

    def run(self, op, env):
        if op.text.startswith(("tt.store", "tt.return", "llvm.intr.assume")):
            if op.text.startswith("tt.store"):
                values = [env[w] for w in re.findall(r"%\w+", op.text)]
                self.trace.append(("store", *[np.array(v, dtype=object).tolist() for v in values]))
            return []
        return super().run(op, env)

    def compute(self, name, rest, values, env):
        if name.startswith("tt."):
            return getattr(self, name.removeprefix("tt."))(rest, *values)
        if "tensor<" not in rest:
            return super().compute(name, rest, values, env)
        scalar = re.sub(r"dense<(.*?)>", r"\1", TENSOR.sub(r"\1", rest))
        if name == "arith.constant":
            return np.full(shape(rest), super().compute(name, scalar, [], env), dtype=object)
        return elements(lambda *v: super(TritonMachine, self).compute(name, scalar, list(v), env), *values)

    def get_program_id(self, rest):
        return self.program

    def make_range(self, rest):
        end, start = map(int, re.findall(r"= (\d+) :", rest))
        return np.array(range(start, end), dtype=object)

    def splat(self, rest, value):
        extents = shape(rest)
        found = np.empty(extents, dtype=object)
        for place in np.ndindex(extents):
            found[place] = value
        return found

    def expand_dims(self, rest, value):
        return np.expand_dims(value, int(re.search(r"axis = (\d+)", rest)[1]))

    def broadcast(self, rest, value):
        return np.broadcast_to(value, shape(rest))

    def addptr(self, rest, pointer, offset):
        if isinstance(pointer, tuple):
            return pointer[0], pointer[1] + offset
        return elements(lambda p, n: (p[0], p[1] + n), pointer, offset)

    def load(self, rest, pointer, mask=None, other=None):
        self.trace.append(("load", np.array(pointer, dtype=object).tolist(), np.array(mask, dtype=object).tolist()))
        return elements(lambda p: sum(map(ord, p[0])) * 7919 % 50 + p[1] % 97, pointer)
