"""The provers against each other, on random expressions that reuse the names of indices."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from sympy import Add, Expr, Integer, Mul, Pow, Rational, Sum, exp
from sympy.tensor.indexed import Indexed

from theory import Index, Unspecified, array, delta, partial, proves_equal, scalar, softmax, total
from theory.calculus import replace_index
from theory.examination import examine, formally_equal
from theory.notation import Applied, Named, T, d

x, y, z, A = array("x", T), array("y", d), array("z", T), array("A", T, d)
ell, c = Unspecified("ell"), scalar("c")
t, a = Index("t", T), Index("a", d)
POOL = {T: [t, Index("tau", T), Index("kappa", T)], d: [a, Index("b", d), Index("e", d)]}


def _softmax(index: Index, random: Random) -> Expr:
    inner = random.choice(POOL[d])
    if random.random() < 0.5:
        return softmax(lambda k: z[k], index)
    return softmax(lambda k: total(A[k, inner] * y[inner], inner), index)


def atom(random: Random, scope: list[Index]) -> Expr:
    """An entry, a delta, an exponential or a softmax weight at indices in `scope`."""
    tokens = [index for index in scope if index.size == T]
    axes = [index for index in scope if index.size == d]
    i, j, k = random.choice(tokens), random.choice(axes), random.choice(tokens)
    return random.choice(
        [
            x[i],
            z[i],
            y[j],
            A[i, j],
            delta(i, k),
            c,
            exp(z[i]),
            1 / (1 + exp(x[i])),
            _softmax(i, random),
            Rational(1, 2),
        ]
    )


def expression(random: Random, depth: int, scope: list[Index]) -> Expr:
    """An expression with free indices in `scope`; inner sums may reuse a name that is bound further out."""
    if depth == 0 or random.random() < 0.15:
        return atom(random, scope)
    kind = random.choice(["add", "mul", "mul", "sum", "sum", "function", "derivative", "square"])
    if kind == "add":
        return expression(random, depth - 1, scope) + random.choice([1, -1, 2]) * expression(
            random, depth - 1, scope
        )
    if kind == "mul":
        return expression(random, depth - 1, scope) * expression(random, depth - 1, scope)
    if kind == "sum":
        index = random.choice(POOL[random.choice([T, d])])
        return total(expression(random, depth - 1, [*scope, index]), index)
    if kind == "function":
        return ell(expression(random, depth - 1, scope), random.choice([0, 1]))
    if kind == "square":
        return atom(random, scope) ** 2 * expression(random, depth - 1, scope)
    variable = random.choice([x[t], z[t], y[a], A[t, a], c])
    return partial(expression(random, min(depth - 1, 2), scope), variable)


def sample(random: Random, depth: int = 4) -> Expr:
    return expression(random, depth, [t, a])


def rewritten(node: Expr, random: Random) -> Expr:
    """Another way to write the same value."""
    if isinstance(node, Sum):
        (index, _, size), *others = node.limits
        inner = rewritten(node.function, random)
        new = Index(f"r{random.randrange(10_000)}", size)
        inner = replace_index(inner, index, new)
        if isinstance(inner, Add) and random.random() < 0.7:
            result = Add(*(Sum(part, (new, 1, size)) for part in inner.args))
        else:
            result = Sum(inner, (new, 1, size))
        return Sum(result, *others) if others else result
    if isinstance(node, Indexed):
        if random.random() < 0.2:
            index = random.choice(node.indices)
            new = Index(f"r{random.randrange(10_000)}", index.size)
            return total(replace_index(node, index, new) * delta(new, index), new)
        return node
    if isinstance(node, Applied) and node.slot is None:
        return Applied(*node.args[:3], rewritten(node.argument, random))
    if isinstance(node, Named):
        return rewritten(node.definition, random)
    if isinstance(node, Add):
        return Add(*(rewritten(part, random) for part in node.args))
    if isinstance(node, Mul):
        parts = [rewritten(part, random) for part in node.args]
        opened = next((part for part in parts if isinstance(part, Add)), None)
        if opened is not None and random.random() < 0.7:
            parts.remove(opened)
            result = Add(*(Mul(*parts, term) for term in opened.args))
        else:
            result = Mul(*parts)
        if random.random() < 0.2:
            new = Index(f"r{random.randrange(10_000)}", T)
            result = result * total(softmax(lambda k: z[k] + c, new), new)
        return result
    if isinstance(node, Pow) and isinstance(node.exp, Integer):
        return rewritten(node.base, random) ** node.exp
    if isinstance(node, exp):
        return exp(rewritten(node.args[0], random))
    return node


def mutated(node: Expr, random: Random) -> Expr:
    """A small change that usually changes the value."""
    entries = sorted(node.atoms(Indexed), key=str)
    if entries and random.random() < 0.7:
        entry = random.choice(entries)
        index = random.choice(entry.indices)
        others = [other for other in POOL[index.size] if other != index] if index.size in POOL else []
        if others:
            indices = tuple(random.choice(others) if k == index else k for k in entry.indices)
            return node.xreplace({entry: entry.base[indices]})
    return node + random.choice([1, -1]) * atom(random, [t, a]) if random.random() < 0.5 else node * 2


@pytest.mark.parametrize("start", range(0, 300, 50))
def test_rewritten_expressions_are_proved_equal(start):
    for seed in range(start, start + 50):
        random = Random(seed)
        left = sample(random)
        right = rewritten(left, random)
        assert proves_equal(left, right), f"seed {seed}: {left} and {right}"


def test_evaluation_agrees_with_what_is_proved():
    for seed in range(1_000, 1_060):
        random = Random(seed)
        left = sample(random, 3)
        # `examine` raises TierMismatch if residues or decimals contradict the proof.
        status, *_ = examine(left, rewritten(left, random))
        assert status == "proved", f"seed {seed}: {left}"


def test_changed_expressions_are_proved_equal_only_if_they_are():
    outcomes = Counter()
    for seed in range(2_000, 2_100):
        random = Random(seed)
        left = sample(random, 3)
        right = rewritten(mutated(left, random), random)
        formally = formally_equal(left, right)
        if formally is False:
            assert not proves_equal(left, right), f"seed {seed}: {left} and {right}"
        else:
            status, *_ = examine(left, right)
            assert status == "proved" or formally is None, f"seed {seed}: {left} and {right}"
        outcomes[formally] += 1
    # Some changes keep the value, such as that of an index which is summed away.
    assert outcomes[False] >= 60
    assert outcomes[True] >= 5
