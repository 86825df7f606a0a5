"""What the language writes as calls: minima, selections, C's divisions, floating-point functions, reductions.

Operators that Python writes with signs are methods of :class:`eqsat.lang.expr.Expr`.
"""

from __future__ import annotations

from eqsat.lang.expr import Expr, ExprLike, as_expr, make, stated


def minimum(x: ExprLike, y: ExprLike) -> Expr:
    """The smaller of two values; of conditions, whether both hold.

    Parameters
    ----------
    x, y : Expr, int or float
        Two integers, two floating-point values, or two conditions.

    Raises
    ------
    TypeError
        If one is a condition, or of floating point, and the other is not.

    >>> from eqsat import var
    >>> i = var("i", 0, 7)
    >>> minimum(i, 5).vmax
    5
    """
    return make("min", as_expr(x), as_expr(y))


def maximum(x: ExprLike, y: ExprLike) -> Expr:
    """The larger of two values; of conditions, whether one holds.

    Parameters
    ----------
    x, y : Expr, int or float
        As those of :func:`minimum`, and so what they raise.

    >>> from eqsat import var
    >>> i = var("i", 0, 7)
    >>> maximum(i, 5).vmin
    5
    """
    return make("max", as_expr(x), as_expr(y))


def where(condition: ExprLike, x: ExprLike, y: ExprLike) -> Expr:
    """``x`` where the condition holds, else ``y``; what is not chosen is not evaluated.

    Parameters
    ----------
    condition : Expr or bool
        A condition.
    x, y : Expr, int or float
        The branches, of one kind: integers, floating-point values, or conditions.

    Raises
    ------
    TypeError
        If ``condition`` is no condition, or one of ``x`` and ``y`` is one and the other is not.

    >>> from eqsat import var
    >>> i, n = var("i", 0, 7), var("n", 0, 3)
    >>> where(n > 0, i // n, 0)
    Expr('where(0 < n, i//n, 0)')
    """
    return make("where", as_expr(condition), as_expr(x), as_expr(y))


def tdiv(x: ExprLike, y: ExprLike) -> Expr:
    """C's division: the quotient rounded toward zero.

    Parameters
    ----------
    x, y : Expr or int
        The dividend and the divisor.

    Raises
    ------
    ValueError
        If the divisor can only be zero.
    TypeError
        If an operand is no integer.

    >>> from eqsat import const
    >>> tdiv(-7, 2).vmin, (const(-7) // 2).vmin
    (-3, -4)
    """
    return stated("tdiv", as_expr(x), as_expr(y))


def tmod(x: ExprLike, y: ExprLike) -> Expr:
    """C's remainder, which has the sign of ``x``: ``x - y*tdiv(x, y)``.

    Parameters
    ----------
    x, y : Expr or int
        As those of :func:`tdiv`, and so what they raise.

    >>> from eqsat import const
    >>> tmod(-7, 2).vmin, (const(-7) % 2).vmin
    (-1, 1)
    """
    return stated("tmod", as_expr(x), as_expr(y))


def exp(x: ExprLike) -> Expr:
    """The exponential of a floating-point value, in its type.

    Parameters
    ----------
    x : Expr or float
        A value of type ``f32`` or ``f64``; a number is an ``f32`` literal.

    Raises
    ------
    TypeError
        If ``x`` is an integer that is no literal, or a condition.

    >>> from eqsat import var
    >>> exp(to_float(var("i", 1, 9))).element
    'f32'
    """
    return make("exp", as_expr(x))


def log(x: ExprLike) -> Expr:
    """The natural logarithm of a floating-point value, in its type.

    Parameters
    ----------
    x : Expr or float
        As that of :func:`exp`, and so what it raises.

    >>> from eqsat import var
    >>> log(to_float(var("i", 1, 9))).element
    'f32'
    """
    return make("log", as_expr(x))


def sqrt(x: ExprLike) -> Expr:
    """The square root of a floating-point value, in its type.

    Parameters
    ----------
    x : Expr or float
        As that of :func:`exp`, and so what it raises.

    >>> from eqsat import var
    >>> sqrt(to_float(var("i", 1, 9))).element
    'f32'
    """
    return make("sqrt", as_expr(x))


