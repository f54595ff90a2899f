"""The built-in claims, one module per theorem."""

from __future__ import annotations

from ..claim import Claim
from .lemma1 import lemma1
from .loss_comparison import comparison
from .ngd_norm_linear import norm_linear
from .rate_direction import rate
from .thm1_global_path import global_path
from .thm2_direction_n1 import direction_n1
from .thm2_norm_diverges import norm_diverges
from .thm3_cone_invariance import cone_invariance
from .thm3_local import local
from .thm4_tightness import tightness
from .trichotomy import trichotomy

CLAIMS: tuple[Claim, ...] = (
    lemma1,
    global_path,
    norm_diverges,
    direction_n1,
    local,
    cone_invariance,
    tightness,
    trichotomy,
    rate,
    norm_linear,
    comparison,
)

__all__ = ["CLAIMS"]
