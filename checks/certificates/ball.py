"""Where every global minimiser over a ball lies, without an optimiser ([MM], Theorem 1, made quantitative).

Statement and proof are in ``notes/certificates.md``. In short: at `R q̂`, `q̂` the GMM direction, the gap
`F = log Σ_i [ℓ(γ̄_i) − ℓ(γ_i,opt)]` is so small that any point which does as well attends to all optimal
tokens, and by the KKT conditions of ATT-SVM(opt) its gap is at least `const − Γ q̂·p`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..margin import att_svm
from ..problems import SelectionProblem
from ..selection import optimal_tokens
from ..trainers.regularization import LogGap
from ..validation import FloatArray, positive
from .enclosures import ENCLOSED_LOSSES

# The vector and the multipliers of ATT-SVM are right to 1e-11; terms that they enter are as large as ΓR.
_MARGIN_ACCURACY = 1e-10
# A logit of size x is right to a few eps times x.
_LOGIT_ROUNDING = 64 * float(np.finfo(float).eps)


@dataclass(frozen=True, eq=False)
class BallCertificate:
    """A cap of the ball `‖p‖ ≤ radius` that holds every global minimiser of the risk.

    Attributes:
        axis: `(D,)`, the GMM direction `q̂`.
        radius: `R`.
        cosine: every global minimiser `p` has `q̂·p ≥ cosine · R`, hence an angle with at least this cosine
            to the axis.
        constant: `C` with `1 − q̂·p/R ≤ C/(ΓR)` for **all** radii from `R` on: as they grow, the
            direction of every choice of global minimisers tends to the axis.
        margin: `Γ`.
    """

    axis: FloatArray
    radius: float
    cosine: float
    constant: float
    margin: float

    def holds(self, p: FloatArray) -> bool:
        """Whether `p` lies in the cap."""
        return float(p @ self.axis) >= self.cosine * self.radius


def ball_certificate(problem: SelectionProblem, radius: float) -> BallCertificate | None:
    """Confine the global minimisers over `‖p‖ ≤ radius`, or return `None`.

    `None` when the optimal tokens tie or cannot be separated, or when the radius is too small: if at `R q̂`
    some input might still be served better by another token, or if the cap would be half of the ball.
    For the built-in losses, which are convex.

    Raises:
        ValueError: `radius` is not positive.
    """
    radius = positive(radius, "radius")
    loss = problem.loss
    if loss not in ENCLOSED_LOSSES:
        return None
    try:
        alpha = optimal_tokens(problem)
        solution = att_svm(problem, alpha)
    except ValueError:  # tied optimal tokens, or `Infeasible`
        return None
    best = problem.scores.max(axis=1)
    drops = best[:, None] - problem.scores
    others = drops > 0
    least = np.where(others, drops, np.inf).min(axis=1)
    # Below this gap every γ̄ is above γ_opt − least/2: more than half attends to the optimal token.
    ceiling = float(loss.log_rise(best, np.log(least / 2)).min())
    share = solution.duals / solution.duals.sum()
    carrying = share > 0
    log_pulls = loss.log_abs_slope(best)[:, None] + np.log(np.where(others, drops, 1.0))
    floor = float(
        (share * (log_pulls - math.log(2) - np.log(np.where(carrying, share, 1.0))))[carrying].sum()
    )
    margin = solution.margin
    reach = margin * radius
    rounding = _MARGIN_ACCURACY * (1 + reach) + _LOGIT_ROUNDING * problem.pairs.logit_scale * radius
    # −ℓ' decreases: it is largest at the lower end of the scores considered.
    log_steepest = loss.log_abs_slope(best - least / 2)[:, None] + np.log(np.where(others, drops, 1.0))
    roof = float(np.logaddexp.reduce(log_steepest[others]))
    if roof - reach + rounding >= ceiling:
        return None
    gap = LogGap(problem).value(radius * solution.direction) + rounding
    cosine = (floor - gap) / reach - rounding / reach
    if cosine <= 0:
        return None
    return BallCertificate(solution.direction, radius, min(cosine, 1.0), roof - floor + 2 * rounding, margin)
