"""What is compared: eqsat in several configurations, the greedy baseline, and the peers, behind one call."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from time import thread_time
from typing import Any

from peers import PEERS
from peers.environment import UnavailableError
from peers.judge import Answer, Examiner
from peers.session import Session
from peers.spelling import to_request

from eqsat.egraph.budget import Budget
from eqsat.egraph.tables import read_all_rules
from eqsat.optimizer.front import optimize

#: A solver answers the case that an examiner knows.
Solver = Callable[[Examiner], Answer]

#: The configuration that everything else is compared with.
EQSAT = "eqsat"

#: The options of :func:`eqsat.optimize` per configuration.
OURS: dict[str, dict[str, Any]] = {
    EQSAT: {},
    "eqsat tree": {"extract": "tree"},
    "eqsat exact": {"extract": "exact"},
    "rules alone": {"theory": False},
    "theory alone": {"engine": "theory"},
    # a baseline that runs out of time would flatter us
    "greedy": {"engine": "greedy", "budget": Budget(seconds=60.0)},
}

#: What each configuration is, for the report.
ABOUT = {
    EQSAT: "the default: theory and rules, shared subterms paid once",
    "eqsat tree": "the same, extraction pays every use of a subterm",
    "eqsat exact": "the same, extraction proves the optimum over the e-graph (HiGHS)",
    "rules alone": "equality saturation by the rules in egglog, without the theory",
    "theory alone": "the normal form of linear integer arithmetic, without rules",
    "greedy": "the same rules, applied one after the other and destructively",
} | {peer.name: peer.about for peer in PEERS.values()}


def ours(name: str) -> Solver:
    """One of our configurations."""
    return configured(name, OURS[name])


def configured(name: str, options: Mapping[str, Any]) -> Solver:
    """A solver with some options of eqsat's; the time is that of its thread in :func:`eqsat.optimize`."""
    # egglog is entered whichever family of rules is left out, and reads all rules, as it does once per process
    optimize(["where(x < y, x, 2)//3", "x == 7 or x < 3", "x%7 + x//7*5"], x=(0, 9), y=(0, 9), **options)
    read_all_rules()

    def solve(examiner: Examiner) -> Answer:
        case = examiner.case
        start = thread_time()
        result = optimize(
            case.exprs,
            gates=case.gates if examiner.gates else (),
            constraints=case.constraints,
            cost=examiner.model,
            **options,
        )
        milliseconds = 1e3 * (thread_time() - start)
        stopped = "" if result.stop == "saturated" else f"stopped by the budget of {result.stop}"
        # of its parts the result knows the time on the wall
        share = milliseconds / result.milliseconds
        parts = {"rules": share * result.engine_milliseconds, "extraction": share * result.extraction_milliseconds}
        return replace(examiner.answer(result.exprs, name, milliseconds, stopped), parts=parts)

    return solve


def peer(session: Session, seconds: float) -> Solver:
    """A running peer, with ``seconds`` of CPU time for a case."""

    def solve(examiner: Examiner) -> Answer:
        return examiner.judge(session.ask(to_request(examiner.case, examiner.gates, seconds)))

    return solve


def start(
    names: Sequence[str], pythons: Mapping[str, str], cache: Path, running: ExitStack, announce: Callable[[str], object]
) -> tuple[dict[str, Session], dict[str, str]]:
    """The peers that can be had, started, and of the others the reason; ``running`` ends them.

    The first start of a peer builds its environment, which may take minutes: ``announce`` is told who is next.
    """
    sessions: dict[str, Session] = {}
    missing: dict[str, str] = {}
    for name in names:
        announce(name)
        try:
            sessions[name] = running.enter_context(PEERS[name].session(cache, pythons.get(name, sys.executable)))
        except UnavailableError as reason:
            missing[name] = str(reason)
    return sessions, missing
