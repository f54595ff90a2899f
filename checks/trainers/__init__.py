"""Trainers: each returns a `Path`, except `regularization_path`, which returns minimisers."""

from .descent import gradient_descent, normalized_gd
from .flow import gradient_flow
from .path import Path, StationaryPoint
from .regularization import regularization_path

__all__ = [
    "Path",
    "StationaryPoint",
    "gradient_descent",
    "gradient_flow",
    "normalized_gd",
    "regularization_path",
]
