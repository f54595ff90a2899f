"""Gradient flow to any norm, integrated by arc length.

The flow `dp/dt = −∇L` and the normalised flow `dp/ds = −∇L/‖∇L‖` run along the same curve. By arc
length the curve to norm `s` takes a number of steps that grows like `log s`, because close to its
limit it is a slow manifold on which a stiff integrator's step grows with `s`. The integrator is the
two-stage Rosenbrock method ROS2 (Verwer, Spee, Blom and Hundsdorfer, SIAM J. Sci. Comput. 20, 1999),
L-stable and with the analytic Jacobian; physical time is kept as a logarithm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..attention import PairwiseRisk, ScaledVector
from ..problems import SelectionProblem
from ..validation import FloatArray, positive
from .path import End, Path, StationaryPoint

_GAMMA = 1 - 1 / math.sqrt(2)  # L-stable; the smaller root has the smaller error constant.
# Local error per step in units of logits: a relative error of 1e-3 in each weight. The limit does
# not inherit it: the slow manifold attracts, and secants agree with exact directions to 1e-9.
_LOGIT_TOLERANCE = 1e-3
# Steps are cut at the next point where the dominant terms change (see `_reach`), but never below
# this many logits, a range on which the error estimate sees every feature of the field.
_LOGIT_FEATURE = 0.3
# Two terms within e^-3 of each other that close in by less than 1 % of the fastest possible rate are in
# balance (support vectors change places by rounding all the time): no step is cut for them.
_BALANCED_LOGITS = 3.0
_BALANCED_RATE = 1e-2
# Below this cancellation ratio the unit field turns quickly: Newton takes over. At distance δ from a
# stationary point the ratio is about δ times the logit scale, so it is met from the basin.
_NEWTON_RATIO = 1e-2
# Newton must stay within the neighbourhood in which it was started, in logits.
_NEWTON_REACH = 2.0
_MAX_STEPS = 5_000


def gradient_flow(problem: SelectionProblem, start: npt.ArrayLike, to_norm: float = 1e4) -> Path:
    """Gradient flow from `start` until its norm reaches `to_norm` or it meets a stationary point.

    A stationary point counts as the end when it attracts (positive definite Hessian on the span of
    the key differences) or when the curve runs into it to rounding, as on the stable manifold of a
    saddle. Points are kept at each accepted step, so their norms are about log-spaced.

    Args:
        problem: keys, scores and loss.
        start: `(D,)`.
        to_norm: the norm at which to stop, above that of `start`.

    Raises:
        ValueError: `start` does not fit the problem, or `to_norm` is not above its norm.
    """
    p = problem.query(start, "start")
    to_norm = positive(to_norm, "to_norm")
    if to_norm <= np.linalg.norm(p):
        raise ValueError(
            f"to_norm: got {to_norm:g}, expected more than the norm {np.linalg.norm(p):g} of start"
        )
    basis = span(problem.pairs.key_gap)
    z = basis.T @ p
    fixed = p - basis @ z
    curve = _Curve(problem.pairs.restricted(basis), z)
    curve.run(math.sqrt(max(to_norm**2 - float(fixed @ fixed), 0.0)))
    points = fixed + np.array(curve.points) @ basis.T
    points[0] = p
    stationary = curve.stationary
    if stationary is not None:
        stationary = StationaryPoint(
            fixed + basis @ stationary.point, stationary.residual, stationary.attracting
        )
    return Path(problem, "gradient flow", points, np.array(curve.log_times), None, curve.end, stationary)


def span(rows: FloatArray) -> FloatArray:
    """Orthonormal basis `(D, r)` of the row span of an `(m, D)` array, rank to rounding."""
    if rows.shape[0] == 0:
        return np.zeros((rows.shape[1], 0))
    _, singular, right = np.linalg.svd(rows, full_matrices=False)
    tolerance = singular[0] * max(rows.shape) * np.finfo(float).eps
    return np.ascontiguousarray(right[singular > tolerance].T)


@dataclass
class _Curve:
    """State of one integration in coordinates of the span of the key differences."""

    pairs: PairwiseRisk
    z: FloatArray

    def __post_init__(self) -> None:
        self.points: list[FloatArray] = [self.z]
        self.log_times: list[float] = [-math.inf]
        self.end: End = "budget"
        self.stationary: StationaryPoint | None = None
        self.logit_scale = self.pairs.logit_scale

    def run(self, to_norm: float) -> None:
        unit = 1 / self.logit_scale
        h = 0.1 * unit
        for _ in range(_MAX_STEPS):
            descent, jacobian = self.pairs.descent_jacobian(self.z)
            if descent.cancellation < _NEWTON_RATIO and self._ends_here(descent):
                self.end = "stationary"
                return
            h = min(h, max(self._reach(descent), _LOGIT_FEATURE * unit))
            h = self._step(h, descent, jacobian)
            if np.linalg.norm(self.z) >= to_norm:
                self.end = "horizon"
                return

    def _step(self, h: float, descent: ScaledVector, jacobian: FloatArray) -> float:
        """Advance by an accepted ROS2 step of at most `h`; return the next step to try."""
        field = descent.direction
        turning = jacobian - np.outer(field, field @ jacobian)
        identity = np.eye(field.size)
        while True:
            inverse = np.linalg.inv(identity - _GAMMA * h * turning)
            k1 = inverse @ field
            k2 = inverse @ (self.pairs.descent(self.z + h * k1).direction - 2 * k1)
            error = 0.5 * h * float(np.linalg.norm(k1 + k2)) * self.logit_scale / _LOGIT_TOLERANCE
            if not math.isfinite(error):
                raise FloatingPointError(
                    f"the flow left the range of floats at norm {np.linalg.norm(self.z):g}"
                )
            factor = min(max(0.9 / math.sqrt(error), 0.2), 5.0) if error > 0 else 5.0
            if error <= 1:
                break
            h *= factor
        z = self.z + h * (1.5 * k1 + 0.5 * k2)
        length = float(np.linalg.norm(z - self.z))
        after = self.pairs.descent(z)
        self.log_times.append(
            float(np.logaddexp(self.log_times[-1], _log_duration(length, descent.log_norm, after.log_norm)))
        )
        self.z = z
        self.points.append(z)
        return h * factor

    def _reach(self, descent: ScaledVector) -> float:
        """Arc length along the current direction to the next change of dominance.

        A unit-speed field is piecewise almost constant, and an error estimate that samples it on
        both sides of a narrow attractor sees no change: a step must not pass the point where
        another token becomes the most attended of its input, or another pair the heaviest.
        Logits are linear along a line and log weights piecewise linear up to a bounded error.
        """
        pairs = self.pairs
        logits, rates = pairs.keys @ self.z, pairs.keys @ descent.direction
        top = logits.argmax(axis=1)[:, None]
        behind = np.take_along_axis(logits, top, axis=1) - logits
        closing = rates - np.take_along_axis(rates, top, axis=1)
        reach = _first_crossing(behind, closing, self.logit_scale)
        attention = np.exp(pairs.log_attention(self.z))
        weights = pairs.log_pair_weights(self.z)
        # d log s_t = rate_t − (mean rate under s), and d log|ℓ'(m)| = (ℓ''/ℓ')(m) dm.
        attention_rates = rates - (attention * rates).sum(axis=1, keepdims=True)
        margins = (attention * pairs.scores).sum(axis=1)
        margin_rates = (attention * pairs.scores * attention_rates).sum(axis=1)
        slope_rates = pairs.loss.log_slope_rate(margins) * margin_rates
        weight_rates = (
            attention_rates.ravel()[pairs.better]
            + attention_rates.ravel()[pairs.worse]
            + slope_rates[pairs.owner]
        )
        heaviest = int(weights.argmax())
        return min(
            reach,
            _first_crossing(
                weights[heaviest] - weights, weight_rates - weight_rates[heaviest], self.logit_scale
            ),
        )

    def _ends_here(self, descent: ScaledVector) -> bool:
        """Look for a stationary point near `z` and say whether the curve ends in it."""
        if descent.log_norm == -math.inf:
            self.stationary = StationaryPoint(self.z, 0.0, is_attracting(self.pairs, self.z))
            return True
        found = newton(self.pairs, self.z, _NEWTON_REACH / self.logit_scale)
        if found is None:
            return False
        distance = float(np.linalg.norm(found.point - self.z)) * self.logit_scale
        rounding = math.sqrt(np.finfo(float).eps)
        if found.attracting or distance <= rounding:
            self.stationary = found
            self.points.append(found.point)
            self.log_times.append(math.inf)
            return True
        return False


def newton(pairs: PairwiseRisk, z: FloatArray, reach: float) -> StationaryPoint | None:
    """Newton's method for a zero of the gradient within distance `reach` of `z`, or `None`.

    Accepts a point when the terms of the gradient cancel to their rounding.
    """
    start = z
    for _ in range(30):
        descent, jacobian = pairs.descent_jacobian(z)
        if descent.cancellation <= cancellation_rounding(pairs, z):
            return StationaryPoint(z, descent.cancellation, is_attracting(pairs, z))
        try:
            z = z - np.linalg.solve(jacobian, descent.direction)
        except np.linalg.LinAlgError:
            return None
        if not np.linalg.norm(z - start) <= reach:
            return None
    return None


def cancellation_rounding(pairs: PairwiseRisk, z: FloatArray) -> float:
    """Cancellation ratio below which a gradient at `z` cannot be told from zero.

    Each weight carries a relative error of a few eps from the `P` terms summed and from the logits.
    """
    if len(pairs.key_gap) == 0:
        return 0.0
    logits = float(np.linalg.norm(z)) * pairs.logit_scale
    return 8 * float(np.finfo(float).eps) * (len(pairs.key_gap) + logits)


def is_attracting(pairs: PairwiseRisk, z: FloatArray) -> bool:
    """Whether the Hessian of the risk at `z` is positive definite beyond rounding."""
    if z.size == 0 or pairs.key_gap.shape[0] == 0:
        return False
    _, jacobian = pairs.descent_jacobian(z)
    eigenvalues = np.linalg.eigvalsh(-(jacobian + jacobian.T) / 2)
    # The assembled Hessian is right to about 1e-14 of its largest entry; 1e-10 leaves four digits.
    return bool(eigenvalues[0] > 1e-10 * abs(eigenvalues[-1]))


def _first_crossing(behind: FloatArray, closing: FloatArray, fastest: float) -> float:
    """Distance at which the first of the terms that are `behind` takes the lead."""
    ahead = closing > np.where(behind > _BALANCED_LOGITS, 0.0, _BALANCED_RATE * fastest)
    return float((behind[ahead] / closing[ahead]).min()) if ahead.any() else math.inf


def _log_duration(length: float, log_speed_before: float, log_speed_after: float) -> float:
    """Log of the time `∫ ds/‖∇L‖` over a step on which `log ‖∇L‖` is taken as linear."""
    if length == 0 or log_speed_after == -math.inf:
        return -math.inf if length == 0 else math.inf
    drop = log_speed_before - log_speed_after
    # (e^drop − 1)/drop, without overflow and with its limit 1 at 0.
    if abs(drop) < 1e-8:
        log_mean = drop / 2
    elif drop > 0:
        log_mean = drop + math.log(-math.expm1(-drop) / drop)
    else:
        log_mean = math.log(math.expm1(drop) / drop)
    return math.log(length) - log_speed_before + log_mean
