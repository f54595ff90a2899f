"""Counterexample files: JSON that keeps every bit, and reading them back."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from .cones import Cone
from .problems import JointProblem, SelectionProblem, array_from_json, array_to_json, fraction

DEFAULT_STORE = Path(".attcheck") / "counterexamples"

_WIDEST = 8  # Bytes of a number; wider ones are not the same everywhere.
_LONGEST = 10_000  # Bits of an integer: Python writes and reads at most 4,300 digits.
_DTYPES = tuple(
    np.dtype(code).name for code in ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")
)

_LINE = 100  # Columns of a counterexample file.

# Classes that a counterexample can hold, by the name under which a file knows them.
_CLASSES: dict[str, Any] = {c.__name__: c for c in (SelectionProblem, JointProblem, Cone)}


class CounterexampleError(ValueError):
    """A counterexample file cannot be read; the message names the file, the field and what was expected."""


class NotStorableError(TypeError):
    """A value has no place in a counterexample file."""


@dataclass(frozen=True)
class Counterexample:
    """A failing example as it stands in a file.

    Attributes:
        claim: id of the claim or control.
        claim_file: the file that defines it, or `None` for a built-in claim.
        statement: what was claimed.
        arguments: the arguments, encoded (see `encode`).
        decision: fields of the failing decision, or `None` after a plain assertion.
        why: what failed, in one sentence.
        seed: seed of the run.
        origin: ``"given"`` or ``"found"``.
    """

    claim: str
    claim_file: str | None
    statement: str
    arguments: dict[str, Any]
    decision: dict[str, Any] | None
    why: str
    seed: int
    origin: str


def encode(value: Any, where: str = "value") -> Any:
    """`value` in JSON terms; dyadic entries of arrays as fractions, everything else bit for bit.

    Raises:
        NotStorableError: `value`, or something in it, is of a type that files do not know.
    """
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int) and value.bit_length() <= _LONGEST:
        return value
    if isinstance(value, np.generic) and value.dtype.kind in "biuf" and value.dtype.itemsize <= _WIDEST:
        return encode(value.item(), where)
    if isinstance(value, float):
        return float(value) if np.isfinite(value) else {"type": "float", "value": repr(value)}
    if isinstance(value, Fraction):
        return {"type": "Fraction", "value": str(value)}
    if type(value) is np.ndarray:
        return _encode_array(value, where)
    if type(value) in (list, tuple):
        items = [encode(item, f"{where}[{k}]") for k, item in enumerate(value)]
        return items if type(value) is list else {"type": "tuple", "items": items}
    if type(value) is dict and all(isinstance(key, str) for key in value):
        return {"type": "dict", "items": {k: encode(item, f"{where}.{k}") for k, item in value.items()}}
    name = type(value).__name__
    if _CLASSES.get(name) is type(value):
        return {"type": name, **value.to_dict()}
    raise NotStorableError(f"{where}: a {name} cannot be written to a counterexample file")


def decode(value: Any, where: str = "value") -> Any:
    """The inverse of `encode`.

    Raises:
        ValueError: the encoding is malformed; the message starts with `where`.
    """
    if isinstance(value, list):
        return [decode(item, f"{where}[{k}]") for k, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    kind = value.get("type")
    fields = {name: item for name, item in value.items() if name != "type"}
    if isinstance(kind, str) and kind in _CLASSES:
        return _CLASSES[kind].from_dict(fields, where)
    readers: dict[str, tuple[str, type, Callable[[Any], Any]]] = {
        "float": ("value", str, float),
        "Fraction": ("value", str, fraction),
        "array": ("values", object, lambda values: _decode_array(values, fields.get("dtype"), where)),
        "tuple": ("items", list, lambda items: tuple(decode(items, f"{where}.items"))),
        "dict": ("items", dict, lambda items: {k: decode(v, f"{where}.{k}") for k, v in items.items()}),
    }
    if not isinstance(kind, str) or kind not in readers:
        known = ", ".join([*readers, *_CLASSES])
        raise ValueError(f"{where}.type: got {kind!r}, expected one of {known}")
    name, holds, read = readers[kind]
    if name not in fields:
        raise ValueError(f"{where}.{name}: missing in a value of type {kind}")
    content = fields[name]
    if not isinstance(content, holds):
        raise ValueError(f"{where}.{name}: got {content!r}, expected a {holds.__name__}")
    if holds is not str:
        return read(content)
    try:
        return read(content)
    except (ValueError, ZeroDivisionError) as error:
        raise ValueError(f"{where}.{name}: got {content!r}, expected a {kind}") from error


def path_of(claim: str, folder: Path, severe: bool = False) -> Path:
    """The file of a claim's counterexample in a folder: the simplest, or the most severe one."""
    return folder / (claim.replace("/", "--") + (".severe.json" if severe else ".json"))


