"""An egglog program that is compiled once, and whose tables are emptied after each use."""

from __future__ import annotations

from typing import Any

from eqsat.egraph.bindings import bindings


class WarmProgram:
    """A running egglog program.

    Parameters
    ----------
    text : str
        Sorts, tables, rules: all but rows.
    lasts : int
        egglog keeps every script, and looks at it again and again: after this number of characters the program is worn
        out.

    Raises
    ------
    ValueError
        If egglog refuses the text.
    """

    def __init__(self, text: str, lasts: int) -> None:
        egglog = bindings()
        #: egglog's own object.
        self.egraph: Any = egglog.EGraph()
        self._lasts = lasts
        self._scripts = 0
        try:
            self.run(text)
            self.run(self._clearing())
        except egglog.EggSmolError as error:
            raise ValueError(f"egglog refuses the rules: {error}") from None
        self._scripts = 0
        #: Whether a new program would be smaller and faster by now.
        self.is_worn = False

    def run(self, text: str) -> list[Any]:
        """What egglog answers to each command of a script."""
        self._scripts += len(text)
        self.is_worn = self._scripts > self._lasts
        answers: list[Any] = self.egraph.run_program(*self.egraph.parse_program(text))
        return answers

    def clear(self) -> None:
        """Empty every table: push and pop would copy all rules each time."""
        self.run("(run clear 1)")

    def _clearing(self) -> str:
        lines = ["(ruleset clear)"]
        for name, table in self.egraph.freeze().functions.items():
            row = f"({name} {' '.join(f'x{index}' for index in range(len(table.input_sorts)))})"
            if not table.is_let_binding:
                lines.append(f"(rule ((= o {row})) ((delete {row})) :ruleset clear :internal-include-subsumed)")
        return "\n".join(lines)
