"""Index expressions as other systems have them: indexing maps, tiles, views, the structure around indices, HLO, MLIR,
SymPy, and steps in the compilers of PyTorch Inductor, tinygrad and Triton.

Imports ``extract``, ``lang``, ``theory``, ``egraph``, ``rules``, ``prove``, ``optimizer`` and ``kernels``.
"""

from __future__ import annotations

from typing import Any

from eqsat.interop.indexing import simplified
from eqsat.interop.maps import SIMPLIFIED
from eqsat.interop.views import OPTIMIZED, Access
from eqsat.optimizer.front import optimize

SIMPLIFIED.fill(simplified)


@OPTIMIZED.fill
def _optimized(access: Access, **options: Any) -> Access:
    return Access(*optimize([access.index, access.valid], gates=[access.valid, None], **options).exprs)
