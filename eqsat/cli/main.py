"""The command line: ``eqsat optimize``, ``eqsat corpus``, ``eqsat run`` and others.

Results go to standard output, remarks to standard error. Every error is one line on standard error and exit code 2.
What is slow to import (egglog, z3, rich, the compiler) is imported by the command that needs it.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Any, NoReturn, cast

import click

from eqsat.cli import files, options
from eqsat.cli.cases import read_corpus
from eqsat.cli.corpus import Comparison, rows_kept, run, run_on_cluster
from eqsat.cli.records import Row, numbered_lines, one_line, program, reason, record, refuse_long_costs
from eqsat.cli.rule_listing import line_of, matched_in, row_of
from eqsat.cli.rulesets import named, rule_set
from eqsat.egraph.budget import Budget
from eqsat.extract.cost import LoopAware
from eqsat.interop.limits import INTEROP_LIMITS
from eqsat.lang.costs import model_of
from eqsat.lang.errors import CompileError
from eqsat.lang.expr import Expr, buffer, digits, var
from eqsat.lang.ops import is_finite
from eqsat.lang.text import parse, to_program, to_text
from eqsat.lang.traversal import extent
from eqsat.lang.validation import counted
from eqsat.optimizer.front import optimize as optimise
from eqsat.optimizer.pareto import SIZES
from eqsat.optimizer.result import SHORT
from eqsat.prove.proof import RULE_SECONDS
from eqsat.prove.verify import refuse_wrong
from eqsat.rules import DEFAULT, REDUCE

if TYPE_CHECKING:
    from eqsat.optimizer.result import Result
    from eqsat.prove.explanation import Explanation
    from eqsat.prove.verify import Check


#: What to do about a variable without a range.
_REMEDY = "give its range, --range {name}=N or --var {name}=LOW:HIGH"
#: What arrays of index expressions hold; floating-point values are for kernels.
_ELEMENTS = ("i32", "i64", "bool", "int")


def _version(context: click.Context, option: click.Parameter, asked: bool) -> None:
    if asked:
        import eqsat

        installed = getattr(eqsat, "__version__", None)
        files.say(f"eqsat {installed or f'from {Path(__file__).parent}, not installed'}")
        context.exit()


def _help(context: click.Context, option: click.Parameter, asked: bool) -> None:
    if asked:
        files.say(context.get_help())
        context.exit()


class _Command(click.Command):
    """A command whose help names standard output if that cannot be written."""

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        option = super().get_help_option(ctx)
        if option is not None:
            option.callback = _help
        return option


class _Commands(_Command, click.Group):
    """Commands, which end with an error whatever the files and functions raise that they run."""

    command_class = _Command

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BaseException as error:
            # signals are Ended, and main has words for every Exception; but click makes EOFError an Abort
            if isinstance(error, files.Ended) or (isinstance(error, Exception) and not isinstance(error, EOFError)):
                raise
            raise _EndingError(error) from error


class _EndingError(Exception):
    """A file or function that a command runs raised what is meant to end a process."""

    def __init__(self, error: BaseException) -> None:
        message = ": ".join(filter(None, (type(error).__name__, str(error))))
        super().__init__(" ".join(["ended by", message, *getattr(error, "__notes__", [])]))


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Print the version."
)
def app() -> None:
    """Optimise integer index expressions by equality saturation."""


class _Expressions(_Command):
    """A command of expressions, which notes how many arguments stand behind ``--``: they may be ``--x``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[__name__] = len(args) - args.index("--") - 1 if "--" in args else 0
        return super().parse_args(ctx, args)


