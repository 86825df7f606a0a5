"""egglog's extension module, without the Python language around it, and programs that it runs.

eqsat writes egglog's own language. The package ``egglog`` imports another one for Python, with what prints and draws
it, which takes longer than most answers; so the extension is loaded alone. It cannot be loaded twice: an import of the
package after that is given the module that is there.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec, module_from_spec, spec_from_loader
from threading import Lock, Thread
from types import ModuleType
from typing import Any, cast

_NAME = "egglog.bindings"
_lock = Lock()
# a forked process has no copy of a thread that holds the lock, so nobody would release it there
os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)
_loaded: list[ModuleType] = []


def bindings() -> Any:
    """The extension module; raises ``ImportError`` if egglog is not installed."""
    if not _loaded:
        # signals interrupt the main thread only; an extension that is half loaded could not be loaded again
        errors: list[BaseException] = []
        loader = Thread(target=_load, args=(errors,))
        loader.start()
        loader.join()
        if errors:
            raise errors[0]
    return _loaded[0]


def _load(errors: list[BaseException]) -> None:
    with _lock:
        if not _loaded:
            try:
                _loaded.append(import_module(_NAME) if "egglog" in sys.modules else _alone())
            except BaseException as error:
                errors.append(error)


def _alone() -> ModuleType:
    package = find_spec("egglog")
    spec = package and PathFinder.find_spec(_NAME, package.submodule_search_locations)
    if not spec or not spec.loader:
        return import_module(_NAME)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.meta_path.insert(0, cast(Any, _Given(module)))
    return module


class _Given:
    """Imports a module that is loaded already; it needs no base of ``importlib.abc``, which takes long to import."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def find_spec(self, fullname: str, *_: object) -> ModuleSpec | None:
        return spec_from_loader(fullname, cast(Any, self)) if fullname == _NAME else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        pass


#: Of script that takes as much memory as what one match makes.
CHARACTERS_PER_MATCH = 10


class WarmProgram:
    """A running egglog program.

    ``text`` has sorts, tables, rules: all but rows. ``lasts`` is the number of characters of script after which it is
    worn out: egglog keeps every script and looks at all of them again. Each match counts as ``CHARACTERS_PER_MATCH``:
    what it made stays in memory, though its row goes. Raises ``ValueError`` if egglog refuses the text.
    """

    def __init__(self, text: str, lasts: int) -> None:
        #: egglog's own object. If it took queries apart, it would evaluate their parts even where nothing is new.
        self.egraph: Any = bindings().EGraph(no_decomp=True)
        self._lasts = lasts
        self._scripts = 0
        self._cleared: set[str] = set()
        self.extend(f"(ruleset clear) {text}")

    @property
    def is_worn(self) -> bool:
        """Whether a new program would be smaller and faster by now."""
        return self._scripts > self._lasts

    def extend(self, text: str) -> None:
        """Read more sorts, tables and rules; raises ``ValueError`` if egglog refuses them."""
        scripts = self._scripts
        try:
            self.run(text)
            self.run("\n".join(self._clearing()))
        except bindings().EggSmolError as error:
            raise ValueError(f"egglog refuses the rules: {error}") from None
        # declarations and rules are read once: they do not wear the program out
        self._scripts = scripts

    def run(self, text: str) -> list[Any]:
        """What egglog answers to each command of a script."""
        self._scripts += len(text)
        # commands as Python objects would cost more than most of them take to run
        try:
            answers: list[Any] = self.egraph.parse_and_run_program(text)
        except SystemError as error:
            # egglog logs by Python, where a signal may raise, and goes on: the cause is what was raised
            raise error.__cause__ or error from None
        return answers

    def wear(self, matches: int) -> None:
        """Count what matches have made."""
        self._scripts += CHARACTERS_PER_MATCH * matches

    def clear(self) -> None:
        """Empty every table: push and pop would copy all rules each time."""
        self.run("(run clear 1)")

    def _clearing(self) -> Iterator[str]:
        """The rules that empty the tables that are new."""
        for name, table in self.egraph.freeze().functions.items():
            if name in self._cleared or table.is_let_binding:
                continue
            self._cleared.add(name)
            row = f"({name} {' '.join(f'x{index}' for index in range(len(table.input_sorts)))})"
            yield f"(rule ((= o {row})) ((delete {row})) :ruleset clear :internal-include-subsumed)"
