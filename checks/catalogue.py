"""Everything that can be verified, by id; and claim files from outside."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import ModuleType

import theory

from .claim import Claim, Control, declared_claims
from .proofs import FalseVariant, Proof
from .trial import describe

Check = Claim | Control | Proof | FalseVariant
Target = str | Path | Claim | Control


class TargetError(ValueError):
    """A target cannot be verified; the message names it and what was expected."""


@cache
def built_in() -> tuple[Claim | Proof, ...]:
    """The catalogue: symbolic statements, then claims."""
    from .claims import CLAIMS  # The claims import the package that this module is part of.

    return (*map(Proof, theory.catalogue()), *CLAIMS)


def resolve(targets: Sequence[Target]) -> list[Check]:
    """The checks that targets name, each claim followed by its controls; all built-in ones by default.

    Args:
        targets: ids of statements, claims or controls, claim files, or claims.

    Raises:
        TargetError: an id is unknown, a file cannot be used, or two claims have the same id.
    """
    found: dict[str, Check] = {}
    for target in targets:
        for check in _checks(target):
            other = found.setdefault(check.id, check)
            # Rows of a symbolic statement are built anew each time; only claims can clash.
            if other is not check and isinstance(check, Claim | Control):
                raise TargetError(
                    f"{check.id}: defined twice, in {_place(other)} and {_place(check)}; "
                    "expected one claim per id"
                )
    if not targets:
        found = {check.id: check for check in _with_controls(built_in())}
    return list(found.values())


def find(id: str) -> Check:
    """The built-in statement, claim or control of this id.

    Raises:
        TargetError: there is none; the message names similar ids.
    """
    known = _known_ids()
    if id not in known:
        near = difflib.get_close_matches(id, known, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else "`attcheck list` shows the ids"
        raise TargetError(f"{id}: unknown id; {hint}")
    return known[id]


def _known_ids() -> dict[str, Check]:
    return {check.id: check for check in _with_controls(built_in())}


def load_claims(path: Path) -> list[Claim]:
    """The claims that a Python file defines, in order of definition.

    Raises:
        TargetError: the file is missing, its code raises, or it defines no claim.
    """
    try:
        resolved = path.resolve()
        resolved.stat()
    except (OSError, ValueError) as error:
        reason = "no such file" if isinstance(error, FileNotFoundError) else str(error)
        raise TargetError(f"{str(path)[:200]}: {reason}, expected a Python file with claims") from error
    claims = [claim for claim in _declared_in(resolved, path) if claim.file == str(resolved)]
    if not claims:
        raise TargetError(f"{path}: defines no claims, expected at least one function decorated with @claim")
    return claims


def load_checks(path: Path) -> list[Claim | Control]:
    """The claims of a file, each followed by its controls; raises as `load_claims` does."""
    checks: list[Claim | Control] = []
    for claim in load_claims(path):
        checks += [claim, *claim.controls]
    return checks


# Claims of files, with the source they were made of: a file that is edited is read again, and one that is not
# stands for the same claims each time.
_loaded: dict[Path, tuple[bytes, list[Claim]]] = {}


def _declared_in(path: Path, shown: Path) -> list[Claim]:
    if not path.is_file():
        raise TargetError(f"{shown}: is not a file, expected a Python file with claims")
    if path.suffix != ".py":
        raise TargetError(f"{shown}: expected a Python file (name ending in .py)")
    try:
        source = path.read_bytes()
    except OSError as error:
        raise TargetError(f"{shown}: {error.strerror}, expected a Python file with claims") from error
    if path in _loaded and _loaded[path][0] == source:
        return _loaded[path][1]
    module = ModuleType(f"attcheck_claims_{sha256(str(path).encode()).hexdigest()[:12]}")
    module.__file__ = str(path)
    # Dataclasses look a class's module up by name.
    sys.modules[module.__name__] = module
    folder = str(path.parent)
    if folder not in sys.path:
        sys.path.append(folder)  # For helper modules beside it; last, so that no name there hides another.
    try:
        with declared_claims() as claims:
            # Compiled here rather than imported: bytecode kept beside the file can be stale.
            exec(compile(source, str(path), "exec"), vars(module))
    except KeyboardInterrupt:
        del sys.modules[module.__name__]
        raise
    # The file is code of the user's; SystemExit must not end the run either.
    except BaseException as error:
        del sys.modules[module.__name__]
        raise TargetError(f"{shown}: {describe(error)}") from error
    _loaded[path] = source, claims
    return claims


def _checks(target: Target) -> Iterator[Check]:
    if isinstance(target, Claim):
        yield from _with_controls([target])
    elif isinstance(target, Control):
        yield target
    elif isinstance(target, Path) or (isinstance(target, str) and _looks_like_file(target)):
        yield from load_checks(Path(target))
    elif isinstance(target, str):
        check = find(target)
        yield from _with_controls([check]) if isinstance(check, Claim | Proof) else [check]
    else:
        raise TargetError(f"targets: got {target!r}, expected an id, a path or a claim")


def _looks_like_file(target: str) -> bool:
    if target.endswith(".py"):
        return True
    # An id is an id, even where a folder happens to have its name.
    try:
        return target not in _known_ids() and Path(target).exists()
    except (OSError, ValueError):  # Too long, or not a name at all.
        return False


def _with_controls(checks: Sequence[Claim | Proof]) -> Iterator[Check]:
    for check in checks:
        yield check
        yield from check.controls


def _place(check: Check) -> str:
    file = getattr(check, "file", None)
    return file or "the built-in catalogue"