def _no_options(context: click.Context, option: click.Parameter, expressions: tuple[str, ...]) -> tuple[str, ...]:
    before = len(expressions) - context.meta[__name__]
    for place, text in enumerate(expressions):
        if text.startswith("--"):
            # an expression may begin with a minus, so click takes these for expressions
            own = [name for option in context.command.params for name in option.opts]
            if (name := text.partition("=")[0]) in own:
                raise click.UsageError(f"{name} stands behind --, where all are expressions: give it before")
            if place >= before:
                continue
            near = "".join(f" Did you mean {name}?" for name in get_close_matches(name, own, 1))
            raise click.UsageError(f"No such option: {text}{'.' if near else ''}{near}")
    return expressions


@app.command(
    cls=_Expressions,
    context_settings={"ignore_unknown_options": True},
    short_help="Print the cheapest equal expressions.",
)
@click.argument("expressions", nargs=-1, required=True, metavar="EXPR...", callback=_no_options)
@options.several("--range", "ranges", "NAME=N", "A loop variable: 0 <= NAME < N.")
@options.several("--var", "variables", "NAME=LOW:HIGH", "A variable: LOW <= NAME <= HIGH; either end may be left out.")
@options.several("--buffer", "buffers", "NAME=TYPE", f"An array, its elements one of {', '.join(_ELEMENTS)}.")
@options.several("--constraint", "constraints", "COND", "A condition known to hold.")
@options.several(
    "--gate",
    "gates",
    "COND",
    "The condition under which an expression's value matters. Give one for each expression, in order; - for none.",
)
@click.option(
    "--loops", metavar="NAME,...", help="The loops, outermost first: each node counts as often as its loop runs."
)
@click.option(
    "--pareto",
    type=click.Choice(list(SIZES)),
    help="Also print answers that cost more but have fewer operations, or fewer values live at once.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--c", "as_c", is_flag=True, help="Print the result as a C function.")
@click.option("--explain", is_flag=True, help="Print a checked derivation of the result.")
@click.option(
    "--html",
    metavar="FILE.html",
    help="Also write a page that shows what was found, how, and the e-graph.",
    **options.FILE_BESIDE,
)
@click.option(
    "--stats", is_flag=True, help="Also print the time of each phase, what added e-nodes and which rules matched."
)
@options.with_settings
def optimize(
    expressions: tuple[str, ...],
    ranges: tuple[str, ...],
    variables: tuple[str, ...],
    buffers: tuple[str, ...],
    constraints: tuple[str, ...],
    gates: tuple[str, ...],
    loops: str | None,
    pareto: str | None,
    as_json: bool,
    as_c: bool,
    explain: bool,
    html: Path | None,
    stats: bool,
    **given: Any,
) -> None:
    """Print the cheapest expressions equal to EXPR... for every value of their variables.

    Several expressions are optimised together: a common subexpression costs once. - reads them from standard input,
    one a line.
    """
    settings = options.settings_of(**given)
    # reads the files of rules: the expressions may have operators that these define
    optimizing = settings.optimizing_roots
    names = _names(ranges, variables, buffers)
    roots, known, masks = _terms(expressions, constraints, gates, names)
    if loops is not None:
        optimizing["cost"] = LoopAware(_trip_counts(loops, names), optimizing["cost"])
    result = optimise(roots, constraints=known, gates=masks, pareto=pareto, **optimizing)
    check = result.check(**settings.checking)
    refuse_wrong(check, "; ".join(map(to_text, result.exprs)))
    derivation = result.explain(prove=settings.prove) if explain else None
    if html is not None:
        files.write_whole(html, result.to_html())
    if as_json:
        found = _record(result, check, names, as_c, derivation)
        refuse_long_costs(found)
        files.say(json.dumps(found | ({"trace": result.trace.record()} if stats else {})))
        return
    _say(result, names, as_c, pareto, derivation)
    files.remark(_remark(result, check, pareto))
    if stats:
        click.echo(indent(str(result.trace), "# "), err=True)


