"""When keys are in general position: exactly what statements about almost every problem leave out.

For a selection `α` let `Q_α = {q : (k_iα − k_it)·q ≥ 1 for all i and t ≠ α_i}`, in which ATT-SVM(α) looks for
the shortest vector. Keys are in general position if every `Q_α` is a *simple* polyhedron: at its vertices and
along its extreme rays no more constraints are tight than the dimension demands. Where that fails, paths can
diverge in directions of no locally-optimal selection, from open sets of starts:

- along a ray, a *valley*: several tokens keep sharing the attention for ever (`datasets.VALLEY`);
- at a vertex, a *tie of margins*: a token of higher score is no farther than support vectors that outweigh
  it (`datasets.TIED_MARGINS`).

Both are coincidences: keys drawn from a continuous distribution have neither.
"""

from __future__ import annotations

import itertools

import numpy as np

from .problems import SelectionProblem
from .trainers.flow import span
from .validation import FloatArray

# Margins of about 1 that differ by less are equal, and rows of a smaller determinant are dependent.
_LEVEL = 1e-9


def keys_in_general_position(problem: SelectionProblem) -> bool:
    """Whether `Q_α` is simple for every selection, in the span of the key differences.

    Decided in floating point with a tolerance of 1e-9: on a lattice of small entries that is exact. The cost
    grows like `T^n` times the number of ways to choose `D` of `n(T − 1)` constraints: for small problems.
    """
    n, tokens, _ = problem.shape
    differences = problem.keys[:, :, None] - problem.keys[:, None]  # [i, a, t] = k_ia − k_it
    rows = differences[:, ~np.eye(tokens, dtype=bool)].reshape(n, tokens, tokens - 1, -1)
    basis = span(rows.reshape(-1, rows.shape[-1]))
    if basis.shape[1] == 0:
        return False
    rows = rows @ basis
    return all(
        _is_simple(np.concatenate([rows[i, t] for i, t in enumerate(alpha)]))
        for alpha in itertools.product(range(tokens), repeat=n)
    )


def _is_simple(rows: FloatArray) -> bool:
    """Whether `{q : rows @ q ≥ 1}` has just as many tight constraints at vertices and rays as it must."""
    count, rank = rows.shape
    scale = float(np.linalg.norm(rows, axis=1).max())
    unit = rows / scale
    if count >= rank:
        tuples = np.array(list(itertools.combinations(range(count), rank)))
        chosen = unit[tuples]
        chosen = chosen[np.abs(np.linalg.det(chosen)) > _LEVEL]
        vertices = np.linalg.solve(chosen, np.ones((len(chosen), rank, 1)))[..., 0]
        margins = vertices @ unit.T
        inside = (margins >= 1 - _LEVEL).all(axis=1)
        if ((margins[inside] <= 1 + _LEVEL).sum(axis=1) > rank).any():
            return False
    rays = _orthogonal(unit, rank - 1)
    margins = rays @ unit.T
    inside = (margins >= -_LEVEL).all(axis=1)
    return not ((margins[inside] <= _LEVEL).sum(axis=1) > rank - 1).any()


def _orthogonal(rows: FloatArray, size: int) -> FloatArray:
    """Unit vectors orthogonal to `size` independent rows of the `(m, size + 1)` array, with both signs."""
    if size == 0:
        return np.array([[1.0], [-1.0]])
    if len(rows) < size:
        return np.zeros((0, size + 1))
    chosen = rows[np.array(list(itertools.combinations(range(len(rows)), size)))]
    _, singular, right = np.linalg.svd(chosen, full_matrices=True)
    normals: FloatArray = right[singular[:, -1] > _LEVEL, -1]
    return np.concatenate([normals, -normals])
