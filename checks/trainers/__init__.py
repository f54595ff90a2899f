"""Trainers: each returns a `Path`."""

from .descent import gradient_descent, normalized_gd
from .flow import gradient_flow
from .path import Path, StationaryPoint

__all__ = ["Path", "StationaryPoint", "gradient_descent", "gradient_flow", "normalized_gd"]
