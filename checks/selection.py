"""Which selections gradient descent can end in: optimal tokens, SVM-neighbours, LMM directions.

[MM] is arXiv 2306.13596. Everything here is decided exactly for the data as given.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from .exact import FarkasCertificate
from .least_norm import certainly_positive
from .margin import (
    MarginSolution,
    att_svm,
    checked_selection,
    selection_constraints,
    solve_constraints,
)
from .problems import SelectionProblem
from .validation import FloatArray, finite_array


@dataclass(frozen=True, eq=False)
class Selection:
    """A locally-optimal selection: one token per input, with its ATT-SVM solution.

    Attributes:
        alpha: token index of each input.
        solution: ATT-SVM(alpha); `solution.exact` proves it, `solution.is_degenerate` says whether
            a support vector has multiplier 0.
        is_global: whether every token selected is the one of highest score of its input.
    """

    alpha: tuple[int, ...]
    solution: MarginSolution
    is_global: bool

    @cached_property
    def neighbours(self) -> tuple[frozenset[int], ...]:
        """For each input the tokens whose margin is exactly 1."""
        return neighbours_of(self.solution)


class EnumerationLimitError(RuntimeError):
    """There are more feasible selections than the caller was ready to go through."""


def optimal_tokens(scores: SelectionProblem | npt.ArrayLike) -> tuple[int, ...]:
    """The token of highest score of each input.

    Args:
        scores: a problem, or scores of shape `(n, T)`.

    Raises:
        ValueError: an input has several tokens of highest score.
    """
    if isinstance(scores, SelectionProblem):
        scores = scores.scores
    table = finite_array(scores, "scores", ("n", "T"))
    best = table == table.max(axis=1, keepdims=True)
    for i, tied in enumerate(best):
        if tied.sum() > 1:
            raise ValueError(
                f"scores[{i}]: got the highest score {table[i].max():g} at the tokens "
                f"{np.flatnonzero(tied).tolist()}, expected one optimal token"
            )
    return tuple(best.argmax(axis=1).tolist())


def svm_neighbours(problem: SelectionProblem, alpha: Sequence[int]) -> tuple[frozenset[int], ...]:
    """For each input the tokens whose margin in ATT-SVM(alpha) is exactly 1.

    Raises:
        Infeasible: ATT-SVM(alpha) has no solution.
        ValueError: `alpha` is out of range.
    """
    return neighbours_of(att_svm(problem, alpha))


def is_locally_optimal(problem: SelectionProblem, alpha: Sequence[int]) -> bool:
    """Whether ATT-SVM(alpha) is feasible and every token selected outscores its SVM-neighbours.

    Raises:
        ValueError: `alpha` is out of range.
    """
    alpha = checked_selection(alpha, *problem.scores.shape)
    solution = solve_constraints(selection_constraints(problem.keys, alpha))
    if isinstance(solution, FarkasCertificate):
        return False
    return _outscores_neighbours(problem, alpha, solution)


def lmm_directions(problem: SelectionProblem, limit: int = 1_000_000) -> list[Selection]:
    """Every locally-optimal selection, the global one first, then by decreasing margin.

    Their directions are the only limits of diverging gradient descent from almost every start
    ([MM], Theorem 4), if the problem is in general position (`general_position_faults`).

    Args:
        problem: the problem.
        limit: number of systems of constraints to solve at most. Feasible selections can be as
            many as `T**n`, but in low dimension they are few.

    Raises:
        EnumerationLimitError: the limit was reached.
    """
    best = problem.scores == problem.scores.max(axis=1, keepdims=True)
    unique = bool((best.sum(axis=1) == 1).all())
    optimal = tuple(best.argmax(axis=1).tolist())
    found = [
        Selection(alpha, solution, unique and alpha == optimal)
        for alpha, solution in feasible_selections(problem.keys, limit)
        if _outscores_neighbours(problem, alpha, solution)
    ]
    return sorted(
        found,
        key=lambda s: (not s.is_global, s.solution.certificate.norm_squared, s.alpha),
    )


def feasible_selections(
    keys: FloatArray, limit: int = 1_000_000
) -> Iterator[tuple[tuple[int, ...], MarginSolution]]:
    """Every selection whose ATT-SVM is feasible, with its solution, in lexicographic order.

    Depth-first over the inputs: a partial selection is dropped when its constraints contradict each
    other. The proof of that names a few pairs (input, token) that exclude each other, which also
    rules out every later selection that has them all, without another solve.

    Args:
        keys: `(n, T, D)`.
        limit: number of systems of constraints to solve at most.

    Raises:
        EnumerationLimitError: the limit was reached.
    """
    n, tokens, dim = keys.shape
    with np.errstate(over="ignore"):  # reported by the solver
        differences = keys[:, :, None] - keys[:, None]  # [i, a, t] = k_ia - k_it
    rows = differences[:, ~np.eye(tokens, dtype=bool)].reshape(n, tokens, tokens - 1, dim)
    # Sets of pairs are bit masks, pair (i, t) being bit i·T + t. The pairs that a proof names
    # always include the input added last, under which the proof is filed.
    conflicts: list[list[list[int]]] = [[[] for _ in range(tokens)] for _ in range(n)]
    solved = 0

    def extend(
        prefix: tuple[int, ...], taken: int, separator: FloatArray | None
    ) -> Iterator[tuple[tuple[int, ...], MarginSolution]]:
        nonlocal solved
        depth = len(prefix)
        for token in range(tokens):
            pairs = taken | 1 << (depth * tokens + token)
            if any(pairs & conflict == conflict for conflict in conflicts[depth][token]):
                continue
            alpha = (*prefix, token)
            is_leaf = depth + 1 == n
            separated = separator is not None and certainly_positive(rows[depth, token], separator)
            vector = separator
            if is_leaf or not separated:
                if solved == limit:
                    raise EnumerationLimitError(
                        f"limit: gave up after {limit} solves on keys of shape {keys.shape}, "
                        "expected fewer feasible selections"
                    )
                solved += 1
                result = solve_constraints(selection_constraints(keys[: depth + 1], alpha))
                if isinstance(result, FarkasCertificate):
                    conflicts[depth][token].append(_conflict(result, alpha, tokens))
                    continue
                if is_leaf:
                    yield alpha, result
                    continue
                vector = result.vector
            yield from extend(alpha, pairs, vector)

    yield from extend((), 0, None)


def general_position_faults(problem: SelectionProblem) -> tuple[str, ...]:
    """Score ties and duplicate keys within an input, as sentences; empty in general position.

    Whether a support vector of a selection has multiplier 0 is a question about that selection:
    `Selection.solution.is_degenerate`.
    """
    faults = []
    for i, (keys, scores) in enumerate(zip(problem.keys, problem.scores, strict=True)):
        tokens = range(len(scores))
        pairs = [(s, t) for t in tokens for s in tokens[:t]]
        faults += [f"scores[{i}]: tokens {s} and {t} tie" for s, t in pairs if scores[s] == scores[t]]
        faults += [
            f"keys[{i}]: tokens {s} and {t} have the same key" for s, t in pairs if (keys[s] == keys[t]).all()
        ]
    return tuple(faults)


def in_general_position(problem: SelectionProblem) -> bool:
    """Whether no input has tied scores or duplicate keys."""
    return not general_position_faults(problem)


def neighbours_of(solution: MarginSolution) -> tuple[frozenset[int], ...]:
    """The SVM-neighbours of a solved selection, for each input."""
    tight = solution.constraints.spread(np.array(solution.certificate.active))
    return tuple(frozenset(np.flatnonzero(row).tolist()) for row in tight)


def _outscores_neighbours(
    problem: SelectionProblem, alpha: tuple[int, ...], solution: MarginSolution
) -> bool:
    """Whether every token selected scores strictly above its SVM-neighbours."""
    scores = problem.scores
    rivals = scores >= scores[np.arange(len(alpha)), list(alpha)][:, None]
    # Exactness costs time only where a rival exists besides the token itself.
    if rivals.sum() == len(alpha):
        return True
    return not any(rivals[i, t] for i, near in enumerate(neighbours_of(solution)) for t in near)


def _conflict(proof: FarkasCertificate, alpha: tuple[int, ...], tokens: int) -> int:
    """The pairs (input, selected token) whose constraints a proof of infeasibility uses."""
    pairs = 0
    for j, weight in enumerate(proof.multipliers):
        if weight:
            i = j // (tokens - 1)
            pairs |= 1 << (i * tokens + alpha[i])
    return pairs
