"""Hypothesis strategies for problems, starts, selections and cones.

Numbers are multiples of `1/lattice`, so that counterexamples shrink to figures one can read aloud and
every margin can be certified over the rationals; `lattice=None` draws floats. Separable problems are
built, not filtered: a direction and a selection come first, and every other key is placed on the
right side of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from .cones import Cone, LocalCone
from .losses import LOGISTIC, Loss
from .margin import Infeasible, MarginSolution, att_svm
from .problems import JointProblem, SelectionProblem
from .selection import feasible_selections as every_feasible_selection
from .selection import lmm_directions
from .validation import FloatArray

_LARGEST = 2  # Keys, key differences and score gaps stay within this many units.
# Farther out the rounding of a logit, 1e-16 of its size, blurs attention weights by more than 1e-9.
_FARTHEST = 1e7
_LEAST_FLOAT = 1e-250  # What problems accept besides 0.
_LEAST_FLOAT_GAP = 1e-3  # Closest two distinct floats of a kind: ties are drawn on purpose only.

# Seeds of offsets that are drawn apart from Hypothesis, so that it cannot aim them.
_SEEDS = st.integers(0, 2**16 - 1)

Draw = Callable[..., Any]


def _numbers(lattice: int | None, least: float, most: float) -> st.SearchStrategy[float]:
    """Multiples of `1/lattice` in `[least, most]`; shrinks towards the entry closest to 0."""
    if lattice is None:
        return st.floats(least, most).map(lambda x: x if abs(x) >= _LEAST_FLOAT else 0.0)
    return st.integers(math.ceil(least * lattice), math.floor(most * lattice)).map(lambda k: k / lattice)


def vectors(dim: int, radius: float = _LARGEST, lattice: int | None = 8) -> st.SearchStrategy[FloatArray]:
    """Vectors `(dim,)` with entries in `[-radius, radius]`."""
    numbers = _numbers(lattice, -radius, radius)
    return st.lists(numbers, min_size=dim, max_size=dim).map(np.array)


def starts(
    problem: SelectionProblem, radius: float = 3, lattice: int | None = 8
) -> st.SearchStrategy[FloatArray]:
    """Starting points `p(0)` of shape `(D,)` with entries in `[-radius, radius]`."""
    return vectors(problem.shape[2], radius, lattice)


@st.composite
def selection_problems(
    draw: Draw,
    n: tuple[int, int] | int = (1, 4),
    tokens: tuple[int, int] | int = (2, 5),
    dim: tuple[int, int] | int = (2, 6),
    equal_nonoptimal: bool = False,
    separable: bool = False,
    general_position: bool = False,
    lattice: int | None = 8,
    loss: Loss = LOGISTIC,
) -> SelectionProblem:
    """Selection problems with a unique optimal token in each input.

    Args:
        draw: supplied by Hypothesis.
        n: number of inputs, one number or an inclusive range (likewise the next two).
        tokens: tokens per input, at least 2.
        dim: dimension of the keys.
        equal_nonoptimal: Assumption B of [MM]: all tokens but the optimal one score the same.
        separable: ATT-SVM(opt) is feasible.
        general_position: no score ties and no duplicate keys within an input.
        lattice: denominator of all entries, or `None` for floats.
        loss: the loss.

    Raises:
        ValueError: a range is empty or out of bounds, or `equal_nonoptimal` and `general_position`
            are asked for together with more than two tokens.
    """
    tokens_range = _range(tokens, "tokens", 2)
    if equal_nonoptimal and general_position and tokens_range[1] > 2:
        raise ValueError(
            "general_position: got True together with equal_nonoptimal, expected tokens=2 then: "
            "equal scores are ties"
        )
    inputs = draw(st.integers(*_range(n, "n", 1)))
    count = draw(st.integers(*tokens_range))
    size = draw(st.integers(*_range(dim, "dim", 1)))
    normal = draw(nonzero(vectors(size, 1, 2))) if separable else None
    keys, scores = [], []
    for _ in range(inputs):
        best = draw(st.integers(0, count - 1))
        keys.append(_keys(draw, best, count, size, normal, lattice, general_position))
        gaps = _score_gaps(draw, count - 1, lattice, equal_nonoptimal, general_position)
        top = draw(_numbers(lattice, -1, 1))
        scores.append(np.insert(top - gaps, best, top))
    return SelectionProblem(np.array(keys), np.array(scores), loss)


@st.composite
def joint_problems(
    draw: Draw,
    n: tuple[int, int] | int = (1, 4),
    tokens: tuple[int, int] | int = (2, 5),
    dim: tuple[int, int] | int = (2, 6),
    lattice: int | None = 8,
) -> JointProblem:
    """Tokens and labels without further hypotheses; keys are the tokens.

    Args:
        draw: supplied by Hypothesis.
        n: number of inputs, one number or an inclusive range (likewise the next two).
        tokens: tokens per input, at least 2.
        dim: embedding dimension.
        lattice: denominator of all entries, or `None` for floats.

    Raises:
        ValueError: a range is empty or out of bounds.
    """
    shape = (
        draw(st.integers(*_range(n, "n", 1))),
        draw(st.integers(*_range(tokens, "tokens", 2))),
        draw(st.integers(*_range(dim, "dim", 1))),
    )
    entries = draw(vectors(math.prod(shape), _LARGEST, lattice))
    labels = draw(st.lists(st.sampled_from([1, -1]), min_size=shape[0], max_size=shape[0]))
    return JointProblem(entries.reshape(shape), np.array(labels))


@st.composite
def generic_starts(draw: Draw, problem: SelectionProblem, radius: float = 3) -> FloatArray:
    """Starting points `(D,)` for statements about almost every start: a lattice point, and a random offset.

    The offset is uniform on the cube of side 1/8 and drawn by a generator of its own, of which Hypothesis
    chooses the seed: it cannot steer the point on to a set of measure zero, nor shrink it there.
    """
    near = draw(vectors(problem.shape[2], radius))
    random = np.random.default_rng(draw(_SEEDS))
    result: FloatArray = near + random.uniform(-1 / 16, 1 / 16, len(near))
    return result


@st.composite
def generic_points_in_cone(draw: Draw, cone: Cone) -> FloatArray:
    """Points of the inner half of `cone`, `(D,)`, drawn like `generic_starts`."""
    random = np.random.default_rng(draw(_SEEDS))
    sideways = random.standard_normal(len(cone.axis))
    sideways -= (sideways @ cone.axis) * cone.axis
    length = float(np.linalg.norm(sideways))
    radius = cone.radius * random.uniform(1, 2)
    # In one dimension a cone is a ray, and nothing lies beside it.
    if len(cone.axis) == 1:
        on_axis: FloatArray = radius * cone.axis
        return on_axis
    angle = random.uniform(0, 0.5) * math.acos(max(1 - cone.mu, -1.0))
    result: FloatArray = radius * (math.cos(angle) * cone.axis + math.sin(angle) / length * sideways)
    return result


def feasible_selections(problem: SelectionProblem) -> st.SearchStrategy[tuple[int, ...]]:
    """Selections whose ATT-SVM is feasible, in lexicographic order."""
    selections = [alpha for alpha, _ in every_feasible_selection(problem.keys)]
    return st.sampled_from(selections) if selections else st.nothing()


def regular_selections(problem: SelectionProblem) -> st.SearchStrategy[tuple[int, ...]]:
    """Locally-optimal selections whose multipliers are unique, and positive at every support vector."""
    regular = [s.alpha for s in lmm_directions(problem) if has_regular_multipliers(s.solution)]
    return st.sampled_from(regular) if regular else st.nothing()


def locally_optimal_selections(problem: SelectionProblem) -> st.SearchStrategy[tuple[int, ...]]:
    """Locally-optimal selections of `problem`, the global one first."""
    selections = [selection.alpha for selection in lmm_directions(problem)]
    return st.sampled_from(selections) if selections else st.nothing()


def nonoptimal_selections(problem: SelectionProblem) -> st.SearchStrategy[tuple[int, ...]]:
    """Selections whose ATT-SVM is feasible but which are not locally optimal."""
    n, tokens, _ = problem.shape
    local = {selection.alpha for selection in lmm_directions(problem)}

    def qualifies(alpha: tuple[int, ...]) -> bool:
        if alpha in local:
            return False
        try:
            att_svm(problem, alpha)
        except Infeasible:
            return False
        return True

    return st.tuples(*[st.integers(0, tokens - 1)] * n).filter(qualifies)


@st.composite
def points_in_cone(draw: Draw, cone: Cone) -> FloatArray:
    """Points of `cone`, `(D,)`: on its boundary, on its axis and between, at 1 to 2 times its radius."""
    size = len(cone.axis)
    sideways = draw(vectors(size, 1, 8))
    sideways = sideways - (sideways @ cone.axis) * cone.axis
    length = float(np.linalg.norm(sideways))
    share = draw(st.integers(0, 8)) / 8
    stretch = 1 + draw(st.integers(0, 8)) / 8
    # A direction along the axis to rounding has no side to turn to.
    if length < 1e-6:
        on_axis: FloatArray = cone.radius * stretch * cone.axis
        return on_axis
    # Turn by a share of the half-angle; the last step inwards keeps rounding inside.
    half_angle = math.acos(max(1 - cone.mu, -1.0))
    angle = share * half_angle * (1 - 1e-9)
    unit = math.cos(angle) * cone.axis + math.sin(angle) * sideways / length
    result: FloatArray = cone.radius * stretch * (1 + 1e-12) * unit
    return result


def local_cones(problem: SelectionProblem, alpha: tuple[int, ...]) -> st.SearchStrategy[Cone]:
    """Certified invariant cones `C_{μ,R(μ)}` around `p_mm(alpha)`, `μ` between `μ0/8` and `μ0`.

    Problems of tiny margin have none that starts within `_FARTHEST` logits; they are rejected.
    """
    local = LocalCone(problem, alpha)
    cones = [local.cone((8 - k) / 8 * local.mu0) for k in range(8)]
    near = [cone for cone in cones if cone.radius * problem.pairs.logit_scale <= _FARTHEST]
    return st.sampled_from(near) if near else st.nothing()


def _range(value: tuple[int, int] | int, name: str, least: int) -> tuple[int, int]:
    low, high = (value, value) if isinstance(value, int) else value
    if not least <= low <= high:
        raise ValueError(
            f"{name}: got {value!r}, expected a whole number of at least {least} or an increasing "
            "pair of them"
        )
    return low, high


def has_regular_multipliers(solution: MarginSolution) -> bool:
    """Whether the multipliers are unique, and positive at every support vector."""
    tight = solution.constraints.rows[np.array(solution.certificate.active)]
    return not solution.is_degenerate and np.linalg.matrix_rank(tight) == len(tight)


def nonzero(strategy: st.SearchStrategy[FloatArray]) -> st.SearchStrategy[FloatArray]:
    """Replace a zero vector by the first unit vector instead of rejecting it."""
    return strategy.map(lambda v: v if v.any() else np.eye(len(v))[0])


def _keys(
    draw: Draw,
    best: int,
    count: int,
    size: int,
    normal: FloatArray | None,
    lattice: int | None,
    distinct: bool,
) -> FloatArray:
    """Keys `(count, size)` of one input; with a `normal` all others lie behind the best one."""
    least = 1 / lattice if lattice else _LEAST_FLOAT_GAP
    optimal = draw(vectors(size, 1, lattice))
    differences = vectors(size, _LARGEST, lattice)
    if normal is not None:
        differences = differences.map(lambda a: _in_front(a, normal, least))
    elif distinct:
        differences = nonzero(differences)
    gaps = draw(
        st.lists(
            differences,
            min_size=count - 1,
            max_size=count - 1,
            unique_by=(lambda a: tuple(a)) if distinct else None,
        )
    )
    return np.insert(optimal - np.array(gaps), best, optimal, axis=0)


def _in_front(difference: FloatArray, normal: FloatArray, least: float) -> FloatArray:
    """Reflect `difference` into the open half space of `normal`, at least `least` along an axis."""
    side = float(difference @ normal)
    if side < 0:
        side, difference = -side, -difference
    if side < least * float(np.abs(normal).max()):
        axis = int(np.abs(normal).argmax())
        difference = difference.copy()
        difference[axis] += math.copysign(least, normal[axis])
    return difference


def _score_gaps(draw: Draw, count: int, lattice: int | None, equal: bool, distinct: bool) -> FloatArray:
    """Positive gaps `(count,)` between the best score and the others."""
    gap = _numbers(lattice, 1 / lattice if lattice else _LEAST_FLOAT_GAP, _LARGEST)
    if equal:
        return np.full(count, draw(gap))
    return np.array(draw(st.lists(gap, min_size=count, max_size=count, unique=distinct)))
