"""Proofs about one data set or one path, from enclosures or from closed-form bounds.

Each certificate states what it proves in its docstring; the arguments are in ``notes/certificates.md`` and
``notes/cones.md``. None rests on an optimiser or on a simulated path.
"""

from .ball import BallCertificate, ball_certificate
from .cones import CertifiedCone, certified_cone, cone_containing, verified_cone
from .stationary import ContractionBall, contraction_ball

__all__ = [
    "BallCertificate",
    "CertifiedCone",
    "ContractionBall",
    "ball_certificate",
    "certified_cone",
    "cone_containing",
    "contraction_ball",
    "verified_cone",
]