def to_float(x: ExprLike) -> Expr:
    """An integer as a value of type ``f32``, rounded to the nearest.

    Parameters
    ----------
    x : Expr or int
        The integer.

    Raises
    ------
    TypeError
        If ``x`` is no integer.

    >>> from eqsat import var
    >>> to_float(var("i", 0, 7)).element
    'f32'
    """
    return make("to_float", as_expr(x))


def to_double(x: ExprLike) -> Expr:
    """An integer as a value of type ``f64``, rounded to the nearest.

    Parameters
    ----------
    x : Expr or int
        As that of :func:`to_float`, and so what it raises.

    >>> from eqsat import var
    >>> to_double(var("i", 0, 7)).element
    'f64'
    """
    return make("to_double", as_expr(x))


def sum_over(body: ExprLike, index: Expr, low: ExprLike, high: ExprLike) -> Expr:
    """The sum of ``body`` over the values of ``index`` in ``[low, high)``; 0 if there are none.

    Parameters
    ----------
    body : Expr or int
        The values; it may contain ``index``.
    index : Expr
        A variable; its own range does not matter, and outside ``body`` it is another variable.
    low, high : Expr or int
        The range, ``high`` exclusive.

    Raises
    ------
    ValueError
        If reductions nest more than 64 deep, or under the range of the index ``body`` is refused.
    TypeError
        If ``index`` is no variable or an operand is a condition.

    >>> from eqsat import var
    >>> i, n = var("i", 0, 99), var("n", 0, 50)
    >>> total = sum_over(i*2 + n, i, 0, n)
    >>> total, total.evaluate({"n": [0, 3]})
    (Expr('sum(r1*2 + n, r1, 0, n)'), array([ 0, 15]))
    """
    return _over("sum_over", body, index, low, high)


def prod_over(body: ExprLike, index: Expr, low: ExprLike, high: ExprLike) -> Expr:
    """The product of ``body`` over the values of ``index`` in ``[low, high)``; 1 if there are none.

    Parameters
    ----------
    body, index, low, high
        As those of :func:`sum_over`, and so what they raise.

    Raises
    ------
    ValueError
        If the product can exceed 10,000 bits.

    >>> from eqsat import var
    >>> i, n = var("i", 0, 99), var("n", 0, 5)
    >>> found = prod_over(i + 1, i, 0, n)
    >>> found, found.evaluate({"n": [0, 4]})
    (Expr('prod(r1 + 1, r1, 0, n)'), array([ 1, 24]))
    """
    return _over("prod_over", body, index, low, high)


def max_over(body: ExprLike, index: Expr, low: ExprLike, high: ExprLike) -> Expr:
    """The largest value of ``body`` over the values of ``index`` in ``[low, high)``; ``-2**31`` if there are none.

    Over no floating-point values it is minus infinity.

    Parameters
    ----------
    body, index, low, high
        As those of :func:`sum_over`, and so what they raise.

    >>> from eqsat import var
    >>> i, n = var("i", 0, 99), var("n", 0, 5)
    >>> found = max_over(i + 1, i, 0, n)
    >>> found, found.evaluate({"n": [0, 4]})
    (Expr('max_over(r1 + 1, r1, 0, n)'), array([-2147483648,           4]))
    """
    return _over("max_over", body, index, low, high)


def min_over(body: ExprLike, index: Expr, low: ExprLike, high: ExprLike) -> Expr:
    """The smallest value of ``body`` over the values of ``index`` in ``[low, high)``; ``2**31 - 1`` if there are none.

    Over no floating-point values it is infinity.

    Parameters
    ----------
    body, index, low, high
        As those of :func:`sum_over`, and so what they raise.

    >>> from eqsat import var
    >>> i, n = var("i", 0, 99), var("n", 0, 5)
    >>> found = min_over(i + 1, i, 0, n)
    >>> found, found.evaluate({"n": [0, 4]})
    (Expr('min_over(r1 + 1, r1, 0, n)'), array([2147483647,          1]))
    """
    return _over("min_over", body, index, low, high)


def _over(name: str, body: ExprLike, index: Expr, low: ExprLike, high: ExprLike) -> Expr:
    if not isinstance(index, Expr):
        raise TypeError(f"{name} needs a variable as its index, not {index!r}")
    return make(name, as_expr(body), index, as_expr(low), as_expr(high))