def save(counterexample: Counterexample, folder: Path, severe: bool = False) -> Path:
    """Write a counterexample to `folder`, under a name made of its claim.

    Raises:
        OSError: the file cannot be written.
    """
    path = path_of(counterexample.claim, folder, severe)
    data = {
        "claim": counterexample.claim,
        "claim_file": counterexample.claim_file,
        "statement": counterexample.statement,
        "arguments": counterexample.arguments,
        "decision": counterexample.decision,
        "why": counterexample.why,
        "seed": counterexample.seed,
        "origin": counterexample.origin,
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("attcheck", "numpy", "scipy", "hypothesis")},
        },
    }
    write_atomically(path, readable_json(data) + "\n")
    return path


def load(path: Path) -> Counterexample:
    """Read a counterexample file.

    Raises:
        CounterexampleError: it is missing, not JSON, or a field is missing or malformed.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CounterexampleError(f"{path}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise CounterexampleError(f"{path}: not JSON ({error}), expected a counterexample file") from error
    if not isinstance(data, dict):
        raise CounterexampleError(f"{path}: got {type(data).__name__}, expected a counterexample object")
    optional_text = str | None
    fields: dict[str, tuple[Any, str]] = {
        "claim": (str, "the id of a claim"),
        "claim_file": (optional_text, "a path, or null for a built-in claim"),
        "statement": (str, "text"),
        "arguments": (dict, "an object with a value for each argument"),
        "decision": (dict | None, "an object or null"),
        "why": (str, "text"),
        "seed": (int, "a whole number"),
        "origin": (str, '"given" or "found"'),
    }
    for name, (kind, expected) in fields.items():
        if name not in data:
            raise CounterexampleError(f"{path}: {name}: missing, expected {expected}")
        if not isinstance(data[name], kind) or isinstance(data[name], bool):
            raise CounterexampleError(f"{path}: {name}: got {data[name]!r}, expected {expected}")
    if data["origin"] not in ("given", "found"):
        raise CounterexampleError(f"{path}: origin: got {data['origin']!r}, expected {fields['origin'][1]}")
    return Counterexample(**{name: data[name] for name in fields})


def readable_json(value: Any, indent: str = "") -> str:
    """JSON in which whatever fits on a line stands on one."""
    flat = _dumps(value)
    if len(indent) + len(flat) <= _LINE or not isinstance(value, list | dict):
        return flat
    inner = indent + "  "
    if isinstance(value, list):
        lines, ends = [readable_json(item, inner) for item in value], "[]"
    else:
        lines = [f"{_dumps(key)}: {readable_json(item, inner)}" for key, item in value.items()]
        ends = "{}"
    return f"{ends[0]}\n{inner}" + f",\n{inner}".join(lines) + f"\n{indent}{ends[1]}"


def write_atomically(path: Path, text: str) -> None:
    """Write a file so that it is either complete or as it was; makes its folder.

    Raises:
        OSError: it cannot be written.
    """
    if path.exists() and not path.is_file():
        path.write_text(text, encoding="utf-8")  # A device such as /dev/stdout, or an error to report.
        return
    path = path.resolve()  # A link is to go on pointing to the same file.
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def decoded_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a counterexample as Python objects.

    Raises:
        ValueError: one is malformed; the message names it.
    """
    try:
        return {name: decode(value, f"arguments.{name}") for name, value in arguments.items()}
    except RecursionError as error:
        raise ValueError("arguments: nested too deeply") from error


def argument_lines(arguments: Mapping[str, Any]) -> list[str]:
    """One line for each argument, as one would type it in Python.

    Raises:
        ValueError: one is malformed; the message names it.
    """
    return [f"{name} = {value!r}" for name, value in decoded_arguments(arguments).items()]


def _dumps(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    # Python strings can hold half of a surrogate pair, which UTF-8 cannot.
    return text if text.isascii() or text == text.encode(errors="replace").decode() else json.dumps(value)


def _encode_array(array: np.ndarray[Any, Any], where: str) -> Any:
    values = array.tolist()
    if array.dtype.kind not in "iubf" or array.dtype.itemsize > _WIDEST:
        raise NotStorableError(f"{where}: an array of {array.dtype} cannot be written")
    if not np.isfinite(array).all() or np.array(values).shape != array.shape:
        raise NotStorableError(
            f"{where}: an array of shape {array.shape} cannot be written if an axis has no entries or an "
            "entry is not finite"
        )
    if array.dtype == np.float64:
        return {"type": "array", "values": array_to_json(array)}
    return {"type": "array", "dtype": array.dtype.name, "values": values}


def _decode_array(values: Any, dtype: Any, where: str) -> Any:
    name = "float64" if dtype is None else dtype
    if name not in _DTYPES:
        raise ValueError(f"{where}.dtype: got {dtype!r}, expected one of {', '.join(_DTYPES)}")
    if dtype is None:
        values = array_from_json(values, f"{where}.values")
    try:
        raw = np.array(values)
    except ValueError as error:
        raise ValueError(f"{where}.values: got ragged nested lists, expected an array") from error
    if raw.dtype.kind not in "iubf":
        raise ValueError(f"{where}.values: got entries that are no numbers, expected an array of {name}")
    with np.errstate(over="ignore", invalid="ignore"):  # found out by the comparison
        array = raw.astype(name)
    if not np.isfinite(raw).all() or not (array == raw).all():
        raise ValueError(f"{where}.values: got an entry that is not finite or no {name}")
    return array
