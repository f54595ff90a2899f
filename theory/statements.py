"""The catalogue of symbolic statements."""

from __future__ import annotations

from . import attention, rank_one, softmax
from .statement import Statement


def catalogue() -> tuple[Statement, ...]:
    """Every statement, from the softmax to the optimisation of the whole model."""
    return (
        softmax.JACOBIAN,
        softmax.COVARIANCE,
        attention.GRADIENT_P,
        attention.GRADIENT_V,
        rank_one.GRADIENT_W_RANK_ONE,
        rank_one.LEMMA1,
        rank_one.BALANCEDNESS,
        attention.HESSIAN_P,
        rank_one.GRADIENT_W_CROSS,
        attention.GRADIENT_NONLINEAR_HEAD,
    )
