"""The search: what it counts, what it calls vacuous, what it finds, and that it repeats."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st

from checks import Decision, SelectionProblem, assume, claim, control, expect
from checks import strategies as attst
from checks.search import CONTROL_EXAMPLES, SHRINK_EVALUATIONS, Budget, examine
from checks.store import load


def decision(outcome, error=0.5):
    return Decision("size", outcome, error=error, tolerance={"bound": 1.0}, why="because")


def declare(body, *, examples=(), **arguments):
    arguments = arguments or {"x": st.integers(0, 1_000)}
    return claim("under-test", statement="It holds.", examples=examples, **arguments)(body)


def run(check, tmp_path, examples=50, seed=0):
    return examine(check, Budget(examples, seed, tmp_path))


def test_a_true_property_is_supported_by_the_number_asked_for(tmp_path):
    verdict = run(declare(lambda x: None), tmp_path)
    assert (verdict.status, verdict.examples, verdict.drawn, verdict.discarded) == ("supported", 50, 50, 0)
    assert verdict.as_expected
    assert list(tmp_path.iterdir()) == []


def test_a_false_property_is_refuted_by_its_smallest_counterexample(tmp_path):
    def body(x):
        assert x < 300

    verdict = run(declare(body), tmp_path)
    assert (verdict.status, verdict.origin) == ("refuted", "found")
    assert load(tmp_path / "under-test.json").arguments == {"x": 300}
    assert "< 300" in verdict.why
    assert not verdict.as_expected


def test_the_most_severe_failure_is_kept_beside_the_simplest(tmp_path):
    def body(x):
        expect(decision("no" if x > 100 else "yes", error=float(x)))

    verdict = run(declare(body), tmp_path)
    assert load(tmp_path / "under-test.json").arguments == {"x": 101}
    severe = load(tmp_path / "under-test.severe.json")
    assert severe.arguments["x"] > 101
    assert severe.decision["error"] == verdict.worst["error"] == severe.arguments["x"]


def test_given_examples_come_first_and_say_so(tmp_path):
    def body(x):
        assert x != -1

    verdict = run(declare(body, examples=[{"x": 5}, {"x": -1}], x=st.integers(0, 9)), tmp_path)
    assert (verdict.status, verdict.origin, verdict.drawn) == ("refuted", "given", 2)
    assert load(tmp_path / "under-test.json").arguments == {"x": -1}


def test_a_control_searches_longer_than_a_claim(tmp_path):
    check = declare(lambda x: None)
    verdict = run(control(check, drops="nothing"), tmp_path, examples=3)
    assert (verdict.status, verdict.examples, verdict.as_expected) == ("supported", CONTROL_EXAMPLES, False)


def test_discards_by_assume_and_by_filter_are_counted(tmp_path):
    def body(x, y):
        assume(x % 2 == 0)

    numbers = st.integers(0, 1_000)
    verdict = run(declare(body, x=numbers, y=numbers.filter(lambda y: y % 3 == 0)), tmp_path)
    assert verdict.status == "supported"
    assert verdict.examples == 50
    assert verdict.discarded >= 20
    assert verdict.drawn == verdict.examples + verdict.discarded


def test_a_guard_is_noticed_where_other_examples_reach_an_expect(tmp_path):
    def body(x):
        if x % 20:
            return
        expect(decision("yes"))

    verdict = run(declare(body), tmp_path, examples=200)
    assert verdict.status == "vacuous"
    assert 0 < verdict.examples < 40
    assert f"only {verdict.examples} of {verdict.drawn} drawn examples met the hypotheses" in verdict.why


def test_uniform_draws_behind_a_guard_are_vacuous(tmp_path):
    # 3 inputs, 4 tokens, dimension 2: about 4 in 54 uniform draws are separable.
    from checks import Infeasible, att_svm, optimal_tokens

    def body(problem):
        try:
            att_svm(problem, optimal_tokens(problem))
        except Infeasible:
            return
        expect(decision("yes"))

    problems = attst.selection_problems(n=3, tokens=4, dim=2)
    verdict = run(declare(body, problem=problems), tmp_path, examples=200)
    assert verdict.status == "vacuous"
    assert verdict.examples < 40


def test_nothing_that_meets_the_hypotheses_is_vacuous(tmp_path):
    for source in (st.nothing(), st.integers().filter(lambda x: False)):
        verdict = run(declare(lambda x: None, x=source), tmp_path)
        assert (verdict.status, verdict.examples) == ("vacuous", 0)


def test_a_small_space_that_is_exhausted_is_not_vacuous(tmp_path):
    verdict = run(declare(lambda x: None, x=st.sampled_from([1, 2, 3])), tmp_path)
    assert (verdict.status, verdict.examples) == ("supported", 3)


@pytest.mark.parametrize(("share", "status"), [(2, "undecided"), (40, "supported")])
def test_too_many_undecided_examples_decide_nothing(share, status, tmp_path):
    def body(x):
        expect(decision("yes" if x % share else "undecided"))

    verdict = run(declare(body), tmp_path, examples=100)
    assert verdict.status == status
    assert verdict.examples == 100
    assert 0 < verdict.undecided < 80


def test_the_passed_decision_closest_to_its_tolerance_is_reported(tmp_path):
    def body(x):
        expect(decision("yes", error=x / 1_000))

    verdict = run(declare(body), tmp_path)
    assert verdict.worst["error"] > 0.5


@pytest.mark.parametrize("error", [ValueError("bad"), SystemExit(3), ZeroDivisionError()])
def test_code_that_raises_is_an_error_never_a_refutation(error, tmp_path):
    def body(x):
        raise error

    verdict = run(declare(body), tmp_path)
    assert verdict.status == "error"
    assert type(error).__name__ in verdict.why
    assert "test_search.py, line" in verdict.why


def test_a_strategy_that_raises_is_an_error(tmp_path):
    def broken(x):
        raise KeyError("no such thing")

    verdict = run(declare(lambda x, y: None, x=st.integers(), y=broken), tmp_path)
    assert verdict.status == "error"
    assert "drawing y: KeyError" in verdict.why
    verdict = run(declare(lambda x, y: None, x=st.integers(), y=lambda x: x), tmp_path)
    assert "expected a strategy" in verdict.why
    verdict = run(declare(lambda x: None, x=st.integers(3, 1)), tmp_path)
    assert "drawing x: InvalidArgument" in verdict.why


def test_an_assertion_inside_the_package_is_an_error(tmp_path, monkeypatch):
    import checks.cones

    def body(x):
        checks.cones.Cone([1.0], 1, 1).excess(np.ones((1, 1)))

    exec(compile("def broken(*_):\n    assert False\n", checks.cones.__file__, "exec"), scope := {})
    monkeypatch.setattr(checks.cones.Cone, "excess", scope["broken"])
    assert run(declare(body), tmp_path).status == "error"


def test_an_error_met_while_shrinking_does_not_hide_the_failure(tmp_path):
    def body(x):
        if x < 300:
            raise ValueError("too small for me")
        assert x < 400

    verdict = run(declare(body, x=st.integers(300, 1_000)), tmp_path)
    assert verdict.status == "refuted"

    def breaks_down(x):
        assert x > 500
        if x > 900:
            raise ValueError("too large")

    verdict = run(declare(breaks_down, x=st.integers(0, 1_000)), tmp_path)
    assert verdict.status == "refuted"


def test_a_property_that_is_not_a_function_of_its_arguments_is_an_error(tmp_path):
    calls = []

    def body(x):
        calls.append(x)
        assert len(calls) != 10

    verdict = run(declare(body), tmp_path)
    assert verdict.status == "error"
    assert "not a function of its arguments" in verdict.why


def test_arguments_changed_in_place_are_stored_as_they_were_drawn(tmp_path):
    def body(start):
        start += 1
        assert start.sum() < 4

    run(declare(body, start=attst.vectors(2)), tmp_path)
    stored = load(tmp_path / "under-test.json")
    values = stored.arguments["start"]["values"]
    assert sum(float(eval(str(v))) for v in values) == 2


def test_shrinking_is_counted_not_timed(tmp_path):
    calls = []

    def body(xs):
        calls.append(xs)
        assert sum(xs) % 97 < 60 or len(xs) < 5

    run(declare(body, xs=st.lists(st.integers(0, 10**6), max_size=30)), tmp_path, examples=1_000)
    assert len(calls) <= 1_000 + SHRINK_EVALUATIONS + 1


def test_a_counterexample_that_files_do_not_know_is_still_a_refutation(tmp_path):
    def body(x):
        assert x.real < 5

    verdict = run(declare(body, x=st.complex_numbers(max_magnitude=100)), tmp_path)
    assert verdict.status == "refuted"
    assert verdict.counterexample is None
    assert "was not saved" in verdict.why


def test_a_store_that_cannot_be_written_loses_only_the_file(tmp_path):
    def body(x):
        assert x < 300

    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    verdict = run(declare(body), blocked)
    assert (verdict.status, verdict.counterexample) == ("refuted", None)
    assert "was not saved" in verdict.why


def test_the_same_seed_gives_the_same_verdict_and_another_seed_other_draws(tmp_path):
    def body(problem, start):
        seen.append(repr((problem, start)))
        if problem.keys.max() > 1.5:
            raise AssertionError("a large key")

    draws = []
    for seed in (0, 0, 1):
        seen = []
        check = declare(body, problem=attst.selection_problems(), start=attst.starts)
        verdict = run(check, tmp_path / str(len(draws)), seed=seed)
        draws.append((seen, verdict.why, (tmp_path / str(len(draws)) / "under-test.json").read_text()))
    assert draws[0] == draws[1]
    assert draws[0][0] != draws[2][0]


def test_problems_shrink_to_something_one_can_read(tmp_path):
    def body(problem):
        assert problem.keys.max() < 1

    run(declare(body, problem=attst.selection_problems(separable=True)), tmp_path, examples=200)
    from checks.store import decode

    problem = decode(load(tmp_path / "under-test.json").arguments["problem"])
    assert isinstance(problem, SelectionProblem)
    n, tokens, dim = problem.shape
    assert (n, tokens, dim) <= (3, 4, 3)
    assert (problem.keys * 8 == np.round(problem.keys * 8)).all()


def test_a_guard_that_never_opens_is_vacuous(tmp_path):
    def body(x):
        if x < 0:
            expect(decision("yes"))

    verdict = run(declare(body), tmp_path)
    assert (verdict.status, verdict.examples, verdict.discarded) == ("vacuous", 0, verdict.drawn)


def test_a_property_that_returns_something_is_an_error(tmp_path):
    verdict = run(declare(lambda x: x > 3), tmp_path)
    assert verdict.status == "error"
    assert "the property returned" in verdict.why


def test_a_strategy_that_ends_the_program_is_an_error(tmp_path):
    def ends(x):
        raise SystemExit(0)

    verdict = run(declare(lambda x, y: None, x=st.integers(), y=ends), tmp_path)
    assert verdict.status == "error"
    assert "drawing y: SystemExit: 0" in verdict.why


def test_draws_that_are_mostly_cut_short_are_vacuous(tmp_path):
    wide = st.lists(st.integers(), min_size=3_000, max_size=12_000)
    verdict = run(declare(lambda x: None, x=wide), tmp_path, examples=20)
    assert verdict.status == "vacuous"


def test_a_most_severe_example_of_an_earlier_run_does_not_stay(tmp_path):
    def body(x):
        expect(decision("no" if x > 100 else "yes", error=float(x)))

    run(declare(body), tmp_path)
    assert (tmp_path / "under-test.severe.json").exists()
    run(declare(body, x=st.just(101)), tmp_path)
    assert not (tmp_path / "under-test.severe.json").exists()
