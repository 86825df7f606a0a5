"""Rules that a corpus needs: found by enumeration, generalised, proved, and ranked by what they save.

As Ruler (Nandi et al., 2021) and Enumo (Pal et al., 2023) do: terms that are equal become candidates, those that the
rules already derive are dropped, what is left is proved. Here candidates come from fragments of the answers to a corpus
(:mod:`eqsat.discover.fragments`), for each of which the cheapest equal term is sought (:mod:`eqsat.discover.search`).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from eqsat.discover.fragments import fragments
from eqsat.discover.generalise import generalise
from eqsat.discover.search import Effort, search
from eqsat.egraph.budget import Budget
from eqsat.egraph.rule import Rule
from eqsat.extract.cost import CostModel, OpCount, PriceError
from eqsat.lang.costs import LATENCY, cost_of, model_of
from eqsat.lang.expr import Expr
from eqsat.lang.text import numbered
from eqsat.lang.traversal import topological
from eqsat.lang.validation import counted, list_of, refuse_seconds
from eqsat.optimizer.front import optimize
from eqsat.prove.proof import RULE_SECONDS
from eqsat.rules import DEFAULT

#: The effort for each fragment in a first round, and in a second after that.
EFFORTS = (Effort(400, 6_000, 2, OpCount()), Effort(3_000, 40_000, 4))
#: How long one case, and one fragment, may take.
CASE, FRAGMENT = Budget(seconds=2.0), Budget(seconds=0.5)


@dataclass(frozen=True)
class Case:
    """Roots that are optimised together, and what is known of them.

    Attributes
    ----------
    roots : tuple of Expr
        The roots.
    constraints : tuple of Expr
        Conditions that hold.
    gates : tuple of (Expr or None)
        Per root the condition under which its value matters; empty for none.
    id : str
        Its name in messages.

    >>> from eqsat.lang.expr import var
    >>> Case((var("i", 0, 9) // 4,)).roots
    (Expr('i//4'),)
    """

    roots: tuple[Expr, ...]
    constraints: tuple[Expr, ...] = ()
    gates: tuple[Expr | None, ...] = ()
    id: str = ""


@dataclass(frozen=True)
class FoundRule:
    """A rule, how it was proved, and what it saves.

    Attributes
    ----------
    rule : Rule
        The rule.
    proof : str
        The kinds of its proof.
    example : str
        The instance that it was made from.
    alone : int
        How much less the corpus costs with this rule and those that were there.
    needed : int
        How much more it costs with all rules that were found but this one, than with all.
    cases : int
        How many cases cost less with this rule.
    """

    rule: Rule
    proof: str
    example: str
    alone: int = 0
    needed: int = 0
    cases: int = 0


@dataclass(frozen=True)
class Discovery:
    """What was found for a corpus.

    Attributes
    ----------
    rules : tuple of FoundRule
        Those that save something, most first.
    before, after : int
        What the corpus costs by the rules that were there, and with those found.
    fragments, pairs : int
        How many fragments were looked at, and of how many a cheaper term was found.
    left_out : tuple of str
        The cases that could not be optimised, each with the reason.
    """

    rules: tuple[FoundRule, ...]
    before: int
    after: int
    fragments: int
    pairs: int
    left_out: tuple[str, ...] = ()


def discover(
    cases: Iterable[Case],
    rules: Sequence[Rule] = DEFAULT,
    *,
    cost: CostModel | str = LATENCY,
    theory: bool = True,
    seconds: float = 60.0,
    advance: Callable[[], object] = lambda: None,
    keep: Callable[[FoundRule], object] = lambda rule: None,
) -> Discovery:
    """Find rules that make the answers to a corpus cheaper.

    Parameters
    ----------
    cases : iterable of Case
        The corpus.
    rules : sequence of Rule
        The rules that are there already: what they derive is not found again.
    cost : CostModel or str
        The cost model or its name, as for :func:`eqsat.optimize`.
    theory : bool
        Whether linear arithmetic is used besides the rules, as for :func:`eqsat.optimize`.
    seconds : float
        How long to look for candidates, in processor time. Ranking comes after that.
    advance : callable
        Called after each fragment.
    keep : callable
        Called with each rule as it is found, before the rules are ranked.

    Raises
    ------
    ModuleNotFoundError
        If z3 is not installed (the extra ``check``).
    ValueError
        If there are less than 0 seconds, or the cost model gives no price.
    TypeError
        If a case is no :class:`Case`, or a rule no :class:`eqsat.Rule`.

    >>> from eqsat.lang.text import parse
    >>> from eqsat.lang.expr import var
    >>> x = var("x", 0, 999)
    >>> found = discover([Case((x // 3 // 5,)), Case((x // 7 // 2 + x,))], [], theory=False)
    >>> [(f.rule.left, f.rule.right, f.rule.when, f.proof, f.alone) for f in found.rules]
    [('x//c//d', 'x//(c*d)', '0 <= d', 'symbolic', 6)]
    """
    refuse_seconds(seconds)
    corpus, known = list_of(Case, cases, "the cases"), list_of(Rule, rules, "the rules")
    return _Search([*corpus], known, model_of(cost), theory, time.process_time() + seconds, keep).run(advance)


@dataclass
class _Search:
    cases: list[Case]
    rules: tuple[Rule, ...]
    cost: CostModel
    theory: bool
    until: float
    keep: Callable[[FoundRule], object]
    found: tuple[FoundRule, ...] = ()
    pairs: int = 0

    def run(self, advance: Callable[[], object]) -> Discovery:
        answers, left_out = self.answers()
        before = [cost_of(answer, self.cost) for answer in answers]
        seen: set[Expr] = set()
        for effort in EFFORTS:
            seen_now: set[Expr] = set()
            known = -1
            # what is found makes other answers, which have other fragments
            while len(self.found) > known and time.process_time() < self.until:
                known = len(self.found)
                waiting = fragments(chain(chain.from_iterable(answers), *[case.roots for case in self.cases]))
                left = [fragment for fragment in waiting if fragment not in seen_now]
                for fragment in sorted(left, key=lambda term: _order(term, waiting)):
                    if time.process_time() > self.until:
                        break
                    self.look_at(fragment, effort)
                    seen_now.add(fragment)
                    advance()
                answers = [self.optimized(case, self.with_rules(self.found)) for case in self.cases]
            seen |= seen_now
        ranked = self.ranked(before)
        after = self.costs(ranked, self.cases) if ranked else before
        return Discovery(ranked, sum(before), sum(after), len(seen), self.pairs, tuple(left_out))

    def answers(self) -> tuple[list[tuple[Expr, ...]], list[str]]:
        """The first answers; cases that have none, as facts that contradict each other, are left out."""
        kept: list[tuple[Case, tuple[Expr, ...]]] = []
        left_out: list[str] = []
        for case in self.cases:
            try:
                kept.append((case, self.optimized(case, self.rules)))
            except PriceError:
                raise
            except ValueError as error:
                left_out.append(f"{case.id or case.roots[0]}: {error}")
        self.cases = [case for case, _ in kept]
        return [answer for _, answer in kept], left_out

    def with_rules(self, found: Sequence[FoundRule]) -> tuple[Rule, ...]:
        return (*self.rules, *[each.rule for each in found])

    def optimized(self, case: Case, rules: tuple[Rule, ...], budget: Budget = CASE) -> tuple[Expr, ...]:
        return optimize(
            case.roots,
            constraints=case.constraints,
            gates=case.gates,
            rules=rules,
            cost=self.cost,
            theory=self.theory,
            budget=budget,
        ).exprs

    def look_at(self, fragment: Expr, effort: Effort) -> None:
        """Find a rule for a fragment that has a cheaper term which the rules do not find."""
        best = search(fragment, fragment, self.cost, effort)
        if best.term is fragment or not _has_plain_conditions(best.term):
            return
        (answer,) = self.optimized(Case((fragment,)), self.with_rules(self.found), FRAGMENT)
        least = cost_of([answer], self.cost)
        if best.cost >= least:
            return
        self.pairs += 1
        name = next(numbered("found-", {rule.name for rule in self.with_rules(self.found)}, 1))
        for left in dict.fromkeys([answer, fragment]):
            left_over = max(0.0, self.until - time.process_time())
            made = generalise(left, best.term, name, min(RULE_SECONDS, left_over))
            if made is not None and self.fires(made[0], fragment, least):
                rule, proof = made
                example = f"{left} = {best.term} for {_ranges(left)}"
                self.found += (FoundRule(rule, " and ".join(proof.kinds), example),)
                self.keep(self.found[-1])
                return

    def fires(self, rule: Rule, fragment: Expr, least: int) -> bool:
        """Whether the rule makes the answer for the fragment that it comes from cheaper."""
        answer = self.optimized(Case((fragment,)), (*self.with_rules(self.found), rule), FRAGMENT)
        return cost_of(answer, self.cost) < least

    def costs(self, found: Sequence[FoundRule], cases: Sequence[Case]) -> list[int]:
        """What the answers to ``cases`` cost with the rules ``found``."""
        rules = self.with_rules(found)
        return [cost_of(self.optimized(case, rules), self.cost) for case in cases]

    def ranked(self, before: list[int]) -> tuple[FoundRule, ...]:
        """The rules that save something on the corpus, those first that save most."""
        if not self.found:
            return ()
        rows = zip(self.cases, before, self.costs(self.found, self.cases), strict=True)
        changed = [(case, old, new) for case, old, new in rows if old != new]
        cases, least = [case for case, _, _ in changed], sum(new for _, _, new in changed)
        kept = list(self.found)
        for each in reversed(self.found):
            # a rule without which nothing costs more is left out, the latest first
            rest = [other for other in kept if other is not each]
            if sum(self.costs(rest, cases)) <= least:
                kept = rest
        ranked = []
        for each in kept:
            saved = [old - new for (_, old, _), new in zip(changed, self.costs([each], cases), strict=True)]
            rest = [other for other in kept if other is not each]
            needed = sum(self.costs(rest, cases)) - least
            ranked.append(replace(each, alone=sum(saved), needed=needed, cases=sum(s > 0 for s in saved)))
        return tuple(sorted(ranked, key=lambda each: (-each.alone, -each.needed)))


def _has_plain_conditions(term: Expr) -> bool:
    """Whether the letters p, q and r, which stand for conditions as ``p != 0``, occur in that form alone."""
    operands = [a for t in topological([term]) if t.op != "ne" for a in t.args]
    return all(a.op != "var" or str(a.value) not in "pqr" for a in (*operands, term))


def _order(term: Expr, counts: Counter[Expr]) -> tuple[int, int, str]:
    """Fragments of few operators first: what is true of them is true of many; of as many, those that are frequent."""
    return sum(bool(t.args) for t in topological([term])), -counts[term], str(term)


def _ranges(term: Expr) -> str:
    names = [t for t in topological([term]) if t.op == "var" and str(t.value) not in "pqr"]
    return ", ".join(f"{v.value} in [{v.vmin}, {v.vmax}]" for v in names)


def to_file(found: Discovery | Sequence[FoundRule]) -> str:
    """The rules as a Python file, as ``--rules`` takes it, each with its proof and what it saves.

    Parameters
    ----------
    found : Discovery, or sequence of FoundRule
        What :func:`discover` returns, or the rules of a search that did not end: what they save is not known.

    >>> print(to_file(Discovery((), 10, 10, 3, 0)), end="")
    # The corpus costs 10 without these rules, 10 with them; 3 fragments, 0 with a cheaper term.
    from eqsat import Rule
    <BLANKLINE>
    FOUND = [
    ]
    """
    if isinstance(found, Discovery):
        said = (
            f"The corpus costs {found.before} without these rules, {found.after} with them; "
            f"{counted(found.fragments, 'fragment')}, {found.pairs} with a cheaper term."
        )
        remarks = [
            (each, f"{each.proof}; saves {each.alone} alone, in {cases}, {each.needed} beside the others")
            for each in found.rules
            for cases in [counted(each.cases, "case")]
        ]
    else:
        said = "The search did not end: what these rules save is not known."
        remarks = [(each, each.proof) for each in found]
    lines = [f"# {said}", "from eqsat import Rule", "", "FOUND = ["]
    for each, remark in remarks:
        rule = each.rule
        lines += [
            f"    # {remark}",
            f"    # {each.example}",
            f'    Rule("{rule.name}", "{rule.left}", "{rule.right}", "{rule.when}"),',
        ]
    return "\n".join([*lines, "]", ""])