def _terms(
    expressions: Sequence[str], constraints: Iterable[str], gates: Sequence[str], names: Mapping[str, Expr]
) -> tuple[list[Expr], list[Expr], list[Expr | None]]:
    """The roots, the constraints, and the gate of each root, if there are any."""
    if "-" in expressions and len(expressions) > 1:
        raise click.UsageError("- reads all expressions from standard input: give it alone")
    texts = files.lines_of(files.standard_input().read()) if expressions == ("-",) else expressions
    if len(gates) not in (0, len(texts)):
        raise click.UsageError(
            f"{counted(len(gates), '--gate')} for {counted(len(texts), 'expression')}: give one for each, - for none"
        )
    roots = [parse(text, names, _REMEDY) for text in texts]
    known = [parse(text, names, _REMEDY) for text in constraints]
    masks = [None if text == "-" else parse(text, names, _REMEDY) for text in gates]
    return roots, known, masks


def _names(ranges: Iterable[str], variables: Iterable[str], buffers: Iterable[str]) -> dict[str, Expr]:
    """The variables that ``--range`` and ``--var`` give, and the arrays that ``--buffer`` does."""
    names: dict[str, Expr] = {}
    given = [("--range", item) for item in ranges] + [("--var", item) for item in variables]
    for option, item in given:
        variable = _variable(option, item)
        name = str(variable.value)
        if name in names:
            raise click.UsageError(f"variable {name!r} is given twice")
        names[name] = variable
    for item in buffers:
        name, equals, element = item.partition("=")
        if not equals:
            raise click.UsageError(f"--buffer {item!r} is not of the form NAME=TYPE")
        if element not in _ELEMENTS:
            raise click.UsageError(
                f"--buffer {item!r}: the elements are one of {', '.join(_ELEMENTS)}, not {element!r}"
            )
        if name in names:
            raise click.UsageError(f"{name!r} is given twice")
        names[name] = buffer(name, element)
    return names


def _variable(option: str, item: str) -> Expr:
    is_range = option == "--range"
    name, _, bounds = item.partition("=")
    low, _, high = ("0", "", bounds) if is_range else bounds.partition(":")
    try:
        # only a range as --var writes it may have no end
        first, last = [int(end) if end.strip() or ":" not in bounds else None for end in (low, high)]
    except ValueError as error:
        if "digits" in str(error):
            most = sys.get_int_max_str_digits()
            raise click.UsageError(f"{option} {name}: a bound has more than {most} digits") from None
        form = "NAME=N" if is_range else "NAME=LOW:HIGH"
        raise click.UsageError(f"{option} {item!r} is not of the form {form}") from None
    return var(name, first, cast(int, last) - 1 if is_range else last)


def _trip_counts(loops: str, names: dict[str, Expr]) -> dict[str, int]:
    """How often each loop of a comma-separated list runs: once per value of its variable."""
    chosen = [name.strip() for name in loops.split(",")]
    if unknown := [name for name in chosen if name not in names or names[name].op != "var"]:
        raise click.UsageError(f"--loops names {unknown[0]!r}, which is no variable: give it a --range or --var")
    if len(set(chosen)) < len(chosen):
        raise click.UsageError(f"--loops names a variable twice: {loops!r}; name each loop once")
    if unbounded := [name for name in chosen if not is_finite(extent(names[name]))]:
        raise click.UsageError(f"--loops names {unbounded[0]!r}, which has no end: give its --var two bounds")
    return {name: extent(names[name]) for name in chosen}


def _say(result: Result, names: Iterable[str], as_c: bool, size: str | None, derivation: Explanation | None) -> None:
    """Print the answers, and how they were derived if that is asked for."""
    files.say(_in_c(result.exprs) if as_c else _listing(result.exprs, names))
    # the first may differ from the answer of tree extraction, which did not choose by the cost of all roots together
    for answer in result.pareto:
        if answer.exprs != result.exprs:
            files.say(f"# cost {digits(answer.cost)}, {answer.size} {size}\n{_listing(answer.exprs, names)}")
    if derivation:
        files.say(f"\n{derivation}")


