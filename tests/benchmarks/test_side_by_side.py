"""Speed against the obvious alternative, both measured in one run.

The default run of the tests skips these. To run them, by themselves and in one process,

    pytest tests/benchmarks -o addopts=--import-mode=importlib --benchmark-columns=median,rounds

prints one table per group: the figure in parentheses behind each time is its ratio to the best of the
group. Only ratios mean anything from one machine to the next; `OMP_NUM_THREADS=1` steadies them.

Each contestant's answer is checked outside the timing, so that no speed is bought with a wrong one.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from checks.datasets import SINGLE_LOCAL
from checks.margin import att_svm, selection_constraints
from checks.problems import SelectionProblem
from checks.selection import optimal_tokens
from checks.trainers import gradient_flow

SHAPES = [(3, 7, 2), (6, 8, 10)]
NORM = 1e5


def separable(shape):
    """Gaussian keys with the optimal token of each input put three units ahead along one direction."""
    rng = np.random.default_rng(0)
    keys = rng.normal(size=shape)
    keys[:, 0, 0] = keys[:, :, 0].max(axis=1) + 3
    scores = rng.uniform(0, 0.9, size=shape[:2])
    scores[:, 0] = 1
    return SelectionProblem(keys, scores)


def sized(*contestants):
    """One group for each shape, with every contestant in it."""
    cases = [
        pytest.param(shape, contestant, id=f"{contestant}-{shape}")
        for shape in SHAPES
        for contestant in contestants
    ]
    return pytest.mark.parametrize(("shape", "contestant"), cases)


def grouped(benchmark, subject, shape):
    benchmark.group = f"{subject} at (n, T, D) = {shape}"


@sized("attcheck", "cvxpy")
def test_margin_oracle(benchmark, shape, contestant):
    problem = separable(shape)
    alpha = optimal_tokens(problem)
    grouped(benchmark, "l2 margin", shape)
    if contestant == "attcheck":
        vector = benchmark(lambda: att_svm(problem, alpha).vector)
        accuracy = 1e-12
    else:
        vector = benchmark(lambda: margin_by_cvxpy(problem, alpha))
        accuracy = 1e-4  # its default settings
    exact = np.array([float(x) for x in att_svm(problem, alpha).certificate.vector])
    assert np.linalg.norm(vector - exact) <= accuracy * np.linalg.norm(exact)


def margin_by_cvxpy(problem, alpha):
    cvxpy = pytest.importorskip("cvxpy")
    constraints = selection_constraints(problem.keys, alpha)
    vector = cvxpy.Variable(problem.shape[2])
    cvxpy.Problem(
        cvxpy.Minimize(cvxpy.sum_squares(vector)), [constraints.rows @ vector >= constraints.margins]
    ).solve()
    return vector.value


@sized("log domain", "textbook")
def test_gradient(benchmark, shape, contestant):
    problem = separable(shape)
    p = np.random.default_rng(1).normal(size=shape[2])
    grouped(benchmark, "gradient", shape)
    if contestant == "log domain":
        gradient = -benchmark(problem.pairs.descent, p).dense()
    else:
        gradient = benchmark(textbook_gradient, problem, p)
    # Neither is saturated here, so that the textbook's form, computed apart, is right for both.
    np.testing.assert_allclose(gradient, textbook_gradient(problem, p), rtol=1e-9)


def textbook_gradient(problem, p):
    """`(1/n) Σ ℓ'(γᵀs) Kᵀ(s ∘ (γ − γᵀs))`, which returns zero from a logit gap of 37 on."""
    logits = problem.keys @ p
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    margins = (weights * problem.scores).sum(axis=1)
    slope = -1 / (1 + np.exp(margins))
    pull = weights * (problem.scores - margins[:, None])
    return np.einsum("i,it,itd->d", slope, pull, problem.keys) / len(logits)


@pytest.mark.parametrize("contestant", ["attcheck", "LSODA"])
@pytest.mark.parametrize(
    ("name", "problem"), [("published, local", SINGLE_LOCAL), ("(3, 7, 2)", separable(SHAPES[0]))]
)
def test_flow(benchmark, name, problem, contestant):
    benchmark.group = f"flow to norm {NORM:g}, {name}"
    start = np.zeros(problem.shape[2])
    if contestant == "attcheck":
        direction = benchmark(lambda: gradient_flow(problem, start, NORM).direction)
    else:
        direction = benchmark(flow_by_lsoda, problem, start)
    exact = att_svm(problem, optimal_tokens(problem)).direction
    assert np.linalg.norm(direction - exact) <= 1e-6


def flow_by_lsoda(problem, start):
    """Direction from half of the norm to the end, of the flow by the logarithm of 1 + arc length."""

    def field(log_length, p):
        return np.exp(log_length) * problem.pairs.descent(p).direction

    def distance(_, p):
        return np.linalg.norm(p) - NORM

    distance.terminal = True
    # Arc length is never below the norm reached; ten times as much is enough here.
    run = solve_ivp(
        field, (0, np.log(10 * NORM)), start, method="LSODA", rtol=1e-8, atol=1e-8, events=distance
    )
    assert run.status == 1
    points = run.y.T
    middle = points[np.flatnonzero(np.linalg.norm(points, axis=1) <= NORM / 2)[-1]]
    secant = points[-1] - middle
    return secant / np.linalg.norm(secant)
