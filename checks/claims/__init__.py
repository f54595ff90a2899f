"""The built-in claims, one module per theorem."""

from __future__ import annotations

from ..claim import Claim
from .lemma1 import lemma1
from .thm2_direction_n1 import direction_n1
from .thm2_norm_diverges import norm_diverges
from .thm3_cone_invariance import cone_invariance
from .thm3_local import local

CLAIMS: tuple[Claim, ...] = (lemma1, norm_diverges, direction_n1, local, cone_invariance)

__all__ = ["CLAIMS"]