def _in_c(exprs: Sequence[Expr]) -> str:
    from eqsat.codegen.expressions import to_c

    return to_c(exprs)


def _listing(exprs: Sequence[Expr], taken: Iterable[str]) -> str:
    """One line per root; if they are long, shared subterms are named on lines before them."""
    lines = [to_text(expr, most=SHORT) for expr in exprs]
    if all(len(line) <= SHORT for line in lines):
        return "\n".join(lines)
    lets, texts = to_program(exprs, taken)
    return "\n".join([*(f"{name} = {text}" for name, text in lets), *texts])


def _record(result: Result, check: Check, taken: Iterable[str], as_c: bool, derivation: Explanation | None) -> Row:
    row = {**record(result, check, taken), "points": check.points}
    if as_c:
        row["c"] = _in_c(result.exprs)
    if derivation:
        row |= {"rules": dict(result.rules), "explanation": derivation.record()}
    if result.pareto:
        row["pareto"] = [{"cost": a.cost, "size": a.size, **program(a.exprs, taken)} for a in result.pareto]
    return row


def _remark(result: Result, check: Check, size: str | None) -> str:
    checked: str = check.kind
    if check.kind in ("exhaustive", "sampled"):
        checked += f" check at {counted(check.points, 'point')}"
    if result.exprs == result.before:
        checked = "unchanged"
    if check.proof:
        checked += f" ({check.proof})"
    bound = "" if result.bound is None else f" (at least {digits(result.bound)})"
    sizes = "" if size is None else f", {SIZES[size](result.exprs)} {size}"
    return (
        f"cost {digits(result.cost_before)} -> {digits(result.cost)}{bound}{sizes}, {result.stop}, "
        f"{counted(result.nodes, 'node')}, {result.milliseconds:.1f} ms, {checked}"
    )


@app.command(short_help="Optimise every case of a JSON Lines file.")
@click.argument("source", metavar="IN.jsonl", type=options.FILE_OR_DASH)
@click.option("-o", "--output", metavar="OUT.jsonl", help="Default: standard output.", **options.OUTPUT)
@options.with_settings
@click.option("--no-gates", is_flag=True, help="Ignore gates: every root must be equal everywhere.")
@click.option("--jobs", type=options.COUNT, default=1, help="Worker processes.")
@click.option("--memory", type=click.IntRange(min=1024), default=4096, help="Most megabytes of each worker.")
@click.option(
    "--baseline",
    metavar="OLD.jsonl",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Rows of another release: say which of these now cost more.",
)
@click.option("--scheduler", metavar="ADDRESS", help="Let the workers of a Dask scheduler do it (extra: cluster).")
@click.option("--resume", is_flag=True, help="Keep the rows that are in OUT.jsonl, and make those that are missing.")
def corpus(
    source: Path,
    output: Path | None,
    no_gates: bool,
    jobs: int,
    baseline: Path | None,
    scheduler: str | None,
    resume: bool,
    **given: Any,
) -> None:
    """Optimise every case of a JSON Lines file; write one row each, in order.

    A bad case becomes a row with an "error"; the others go on. Rows are written as they are ready. - reads cases from
    standard input as they come. After an interruption --resume goes on with the same options.
    """
    settings = options.settings_of(gates=not no_gates, **given)
    # what is wrong with files of rules is said once, not in each row
    rule_set(settings.rules, settings.without)
    files.refuse_input(output, [source])
    # to know which rows are there, or what to give to a cluster, all lines are read first
    incoming = files.standard_input() if str(source) == "-" and not resume and scheduler is None else None
    lines: list[str | bytes] = [] if incoming else [*files.content(source).split(b"\n")]
    kept = rows_kept(output, lines) if resume else []
    comparison = None if baseline is None else Comparison(baseline, kept)
    written, errors = len(kept), sum("error" in row for row in kept)
    if scheduler is None:
        answers = run(incoming or lines, settings, jobs, written)
    else:
        # a cluster that does not answer leaves the output as it is
        answers = run_on_cluster(lines, settings, scheduler, written)
    total = None if incoming else len(numbered_lines(lines)) - written
    with (
        files.opened(output, "a" if resume else "w") as stream,
        files.progress(total) as advance,
        files.said_if_ended(lambda: f"after {counted(written, 'row')}"),
        closing(answers) as rows,
    ):
        for row in rows:
            text = json.dumps(row) + "\n"
            # counted before a signal can come: what is begun of a row is ended when the file is closed
            written += 1
            stream.write(text)
            stream.flush()
            errors += "error" in row
            if comparison:
                comparison.add(row)
            advance()
    files.remark(f"{counted(written, 'case')}, {counted(errors, 'error')}")
    if comparison:
        comparison.say()


