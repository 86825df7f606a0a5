"""A result as one page of HTML that needs nothing else: what was found, how, and the e-graph to open class by class.

``page.html`` is the page, with its style and its script; the data of a result is put into it as JSON.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from eqsat.codegen.expressions import to_c
from eqsat.explain.derivation import explain, statement
from eqsat.extract.cost import CostModel
from eqsat.extract.graph import Node
from eqsat.extract.select import Priced, tree, trees
from eqsat.lang.costs import prices
from eqsat.lang.expr import Expr, brief
from eqsat.lang.ops import OPS, REDUCTIONS
from eqsat.lang.terms import term_of_node, terms_of
from eqsat.lang.text import to_program
from eqsat.lang.traversal import topological
from eqsat.optimizer.canonical_terms import canonical_terms
from eqsat.optimizer.matcher import Matcher
from eqsat.optimizer.result import Result

#: Characters of a term in a table.
MOST_SHOWN = 120
#: Seconds for the derivation, and for where the rules match.
EXPLAINING, MATCHING = 2.0, 0.5
#: The places that are shown of each rule.
MOST_PLACES = 5


def to_html(result: Result) -> str:
    """The page of a result; see :meth:`eqsat.optimizer.result.Result.to_html`."""
    # a script ends where its end is written, even within a text
    data = json.dumps(content(result)).replace("<", "\\u003c")
    return files("eqsat.cli").joinpath("page.html").read_text(encoding="utf-8").replace("@DATA@", data)


def content(result: Result) -> dict[str, Any]:
    """What the page shows, as JSON has it."""
    derivation = str(explain(result, seconds=EXPLAINING))
    try:
        c = to_c(result.exprs)
    except ValueError as error:
        c = f"none: {error}"
    laws = {rule.name: statement(rule) + (f"  ({rule.why})" if rule.why else "") for rule in result.rule_set}
    places = _places(result)
    return {
        "summary": str(result).splitlines()[-1],
        "constraints": [brief(fact, MOST_SHOWN) for fact in result.constraints],
        "gates": [None if gate is None else brief(gate, MOST_SHOWN) for gate in result.gates],
        "input": _priced(result.before, result.model),
        "answer": _priced(result.exprs, result.model),
        "rounds": [[r.run, r.number, r.nodes, r.classes, r.matches, 1000 * r.seconds] for r in result.trace.rounds],
        "not_entered": result.trace.not_entered,
        "phases": {name: 1000 * seconds for name, seconds in result.trace.phases.items()},
        "sources": dict(result.trace.alternatives),
        "rules": [
            [name, use.matches, None if use.seconds is None else 1000 * use.seconds, laws.get(name, ""), places[name]]
            for name, use in sorted(result.trace.rules.items(), key=lambda item: -item[1].matches)
        ],
        "derivation": derivation,
        "c": c,
        **_graph(result),
    }


def _priced(roots: Sequence[Expr], model: CostModel) -> dict[str, Any]:
    """The roots as a program, and what each of their terms costs, the most expensive first."""
    lets, texts = to_program(roots)
    terms = topological(roots)
    costs = sorted(zip(prices(terms, getattr(model, "model", model)), terms, strict=True), key=lambda pair: -pair[0])
    return {
        "program": [*(f"{name} = {text}" for name, text in lets), *texts],
        "terms": [[brief(term, MOST_SHOWN), price] for price, term in costs if price],
    }


def _graph(result: Result) -> dict[str, Any]:
    """The e-graph: by class its bounds, and its nodes with their texts, prices, and whether the answer has them."""
    if result.snapshot is None:
        return {"roots": [], "classes": {}}
    graph, choice = result.built.graph, result.built.choice
    priced = Priced.of(graph, result.model)
    cheapest, _ = trees(priced)
    classes = {}
    for c, nodes in graph.classes.items():
        found = []
        for node, price in zip(nodes, priced.prices[c], strict=True):
            total = price + sum(cheapest.get(a, 0) for a in dict.fromkeys(node[2]))
            found.append([_parts(node), price, total, choice.get(c) == node])
        low, high = graph.bounds[c]
        # those of the answer first, then the cheapest
        classes[c] = [f"[{low}, {high}]", sorted(found, key=lambda row: (not row[3], row[2]))]
    return {"roots": graph.roots, "classes": classes}


def _places(result: Result) -> dict[str, list[tuple[int, str, str]]]:
    """Where the e-graph has the left sides of the rules that fired: the class, a term of it, and what that becomes.

    A term is an e-node over the cheapest terms of its operands, so not every match of the run is among them.
    """
    found: dict[str, list[tuple[int, str, str]]] = {name: [] for name in result.trace.rules}
    if result.snapshot is None or not found:
        return found
    built = result.built
    cheapest = tree(Priced.of(built.graph, result.model))
    terms = terms_of(cheapest, cheapest, built.leaves, built.narrower.get)
    matcher = Matcher([rule for rule in result.rule_set if rule.name in found])
    deadline = time.monotonic() + MATCHING
    nodes = [(c, node) for c, of in built.graph.classes.items() for node in of if terms.keys() >= set(node[2])]
    for c, node in nodes:
        if time.monotonic() > deadline:
            break
        (term,) = canonical_terms([term_of_node(node, [terms[a] for a in node[2]], built.leaves)])
        for name, other in matcher.rewrites(term):
            place = (c, brief(term, MOST_SHOWN), brief(other, MOST_SHOWN))
            if len(found[name]) < MOST_PLACES and place not in found[name]:
                found[name].append(place)
    return found


def _parts(node: Node) -> list[str | int]:
    """The text of a node, and among it the numbers of its operands' classes."""
    op, payload, operands = node
    if isinstance(payload, tuple):
        constant, coefficients = payload
        parts: list[str | int] = []
        for k, a in zip(coefficients, operands, strict=True):
            signs = (" + ", " - ") if parts else ("", "-")
            parts += [signs[k < 0] + (f"{abs(k)}*" if abs(k) != 1 else ""), a]
        return [*parts, f" {'-' if constant < 0 else '+'} {abs(constant)}"] if constant else parts
    if not operands:
        return [str(payload)]
    symbol = OPS[op].symbol if op in OPS else ""
    if symbol and len(operands) == 1:
        return [f"{symbol} ", operands[0]]
    if symbol:
        return [operands[0], f" {symbol} ", operands[1]]
    name = REDUCTIONS[op].text if op in REDUCTIONS else op
    listed = [part for a in operands for part in (", ", a)]
    return [f"{name}(", *listed[1:], ")"]
