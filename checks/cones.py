"""Invariant cones around locally-optimal directions ([MM], Theorem 3), with computed sizes.

The constants below make `C_{μ,R}(p_mm(α))` invariant for gradient flow and gradient descent; the
argument is in ``notes/cones.md``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from .margin import att_svm
from .problems import SelectionProblem, array_from_json, array_to_json
from .selection import is_locally_optimal, svm_neighbours
from .validation import FloatArray, finite_array, positive, unit


@dataclass(frozen=True, eq=False)
class Cone:
    """`C_{μ,R}(q) = {p : ⟨p/‖p‖, q/‖q‖⟩ ≥ 1 − μ, ‖p‖ ≥ R}`.

    Attributes:
        axis: `(D,)`, stored as the unit vector `q/‖q‖`.
        mu: aperture `μ` in `(0, 2]`.
        radius: `R ≥ 0`.

    Raises:
        ValueError: an argument is out of range.
    """

    axis: FloatArray
    mu: float
    radius: float

    def __init__(self, axis: npt.ArrayLike, mu: float, radius: float) -> None:
        vector = finite_array(axis, "axis", ("D",))
        if not vector.any():
            raise ValueError("axis: got the zero vector, expected a direction")
        direction = unit(vector)
        direction.setflags(write=False)
        mu = positive(mu, "mu")
        if mu > 2:
            raise ValueError(f"mu: got {mu:g}, expected at most 2 (1 − mu is a cosine)")
        if not isinstance(radius, int | float | np.number) or not (radius >= 0 and math.isfinite(radius)):
            raise ValueError(f"radius: got {radius!r}, expected a finite number of at least 0")
        radius = float(radius)
        object.__setattr__(self, "axis", direction)
        object.__setattr__(self, "mu", mu)
        object.__setattr__(self, "radius", radius)

    def excess(self, points: FloatArray) -> FloatArray:
        """How far outside points `(..., D)` lie, relative to their norm; ≤ 0 inside.

        The larger of `1 − μ − cos(p, q)` and `R/‖p‖ − 1`; infinite at the origin unless `R = 0`
        and `μ ≥ 1`.
        """
        norms = np.linalg.norm(points, axis=-1)
        with np.errstate(divide="ignore", invalid="ignore"):
            angular = (1 - self.mu) - (points @ self.axis) / norms
            radial = self.radius / norms - 1
        result: FloatArray = np.where(norms > 0, np.maximum(angular, radial), np.inf)
        return result

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready fields."""
        return {"axis": array_to_json(self.axis), "mu": self.mu, "radius": self.radius}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], where: str = "cone") -> Cone:
        """Read the fields `axis`, `mu` and `radius`.

        Raises:
            ValueError: a field is missing or malformed; the message starts with `where`.
        """
        for field in ("axis", "mu", "radius"):
            if not isinstance(data, Mapping) or field not in data:
                raise ValueError(f"{where}.{field}: missing, expected the fields axis, mu, radius")
        try:
            cone = cls(
                array_from_json(data["axis"], "axis"),
                array_from_json(data["mu"], "mu"),
                array_from_json(data["radius"], "radius"),
            )
        except ValueError as error:
            raise ValueError(f"{where}.{error}") from error
        # An axis stored by `to_dict` is of unit norm; dividing again could change its last bits.
        stored = finite_array(array_from_json(data["axis"], "axis"), "axis", ("D",))
        if np.allclose(stored, cone.axis, rtol=0, atol=8 * np.finfo(float).eps):
            object.__setattr__(cone, "axis", stored)
        return cone