@app.command(short_help="Make the index arithmetic of MLIR cheaper.")
@click.argument("source", metavar="FILE.mlir", type=options.FILE_OR_DASH)
@click.option("-o", "--output", metavar="FILE", help="Default: standard output.", **options.OUTPUT)
@options.COST
@options.SECONDS
@click.option(
    "--total-seconds",
    default=INTEROP_LIMITS.module_seconds,
    help="How long all may take; then the rest stays as it is.",
    **options.TIME,
)
def mlir(source: Path, output: Path | None, cost: str, seconds: float, total_seconds: float) -> None:
    """Make the index arithmetic of an MLIR module cheaper; write all else as it was.

    The module is in its textual form; - reads standard input.
    """
    from eqsat.interop.mlir import rewriting

    files.refuse_unwritable(output)
    try:
        # some editors begin a file with a mark of its encoding
        text = files.content(source).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{source} is no text in UTF-8: give MLIR in its textual form") from None
    found = rewriting(text, cost=cost, budget=Budget(seconds=seconds), total=total_seconds)
    files.write_whole(output, found.text)
    files.remark(f"{counted(found.changed, 'operation')} replaced, {found.removed} left out")
    if found.untried:
        untried = counted(found.untried, "block or affine operation", "blocks and affine operations")
        files.remark(f"the time was up for {untried}: give more --total-seconds")


def _known_lanes(context: click.Context, option: click.Parameter, lanes: int) -> int:
    from eqsat.codegen.vectors import LANES

    if lanes not in LANES:
        raise click.UsageError(f"{lanes} lanes: give one of {', '.join(map(str, LANES))}")
    return lanes


@app.command(name="run", short_help="Run and time the kernels of a Python file.")
@click.argument("target", metavar="FILE.py[:KERNEL]")
@click.option("--parallel", is_flag=True, help="Run independent outer loops in parallel (OpenMP).")
@click.option("--reassociate", is_flag=True, help="Let floating-point sums be taken in another order.")
@click.option(
    "--lanes",
    type=int,
    default=1,
    callback=_known_lanes,
    help="Elements stored at a time, by vector loads and stores: 1 to 16.",
)
@click.option("--verify/--no-verify", default=True, help="Compare what the C compiler makes with the evaluator first.")
@click.option("--repeats", type=options.COUNT, default=7, help="How often each is measured; medians count.")
@click.option("--seed", type=click.IntRange(min=0), default=0, help="For the random data.")
@click.option("--c", "as_c", is_flag=True, help="Print the C function too.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object per kernel.")
def run_kernels(
    target: str,
    parallel: bool,
    reassociate: bool,
    lanes: int,
    verify: bool,
    repeats: int,
    seed: int,
    as_c: bool,
    as_json: bool,
) -> None:
    """Run the kernels of a Python file: optimised, compiled, compared with NumPy on random data, and timed.

    The file assigns eqsat.Kernel objects to global names. For a kernel k it may define k_numpy(**inputs), to compare
    with; otherwise NumPy evaluates the kernel as it is stated. After a kernel that fails the others go on; the exit
    code is 2 then.
    """
    from eqsat.cli.trial import load_kernels, try_kernel
    from eqsat.codegen.programs import compile_kernel

    wrong = 0
    for kernel, reference in load_kernels(target):
        try:
            program = compile_kernel(kernel, parallel=parallel, reassociate=reassociate, lanes=lanes, verify=verify)
            plain = compile_kernel(kernel, optimize=False, verify=verify)
            trial = try_kernel(kernel, program, plain, reference, reassociated=reassociate, repeats=repeats, seed=seed)
        except CompileError:
            # no other kernel compiles either
            raise
        except Exception as error:
            message = reason(error)
            click.echo(f"eqsat: {'' if kernel.name in message else f'kernel {kernel.name!r}: '}{message}", err=True)
            wrong += 1
            continue
        if as_json:
            files.say(json.dumps(trial.record() | ({"c": program.source} if as_c else {})))
        else:
            files.say((f"{program.source}\n" if as_c else "") + str(trial))
    if wrong:
        raise click.exceptions.Exit(2)


