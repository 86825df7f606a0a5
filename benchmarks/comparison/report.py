"""The report of a run: Markdown, and one HTML page made of it that holds its plots."""

from __future__ import annotations

import base64
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

from markdown_it import MarkdownIt

from comparison import orders
from comparison.greedy_steps import ORDERS as TRIED
from comparison.greedy_steps import Attempt, Walkthrough
from comparison.run import INPUT
from comparison.solvers import ABOUT, EQSAT, OURS
from comparison.summary import (
    BEST,
    LEAST_NS,
    SLOWER,
    alone,
    beaten,
    cheapest_peers,
    families,
    parts_of,
    peers_of,
    slower,
    slowest,
    standing,
    with_best,
)
from eqsat.cli.records import Row
from eqsat.egraph.rule import Rule
from eqsat.lang.expr import Expr

#: Lines of a list before it is cut short, characters of a term in it, families, cases that make one, and slow cases.
MOST_LINES, MOST_TEXT, MOST_FAMILIES, LEAST_MEMBERS, MOST_SLOW = 10, 70, 12, 5, 8

#: The columns that the headline leaves out in another file.
LONG = ("p95", "over eqsat")

#: What surrounds the headline in another file.
OPENING, CLOSING = "<!-- comparison -->", "<!-- /comparison -->"

