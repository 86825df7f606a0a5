"""Calibration: probes that measure what they say, and a fit that recovers known times."""

import json
import os
from collections import Counter
from pathlib import Path

import pytest

from eqsat.cli.calibrate import LENGTHS, PROBES, Program, calibrate, fit, kinds
from eqsat.codegen.expressions import function
from eqsat.codegen.runtime import compile_exprs
from eqsat.extract.cost import FIGURES, OPERATIONS, Calibrated
from eqsat.lang.expr import var

PROGRAMS = [(bits, chained) for bits in (32, 64) for chained in (False, True)]


@pytest.mark.parametrize(("bits", "chained"), PROGRAMS)
@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.measures[0])
def test_a_probe_repeats_what_it_measures(probe, bits, chained):
    first, second = Program(probe, bits, 4, chained), Program(probe, bits, 8, chained)
    more = second.operations()
    more.subtract(first.operations())
    for kind in probe.measures:
        assert more[f"{kind} i{32 if kind == 'logic' else bits}"] >= 4
    assert all(f"i{bits}" in kind or kind == "logic i32" for kind, count in more.items() if count)
    function(second.roots(), "probe", second.arguments())
    if chained:
        root, start = second.roots()[0], second.start()
        assert start.vmin <= root.vmin
        assert root.vmax <= start.vmax


def test_the_fit_recovers_known_times():
    times = {kind: 100 + 7 * n for n, kind in enumerate(OPERATIONS)}
    # what is measured together is not told apart
    times |= {f"select i{bits}": times[f"compare i{bits}"] for bits in (32, 64)}
    for chained in (False, True):
        programs = [Program(probe, bits, n, chained) for bits in (32, 64) for probe in PROBES for n in LENGTHS]
        measured = [2 + sum(count * times[kind] / 1000 for kind, count in p.operations().items()) for p in programs]
        assert fit(programs, measured) == times


def test_kinds_count_loads_and_stores():
    i, j = var("i", 0, 9), var("j", 0, 2**40)
    assert kinds([i + 1, i + 1, j], [i, j]) == Counter(
        {"add i32": 1, "load i32": 1, "load i64": 1, "store i32": 2, "store i64": 1}
    )


def test_a_chain_waits_for_each_result():
    v, a = var("v", 0, 2**26), var("a", 0, 2**25)
    kernel = compile_exprs([v // 7 // 3 // 5 + a], [v, a])
    assert kernel.measure(3, chained=True) > 1.5 * kernel.measure(3)
    with pytest.raises(ValueError, match="a chained measurement needs"):
        compile_exprs([v + a], [v, a]).measure(chained=True)


def test_a_model_file_is_written_that_loads(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "eqsat.cli.calibrate.measure", lambda repeats, advance: {f: dict.fromkeys(OPERATIONS, 3) for f in FIGURES}
    )
    calibrate(tmp_path / "model.json")
    model = Calibrated.load(tmp_path / "model.json", "latency")
    assert model.price("mul", [(0, 9), (0, 9)], (0, 81)) == 3
    assert {"processor", "system", "compiler", "flags"} <= model.machine.keys()
    assert list(json.loads((tmp_path / "model.json").read_text())) == ["format", "machine", "picoseconds"]


@pytest.mark.parametrize("before", [None, "{}"])
@pytest.mark.parametrize("broken", ["measuring", "writing"])
def test_a_calibration_that_does_not_end_leaves_the_file_as_it_was(tmp_path, monkeypatch, before, broken):
    def measured(repeats, advance):
        if broken == "measuring":
            raise KeyboardInterrupt
        return {f: dict.fromkeys(OPERATIONS, 3) for f in FIGURES}

    def half_written(path, text, **options):
        path.write_bytes(text.encode()[:9])
        raise OSError(28, "No space left on device")

    model = tmp_path / "model.json"
    if before is not None:
        model.write_text(before)
    monkeypatch.setattr("eqsat.cli.calibrate.measure", measured)
    monkeypatch.setattr(Path, "write_text", half_written)
    with pytest.raises((KeyboardInterrupt, OSError)):
        calibrate(model)
    assert (model.read_text() if model.exists() else None) == before


def test_a_pipe_is_written_and_not_read(tmp_path, monkeypatch):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    both_ends = os.open(pipe, os.O_RDWR)
    monkeypatch.setattr("eqsat.cli.calibrate.measure", lambda *_: {f: dict.fromkeys(OPERATIONS, 3) for f in FIGURES})
    # to read it would take forever
    monkeypatch.setattr(Path, "read_bytes", None)
    calibrate(pipe)
    assert json.loads(os.read(both_ends, 2**16))["format"]
    os.close(both_ends)