@app.command(short_help="Measure this machine; write a cost model.")
@click.option("-o", "--output", required=True, metavar="FILE.json", type=options.FILE, help="The model file.")
@click.option("--repeats", type=options.COUNT, default=15, help="How often everything is measured; medians count.")
def calibrate(output: Path, repeats: int) -> None:
    """Measure what operations take on this machine; write a cost model for --cost.

    Takes about two seconds a repeat, after compiling the probes the first time.
    """
    from eqsat.cli.calibrate import calibrate as measure

    if output.suffix != ".json":
        raise click.UsageError(f"{output} is no name for a cost model: --cost takes files that end in .json")
    with files.progress(repeats, "measuring") as advance:
        measure(output, repeats, advance)
    files.remark(f"use it: eqsat optimize --cost {output} ...")


@app.command(short_help="Compare cost models, compiled and measured.")
@click.argument("source", metavar="CORPUS.jsonl", type=options.FILE)
@click.option("-o", "--output", required=True, metavar="DIR", help="For CSV and plots.", **options.DIRECTORY_BESIDE)
@click.option("--costs", default="latency,throughput,opcount", help="Models and model files, comma-separated.")
@click.option("--extracts", default="dag,tree", callback=options.extractors, help="Extractors, comma-separated.")
@click.option("--limit", type=options.COUNT, help="Take N cases, chosen by the seed.")
@click.option(
    "--repeats",
    type=click.IntRange(min=0),
    default=5,
    help="How often everything is measured; medians count. 0: nothing is compiled.",
)
@click.option("--seed", type=int, default=0, help="For the choice of cases and the order of measurements.")
@options.RULES
@options.WITHOUT
def experiment(
    source: Path,
    output: Path,
    costs: str,
    extracts: list[str],
    limit: int | None,
    repeats: int,
    seed: int,
    rule_files: tuple[str, ...],
    without: tuple[str, ...],
) -> None:
    """Optimise a corpus, choose by several cost models, compile and measure every answer; write tables and plots.

    Each case is optimised once; every model and extractor chooses from the same e-graph.

    Prints for each model and extractor what the inputs and the answers cost, for each model the rank correlation of its
    predictions with measured time, and the time of its answers over that of the inputs. DIR gets measurements.csv, and
    measurements.json with the answers, also after an interruption: of the cases that are done by then. Cases that
    cannot be measured are left out, each with a line on standard error.
    Plots need the extra plots.
    """
    from eqsat.cli import experiment as experiments

    models = {name: model_of(name) for name in costs.split(",")}
    chosen = rule_set(rule_files, without)
    cases = experiments.chosen_cases(files.content_of_file(source).split(b"\n"), limit, seed, files.say_left_out)
    output.mkdir(parents=True, exist_ok=True)
    rows: list[experiments.Row] = []
    try:
        with files.said_if_ended(lambda: f"after {counted(len({row.case for row in rows}), 'case')}"):
            with files.progress(len(cases)) as advance:
                rows += experiments.answers(
                    cases, models, extracts, advance, files.say_left_out, rules=chosen, lower=bool(repeats)
                )
            if repeats:
                with files.progress(repeats, "compiling and measuring") as advance:
                    experiments.measure(rows, repeats, seed, advance)
    finally:
        # what is done is kept, also if it is interrupted or the C compiler fails
        if rows:
            found = experiments.Experiment(tuple(rows))
            found.to_csv(output / "measurements.csv")
            found.to_json(output / "measurements.json")
    for line in found.summary():
        files.say("  ".join(f"{key} {'-' if value is None else value}" for key, value in line.items()))
    optimising, choosing, count = experiments.times(rows)
    chosen_from = f"chosen from that {counted(count, 'time')}: {choosing:.2f} s"
    files.remark(f"optimised once a case: {optimising:.2f} s; {chosen_from}")
    if find_spec("matplotlib") is None:
        files.remark("no plots: pip install 'eqsat[plots]'")
    else:
        with files.naming(output):
            found.plot(output)