@dataclass(frozen=True, eq=False)
class LocalCone:
    """Sizes of the invariant cones around the LMM direction of a locally-optimal selection.

    Attributes:
        problem: the selection problem.
        alpha: token index of each input, locally optimal.

    Raises:
        Infeasible: ATT-SVM(alpha) has no solution.
        ValueError: `alpha` is not locally optimal.
    """

    problem: SelectionProblem
    alpha: tuple[int, ...]

    def __init__(self, problem: SelectionProblem, alpha: Sequence[int]) -> None:
        object.__setattr__(self, "problem", problem)
        object.__setattr__(self, "alpha", tuple(int(t) for t in alpha))
        if not is_locally_optimal(problem, self.alpha):
            raise ValueError(
                f"alpha: got {self.alpha}, expected a locally optimal selection: some SVM-neighbour "
                "scores at least as high as the token selected"
            )

    @cached_property
    def axis(self) -> FloatArray:
        """The LMM direction `p_mm(α)/‖p_mm(α)‖`, `(D,)`."""
        return att_svm(self.problem, self.alpha).direction

    @cached_property
    def _constants(self) -> _Constants:
        return _constants(self.problem, self.alpha)

    @property
    def mu0(self) -> float:
        """Largest certified aperture, `Γ² min(δ, 1)²/(8A²)`."""
        c = self._constants
        return (c.margin * min(c.slack, 1.0) / c.reach) ** 2 / 8

    def radius(self, mu: float | None = None, step: float | None = None) -> float:
        """`R(μ)`: smallest certified radius for the aperture `mu ≤ mu0` (default `mu0`).

        Args:
            mu: aperture.
            step: step size of gradient descent; `1/problem.smoothness` if not given. Gradient flow
                is the limit of small steps and needs no more.

        Raises:
            ValueError: `mu` is not in `(0, mu0]`, or `step` is not positive.
        """
        mu = self._aperture(mu)
        step = 1 / self.problem.smoothness if step is None else positive(step, "step")
        # Every condition is monotone in r: bracket by doubling, then bisect, keep the upper side.
        low, high = 0.0, 1.0
        while not self._certified(mu, step, high):
            low, high = high, 2 * high
        while high - low > 1e-9 * high:
            middle = (low + high) / 2
            if self._certified(mu, step, middle):
                high = middle
            else:
                low = middle
        return high

    def cone(self, mu: float | None = None, step: float | None = None) -> Cone:
        """The certified cone of aperture `mu` (default `mu0`) and radius `R(mu)`."""
        mu = self._aperture(mu)
        return Cone(self.axis, mu, self.radius(mu, step))

    def _aperture(self, mu: float | None) -> float:
        if mu is None:
            return self.mu0
        mu = positive(mu, "mu")
        if mu > self.mu0:
            raise ValueError(f"mu: got {mu:g}, expected at most mu0 = {self.mu0:g}")
        return mu

    def _certified(self, mu: float, step: float, r: float) -> bool:
        """The four conditions of ``notes/cones.md`` at radius `r`."""
        c = self._constants
        _, tokens, _ = self.problem.shape
        near, far = c.neighbours, c.others
        side = math.sqrt(2 * mu)
        near_ratio = max(near - 1, 0) * c.ratio
        far_ratio = far * c.ratio * math.exp(-c.margin * c.slack * r / 2) if far else 0.0
        saturated = (tokens - 1) * math.exp(-r * c.margin / 2) <= min(0.5, c.gap / (2 * c.largest_gap))
        inward = (
            near_ratio * c.reach * side * math.exp(-c.margin * mu * r) + far_ratio * c.reach * (side + mu)
            <= c.margin * mu / 2
        )
        growing = far_ratio * c.reach <= c.margin / 4
        heaviest = c.slope * (c.largest_gap + c.gap / 2) * math.exp(-r * c.margin / 2)
        small_step = step * heaviest * (c.reach * (1 + near_ratio + far_ratio)) ** 2 <= r * c.margin * mu
        return saturated and inward and growing and small_step


@dataclass(frozen=True)
class _Constants:
    margin: float  # Γ, unit-norm margin
    reach: float  # A, largest ‖a_it‖
    neighbours: int
    others: int
    slack: float  # δ, least excess margin of a non-neighbour; inf if there is none
    gap: float  # Δ, least score gap to a neighbour
    largest_gap: float  # G, largest score gap in absolute value
    ratio: float  # ρ, bound on the ratio of weights at equal logits
    slope: float  # largest |ℓ'|/n on the margins that occur


def _constants(problem: SelectionProblem, alpha: tuple[int, ...]) -> _Constants:
    n, tokens, _ = problem.shape
    solution = att_svm(problem, alpha)
    rows = np.arange(n)
    chosen = np.asarray(alpha)
    differences = problem.keys[rows, chosen][:, None] - problem.keys
    gaps = problem.scores[rows, chosen][:, None] - problem.scores
    near = np.zeros((n, tokens), dtype=bool)
    for i, neighbours in enumerate(svm_neighbours(problem, alpha)):
        near[i, list(neighbours)] = True
    far = ~near
    far[rows, chosen] = False
    slack = float((differences[far] @ solution.vector).min() - 1) if far.any() else math.inf
    gap = float(gaps[near].min())
    largest_gap = float(np.abs(gaps).max())
    margins = problem.scores[rows, chosen]
    # |ℓ'| of the convex losses decreases: extremes sit at the ends of [γ_iα − Δ/2, γ_iα + Δ/2].
    log_slopes = problem.loss.log_abs_slope(np.stack([margins - gap / 2, margins + gap / 2]))
    slope_ratio = math.exp(float(log_slopes.max() - log_slopes.min()))
    return _Constants(
        margin=solution.margin,
        reach=float(np.linalg.norm(differences, axis=2).max()),
        neighbours=int(near.sum()),
        others=int(far.sum()),
        slack=slack,
        gap=gap,
        largest_gap=largest_gap,
        ratio=2 * slope_ratio * (largest_gap + gap / 2) / (gap / 2),
        slope=math.exp(float(log_slopes.max())) / n,
    )
