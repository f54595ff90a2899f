from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import pytest

from theory.terms import Atom, Place, Term, fresh, groups_of


def product(*entries, bound):
    factors = tuple((Atom("entry", name, places), Fraction(1)) for name, *places in map(tuple_of, entries))
    return Term(Fraction(1), frozenset(bound), factors)


def tuple_of(entry):
    name, places = entry
    return (name, *places)


def cycle(order):
    """``A_ab A_bc A_cd A_da`` with the bound indices made in some order."""
    places = [fresh("d") for _ in order]
    ring = [places[k] for k in order]
    return product(*(("A", (ring[k], ring[(k + 1) % len(ring)])) for k in range(len(ring))), bound=places)


def test_the_name_does_not_depend_on_the_bound_indices():
    names = {cycle(order).text({}) for order in permutations(range(4))}
    assert len(names) == 1


def test_the_name_tells_a_cycle_from_a_path_and_from_two_cycles():
    a, b, c, d = (fresh("d") for _ in range(4))
    path = product(("A", (a, b)), ("A", (b, c)), ("A", (c, d)), ("A", (a, d)), bound=[a, b, c, d])
    pairs = product(("A", (a, b)), ("A", (b, a)), ("A", (c, d)), ("A", (d, c)), bound=[a, b, c, d])
    assert len({cycle(range(4)).text({}), path.text({}), pairs.text({})}) == 3


def test_the_name_tells_free_places_and_sizes_apart():
    t, n = Place("t", "T"), Place("t", "n")
    assert product(("x", (t,)), bound=[]).text({}) != product(("x", (n,)), bound=[]).text({})
    k, m = fresh("T"), fresh("n")
    assert product(("x", (k,)), bound=[k]).text({}) != product(("x", (m,)), bound=[m]).text({})
    assert product(("x", (k,)), bound=[]).text({}) != product(("x", (k,)), bound=[k]).text({})


@pytest.mark.parametrize("name", ["x", "x'", "x[1]", "@0", "#000000001:T", "·"])
def test_odd_names_are_no_disguise(name):
    plain = product(("y", (Place("t", "T"),)), ("x", (1,)), bound=[])
    odd = product(("y", (Place("t", "T"),)), (name, (1,)), bound=[])
    assert (plain.text({}) == odd.text({})) == (name == "x")


def test_groups_share_no_bound_index():
    a, b, c, free = fresh("d"), fresh("d"), fresh("d"), Place("e", "d")
    term = product(("A", (a, b)), ("B", (b, free)), ("x", (c,)), ("y", (free,)), bound=[a, b, c])
    outside, groups = groups_of(term.bound, term.factors)
    assert [atom.label for atom, _ in outside] == ["y"]
    assert sorted(len(places) for places, _ in groups) == [1, 2]
    assert term.support == {free}


def test_an_atom_names_what_is_inside_it_by_the_outer_labels():
    k, m = fresh("T"), fresh("T")
    inner = (Term(Fraction(1), factors=((Atom("entry", "z", (k,)), Fraction(1)),)),)
    other = (Term(Fraction(1), factors=((Atom("entry", "z", (m,)), Fraction(1)),)),)
    first, second = Atom("exp", inner=(inner,)), Atom("exp", inner=(other,))
    assert first.support == {k}
    assert first.text({}) != second.text({})
    assert first.text({k: "@0"}) == second.text({m: "@0"})
