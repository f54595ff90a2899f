"""What is claimed and what is proved: statements for every size, and derivations checked line by line."""

from .derivation import Derivation, DerivationReport, StepReport
from .examination import TierMismatch, Witness
from .loading import DerivationFileError, derivation_template, load_derivations
from .normal_form import normal_form, proves_equal
from .notation import (
    DerivationError,
    Index,
    T,
    Unspecified,
    array,
    at,
    d,
    delta,
    mean,
    n,
    named,
    partial,
    scalar,
    size,
    total,
)
from .render import (
    derivation_markdown,
    derivation_text,
    derivations_markdown,
    statements_markdown,
    write_notes,
)
from .softmax import softmax
from .statement import Statement, StatementReport, Variant
from .statements import catalogue

__all__ = [
    "Derivation",
    "DerivationError",
    "DerivationFileError",
    "DerivationReport",
    "Index",
    "Statement",
    "StatementReport",
    "StepReport",
    "T",
    "TierMismatch",
    "Unspecified",
    "Variant",
    "Witness",
    "array",
    "at",
    "catalogue",
    "d",
    "delta",
    "derivation_markdown",
    "derivation_template",
    "derivation_text",
    "derivations_markdown",
    "load_derivations",
    "mean",
    "n",
    "named",
    "normal_form",
    "partial",
    "proves_equal",
    "scalar",
    "size",
    "softmax",
    "statements_markdown",
    "total",
    "write_notes",
]
