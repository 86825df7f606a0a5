"""What ``eqsat rules`` says of a rule: a line, its details, its proof, and where it fires."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from eqsat.cli.files import progress, say_left_out
from eqsat.cli.records import Row
from eqsat.cli.rulesets import LISTED
from eqsat.egraph.rule import Rule
from eqsat.lang.validation import counted
from eqsat.optimizer.front import optimize

if TYPE_CHECKING:
    from eqsat.cli.cases import Case

#: The number of cases that are named in which a rule matches.
_MOST_PLACES = 5
#: The width of the column of names: the longest of a shipped rule fits.
_NAME = 32


def matched_in(cases: Sequence[Case], rules: Sequence[Rule] | None) -> dict[str, dict[str, int]]:
    """By the names of rules, the cases in which they match, and how often."""
    found: dict[str, dict[str, int]] = defaultdict(dict)
    with progress(len(cases)) as advance:
        for case in cases:
            advance()
            try:
                result = optimize(case.exprs, gates=case.gates, constraints=case.constraints, rules=rules)
            except ValueError as error:
                say_left_out(f"{case.id}: {error}")
                continue
            for name, use in result.trace.rules.items():
                found[name][str(case.id)] = use.matches
    return found


def row_of(rule: Rule, in_detail: bool, seconds: float | None, matches: dict[str, dict[str, int]] | None) -> Row:
    """What is said of a rule, of one in detail more; with a proof that may take ``seconds``, and where it matches."""
    row: Row = {key: getattr(rule, key) for key in ("name", "left", "right", "when", "beside", "why", "both_ways")}
    if in_detail:
        row |= _details(rule)
    if matches is not None:
        row["fires"] = matches.get(rule.name, {})
    return row if seconds is None else row | _proved(rule, seconds)


def line_of(row: Row) -> str:
    """A rule as a line, with how it was proved, and where it fires; one in detail with a line for each of these."""
    if "example" in row:
        return _shown_in_detail(row)
    fires = f"; fires {_fires_line(row)}" if "fires" in row else ""
    if "proof" in row:
        return f"{row['name']:<{_NAME}} {_kinds(row):<28} {row['ms']:>8.1f} ms  {row['how']}{fires}"
    asked = "".join(f"  {word} {row[word]}" for word in ("beside", "when") if row[word])
    return f"{row['name']:<{_NAME}} {_rewrite(row)}{asked}  # {row['why']}{fires}"


def _details(rule: Rule) -> Row:
    from eqsat.prove.proof import example

    family = next((name for name, members in LISTED.items() if rule in members), None)
    found = example(rule)
    return {
        "family": family,
        "source": rule.source,
        "example": None if found is None else {"values": found.values, "both sides": found.value},
    }


def _shown_in_detail(row: Row) -> str:
    lines = {"rule": f"{row['name']}  ({row['family'] or 'of your own'})"}
    lines["rewrites"] = _rewrite(row)
    lines |= {"beside": row["beside"], "guard": row["when"] or "none", "why": row["why"], "source": row["source"]}
    if example := row["example"]:
        values = ", ".join(f"{name} = {value}" for name, value in example["values"].items())
        lines["example"] = f"with {values} both sides are {example['both sides']}"
    if "fires" in row:
        lines["fires"] = _fires_line(row)
    if "proof" in row:
        lines["proof"] = f"{_kinds(row)}: {row['how']} ({row['ms']} ms)"
    return "\n".join(f"{name:<10}{text}" for name, text in lines.items() if text)


def _proved(rule: Rule, seconds: float) -> Row:
    from eqsat.prove.proof import prove_rule

    started = time.perf_counter()
    proof = prove_rule(rule, seconds)
    if proof.counterexample is not None:
        raise ValueError(str(proof.counterexample))
    elapsed = round(1000 * (time.perf_counter() - started), 1)
    return {"proof": list(proof.kinds), "how": proof.how, "ms": elapsed}


def _kinds(row: Row) -> str:
    return " and ".join(row["proof"]) or "none"


def _fires_line(row: Row) -> str:
    """Where a rule matches, most often first."""
    often = sorted(row["fires"].items(), key=lambda place: -place[1])
    shown = ", ".join(f"{case} ({count})" for case, count in often[:_MOST_PLACES])
    more = f", and {len(often) - _MOST_PLACES} more" if len(often) > _MOST_PLACES else ""
    return f"in {counted(len(often), 'case')}: {shown}{more}" if often else "in no case"


def _rewrite(row: Row) -> str:
    return f"{row['left']} {'<->' if row['both_ways'] else '->'} {row['right']}"
