"""egglog's extension module, without the Python language around it.

eqsat writes egglog's own language. The package ``egglog`` imports another one for Python, with what prints and draws
it, which takes longer than most answers; so the extension is loaded alone. It cannot be loaded twice: an import of the
package after that is given the module that is there.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec, module_from_spec, spec_from_loader
from threading import Lock
from types import ModuleType
from typing import Any

_NAME = "egglog.bindings"
_lock = Lock()
# a thread that holds it is none of a process that is forked meanwhile
os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)
_loaded: list[ModuleType] = []


def bindings() -> Any:
    """The extension module.

    Raises
    ------
    ImportError
        If egglog is not installed.
    """
    with _lock:
        if not _loaded:
            _loaded.append(import_module(_NAME) if "egglog" in sys.modules else _alone())
    return _loaded[0]


def _alone() -> ModuleType:
    package = find_spec("egglog")
    spec = package and PathFinder.find_spec(_NAME, package.submodule_search_locations)
    if not spec or not spec.loader:
        return import_module(_NAME)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.meta_path.insert(0, _Given(module))
    return module


class _Given(MetaPathFinder, Loader):
    """Imports a module that is loaded already."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def find_spec(self, fullname: str, *_: object) -> ModuleSpec | None:
        return spec_from_loader(fullname, self) if fullname == _NAME else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        pass
