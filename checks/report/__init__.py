"""Verdicts for people and for programs."""

from .document import results_document
from .terminal import LiveProgress, print_verdicts

__all__ = ["LiveProgress", "print_verdicts", "results_document"]
