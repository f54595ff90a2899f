"""Run checks, in this process or in several, and hand out each verdict as it is reached."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from .catalogue import Check, Target, resolve
from .claim import Claim, Control
from .proofs import FalseVariant, Proof, examine_proof
from .search import Budget, examine
from .store import DEFAULT_STORE
from .trial import describe
from .validation import count, whole
from .verdict import Verdict

PROFILES: Mapping[str, int] = {"quick": 100, "ci": 400, "thorough": 4_000}
"""Examples for each claim."""

_PATIENCE_SECONDS = 2.0  # What a worker is given to end by itself.
_POLL_SECONDS = 0.1  # How often progress is passed on; no result depends on it.


class Progress:
    """What a run reports while it goes on; override what is of interest."""

    def started(self, checks: Sequence[Check], budget: Budget) -> None:
        """The checks that will be run."""

    def examined(self, id: str, examples: int) -> None:
        """A check has tried this many examples so far."""

    def finished(self, verdict: Verdict) -> None:
        """A verdict was reached; in order of completion."""


def verify(
    *targets: Target,
    examples: int | None = None,
    seed: int = 0,
    profile: str = "quick",
    jobs: int = 1,
    store: Path | str | None = DEFAULT_STORE,
    progress: Progress | None = None,
) -> list[Verdict]:
    """Verify statements and claims, each with its controls.

    Args:
        *targets: ids of statements, claims or controls, paths of claim files, or claims; by default the
            whole built-in catalogue.
        examples: examples for each claim that meet its hypotheses; the profile's number if not given.
        seed: the same seed gives the same verdicts and counterexamples.
        profile: ``"quick"``, ``"ci"`` or ``"thorough"``.
        jobs: processes. With more than one, a script must guard its main code by
            ``if __name__ == "__main__"``; claims passed as objects run in this process anyway.
        store: folder for counterexample files; `None` writes none.
        progress: is told of everything as it happens; keeps what is finished when a run is interrupted.

    Returns:
        Verdicts in the order of the targets.

    Raises:
        TargetError: a target cannot be used.
        ValueError: another argument is out of range.
    """
    if profile not in PROFILES:
        raise ValueError(f"profile: got {profile!r}, expected one of {', '.join(PROFILES)}")
    budget = Budget(
        examples=PROFILES[profile] if examples is None else count(examples, "examples"),
        seed=whole(seed, "seed"),
        store=None if store is None else Path(store),
    )
    jobs = count(jobs, "jobs")
    progress = progress or Progress()
    checks = resolve(targets)
    progress.started(checks, budget)
    if jobs == 1 or len(checks) == 1 or any(isinstance(target, Claim | Control) for target in targets):
        return _in_this_process(checks, budget, progress)
    return _in_processes(targets, checks, budget, min(jobs, len(checks)), progress)


def available_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _run(check: Check, budget: Budget, examined: Callable[[str, int], None]) -> Verdict:
    if isinstance(check, Proof | FalseVariant):
        return examine_proof(check, budget.seed, budget.store)
    return examine(check, budget, examined)


def _in_this_process(checks: Sequence[Check], budget: Budget, progress: Progress) -> list[Verdict]:
    verdicts = []
    with threadpool_limits(1):
        for check in checks:
            verdict = _run(check, budget, progress.examined)
            progress.finished(verdict)
            verdicts.append(verdict)
    return verdicts


def _in_processes(
    targets: Sequence[Target], checks: Sequence[Check], budget: Budget, jobs: int, progress: Progress
) -> list[Verdict]:
    context = multiprocessing.get_context("spawn")  # Forking a process with threads is not safe.
    messages = context.SimpleQueue()
    executor = ProcessPoolExecutor(jobs, context, _start_worker, (targets, budget, messages))
    verdicts: dict[str, Verdict] = {}
    with _terminated_on_error(executor):
        running: dict[Future[Verdict], Check] = {executor.submit(_work, check.id): check for check in checks}
        while running:
            done, _ = wait(running, timeout=_POLL_SECONDS, return_when=FIRST_COMPLETED)
            while not messages.empty():
                progress.examined(*messages.get())
            for future in done:
                check = running.pop(future)
                failure = future.exception()
                if failure is None:
                    verdict = future.result()
                else:
                    verdict = Verdict(check.id, "error", check.expected, why=describe(failure))
                progress.finished(verdict)
                verdicts[check.id] = verdict
    return [verdicts[check.id] for check in checks]


@contextmanager
def _terminated_on_error(executor: ProcessPoolExecutor) -> Iterator[None]:
    try:
        with executor:
            try:
                yield
            # Most of all KeyboardInterrupt: do not wait for searches that nobody waits for.
            except BaseException:
                executor.shutdown(wait=False, cancel_futures=True)
                _end(multiprocessing.active_children())
                raise
    finally:
        executor.shutdown(wait=False)


def _end(children: Sequence[multiprocessing.process.BaseProcess]) -> None:
    for child in children:
        child.terminate()
    for child in children:
        child.join(_PATIENCE_SECONDS)
        if child.is_alive():  # Code of a claim may have taken over the signal.
            child.kill()


# The state of a worker process: one run, set once at its start.
_worker: dict[str, Any] = {}


def _start_worker(targets: Sequence[Target], budget: Budget, messages: Any) -> None:
    # An interrupt goes to all processes of a terminal; the parent decides what becomes of the workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threadpool_limits(1)
    _worker.update(
        checks={check.id: check for check in resolve(targets)},
        budget=budget,
        examined=lambda id, examples: messages.put((id, examples)),
    )


def _work(id: str) -> Verdict:
    return _run(_worker["checks"][id], _worker["budget"], _worker["examined"])
