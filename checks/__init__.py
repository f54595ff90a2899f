"""Numeric checks of theorems on how softmax attention is optimised.

Problems, hard-margin oracles, trainers and decisions, and the harness that tests claims about them.
Everything that claim files need is exported here.
"""

from . import strategies
from .claim import Claim, ClaimError, Control, claim, control, expect
from .cones import Cone, LocalCone
from .decisions import Decision, converges_in_direction, diverges, follows, stationary, stays_in_cone
from .gradients import GradientReport, attention_slips, check_gradient
from .losses import CORRELATION, EXPONENTIAL, LOGISTIC, Loss
from .margin import Infeasible, MarginSolution, att_svm, hard_margin, label_svm
from .minimisers import minimisers_tend_to
from .problems import JointProblem, SelectionProblem, cross_attention
from .runner import verify
from .selection import Selection, is_locally_optimal, lmm_directions, optimal_tokens, svm_neighbours
from .trainers import Path, gradient_descent, gradient_flow, normalized_gd, regularization_path
from .verdict import Verdict

# Hypothesis's own, so that a claim file has one place to import from.
from hypothesis import assume  # isort: skip

__all__ = [
    "CORRELATION",
    "EXPONENTIAL",
    "LOGISTIC",
    "Claim",
    "ClaimError",
    "Cone",
    "Control",
    "Decision",
    "GradientReport",
    "Infeasible",
    "JointProblem",
    "LocalCone",
    "Loss",
    "MarginSolution",
    "Path",
    "Selection",
    "SelectionProblem",
    "Verdict",
    "assume",
    "att_svm",
    "attention_slips",
    "check_gradient",
    "claim",
    "control",
    "converges_in_direction",
    "cross_attention",
    "diverges",
    "expect",
    "follows",
    "gradient_descent",
    "gradient_flow",
    "hard_margin",
    "is_locally_optimal",
    "label_svm",
    "lmm_directions",
    "minimisers_tend_to",
    "normalized_gd",
    "optimal_tokens",
    "regularization_path",
    "stationary",
    "stays_in_cone",
    "strategies",
    "svm_neighbours",
    "verify",
]
