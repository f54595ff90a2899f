"""Numeric checks."""
