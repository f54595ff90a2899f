"""Named data sets: the published ones and the small witnesses of what fails without a hypothesis."""

from __future__ import annotations

from .losses import LOGISTIC, Loss
from .problems import SelectionProblem

# [MM] (arXiv 2306.13596), single-input experiments.
_SINGLE_KEYS: list[list[list[float]]] = [[[-0.1, 1], [1, 0], [0, 0]]]

SINGLE_GLOBAL = SelectionProblem(_SINGLE_KEYS, [[1, 0.9, 0.9]])
"""Published: equal non-optimal scores, every start ends in the GMM direction."""

SINGLE_LOCAL = SelectionProblem(_SINGLE_KEYS, [[1, 0.9, 0]])
"""Published: unequal non-optimal scores, some starts end at token 1 (counted from 0)."""

SINGLE_STARTS = ((0, 1), (0, 0.5), (0, 0), (0, -0.5), (0, -1), (0, -1.5))
"""Published starts of both experiments."""

_MULTI_KEYS = [
    [
        (1.41, -0.51),
        (-0.92, 0.89),
        (-1.09, 0.96),
        (-1.4, 0.95),
        (-0.67, 0.16),
        (-0.45, -0.57),
        (-0.56, -0.63),
    ],
    [(0.79, -0.08), (-0.9, 0.95), (-0.81, 0.96), (-1.0, 1.31), (-0.39, -0.6), (-0.54, -0.39), (-0.11, -0.55)],
    [(0.95, 0.2), (-1.18, 0.94), (-0.82, 1.12), (-0.98, 1.13), (-1.07, -0.3), (-0.69, -0.83), (-0.44, -0.36)],
]

MULTI_INPUT = SelectionProblem(_MULTI_KEYS, [[1.0] + [0.5] * 6] * 3)
"""Published in kind: three inputs of seven tokens, the best one near (1, 0), the others in two clusters.

The keys were drawn from the published distribution, Gaussians of standard deviation 0.2 around (1, 0) once,
(−1, 1) three times and (−1/2, −1/2) three times, and rounded to hundredths.
"""

TWO_LIMITS = SelectionProblem([[[1, 0], [0, 0]], [[-2, 1], [0, 0]]], [[1, 0], [1, 0]])
"""Assumption B holds, and yet there are two LMM directions: (1, 3), which is GMM, and (1, 0).

Gradient descent from (2, 0), (3, 0) and (4, 0) goes to (1, 0), from (0, 0) and (1, 0) to (1, 3). The cone
around (1, 3) with μ = 0.7 holds both directions. Near (1, 0) but at small norm descent leaves thin cones:
from (1/2, 0) with step 1/2 the cosine to (1, 0) falls below 0.4.
"""

NARROW = SelectionProblem([[[0, 0], [-1, 2], [-1, -2]]], [[1, 0, 0]])
"""Assumption B holds; a step far above 1/L jumps out of cones that the flow never leaves."""

STATIONARY_ONE_INPUT = SelectionProblem([[[1.125], [1.0], [0.0], [-1.0]]], [[1, -1, 0.875, 0]])
"""No Assumption B: an attracting finite stationary point at −0.2626, though ATT-SVM(opt) is feasible."""

STATIONARY_TWO_INPUTS = SelectionProblem(
    [[[-3, -2], [0, 2], [0, 1]], [[-3, 1], [2, -3], [-1, 1]]],
    [[0.25, 0.75, -1.125], [1.125, -1.375, 1.25]],
)
"""No Assumption B: gradient descent from 0 tends to (−2.2596, −0.5570), though ATT-SVM(opt) is feasible."""

INFEASIBLE = SelectionProblem([[[0], [1], [-1]]], [[1, 0, 0]])
"""Assumption B holds, but the optimal token lies between the others: every path tends to 0."""

TIED_NEIGHBOURS = SelectionProblem([[[1, 0.25], [1, -0.25], [0.0, 0]]], [[1, 1, 0]])
"""The two best tokens tie and are each other's SVM-neighbours: paths diverge, but there is no LMM direction.

From (0, ±1/2) the limit is (1, ±1/4): all attention ends on one of the two, and nothing pulls p on to
(1/2, ±2), the solution of its ATT-SVM, which separates it from the other by a margin of 1.
"""

TIED_UNDER_B = SelectionProblem(
    [[[1.0, 0], [0.0, 0], [-1.0, 0]], [[-2.0, 1], [0, 0.25], [0, -0.25]]], [[1, 0, 0], [1, 0, 0]]
)
"""Assumption B with three tokens ties scores: from (4, 0) the path diverges along (1, 0), which is not LMM.

There the second input attends to its two non-optimal tokens equally, at no loss.
"""

DUPLICATE_KEYS = SelectionProblem([[[1], [1], [0]]], [[1, 0.5, 0]])
"""Two tokens share a key: no selection of either is feasible, and yet every path diverges towards both."""

ZERO_MULTIPLIER = SelectionProblem([[[0, 0], [-1, 0], [-1, -1]]], [[1, 0, 0]])
"""A support vector of multiplier 0: paths tend to (1, 0), but with an error of log ‖p‖ / ‖p‖ in direction."""

STIFF = SelectionProblem([[[0, 0], [-1, 20], [-1, -20]]], [[1, 0, 0]])
"""Normalised gradient descent settles along (1, 0) for steps below 2/400 only.

At 0.004 every step counts in full; at 0.006 and 0.02 it jumps from side to side and gains 0.005 per step.
"""

VALLEY = SelectionProblem([[[0, 0], [1, 0], [-1, 0], [0, -1]]], [[1, 0.5, 0.25, 0]])
"""No ties, no duplicate keys: every path diverges along (0, 1) with its first coordinate tending to 0.6004.

The best token lies between the next two, so that none of the three can be selected, and their attention
stays balanced while all of them leave the fourth behind. There is no LMM direction. Three keys on a line at
the far side of all others are a coincidence (`generic.keys_in_general_position`).
"""

TIED_MARGINS = SelectionProblem([[[1], [0]], [[1], [0]]], [[1.0, 0], [0.0, 0.25]])
"""No ties, no duplicate keys: every path diverges along (1), with the second input at its worse token.

Both inputs have the same key difference, so neither can be served alone, and the first gains more than
the second loses. There is no LMM direction.
"""

SEPARATRIX = SelectionProblem([[[1, 0], [0, 0], [0, 1]], [[1, 0], [0, 0], [0, -1]]], [[0.5, -1, 0.625]] * 2)
"""No ties, no duplicate keys: from (2, 0) paths stay on the axis and diverge along (1, 0), which is not LMM.

The inputs mirror each other, so the axis is invariant; from either side of it paths leave for the LMM
directions (1, ±2).
"""


def two_gains(gain: float, loss: Loss = LOGISTIC) -> SelectionProblem:
    """Published: two inputs of two tokens, scores `(0, gain)` and `(0, 1)`, keys that pull p up and down.

    Every path tends to (1, 0), whatever the gain and the loss; which input has the larger gradient
    depends on both.
    """
    return SelectionProblem([[[0, 0], [1, 1]], [[0, 0], [1, -1]]], [[0.0, gain], [0.0, 1]], loss)
