"""Every path of gradient flow ends in one of three ways, and generic ones in one of two.

The risk is analytic, so a flow that has a limit point converges to it (Łojasiewicz; Absil, Mahony and
Andrews, SIAM J. Optim. 16, 2005): from *every* start either `‖p‖ → ∞` or `p` tends to a finite stationary
point. In general position, from *almost every* start, a diverging flow tends to an LMM direction and a finite
limit is a local minimum. The first is a theorem and is not sampled; the second is what is tested here.

"Almost every" and "general position" mean what they mean in `thm4_tightness`. From particular starts flows
run into saddles, or diverge along separatrices.
"""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from .. import SelectionProblem, claim, control, expect, gradient_flow, lmm_directions
from .. import strategies as attst
from ..asymptotics import approach, tends_to_local_minimum, tends_to_one_of
from ..datasets import SEPARATRIX, STATIONARY_ONE_INPUT, STATIONARY_TWO_INPUTS, TIED_MARGINS, VALLEY
from ..generic import keys_in_general_position
from ..validation import FloatArray


@claim(
    "trichotomy",
    statement="In general position gradient flow from almost every start either diverges in an LMM direction "
    "or tends to a finite local minimum.",
    source="derived here; completes arXiv 2306.13596, Theorem 4",
    hypotheses=(
        "Assumption A: logistic loss",
        "no input has tied scores",
        "no input has duplicate keys",
        "keys in general position: the ATT-SVM constraints of every selection bound a simple polyhedron",
        "almost every start: a random offset, of continuous distribution, from a lattice point",
    ),
    problem=attst.selection_problems(n=(1, 3), tokens=(2, 4), dim=(1, 3), general_position=True).filter(
        keys_in_general_position
    ),
    start=attst.generic_starts,
    finite_ends=st.just(True),
)
def trichotomy(problem: SelectionProblem, start: FloatArray, finite_ends: bool) -> None:
    path = gradient_flow(problem, start)
    if finite_ends and approach(path).kind == "point":
        expect(tends_to_local_minimum(path))
    else:
        expect(tends_to_one_of(path, [s.solution.vector for s in lmm_directions(problem)]))


_TINY = attst.selection_problems(n=(1, 2), tokens=(2, 3), dim=(1, 2), general_position=True)

control(
    trichotomy,
    drops="finite ends",
    problem=_TINY.filter(keys_in_general_position),
    finite_ends=st.just(False),
    examples=[
        {"problem": STATIONARY_ONE_INPUT, "start": np.array([0.03]), "finite_ends": False},
        {"problem": STATIONARY_TWO_INPUTS, "start": np.array([-2.25, -0.5625]), "finite_ends": False},
    ],
)
control(
    trichotomy,
    drops="almost",
    problem=_TINY.filter(keys_in_general_position),
    start=attst.starts,
    examples=[{"problem": SEPARATRIX, "start": np.array([2.0, 0.0]), "finite_ends": True}],
)
control(
    trichotomy,
    drops="no valley",
    problem=_TINY,
    examples=[{"problem": VALLEY, "start": np.array([1.0, 2.0]), "finite_ends": True}],
)
control(
    trichotomy,
    drops="no tie of margins",
    problem=_TINY,
    examples=[{"problem": TIED_MARGINS, "start": np.zeros(1), "finite_ends": True}],
)
