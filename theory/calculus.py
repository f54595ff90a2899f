"""Differentiation and renaming of indexed expressions, rule by rule.

SymPy's own ``diff`` captures a bound index that equals the index of the variable; here every sum is given a
fresh index before anything is done inside it.
"""

from __future__ import annotations

from itertools import count
from typing import Any

from sympy import (
    Add,
    Derivative,
    Expr,
    Function,
    Integer,
    KroneckerDelta,
    Mul,
    Pow,
    S,
    Sum,
    Symbol,
    Tuple,
    log,
)
from sympy.tensor.indexed import Indexed

from .notation import Applied, At, DerivationError, Index, Named

_serial = count()


def _fresh(index: Index) -> Index:
    # "#" keeps the name apart from anything a person would write.
    return Index(f"{index.name.split('#')[0]}#{next(_serial)}", index.size)


def bound_index(limits: Any) -> Index:
    """The index of one limit of a sum, which must run over ``1 .. size``."""
    index, *ends = limits
    if not isinstance(index, Index):
        raise DerivationError(f"sums run over an Index, got {index!r} (write total(expression, index))")
    if ends != [1, index.size]:
        shown = ", ".join(str(end) for end in ends)
        raise DerivationError(f"the sum over {index} must run from 1 to {index.size}, got ({shown})")
    return index


_FREE: dict[Expr, tuple[Index, ...]] = {}


def free_indices(expression: Expr) -> tuple[Index, ...]:
    """The free indices of an expression, sorted by name."""
    if expression not in _FREE:
        _FREE[expression] = tuple(sorted(_free(expression), key=lambda index: (index.name, str(index.size))))
    return _FREE[expression]


def _free(expression: Expr) -> set[Index]:
    if isinstance(expression, Index):
        return {expression}
    if isinstance(expression, Sum):
        return set(free_indices(expression.function)) - {limit[0] for limit in expression.limits}
    if isinstance(expression, Indexed):
        return {index for index in expression.indices if isinstance(index, Index)}
    if isinstance(expression, Derivative):
        return set(free_indices(expression.expr)).union(*(free_indices(v) for v in expression.variables))
    if isinstance(expression, Named):
        return set(free_indices(expression.definition))
    if isinstance(expression, At):
        body, _, value = expression.args
        return set(free_indices(body)) | (set(free_indices(value)) - set(expression.places))
    if isinstance(expression, Applied):
        taken = (
            {index for index in expression.taken if isinstance(index, Index)} if expression.slot else set()
        )
        return taken | (set(free_indices(expression.argument)) - {expression.slot})
    found: set[Index] = set()
    for part in expression.args:
        found.update(free_indices(part))
    return found


def replace_index(expression: Expr, old: Index, new: Any) -> Expr:
    """`expression` with the free index `old` written as `new`; bound indices are never captured."""
    if old not in free_indices(expression):  # SymPy's free_symbols leaves out the variables of a Derivative
        return expression
    if expression == old:
        return new
    if isinstance(expression, Sum):
        if any(bound_index(limit) == old for limit in expression.limits):
            return expression
        inner, renamed = _opened(expression)
        return Sum(replace_index(inner, old, new), *renamed)
    if isinstance(expression, Applied) and expression.slot is not None:
        taken = Tuple(*(new if index == old else index for index in expression.taken))
        if expression.slot == old:
            return Applied(expression.args[0], taken, expression.args[2], expression.argument)
        fresh = _fresh(expression.slot)
        argument = replace_index(expression.argument, expression.slot, fresh)
        return Applied(expression.args[0], taken, Tuple(fresh), replace_index(argument, old, new))
    if isinstance(expression, Named):
        indices = Tuple(*(new if index == old else index for index in expression.args[1]))
        return Named(expression.args[0], indices, replace_index(expression.definition, old, new))
    if isinstance(expression, At):
        body, entry, value = expression.args
        own = [_fresh(place) for place in expression.places]
        for place, fresh in zip(expression.places, own, strict=True):
            value = replace_index(value, place, fresh)
        entry = entry.base[tuple(own)] if own else entry
        return At(replace_index(body, old, new), entry, replace_index(value, old, new))
    if not expression.args:
        return expression
    if isinstance(expression, Indexed):
        return expression.base[tuple(new if index == old else index for index in expression.indices)]
    if isinstance(expression, Derivative):
        variables = (replace_index(variable, old, new) for variable in expression.variables)
        return Derivative(replace_index(expression.expr, old, new), *variables, evaluate=False)
    return expression.func(*(replace_index(part, old, new) for part in expression.args))