@app.command(short_help="Find rules that a corpus needs.")
@click.argument("sources", nargs=-1, required=True, metavar="CORPUS.jsonl...", type=options.FILE)
@click.option("-o", "--output", metavar="FILE.py", help="Write the rules here.", **options.OUTPUT)
@options.COST
@options.NO_THEORY
@options.RULES
@options.WITHOUT
@click.option("--limit", type=options.COUNT, help="Read the first N cases of each corpus.")
@click.option("--search-seconds", default=60.0, help="How long to look for rules, in processor time.", **options.TIME)
def discover(
    sources: tuple[Path, ...],
    output: Path | None,
    cost: str,
    no_theory: bool,
    rule_files: tuple[str, ...],
    without: tuple[str, ...],
    limit: int | None,
    search_seconds: float,
) -> None:
    """Find rules that make the answers to corpora cheaper, and print them as a file for --rules.

    Fragments of the answers are compared with enumerated terms. From each pair with a cheaper term a rule is made and
    proved by z3 (extra: check). It is kept if the rules that are there do not derive it, and the corpus costs less with
    it: a comment says how it was proved and what it saves. Cases that cannot be read, or of other kinds, are left out.
    After an interruption the rules that are proved by then are printed.
    """
    from eqsat.discover.discovery import Case, FoundRule, to_file
    from eqsat.discover.discovery import discover as search

    if find_spec("z3") is None:
        raise click.UsageError("discover proves rules by z3: pip install 'eqsat[check]'")
    files.refuse_input(output, sources)
    rules = rule_set(rule_files, without) or DEFAULT
    cases: list[Case] = []
    for source in sources:
        read = read_corpus(source, files.say_left_out)[:limit]
        cases += [Case(tuple(c.exprs), tuple(c.constraints), tuple(c.gates), str(c.id)) for c in read]
    kept: list[FoundRule] = []
    files.refuse_unwritable(output)
    says_how_many = files.said_if_ended(lambda: f"after {counted(len(kept), 'rule')}")
    try:
        with says_how_many, files.progress(None, "fragments") as advance:
            found = search(
                cases, rules, cost=cost, theory=not no_theory, seconds=search_seconds, advance=advance, keep=kept.append
            )
    except files.Ended:
        files.write_whole(output, to_file(kept))
        raise
    for line in found.left_out:
        files.say_left_out(line)
    fragments, made = counted(found.fragments, "fragment"), counted(len(found.rules), "rule")
    files.remark(f"{fragments}, {found.pairs} with a cheaper term, {made}: cost {found.before} -> {found.after}")
    files.write_whole(output, to_file(found))


