"""Sign certificates: expressions that are nonnegative by the way they are written."""

from __future__ import annotations

from sympy import Abs, Add, Expr, Integer, KroneckerDelta, Mul, Pow, Sum, Symbol, exp

from .notation import Named


def shown_nonnegative(expression: Expr) -> bool:
    """Whether an expression is a sum of products of even powers, exponentials and other nonnegative factors.

    A `False` means that the form does not show it, never that the expression can be negative.
    """
    if isinstance(expression, Named):
        return shown_nonnegative(expression.definition)
    if expression.is_number:
        return bool(expression.is_nonnegative)
    if isinstance(expression, Symbol):
        return bool(expression.is_positive)
    if isinstance(expression, KroneckerDelta | exp | Abs):
        return True
    if isinstance(expression, Add):
        if any(expression == 1 - part for part in expression.atoms(KroneckerDelta)):
            return True
        return all(map(shown_nonnegative, expression.args))
    if isinstance(expression, Mul):
        return all(map(shown_nonnegative, expression.args))
    if isinstance(expression, Sum):
        return shown_nonnegative(expression.function)
    if isinstance(expression, Pow):
        even = isinstance(expression.exp, Integer) and expression.exp % 2 == 0
        return even or shown_nonnegative(expression.base)
    return False
