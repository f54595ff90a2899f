"""Named data sets: the published ones and the small witnesses of what fails without a hypothesis."""

from __future__ import annotations

from .problems import SelectionProblem

# [MM] (arXiv 2306.13596), single-input experiments.
_SINGLE_KEYS: list[list[list[float]]] = [[[-0.1, 1], [1, 0], [0, 0]]]

SINGLE_GLOBAL = SelectionProblem(_SINGLE_KEYS, [[1, 0.9, 0.9]])
"""Published: equal non-optimal scores, every start ends in the GMM direction."""

SINGLE_LOCAL = SelectionProblem(_SINGLE_KEYS, [[1, 0.9, 0]])
"""Published: unequal non-optimal scores, some starts end at token 1 (counted from 0)."""

SINGLE_STARTS = ((0, 1), (0, 0.5), (0, 0), (0, -0.5), (0, -1), (0, -1.5))
"""Published starts of both experiments."""

TWO_LIMITS = SelectionProblem([[[1, 0], [0, 0]], [[-2, 1], [0, 0]]], [[1, 0], [1, 0]])
"""Assumption B holds, and yet there are two LMM directions: (1, 3), which is GMM, and (1, 0).

Gradient descent from (2, 0) goes to (1, 0), from the origin to (1, 3).
"""

STATIONARY_ONE_INPUT = SelectionProblem([[[1.125], [1.0], [0.0], [-1.0]]], [[1, -1, 0.875, 0]])
"""No Assumption B: an attracting finite stationary point at −0.2626, though ATT-SVM(opt) is feasible."""

STATIONARY_TWO_INPUTS = SelectionProblem(
    [[[-3, -2], [0, 2], [0, 1]], [[-3, 1], [2, -3], [-1, 1]]],
    [[0.25, 0.75, -1.125], [1.125, -1.375, 1.25]],
)
"""No Assumption B: gradient descent from 0 tends to (−2.2596, −0.5570), though ATT-SVM(opt) is feasible."""

NARROW = SelectionProblem([[[0, 0], [-1, 2], [-1, -2]]], [[1, 0, 0]])
"""Assumption B holds; a step far above 1/L jumps out of cones that the flow never leaves."""