@app.command(short_help="List the rules, prove them, see them match.")
@click.argument("names", nargs=-1, metavar="[NAME...]")
@options.RULES
@options.WITHOUT
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@click.option("--prove", is_flag=True, help="Prove each rule by z3, and say how (extra: check).")
@click.option("--prove-seconds", default=RULE_SECONDS, help="How long one proof may take.", **options.TIME)
@click.option(
    "--fires",
    metavar="CORPUS.jsonl",
    type=click.Path(path_type=Path, exists=True),
    help="Optimise the cases of a corpus by all rules, and say in which cases each matches.",
)
def rules(
    names: tuple[str, ...],
    rule_files: tuple[str, ...],
    without: tuple[str, ...],
    as_json: bool,
    prove: bool,
    prove_seconds: float,
    fires: Path | None,
) -> None:
    """List the rules: what they rewrite, under which guard, and why they are true.

    NAME is that of a rule or a family; * in it matches any characters. Without a NAME all are listed. A single rule is
    shown in detail.
    """
    options.refuse_idle_seconds(prove)
    if prove and find_spec("z3") is None:
        raise click.UsageError("rules --prove needs z3: pip install 'eqsat[check]'")
    chosen = rule_set(rule_files, without)
    listed = [*(chosen or DEFAULT), *REDUCE]
    listed = named(listed, names) if names else listed
    in_detail = len(names) == len(listed) == 1
    matches = None if fires is None else matched_in(read_corpus(fires, files.say_left_out), chosen)
    rows: list[Row] = []
    for rule in listed:
        rows.append(row_of(rule, in_detail, prove_seconds if prove else None, matches))
        if not as_json:
            files.say(line_of(rows[-1]))
    if as_json:
        files.say(json.dumps(rows, indent=1))
    elif prove:
        kinds = Counter(" and ".join(row["proof"]) or "not proved" for row in rows)
        proved = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
        files.remark(f"{counted(len(rows), 'rule')}: {proved}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit code.

    It is 0, 2 after an error, 130 after Ctrl-C, 143 after SIGTERM, and 1 if a pipe closes.
    """
    arguments = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    warnings.showwarning = lambda message, *_: click.echo(f"eqsat: warning: {one_line(message)}", err=True)
    try:
        if sys.stdout is None and not _writes_files(arguments[0]):
            raise click.UsageError("standard output is closed: the answer would be lost")
        with files.ends_raised():
            sys.exit(app.main(args=arguments, prog_name="eqsat", standalone_mode=False))
    except files.Ended as ended:
        # what was half built when the signal came may say that it cannot be dropped
        sys.unraisablehook = lambda _: None
        _fail(str(ended), 128 + ended.number)
    except BrokenPipeError:
        # the reader has left, as head does: nothing more to say
        _leave(1)
    except Exception as error:
        _fail(_said(error))


def _said(error: Exception) -> str:
    match error:
        case click.ClickException():
            return error.format_message()
        case OSError() if error.strerror:
            return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
        case UnicodeEncodeError():
            lacking = error.object[error.start : error.end]
            return f"output in {error.encoding} cannot have {lacking!r}: set PYTHONUTF8=1"
        case MemoryError():
            return f"out of memory: {str(error) or 'give a smaller input'}"
        case OSError() | ValueError() | CompileError() | _EndingError():
            return str(error)
    return f"internal error: {type(error).__name__}: {error}"


def _writes_files(name: str) -> bool:
    """Whether a command has the option -o. Such a command needs no standard output, and says so itself if it does."""
    command = app.commands.get(name)
    return command is not None and any("-o" in option.opts for option in command.params)


def _fail(message: str, code: int = 2) -> NoReturn:
    # where nothing can be said, the code is all
    with suppress(OSError):
        click.echo(f"eqsat: {one_line(message)}", err=True)
    _leave(code)


def _leave(code: int) -> NoReturn:
    """End with this code. What cannot be written is dropped: Python tries again at its end, and would end with 120."""
    for stream in filter(None, (sys.stdout, sys.stderr)):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    sys.exit(code)