def differentiate(expression: Expr, variable: Expr) -> Expr:
    """The derivative of `expression` by an array entry or a scalar symbol.

    Raises:
        DerivationError: a construction has no differentiation rule.
    """
    if isinstance(expression, Indexed):
        if not isinstance(variable, Indexed) or expression.base != variable.base:
            return S.Zero
        pairs = zip(expression.indices, variable.indices, strict=True)
        return Mul(*(KroneckerDelta(left, right) for left, right in pairs))
    if isinstance(expression, Symbol):
        return S.One if expression == variable else S.Zero
    if expression.is_Number or isinstance(expression, KroneckerDelta) or not expression.args:
        return S.Zero
    if isinstance(expression, Named):
        return differentiate(expression.definition, variable)
    if isinstance(expression, Derivative | At):
        return differentiate(carried_out(expression), variable)
    if isinstance(expression, Sum):
        inner, renamed = _opened(expression)
        return Sum(differentiate(inner, variable), *renamed)
    if isinstance(expression, Add):
        return Add(*(differentiate(part, variable) for part in expression.args))
    if isinstance(expression, Mul):
        parts = expression.args
        return Add(
            *(Mul(*parts[:k], differentiate(part, variable), *parts[k + 1 :]) for k, part in enumerate(parts))
        )
    if isinstance(expression, Pow):
        base, power = expression.base, expression.exp
        by_base = power * base ** (power - 1) * differentiate(base, variable)
        slope = differentiate(power, variable)
        return by_base if slope == 0 else by_base + expression * log(base) * slope
    if isinstance(expression, Applied):
        return _differentiate_applied(expression, variable)
    if isinstance(expression, Function) or hasattr(expression, "fdiff"):
        return Add(
            *(
                expression.fdiff(k + 1) * differentiate(part, variable)
                for k, part in enumerate(expression.args)
            )
        )
    raise DerivationError(f"no rule to differentiate {type(expression).__name__} ({expression})")


def _differentiate_applied(expression: Applied, variable: Expr) -> Expr:
    name, taken, slot, argument = expression.args
    if expression.slot is None:
        outer = Applied(name, Integer(int(taken) + 1), slot, argument)
        return outer * differentiate(argument, variable)
    direction = _fresh(expression.slot)
    outer = Applied(name, Tuple(*taken, direction), slot, argument)
    inner = differentiate(replace_index(argument, expression.slot, direction), variable)
    return Sum(outer * inner, (direction, 1, direction.size))


def carried_out(expression: Derivative | At) -> Expr:
    """A `Derivative` with its derivatives taken, innermost first, or an `At` with its value put in."""
    if isinstance(expression, At):
        body, entry, value = expression.args
        return _put_in(body, entry, value)
    result = expression.expr
    for variable in expression.variables:
        result = differentiate(result, variable)
    return result


def _put_in(expression: Expr, entry: Expr, value: Expr) -> Expr:
    """`expression` with every `entry` replaced by `value`, derivatives taken first."""
    if isinstance(expression, Named):
        return _put_in(expression.definition, entry, value)
    if isinstance(expression, Derivative | At):
        return _put_in(carried_out(expression), entry, value)
    if isinstance(expression, Indexed):
        if not isinstance(entry, Indexed) or expression.base != entry.base:
            return expression
        # Two steps, because an index of the expression can be one of the entry's, at another place.
        own = [_fresh(place) for place in entry.indices]
        for place, fresh in zip(entry.indices, own, strict=True):
            value = replace_index(value, place, fresh)
        for fresh, index in zip(own, expression.indices, strict=True):
            value = replace_index(value, fresh, index)
        return value
    if isinstance(expression, Sum):
        inner, renamed = _opened(expression)
        return Sum(_put_in(inner, entry, value), *renamed)
    if isinstance(expression, Applied):
        name, taken, slot, argument = expression.args
        if expression.slot is not None:
            fresh = _fresh(expression.slot)
            slot, argument = Tuple(fresh), replace_index(argument, expression.slot, fresh)
        return Applied(name, taken, slot, _put_in(argument, entry, value))
    if not expression.args:
        return value if expression == entry else expression
    return expression.func(*(_put_in(part, entry, value) for part in expression.args))


def _opened(expression: Sum) -> tuple[Expr, list[tuple[Index, int, Expr]]]:
    """The body of a sum under fresh indices, and their limits."""
    inner, renamed = expression.function, []
    for limit in expression.limits:  # SymPy lists the innermost sum first
        index = bound_index(limit)
        fresh = _fresh(index)
        inner = replace_index(inner, index, fresh)
        renamed.append((fresh, 1, fresh.size))
    return inner, renamed
