"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from eqsat.cli.settings import Settings
from eqsat.egraph.budget import Budget
from eqsat.extract.cost import COST_MODELS
from eqsat.lang.costs import model_of
from eqsat.optimizer.front import BRANCHES, DEFAULT_BUDGET, ENGINES, UNKNOWN_DIVISORS
from eqsat.optimizer.reextraction import EXTRACTORS

FILE, FILE_OR_DASH = click.Path(path_type=Path), click.Path(path_type=Path, allow_dash=True)
COUNT = click.IntRange(min=1)


def several(name: str, variable: str, metavar: str, what: str) -> Callable[[Any], Any]:
    """An option that may be given several times."""
    return click.option(name, variable, multiple=True, metavar=metavar, help=what)


def _unless_dash(context: click.Context, option: click.Parameter, output: Path | None) -> Path | None:
    return None if str(output) == "-" else output


def _refuse_dash(context: click.Context, option: click.Parameter, output: Path | None) -> Path | None:
    if str(output) == "-":
        raise click.UsageError(f"{option.opts[-1]}: - is no name: standard output has the answers")
    return output


#: The type of options that name a file to write: none and - are standard output.
OUTPUT: dict[str, Any] = {"type": FILE_OR_DASH, "callback": _unless_dash}
#: The types of options that name a file or a directory to write beside the answers.
FILE_BESIDE: dict[str, Any] = {"type": FILE, "callback": _refuse_dash}
DIRECTORY_BESIDE = FILE_BESIDE | {"type": click.Path(path_type=Path, file_okay=False)}


def _exact_allowed(context: click.Context, option: click.Parameter, extract: str) -> str:
    if extract == "exact" and find_spec("highspy") is None:
        raise click.UsageError("--extract exact needs HiGHS: pip install 'eqsat[exact]'")
    return extract


def extractors(context: click.Context, option: click.Parameter, given: str) -> list[str]:
    """The extractors that an option lists; refuse others."""
    allowed = click.Choice(EXTRACTORS)
    return [_exact_allowed(context, option, allowed.convert(name, option, context)) for name in given.split(",")]


def _known_cost(context: click.Context, option: click.Parameter, cost: str) -> str:
    model_of(cost)
    return cost


COST = click.option(
    "--cost",
    metavar="MODEL",
    default="latency",
    callback=_known_cost,
    help=f"The cost model: {', '.join(COST_MODELS)}, a file FILE.json that eqsat calibrate has written, or a model "
    "of your own, FILE.py:NAME.",
)
_EXTRACT = click.option(
    "--extract",
    type=click.Choice(EXTRACTORS),
    default="dag",
    callback=_exact_allowed,
    help="How the cheapest terms are chosen: tree counts every use of a subterm, dag counts it once, exact proves the "
    "choice the best of the e-graph (extra: exact).",
)
_ENGINE = click.option(
    "--engine",
    type=click.Choice(ENGINES),
    default="egraph",
    help="How equal terms are found: egraph by the theory (linear arithmetic) and all rules at once, theory without "
    "rules, greedy by the rules one after the other.",
)
NO_THEORY = click.option("--no-theory", is_flag=True, help="Leave out the theory: the rules alone.")

_BRANCHES = click.option(
    "--branches",
    type=click.Choice(BRANCHES),
    default="eager",
    help="Where branches of selections and masked roots are evaluated. eager: everywhere, so the answer divides by "
    "zero at no point where the input does not. lazy: only where they are chosen.",
)
RULES = several(
    "--rules",
    "rule_files",
    "FILE.py",
    "A Python file with rules beside the shipped ones: eqsat.Rule objects, or lists of them, with global names.",
)
WITHOUT = several(
    "--without", "without", "NAME", "Leave out the rules of this name or family; * in a name matches any characters."
)
_UNKNOWN_DIVISORS = click.option(
    "--unknown-divisors",
    type=click.Choice(UNKNOWN_DIVISORS),
    default="refuse",
    help="What becomes of a division whose divisor may be zero. refuse: an error. keep: it stays, and only its "
    "operands are simplified. assume: the divisor is taken not to be zero.",
)


def _a_time(context: click.Context, option: click.Parameter, seconds: float) -> float:
    # click's range accepts nan
    if not seconds > 0:
        raise click.BadParameter(f"{seconds} is no time: give a number of seconds over 0")
    return seconds


#: The type of options that are numbers of seconds.
TIME: dict[str, Any] = {"type": click.FloatRange(min=0, min_open=True), "callback": _a_time}
SECONDS = click.option(
    "--seconds",
    default=DEFAULT_BUDGET.seconds,
    help="How long one optimisation may take; the best found by then is the answer.",
    **TIME,
)
_PROVE = click.option("--prove", is_flag=True, help="Prove the result at every point (more with the extra: check).")
_PROVE_SECONDS = click.option("--prove-seconds", default=10.0, help="How long a proof may take.", **TIME)
#: The options of ``optimize`` and ``corpus``, which :func:`settings_of` reads.
_SETTINGS = (
    *(COST, _EXTRACT, _ENGINE, NO_THEORY, RULES, WITHOUT, _BRANCHES, _UNKNOWN_DIVISORS),
    *(SECONDS, _PROVE, _PROVE_SECONDS),
)


def with_settings[F: Callable[..., None]](command: F) -> F:
    """A command with the options of how a case is optimised and checked."""
    return reduce(lambda decorated, option: option(decorated), reversed(_SETTINGS), command)


def settings_of(*, no_theory: bool, rule_files: tuple[str, ...], seconds: float, **options: Any) -> Settings:
    """What the options of :func:`with_settings` say."""
    refuse_idle_seconds(options["prove"])
    return Settings(theory=not no_theory, rules=rule_files, budget=Budget(seconds=seconds), **options)


def refuse_idle_seconds(prove: bool) -> None:
    """Refuse a time for proofs where there are none."""
    given = click.get_current_context().get_parameter_source("prove_seconds")
    if not prove and given is not ParameterSource.DEFAULT:
        raise click.UsageError("--prove-seconds is the time of --prove: give that too")
