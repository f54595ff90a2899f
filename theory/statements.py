"""The catalogue of symbolic statements."""

from __future__ import annotations

from . import attention, descent, losses, margin, mirror, rank_one, smoothness, softmax
from .statement import Statement


def catalogue() -> tuple[Statement, ...]:
    """Every statement, from the softmax to the steps of the algorithms."""
    return (
        softmax.JACOBIAN,
        softmax.COVARIANCE,
        attention.GRADIENT_P,
        attention.GRADIENT_V,
        rank_one.GRADIENT_W_RANK_ONE,
        rank_one.LEMMA1,
        rank_one.BALANCEDNESS,
        losses.LOSS_ASSUMPTION_A,
        descent.DESCENT_DIRECTION,
        smoothness.SMOOTHNESS,
        smoothness.SMOOTHNESS_SHARP,
        attention.HESSIAN_P,
        margin.ATT_SVM_KKT,
        rank_one.GRADIENT_W_CROSS,
        mirror.MIRROR_STEP,
        attention.GRADIENT_NONLINEAR_HEAD,
    )
