"""A reviewer's derivations: Python files that define `Derivation` objects."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from types import CodeType, ModuleType

from .derivation import Derivation
from .notation import DerivationError


class DerivationFileError(DerivationError):
    """A file that holds no derivations that can be used; the message is one line that names file and line."""


def load_derivations(path: str | Path) -> list[Derivation]:
    """The derivations that a Python file defines at module level, in the order of definition.

    The file is run: load only files that you trust.

    Raises:
        DerivationFileError: the file is missing or no text, its code is not Python or raises, it defines no
            derivation, or two derivations have the same name.
    """
    shown = Path(path)
    code = _compiled(shown)
    module = ModuleType(f"attcheck_derivations_{shown.stem}")
    module.__file__ = str(shown)
    sys.modules[module.__name__] = module  # dataclasses look a class's module up by name
    try:
        exec(code, module.__dict__)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit too: a file must not end the review of the others
        raise DerivationFileError(f"{shown}{_line(error, shown)}: {_described(error)}") from error
    finally:
        del sys.modules[module.__name__]
    found: dict[int, Derivation] = {
        id(value): value for value in vars(module).values() if isinstance(value, Derivation)
    }
    if not found:
        raise DerivationFileError(
            f"{shown}: defines no derivations, expected Derivation objects at module level"
        )
    lines: dict[str, int] = {}
    for derivation in found.values():
        if derivation.name in lines:
            raise DerivationFileError(
                f"{shown}, line {derivation.line}: {derivation.name!r} is also the name of the derivation "
                f"on line {lines[derivation.name]}, rename one"
            )
        lines[derivation.name] = derivation.line
    return list(found.values())


def _compiled(path: Path) -> CodeType:
    try:
        source = path.read_bytes()
    except OSError as error:
        reason = (
            "no such file" if isinstance(error, FileNotFoundError) else (error.strerror or str(error)).lower()
        )
        raise DerivationFileError(f"{path}: {reason}, expected a Python file with derivations") from error
    try:
        return compile(source, str(path), "exec", dont_inherit=True)
    except SyntaxError as error:
        line = f", line {error.lineno}" if error.lineno else ""
        raise DerivationFileError(f"{path}{line}: not Python: {error.msg}") from error
    except ValueError as error:
        raise DerivationFileError(f"{path}: not Python: {error}") from error


def _line(error: BaseException, path: Path) -> str:
    """The innermost line of the file itself on the way to the error."""
    lines = [
        frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)
    ]
    return f", line {lines[-1]}" if lines else ""


def _described(error: BaseException) -> str:
    text = " ".join(str(error).split())
    if isinstance(error, DerivationError):
        return text
    if isinstance(error, SystemExit):
        return f"ends the program (exit status {error.code})"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def derivation_template(name: str) -> str:
    """The text of a derivation file to fill in, with an example that passes.

    Raises:
        DerivationFileError: the name is not one to write in a file.
    """
    if not name or not all(part.isalnum() for part in name.split("-")):
        raise DerivationFileError(f"{name!r}: expected a name in kebab case, such as gradient-of-my-loss")
    return _TEMPLATE.format(name=name)


_TEMPLATE = '''"""{name}: say here what is derived, and from which page of which paper."""

from sympy import exp

from theory import Derivation, Index, T, array, delta, partial, total

# Indices run from 1 to a size: n inputs, T tokens, d dimensions, or an integer.
t, tau, k = Index("t", T), Index("tau", T), Index("k", T)
z = array("z", T)

# Everything is written entry by entry. This example is the Jacobian of the softmax.
normaliser = total(exp(z[k]), k)

derivation = Derivation(
    "{name}",
    start=partial(exp(z[t]) / normaliser, z[tau]),
    title="Jacobian of the softmax",
    source="standard",
)
derivation.step(
    delta(t, tau) * exp(z[t]) / normaliser - exp(z[t]) * exp(z[tau]) / normaliser**2,
    because="quotient rule",
)
derivation.step(
    exp(z[t]) / normaliser * (delta(t, tau) - exp(z[tau]) / normaliser),
    because="factor out the weight of token t",
)
'''
