"""Selection problems from files that people write: JSON, or arrays saved by NumPy.

A file holds `keys` and `scores`, or `tokens`, `labels` and `head` (and `keys`, if they are not the tokens);
`loss` is the name of a loss, logistic if not given. Nothing in a file is ever executed.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .losses import LOGISTIC, loss_named
from .problems import JointProblem, SelectionProblem, array_from_json
from .validation import finite_array

_SELECTION = ("keys", "scores")
_JOINT = ("tokens", "labels", "head")
_KNOWN = (*_SELECTION, *_JOINT, "loss")
_KINDS = "keys and scores, or tokens, labels and head"
# Lists of what was found in a file are cut here: an error is one line.
_SHOWN = 60
# What a damaged, encrypted or unusually compressed archive makes zipfile and NumPy raise, and an array whose
# header promises more than memory holds.
_ARCHIVE_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    OSError,
    RuntimeError,
    ValueError,
    MemoryError,
    SyntaxError,
)


class ProblemFileError(ValueError):
    """A problem file cannot be read; one line names the file, the field and what was expected."""


def load_problem(path: Path) -> SelectionProblem:
    """Read a problem from a JSON file, or from NumPy's archive if the name ends in `.npz`.

    Fields are arrays as for `SelectionProblem` (`keys` `(n, T, D)`, `scores` `(n, T)`), or as for
    `JointProblem` with a head (`tokens` `(n, T, d)`, `labels` `(n,)`, `head` `(d,)`, optionally `keys`).
    Entries of JSON arrays are numbers or fractions such as `"-3/8"`.

    Raises:
        ProblemFileError: the file is missing or malformed, or a field is missing, unknown or malformed.
    """
    path = Path(path)
    fields = _archive(path) if path.suffix.lower() == ".npz" else _json(path)
    try:
        return _problem(fields)
    except ValueError as error:
        raise ProblemFileError(f"{path}: {_one_line(error)}") from error


def _problem(fields: dict[str, Any]) -> SelectionProblem:
    """The problem that the fields make up, their arrays not yet checked."""
    for name in fields:
        if name not in _KNOWN:
            raise ValueError(f"{_cut(name)}: unknown field, expected only {', '.join(_KNOWN)}")
    joint = [name for name in _JOINT if name in fields]
    if joint and "scores" in fields:
        raise ValueError(f"scores: got them beside {_listed(joint)}, expected {_KINDS}, not both")
    for name in _JOINT if joint else _SELECTION:
        if name not in fields:
            raise ValueError(f"{name}: missing beside {_listed(fields)}, expected {_KINDS}")
    loss = loss_named(fields.get("loss", LOGISTIC.name))
    if not joint:
        return SelectionProblem(fields["keys"], fields["scores"], loss)
    problem = JointProblem(fields["tokens"], fields["labels"], fields.get("keys"))
    head = finite_array(fields["head"], "head", ("d",))
    if head.shape != (problem.shape[2],):
        raise ValueError(f"head: got shape {head.shape}, expected ({problem.shape[2]},) to match the tokens")
    return problem.at_head(head, loss)


def _json(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_without_repetition)
    except OSError as error:
        raise ProblemFileError(f"{path}: {error.strerror or error}, expected a problem file") from error
    except _RepeatedFieldError as error:
        raise ProblemFileError(f"{path}: {error}") from error
    except (ValueError, RecursionError) as error:
        raise ProblemFileError(f"{path}: not JSON ({_one_line(error)}), expected {_KINDS}") from error
    if not isinstance(data, dict):
        raise ProblemFileError(f"{path}: got {type(data).__name__}, expected an object with {_KINDS}")
    try:
        # Unknown fields are left as they are, to be named as such.
        return {
            name: array_from_json(value, name) if name in _SELECTION + _JOINT else value
            for name, value in data.items()
        }
    except (ValueError, RecursionError) as error:
        raise ProblemFileError(f"{path}: {_one_line(error)}") from error


class _RepeatedFieldError(ValueError):
    """A JSON object has a field twice."""


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _RepeatedFieldError(f"{_cut(twice)}: got the field twice, expected it once")
    return fields


def _archive(path: Path) -> dict[str, Any]:
    expected = f"expected an archive of numpy.savez with {_KINDS}"
    try:
        with path.open("rb") as file:
            if not zipfile.is_zipfile(file):
                raise ProblemFileError(f"{path}: not a zip archive, {expected}")
            file.seek(0)
            with np.load(file, allow_pickle=False) as archive:
                names = list(archive.files)
                return {name: _member(path, name, partial(archive.__getitem__, name)) for name in names}
    except OSError as error:
        raise ProblemFileError(f"{path}: {error.strerror or error}, expected a problem file") from error
    except ProblemFileError:
        raise
    except _ARCHIVE_ERRORS as error:
        raise ProblemFileError(f"{path}: damaged archive ({_one_line(error)}), {expected}") from error


def _member(path: Path, name: str, read: Callable[[], Any]) -> Any:
    """One array of an archive; its text, if it is the name of a loss."""
    try:
        value = read()
    except _ARCHIVE_ERRORS as error:
        # An array of objects ends here, since it could only be read by unpickling.
        raise ProblemFileError(
            f"{path}: {_cut(name)}: cannot be read ({_one_line(error)}), expected an array of numbers"
        ) from error
    if name == "loss" and isinstance(value, np.ndarray) and value.dtype.kind == "U" and value.ndim == 0:
        return str(value)
    if not isinstance(value, np.ndarray):
        raise ProblemFileError(f"{path}: {_cut(name)}: not an array of NumPy, expected an array of numbers")
    return value


def _listed(names: Iterable[str]) -> str:
    return _cut(", ".join(names)) or "no fields"


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