CAPTIONS = {
    "cost": "Cost of each solver's answers over the least cost of all, over the cases",
    "time": "Time of each solver over eqsat's, over the cases",
    "compiled": "Run time of each solver's compiled answers over that of eqsat's, over the cases",
    "orders": "Costs over all orders of rules and operands, for each kernel, over eqsat's",
}

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 75em; margin: 2em auto; padding: 0 1em; color: #222 }
table { border-collapse: collapse; font-size: 13px; display: block; overflow-x: auto }
td, th { border-bottom: 1px solid #ddd; padding: 3px 9px; text-align: left; vertical-align: top }
td[style*=right], th[style*=right] { font-variant-numeric: tabular-nums; white-space: nowrap }
code { font-size: 12px } img { max-width: 100% }
"""

LEGEND = """\
How many distinct divisions and remainders are left, and what all answers cost, in total over the cases; on how many of
them eqsat's answer costs less than this one (wins), the same (ties), more (loses); time to simplify over eqsat's; run
time of compiled answers over the input's and over eqsat's, on the cases where both could be measured; cases with a
wrong answer, and those stopped by a limit or failed."""

TIME = """\
## Time

Where eqsat's time goes: {shares} in the theory and in writing its normal forms. The cases that take it longest, in
multiples of its median:"""

ORDERS = """\
## The order of rules and operands

{kernels} kernels, each solved in {orders} orders: operands, brackets, roots and facts shuffled, the rules in another
order, and those that work both ways turned. Costs are totals over the kernels: each in its cheapest order, in the order
given, and in its most expensive; and the least and the most that one and the same order gives them all."""

STEPS = """\
## Greedy rewriting, step by step

Kernels that cost more by greedy rewriting than by equality saturation. *Within reach* is the least cost that greedy
rewriting gets to from that step on, whichever of {orders} orders of the rules it takes. Where it rises, the step has
destroyed what a cheaper answer needs; where it is above eqsat's cost from the start, the answer needs a step that no
greedy rewriter takes, because something costs more first."""

HOW = """\
## How it was measured

All solvers answer a case before the next one begins, in an order that changes from case to case. Each is given the same
terms in its own data structures, with the same ranges and constraints{gates}. `benchmarks/peers/README.md` says how
each peer is run.

* **Answers** are checked by one checker (all points if there are few, else corners and a sample; a wrong one counts as
  no answer, and the case stays as it was) and priced by one cost model, `{cost}`, every shared subterm once. A peer
  that can simplify in several ways counts by its cheapest right answer, root by root, and its answer is written with
  our operators before it is priced: `x + y*-8` is `x - y*8`.
* **Time** is CPU time of one thread in the simplifier: conversion from and to our terms is excluded, everything that
  the solver does to simplify is included, for eqsat the whole call of `optimize`. For a peer with several ways it ends
  when the one that counts was known, so that the others cost it nothing. What is built once per process (rules,
  patterns) is not counted, and memories are cleared from case to case. Others run in between, so that everybody meets
  cold caches, which doubles the time of small cases. A peer has {seconds:g} s of it for a case; eqsat has 2 s of the
  clock, greedy rewriting 60 s. Only ratios mean anything; they are over eqsat's median, 95th percentile and total.
* **Compiled**: each answer as a C function of all roots, `-O2`, scalar, in a loop over points of the domain; the input
  too, which is what the C compiler makes of it unaided. Measured {repeats} times in random turns, the median counts;
  equal answers are one program. Where a peer's answer seems to be faster than eqsat's, all of the case are measured
  again, three times as often. Answers of more than 2000 terms are not compiled. Geometric means.
"""


@dataclass(frozen=True)
class Run:
    """Everything that a report tells."""

    #: Of the run's file; see :mod:`comparison.run`.
    head: Mapping[str, Any]
    rows: Sequence[Row]
    #: What made this.
    command: str
    #: Of the order study; may be empty.
    orders: Sequence[Row] = ()
    walkthroughs: Sequence[Walkthrough] = field(default_factory=list)

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings of the run."""
        return self.head["settings"]


def table(head: Sequence[str], lines: Iterable[Sequence[object]], words: int = 1) -> str:
    r"""A Markdown table; all columns but the first ``words`` are aligned to the right.

    >>> print(table(["a", "b"], [["x|y", 1]]))
    | a | b |
    |---|---:|
    | x\|y | 1 |
    """
    rule = "|" + "|".join(["---"] * words + ["---:"] * (len(head) - words)) + "|"
    cells = [[str(cell).replace("|", "\\|") for cell in line] for line in lines]
    return "\n".join(["| " + " | ".join(head) + " |", rule, *["| " + " | ".join(line) + " |" for line in cells]])


PURPOSE = """\
This page compares what eqsat, greedy rewriting by the same rules, and other simplifiers make of the same inputs: what
is left to compute, what that costs, and how long they and their answers take."""


def markdown(run: Run, plots: Mapping[str, str]) -> str:
    """The report; ``plots`` are addresses of images by name."""
    parts = [
        "# eqsat, greedy rewriting and other simplifiers, compared",
        PURPOSE,
        what(run),
        f"    {run.command}",
        "## Result",
        headline(run),
        _legend(run),
        *_plot(plots, "cost"),
        _time(run.rows),
        *_plot(plots, "time"),
        _compiled(run),
        *_plot(plots, "compiled"),
        "## By family",
        _by_family(run.rows),
        _listed("Where eqsat is not the best", "some peer's answer costs less", beaten(run.rows), run.rows),
        _listed("Where eqsat alone is the best", "every peer's answer costs more", alone(run.rows), run.rows),
    ]
    if run.orders:
        parts += [_order_study(run.orders), *_plot(plots, "orders")]
    if run.walkthroughs:
        parts.append(_steps(run.walkthroughs))
    told = ", and the condition under which each root matters (its gate)" if run.settings["gates"] else ""
    how = {"gates": told, **{key: run.settings[key] for key in ("cost", "seconds", "repeats")}}
    parts.append(HOW.format(**how))
    return "\n\n".join(part for part in parts if part) + "\n"


def html(text: str, directory: Path) -> str:
    """The page of a report: its images, whose addresses are relative to ``directory``, become part of it."""
    body = MarkdownIt("commonmark").enable("table").render(text)

    def embedded(match: re.Match[str]) -> str:
        image = base64.b64encode((directory / match[1]).read_bytes()).decode()
        return f'src="data:image/png;base64,{image}"'

    body = re.sub(r'src="([^":]+\.png)"', embedded, body)
    title = text.partition("\n")[0].lstrip("# ")
    head = f'<meta charset="utf-8"><title>{title}</title><style>{STYLE}</style>'
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n{body}</body></html>\n'


def insert(text: str, headline: str) -> str:
    """``text`` with what stands between the two marks replaced.

    Raises ``ValueError`` if there are no marks.
    """
    before, opening, rest = text.partition(OPENING)
    _, closing, after = rest.partition(CLOSING)
    if not opening or not closing:
        raise ValueError(f"no place for the headline: write {OPENING} and {CLOSING} where it belongs")
    return f"{before}{opening}\n{headline}\n{closing}{after}"


def headline(run: Run, short: bool = False) -> str:
    """The table of all solvers; if ``short``, without the variants of eqsat, the 95th percentile and the last ratio."""
    rows = [with_best(row) for row in run.rows]
    names = [name for name in rows[0]["answers"] if not short or name not in OURS or name in (EQSAT, orders.GREEDY)]
    before = [row["before"] for row in rows]
    lines: list[list[object]] = [
        [INPUT, sum(b["divmod"] for b in before), sum(b["cost"] for b in before), *[""] * 6, *_inputs(rows), "", ""]
    ]
    for name in names:
        line = standing(rows, name)
        title = f"**{name}**" if name == EQSAT else f"{name} {run.head['versions'].get(name, '')}".strip()
        outcome = ["", "", ""] if name == EQSAT else [line.wins, line.ties, line.losses]
        times = [f"{ratio:.2f}" for ratio in (line.median, line.p95, line.total)]
        compiled = ["" if value is None else f"{value:.3f}" for value in (line.compiled, line.speedup)]
        trouble = [line.wrong or "", line.failed or ""]
        lines.append([title, line.divisions, line.cost, *outcome, *times, *compiled, *trouble])
    head = ["", "div+mod", "cost", "eqsat wins", "ties", "loses", "median", "p95", "total", "compiled", "over eqsat"]
    head += ["wrong", "unfinished"]
    shown = [place for place, title in enumerate(head) if not short or title not in LONG]
    return table([head[place] for place in shown], [[line[place] for place in shown] for line in lines])


def _inputs(rows: Sequence[Row]) -> list[str]:
    """The run time of the inputs over itself and over eqsat's answers."""
    timed = [(row["before"]["ns"], row["answers"][EQSAT].get("ns")) for row in rows if "ns" in row["before"]]
    ratios = [before / our for before, our in timed if our is not None]
    return ["1.000", f"{geometric_mean(ratios):.3f}"] if ratios else ["", ""]


def what(run: Run) -> str:
    """What was run, and where: cases and corpora, the machine, and the peers that could not be had."""
    counts = Counter(row["corpus"] for row in run.rows)
    corpora = ", ".join(f"{count} of {name}" for name, count in counts.items())
    machine = run.head["machine"]
    where = f"{machine['processor']}, {machine['cores']} cores, Python {machine['python']}, {machine['compiler']}"
    text = f"{len(run.rows)} cases ({corpora}), gates {'used' if run.settings['gates'] else 'ignored'}. {where}."
    missing = "\n".join(f"* Not compared: {reason}" for reason in run.head["missing"].values())
    return f"{text}\n\n{missing}" if missing else text


def _legend(run: Run) -> str:
    names = list(run.rows[0]["answers"])
    lines = [LEGEND, "\n".join(f"* `{name}`: {ABOUT[name]}" for name in names)]
    if peers := peers_of(run.rows):
        lines.append(f"`{BEST}` takes each case's cheapest answer of {', '.join(peers)}, and all their time.")
    return "\n\n".join(lines)


def _plot(plots: Mapping[str, str], name: str) -> list[str]:
    return [f"![{CAPTIONS[name]}]({plots[name]})\n\n*{CAPTIONS[name]}.*"] if name in plots else []


def _time(rows: Sequence[Row]) -> str:
    parts = parts_of(rows)
    shares = ", ".join([*[f"{share:.0%} in {name}" for name, share in parts.items()], f"{1 - sum(parts.values()):.0%}"])
    middle = median(row["answers"][EQSAT]["ms"] for row in rows)
    names = [EQSAT, *peers_of(rows)]
    lines = []
    for row in slowest(rows, MOST_SLOW):
        times = [f"{row['answers'][name]['ms'] / middle:.1f}" for name in names]
        lines.append([f"`{row['id']}`", row["nodes"], *times])
    return f"{TIME.format(shares=shares)}\n\n{table(['case', 'terms', *names], lines)}"


def _compiled(run: Run) -> str:
    timed = sum("ns" in row["answers"][EQSAT] for row in run.rows)
    if not timed:
        return ""
    names = peers_of(run.rows)
    lines = [f"{timed} of {len(run.rows)} cases could be compiled and measured."]
    if names:
        over = {name: standing(run.rows, name).speedup for name in names}
        ratio, fastest = min((ratio, name) for name, ratio in over.items() if ratio is not None)
        lines.append(f"eqsat's answers take {1 / ratio:.3f} of the run time of those of the fastest peer, {fastest}.")
        losses = slower(run.rows)
        beyond = f"faster by more than {SLOWER - 1:.0%} and {LEAST_NS} ns"
        lines.append(f"On {len(losses) or 'none'} of the cases some peer's answer is {beyond}{':' if losses else '.'}")
        cells = [
            [f"`{row['id']}`", name, f"{ratio:.2f}", *[row["answers"][of]["cost"] for of in (EQSAT, name)]]
            for row, name, ratio in losses
        ]
        if losses:
            head = ["case", "fastest peer", "eqsat's time over its", "cost, eqsat", "cost, peer"]
            lines.append(table(head, cells[:MOST_LINES], words=2))
        lines += _more(cells)
    return "## Compiled\n\n" + "\n\n".join(lines)


def _more(lines: Sequence[object]) -> list[str]:
    return [f"and {len(lines) - MOST_LINES} more."] if len(lines) > MOST_LINES else []


def _by_family(rows: Sequence[Row]) -> str:
    names = [name for name in with_best(rows[0])["answers"] if name != EQSAT]
    lines = []
    for family, members in families(rows, LEAST_MEMBERS, MOST_FAMILIES).items():
        members = [with_best(row) for row in members]
        ours = standing(members, EQSAT)
        others = [standing(members, name) for name in names]
        cells = [f"{(other.cost + 1) / (ours.cost + 1):.2f}" for other in others]
        lines.append([family, len(members), ours.divisions, ours.cost, *cells])
    note = "Cost over eqsat's, 1 added to both; a case counts in each family that its corpus tags it with."
    return f"{note}\n\n{table(['family', 'cases', 'div+mod, eqsat', 'cost, eqsat', *names], lines)}"


def _listed(title: str, what: str, found: Sequence[Row], rows: Sequence[Row]) -> str:
    """The cases ``found`` of which ``what`` is true, against the cheapest peer."""
    if not peers_of(rows):
        return ""
    lines = [_line(row) for row in found]
    said = f"Of {len(rows)} cases there is none on which {what}."
    if found:
        said = f"On {len(found)} of {len(rows)} cases ({len(found) / len(rows):.1%}) {what}."
    parts = [f"## {title}", said]
    if lines:
        parts.append(table(["case", "eqsat", "best", "of", "eqsat's answer", "the best"], lines[:MOST_LINES], words=6))
    return "\n\n".join([*parts, *_more(lines)])


def _line(row: Row) -> list[object]:
    peers = cheapest_peers(row)
    ours, theirs = row["answers"][EQSAT], row["answers"][peers[0]]
    return [f"`{row['id']}`", ours["cost"], theirs["cost"], ", ".join(peers), _short(ours), _short(theirs)]


def _short(answer: Row) -> str:
    """The roots of an answer, if they are short enough to be read in a table."""
    text = "; ".join([*[f"{name} = {term}" for name, term in answer.get("lets", [])], *answer["out"]])
    return f"`{text}`" if len(text) <= MOST_TEXT else "…"


def _order_study(study: Sequence[Row]) -> str:
    found = orders.summary(study)
    columns = ("vary", "least", "given", "most")
    lines = [
        [name, *[line[key] for key in columns], f"{min(line['orders'])} to {max(line['orders'])}"]
        for name, line in found.items()
    ]
    text = ORDERS.format(kernels=found[EQSAT]["kernels"], orders=len(study))
    head = ["kernels whose cost depends on the order", "cheapest", "as given", "most expensive", "one order for all"]
    return f"{text}\n\n{table(['', *head], lines)}"


def _steps(walkthroughs: Sequence[Walkthrough]) -> str:
    walks = [_walk(number, walk) for number, walk in enumerate(walkthroughs, start=1)]
    return "\n\n".join([STEPS.format(orders=len(TRIED)), *walks])


def _walk(number: int, walk: Walkthrough) -> str:
    lines = [[_rule(step.rule), _terms(step.roots), step.reachable] for step in walk.steps]
    lost = [f"`{step.rule.name}`" for step in walk.lost if step.rule]
    undone = f", and what {' and '.join(lost)} {'do' if len(lost) > 1 else 'does'} cannot be undone" if lost else ""
    parts = [
        f"### {number}. `{walk.item.case.id}`",
        table(["rule", "the kernel after it", "within reach"], lines, words=2),
        f"Cost {walk.cost}{undone}. eqsat: **{walk.saturated_cost}**, {_terms(walk.saturated)}.",
    ]
    if walk.best.cost < walk.cost:
        parts.append(f"* {_attempt('The cheapest', walk.best)}")
    if walk.worst.cost > walk.cost:
        parts.append(f"* {_attempt('The most expensive', walk.worst)}")
    return "\n\n".join(parts)


def _rule(rule: Rule | None) -> str:
    return "the input" if rule is None else f"`{rule.name}`: `{rule.left}` → `{rule.right}`"


def _attempt(which: str, attempt: Attempt) -> str:
    """In one line what another order does, each rule told once."""
    rules = "; ".join(dict.fromkeys(_rule(rule) for rule in attempt.rules))
    return f"{which} other order reaches {attempt.cost}, {_terms(attempt.roots)}, by {rules or 'no rule'}."


def _terms(roots: Sequence[Expr]) -> str:
    return "; ".join(f"`{root}`" for root in roots)
