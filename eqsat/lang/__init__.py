"""The language: integer and boolean terms, their bounds, their text form and their meaning.

A term (:class:`eqsat.lang.expr.Expr`) is immutable and hash-consed, and knows its exact bounds. The table of operators
is :mod:`eqsat.lang.ops`, the reference semantics :mod:`eqsat.lang.evaluation`, the text form :mod:`eqsat.lang.text`.

Imports ``extract``.
"""

# these modules fill the slots of terms: formulas, values, text
from eqsat.lang.display import formula as formula
from eqsat.lang.evaluation import evaluate as evaluate
from eqsat.lang.text import to_text as to_text
