"""Claims and their controls: a property, the strategies of its arguments, and what it is about.

A property is plain Python: `assert`, `expect`, `assume`. A control is the same property with one
hypothesis dropped or one constant made wrong; the harness must refute it.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from hypothesis.strategies import SearchStrategy

from .decisions import Decision
from .verdict import Status

Property = Callable[..., Any]
ArgumentSource = SearchStrategy[Any] | Callable[..., SearchStrategy[Any]]

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


class ClaimError(ValueError):
    """A claim or control is malformed; the message names the claim and what was expected."""


class Refuted(AssertionError):  # noqa: N818  (an outcome, not an error)
    """A decision came out against the property."""

    def __init__(self, decision: Decision) -> None:
        super().__init__(f"{decision.name}: {decision.why}")
        self.decision = decision


class Undecided(Exception):  # noqa: N818  (an outcome, not an error)
    """A decision could not be reached; the example counts as undecided."""

    def __init__(self, decision: Decision) -> None:
        super().__init__(f"{decision.name}: {decision.why}")
        self.decision = decision


_seen: ContextVar[list[Decision] | None] = ContextVar("decisions seen", default=None)


def expect(decision: Decision) -> None:
    """Pass if the outcome is "yes", fail the property if "no", mark the example undecided otherwise.

    Raises:
        Refuted: the outcome is "no"; an `AssertionError`, so it also works in plain pytest.
        Undecided: the outcome is "undecided".
        TypeError: `decision` is not a `Decision`.
    """
    if not isinstance(decision, Decision):
        raise TypeError(
            f"expect: got {decision!r}, expected a decision such as diverges(path); "
            "for a plain condition use assert"
        )
    seen = _seen.get()
    if seen is not None:
        seen.append(decision)
    if decision.outcome == "no":
        raise Refuted(decision)
    if decision.outcome == "undecided":
        raise Undecided(decision)


@contextmanager
def recorded_decisions() -> Iterator[list[Decision]]:
    """Collect the decisions that `expect` sees in the block."""
    seen: list[Decision] = []
    token = _seen.set(seen)
    try:
        yield seen
    finally:
        _seen.reset(token)


# A file can bind two claims to one name, or keep them in a list: they are collected as they are made.
_declared: ContextVar[list[Claim] | None] = ContextVar("claims declared", default=None)


@contextmanager
def declared_claims() -> Iterator[list[Claim]]:
    """Collect the claims that are declared in the block."""
    declared: list[Claim] = []
    token = _declared.set(declared)
    try:
        yield declared
    finally:
        _declared.reset(token)


@dataclass(frozen=True, eq=False)
class Claim:
    """A statement to be tested; calling it runs its property.

    Attributes:
        id: in kebab case.
        statement: what is claimed, in one or two sentences.
        source: paper and theorem, or empty.
        hypotheses: one phrase each.
        reading: whether the statement is our reading of the source rather than its wording.
        arguments: for each argument of the property a strategy, or a function of earlier arguments
            that returns one.
        body: the property.
        examples: inputs tried before any search.
        file: where it is defined; `None` for the claims of this package.
        controls: its controls, in the order in which they were declared.
    """

    id: str
    statement: str
    source: str
    hypotheses: tuple[str, ...]
    reading: bool
    arguments: Mapping[str, ArgumentSource]
    body: Property
    examples: tuple[Mapping[str, Any], ...]
    file: str | None = None
    controls: list[Control] = field(default_factory=list, repr=False)

    expected: ClassVar[Status] = "supported"

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        self.body(*args, **kwargs)


@dataclass(frozen=True, eq=False)
class Control:
    """A false variant of a claim, which the harness must refute.

    Attributes:
        claim: the claim it belongs to.
        drops: the hypothesis dropped, or the constant made wrong.
        arguments: as for a claim.
        examples: inputs tried before any search.
    """

    claim: Claim
    drops: str
    arguments: Mapping[str, ArgumentSource]
    examples: tuple[Mapping[str, Any], ...]

    expected: ClassVar[Status] = "refuted"

    @property
    def id(self) -> str:
        """`CLAIM-ID/drops-NAME`."""
        return f"{self.claim.id}/drops-{kebab(self.drops)}"

    @property
    def statement(self) -> str:
        return f"{self.claim.statement} (dropped: {self.drops})"

    @property
    def source(self) -> str:
        return self.claim.source

    @property
    def body(self) -> Property:
        return self.claim.body

    @property
    def file(self) -> str | None:
        return self.claim.file


def claim(
    id: str,
    /,
    *,
    statement: str,
    source: str = "",
    hypotheses: Sequence[str] = (),
    reading: bool = False,
    examples: Sequence[Mapping[str, Any]] = (),
    **arguments: ArgumentSource,
) -> Callable[[Property], Claim]:
    """Turn a property into a `Claim`.

    Args:
        id: in kebab case.
        statement: what is claimed.
        source: paper and theorem.
        hypotheses: one phrase each.
        reading: whether the statement is a reading of the source.
        examples: explicit inputs, each with a value for every argument, tried before any search.
        **arguments: for each argument of the property a Hypothesis strategy, or a function that
            returns one; a function receives the earlier arguments that its parameters name.

    Raises:
        ClaimError: the parts do not fit together.
    """
    if not is_id(id):
        raise ClaimError(f"claim: got the id {id!r}, expected kebab case such as 'norm-diverges'")
    if not isinstance(statement, str) or not statement.strip():
        raise ClaimError(f"{id}: statement: got {statement!r}, expected a sentence")
    if isinstance(hypotheses, str):
        raise ClaimError(f"{id}: hypotheses: got one string, expected a sequence of phrases")

    def decorate(body: Property) -> Claim:
        _check_body(id, body)
        parameters = [p.name for p in inspect.signature(body).parameters.values() if p.kind in _NAMED]
        if set(parameters) != set(arguments):
            raise ClaimError(
                f"{id}: the property takes ({', '.join(parameters)}), expected exactly the arguments given "
                f"strategies: ({', '.join(arguments)})"
            )
        _check_sources(id, arguments)
        made = Claim(
            id=id,
            statement=statement,
            source=source,
            hypotheses=tuple(hypotheses),
            reading=reading,
            arguments=dict(arguments),
            body=body,
            examples=_checked_examples(id, examples, arguments),
            file=_file_of(body),
        )
        object.__setattr__(made, "__doc__", body.__doc__)
        declared = _declared.get()
        if declared is not None:
            declared.append(made)
        return made

    return decorate


def control(
    claim: Claim,
    /,
    *,
    drops: str,
    examples: Sequence[Mapping[str, Any]] = (),
    **arguments: ArgumentSource,
) -> Control:
    """Attach a false variant to `claim`: some arguments are drawn from other strategies.

    Args:
        claim: a claim.
        drops: the hypothesis dropped or the constant made wrong; names the control.
        examples: explicit inputs, each with a value for every argument, tried before any search.
        **arguments: strategies that replace those of the claim.

    Raises:
        ClaimError: the parts do not fit together, or `drops` is taken.
    """
    if not isinstance(claim, Claim):
        raise ClaimError(f"control: got {claim!r}, expected a claim")
    if not isinstance(drops, str) or not kebab(drops):
        raise ClaimError(f"{claim.id}: drops: got {drops!r}, expected a name for what is dropped")
    for name in arguments:
        if name not in claim.arguments:
            raise ClaimError(
                f"{claim.id}/drops-{kebab(drops)}: got a strategy for {name!r}, expected only arguments of "
                f"the claim: {', '.join(claim.arguments)}"
            )
    merged = {name: arguments.get(name, source) for name, source in claim.arguments.items()}
    made = Control(claim, drops, merged, ())
    if any(other.id == made.id for other in claim.controls):
        raise ClaimError(f"{made.id}: declared twice, expected another name in drops")
    _check_sources(made.id, merged)
    made = Control(claim, drops, merged, _checked_examples(made.id, examples, merged))
    claim.controls.append(made)
    return made


def is_id(id: Any) -> bool:
    """Whether `id` is kebab case of ASCII letters and digits."""
    return isinstance(id, str) and _ID.fullmatch(id) is not None


def kebab(text: str) -> str:
    """`text` in kebab case; letters of every alphabet are kept."""
    return "-".join(re.findall(r"\w+", text.lower().replace("_", " ")))


def needed(source: Callable[..., Any], earlier: Sequence[str]) -> list[str]:
    """The earlier arguments that the parameters of a strategy function name.

    Raises:
        ValueError: a parameter without default names no earlier argument.
    """
    names = []
    for parameter in inspect.signature(source).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if parameter.name in earlier:
            if parameter.kind is parameter.POSITIONAL_ONLY:
                raise ValueError(f"its parameter {parameter.name!r} is positional-only")
            names.append(parameter.name)
        elif parameter.default is parameter.empty:
            raise ValueError(
                f"its parameter {parameter.name!r} is not among the earlier arguments "
                f"({', '.join(earlier) or 'none'})"
            )
    return names


def _check_body(id: str, body: Property) -> None:
    """A property must be a function that runs when it is called, and uses what it decides."""
    if not inspect.isfunction(inspect.unwrap(body)):
        raise ClaimError(f"{id}: got {body!r}, expected a function as the property")
    if (
        inspect.isgeneratorfunction(body)
        or inspect.iscoroutinefunction(body)
        or inspect.isasyncgenfunction(body)
    ):
        raise ClaimError(
            f"{id}: the property is a generator or coroutine, which never runs when it is called"
        )
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(body)))
    except (OSError, TypeError, SyntaxError):
        return  # No source to look at, as at an interactive prompt.
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Call)
            and isinstance(node.value.func, ast.Name)
        ):
            called = getattr(body, "__globals__", {}).get(node.value.func.id)
            if inspect.isfunction(called) and called.__annotations__.get("return") in ("Decision", Decision):
                raise ClaimError(
                    f"{id}: the decision of {node.value.func.id}(…) is dropped, expected "
                    f"expect({node.value.func.id}(…))"
                )


def _file_of(body: Property) -> str | None:
    path = Path(inspect.getfile(inspect.unwrap(body))).resolve()
    return None if path.is_relative_to(Path(__file__).resolve().parent) else str(path)


def _check_sources(id: str, arguments: Mapping[str, ArgumentSource]) -> None:
    if not arguments:
        raise ClaimError(f"{id}: got no arguments, expected at least one strategy such as problem=…")
    earlier: list[str] = []
    for name, source in arguments.items():
        if not isinstance(source, SearchStrategy):
            if not callable(source):
                raise ClaimError(
                    f"{id}: {name}: got {source!r}, expected a Hypothesis strategy or a function that "
                    "returns one (for a constant: st.just(…))"
                )
            try:
                needed(source, earlier)
            except ValueError as error:
                raise ClaimError(f"{id}: {name}: cannot call {source!r}: {error}") from error
        earlier.append(name)


def _checked_examples(
    id: str, examples: Sequence[Mapping[str, Any]], arguments: Mapping[str, ArgumentSource]
) -> tuple[Mapping[str, Any], ...]:
    for k, example in enumerate(examples):
        if not isinstance(example, Mapping) or set(example) != set(arguments):
            came = ", ".join(example) if isinstance(example, Mapping) else repr(example)
            raise ClaimError(
                f"{id}: examples[{k}]: got ({came}), expected a value for each of ({', '.join(arguments)})"
            )
    return tuple({name: example[name] for name in arguments} for example in examples)
