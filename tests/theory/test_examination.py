from __future__ import annotations

import pytest
from sympy import Integer, asin, cos, exp, sin, sqrt

from theory import (
    DerivationError,
    Index,
    TierMismatch,
    Unspecified,
    array,
    delta,
    mean,
    scalar,
    softmax,
    total,
)
from theory import examination as module
from theory.examination import (
    difference_at,
    examine,
    examine_sign,
    explicit_sizes,
    find_witness,
    formally_equal,
    size_names,
)
from theory.notation import T, d, n

i, t, tau, a = Index("i", n), Index("t", T), Index("tau", T), Index("a", d)
x, y, u, M = array("x", T), array("y", T), array("u", d), array("M", d, d)
r, q = scalar("r"), scalar("q", positive=True)
ell = Unspecified("ell")


def test_proved_supported_and_refuted():
    assert examine(total(x[t], t), total(x[tau], tau)) == ("proved", "normal form", None)
    apart = total(1 / x[t] - 1 / (x[t] + y[t]), t)
    assert examine(total(y[t] / (x[t] * (x[t] + y[t])), t), apart) == ("supported", "explicit sizes", None)
    assert examine(sin(r) ** 2 + cos(r) ** 2, Integer(1)) == ("supported", "evaluation", None)
    status, tier, witness = examine(total(x[t] ** 2, t), total(x[t], t) ** 2)
    assert (status, tier) == ("refuted", "evaluation")
    assert witness.values == {"x[1]": "1", "x[2]": "1"}
    assert (witness.left, witness.right) == ("2.0", "4.0")
    assert witness.text == "at T = 2, x[1] = 1, x[2] = 1: 2.0 before, 4.0 after (the value is wrong)"


def test_a_lost_mean_needs_two_inputs():
    z = array("z", n)
    witness = find_witness(mean(z[i], i), total(z[i], i))
    assert witness.sizes == {"n": 2}
    assert sorted(witness.values.values()) == ["0", "1"]


def test_a_transpose_needs_two_dimensions():
    b = Index("b", d)
    witness = find_witness(total(M[a, b] * u[b], b), total(M[b, a] * u[b], b))
    assert witness.sizes["d"] == 2


def test_the_function_in_a_witness_is_told():
    witness = find_witness(ell(r), ell(r, 1))
    assert witness.why == "with ell(x) = x + x² + x³"
    two = find_witness(ell(r), Unspecified("rho")(r))
    assert two.why == "with ell(x) = x + x² + x³, rho(x) = g(2 x) for g(x) = x + x² + x³"


def test_positive_scalars_stay_positive():
    witness = find_witness(sqrt(q) * r, -sqrt(q) * r)
    assert witness.values["q"] == "1"


def test_a_tiny_difference_counts_and_rounding_does_not():
    tiny = Integer(10) ** -60
    assert difference_at(tiny * r, 0 * r, {}, {}, lambda cell, symbol: "1") is not None
    third = (r / 3) * 3 - r + sqrt(q) ** 2 - q
    assert difference_at(third, 0 * r, {}, {}, lambda cell, symbol: "0.7") is None


def test_points_without_a_value_are_passed_over():
    # The root is real only where r > 1.
    root = sqrt(r - 1)
    assert find_witness(root, 2 * root) is not None
    with pytest.raises(DerivationError, match="no point found at which there is a value of asin"):
        find_witness(asin(3 + r**2), Integer(0))


def test_formal_equality_reads_only_rational_functions():
    assert formally_equal(exp(r + q), exp(r) * exp(q)) is True
    assert formally_equal(exp(r), exp(q)) is False
    assert formally_equal(sqrt(q) ** 2 * sin(r), q * sin(r)) is None


def test_a_contradiction_between_the_ways_is_an_error_of_the_package(monkeypatch):
    monkeypatch.setattr(module, "proves_equal", lambda left, right: True)
    with pytest.raises(TierMismatch, match="proved, but different as rational functions at"):
        examine(total(x[t] ** 2, t), total(x[t], t) ** 2)
    with pytest.raises(TierMismatch, match="proved, but different at"):
        examine(sin(r), cos(r))


def test_a_false_certificate_is_an_error_of_the_package(monkeypatch):
    monkeypatch.setattr(module, "shown_nonnegative", lambda expression: True)
    with pytest.raises(TierMismatch, match="certified to be nonnegative, but negative at r = -1"):
        examine_sign(r)


def test_signs():
    assert examine_sign(total(x[t] ** 2, t))[:2] == ("proved", "sign certificate")
    assert examine_sign(1 + r**2 - 2 * r)[:2] == ("supported", "evaluation")
    status, _, witness = examine_sign(r**3)
    assert status == "refuted"
    assert witness.text == "at r = -1: -1.0 (the sign is wrong)"


def test_sizes():
    weight = softmax(lambda k: x[k], t)
    assert size_names(total(u[a], a) * weight, n * r) == ["n", "T", "d"]
    assert explicit_sizes(["n", "T", "d"]) == {"n": 2, "T": 3, "d": 2}
    three = Index("k", 3)
    assert size_names(total(array("w", 3)[three], three)) == []


def test_the_same_seed_finds_the_same_witness():
    left, right = total(x[t] * y[t], t), total(x[t], t) * total(y[t], t)
    assert find_witness(left, right, seed=3) == find_witness(left, right, seed=3)


def test_all_values_of_the_free_indices_are_tried():
    wrong_off_the_diagonal = (1 - delta(t, tau)) * x[t]
    witness = find_witness(wrong_off_the_diagonal, 0 * x[t] * x[tau] + 0 * r)
    assert witness.indices == {"t": 1, "tau": 2}
