"""The text of a claim file to fill in, which runs as it stands."""

from __future__ import annotations

import keyword

from .claim import ClaimError, is_id

_CLAIM = '''"""{id}: say here what is claimed, and from which page of which paper."""

from checks import claim, control, diverges, expect, gradient_descent
from checks import strategies as attst


@claim(
    "{id}",
    statement="Under Assumption B the norm of gradient descent grows without bound.",
    source="",
    hypotheses=("equal non-optimal scores", "ATT-SVM(opt) feasible"),
    # What the property needs is drawn in this order. A function gets the earlier arguments that its
    # parameters name: attst.starts(problem).
    problem=attst.selection_problems(n=(1, 3), tokens=(2, 4), equal_nonoptimal=True, separable=True),
    start=attst.starts,
)
def {name}(problem, start):
    path = gradient_descent(problem, start, steps=1_000)
    # expect takes a decision, which may be undecided; assert and assume work as everywhere.
    expect(diverges(path))


# The same property with a hypothesis dropped: it must be refuted, or the check has no teeth.
control(
    {name},
    drops="separability",
    problem=attst.selection_problems(n=2, tokens=2, dim=1, equal_nonoptimal=True, general_position=True),
)
'''


def claim_template(id: str) -> str:
    """A claim file with an example that is supported and a control that is refuted.

    Raises:
        ClaimError: the id is not in kebab case, or no name of a Python function can be made of it.
    """
    name = id.replace("-", "_")
    if not is_id(id) or not name.isidentifier() or keyword.iskeyword(name):
        raise ClaimError(f"{id}: expected kebab case that starts with a letter, such as norm-diverges")
    if f" {name}," in _CLAIM or f" {name}\n" in _CLAIM:
        raise ClaimError(f"{id}: is a name that a claim file uses itself, expected another")
    return _CLAIM.format(id=id, name=name)
