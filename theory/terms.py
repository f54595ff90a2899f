"""Terms of the normal form, and the names by which equal terms are recognised.

Bound indices have serial numbers, so none is ever captured. The name of a term does not depend on them: in
each group of factors that share bound indices, the indices are told apart by colour refinement, those that
stay alike are arranged in every way, and the smallest text is the name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import count, islice, permutations, product
from typing import NamedTuple

_MAX_ARRANGEMENTS = 720
"""Namings tried for interchangeable bound indices. Giving up here can only leave an equality unproved."""

_serial = count()


class Place(NamedTuple):
    """An index inside the prover; a bound one has a serial number that no other index has."""

    name: str
    size: str
    serial: int = -1

    @property
    def raw(self) -> str:
        return f"{self.name!r}:{self.size}" if self.serial < 0 else f"#{self.serial:09d}:{self.size}"


def fresh(size: str) -> Place:
    return Place("", size, next(_serial))


Where = Place | int
Labels = Mapping[Place, str]
Factor = tuple["Atom", Fraction]


@dataclass(frozen=True, eq=False)
class Atom:
    """A factor that is not taken apart.

    Attributes:
        kind: "entry", "scalar", "number", "delta", "exp", "power", "applied" or "function".
        label: name of the array, scalar or function, or the number.
        places: indices of an entry or a delta, or those a function of a vector is differentiated by.
        inner: normal forms: the exponent, the base of a power, or the arguments.
        slot: the index that the argument of a function of a vector binds.
        positive: known to be positive, so that roots can be distributed.
        primitive: a base of which nothing more can be taken out at whole powers.
    """

    kind: str
    label: str = ""
    places: tuple[Where, ...] = ()
    inner: tuple[Terms, ...] = ()
    slot: Place | None = None
    positive: bool = False
    primitive: bool = False
    support: frozenset[Place] = field(init=False)
    _texts: dict[tuple[tuple[Place, str], ...], str] = field(init=False, default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        inner = frozenset().union(*(term.support for terms in self.inner for term in terms))
        here = frozenset(place for place in self.places if isinstance(place, Place))
        object.__setattr__(self, "support", here | (inner - {self.slot}))

    def text(self, labels: Labels) -> str:
        """A name that equal atoms share; indices are written by `labels`, or by their own names."""
        used = tuple((place, labels[place]) for place in sorted(self.support) if place in labels)
        if used not in self._texts:
            self._texts[used] = self._written(dict(used))
        return self._texts[used]

    def _written(self, labels: dict[Place, str]) -> str:
        places = [labels.get(p, p.raw) if isinstance(p, Place) else str(p) for p in self.places]
        if self.kind == "delta" or self.slot is not None:  # symmetric, as repeated derivatives are
            places.sort()
        if self.slot is not None:
            labels = {**labels, self.slot: next(_unused(labels))}
        inner = ";".join(text_of(terms, labels) for terms in self.inner)
        bound = f"{labels[self.slot]}:{self.slot.size}->" if self.slot is not None else ""
        return f"{self.kind} {self.label!r}[{','.join(places)}]({bound}{inner})"


@dataclass(frozen=True, eq=False)
class Term:
    """``coefficient · Σ over bound of the product of factors``."""

    coefficient: Fraction
    bound: frozenset[Place] = frozenset()
    factors: tuple[Factor, ...] = ()

    @property
    def support(self) -> frozenset[Place]:
        return frozenset().union(*(atom.support for atom, _ in self.factors)) - self.bound

    def text(self, labels: Labels) -> str:
        """The canonical name of the term, its coefficient left out."""
        free, groups = groups_of(self.bound, self.factors)
        parts = [f"{atom.text(labels)}^{power}" for atom, power in free]
        return "·".join(sorted(parts + [group_text(group, labels) for group in groups]))


Terms = tuple[Term, ...]
Group = tuple[tuple[Place, ...], tuple[Factor, ...]]

ONE: Terms = (Term(Fraction(1)),)


def _unused(labels: Labels) -> Iterator[str]:
    taken = set(labels.values())
    return (label for k in count() if (label := f"@{k}") not in taken)


def text_of(terms: Terms, labels: Labels) -> str:
    return " + ".join(sorted(f"{term.coefficient}*{term.text(labels)}" for term in terms))


def groups_of(bound: frozenset[Place], factors: tuple[Factor, ...]) -> tuple[list[Factor], list[Group]]:
    """The factors free of `bound`, and the rest in groups that share no bound index."""
    free: list[Factor] = []
    groups: list[tuple[set[Place], list[Factor]]] = []
    for atom, power in factors:
        here = set(atom.support & bound)
        if not here:
            free.append((atom, power))
            continue
        joined = [group for group in groups if group[0] & here]
        groups = [group for group in groups if not group[0] & here]
        merged = [factor for group in joined for factor in group[1]]
        groups.append((here.union(*(group[0] for group in joined)), [*merged, (atom, power)]))
    return free, [(tuple(sorted(places)), tuple(group)) for places, group in groups]


def group_text(group: Group, labels: Labels) -> str:
    bound, factors = group

    def named(order: tuple[Place, ...]) -> str:
        names = {**labels, **dict(zip(order, _unused(labels), strict=False))}
        body = "·".join(sorted(f"{atom.text(names)}^{power}" for atom, power in factors))
        return f"Σ{','.join(place.size for place in order)}({body})"

    if len(bound) == 1:
        return named(bound)
    orders = product(*(permutations(places) for places in _classes(group, labels)))
    return min(named(tuple(p for part in order for p in part)) for order in islice(orders, _MAX_ARRANGEMENTS))


def _classes(group: Group, labels: Labels) -> list[list[Place]]:
    """The bound indices by colour: what tells them apart without naming any of them."""
    bound, factors = group
    colours = {place: place.size for place in bound}
    for _ in bound:
        ranks = {colour: k for k, colour in enumerate(sorted(set(colours.values())))}
        names = {**labels, **{place: f"?{ranks[colours[place]]}" for place in bound}}
        refined = {}
        for place in bound:
            marked = {**names, place: "!"}
            around = sorted(
                f"{atom.text(marked)}^{power}" for atom, power in factors if place in atom.support
            )
            refined[place] = f"{ranks[colours[place]]} {'·'.join(around)}"
        settled = len(set(refined.values())) == len(ranks)
        colours = refined
        if settled:
            break
    return [[p for p in bound if colours[p] == colour] for colour in sorted(set(colours.values()))]
