"""The command line: `attcheck verify | list | show | replay | derive | review | atlas | new | figures`.

Bad input gets one line that names what came and what was expected, and exit status 2.
"""

from __future__ import annotations

import inspect
import io
import json
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
from hypothesis.strategies import SearchStrategy
from rich.console import Console
from rich.table import Table
from rich.text import Text

import theory

from .atlas import atlas as map_problem
from .catalogue import Check, TargetError, built_in, find
from .claim import ArgumentSource, Claim, ClaimError, Control
from .figures import FIGURES, draw
from .figures.portrait import draw_portrait
from .problem_files import ProblemFileError, load_problem
from .proofs import FalseVariant, Proof
from .replay import replay as replay_file
from .report import LiveProgress, print_verdicts, results_document
from .report.atlas import print_atlas
from .runner import PROFILES, available_cores
from .runner import verify as run_verify
from .selection import EnumerationLimitError
from .store import DEFAULT_STORE, CounterexampleError, argument_lines, readable_json, write_atomically
from .templates import claim_template
from .verdict import exit_status

_INTERRUPTED = 130  # What a shell reports for a program ended by Ctrl-C.
_PLAIN_WIDTH = 120  # Columns when the output is not a terminal.


def main() -> None:
    """Entry point of the console script."""
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  (for good)
    # Told to end, keep what is finished, as after Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # Not every terminal can show ‖p‖.
    status = 0
    try:
        status = cli.main(prog_name="attcheck", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as error:
        print(error.format_message(), file=sys.stderr)
        status = 2
    except click.ClickException as error:
        status = _fail(error.format_message())
    except (click.Abort, KeyboardInterrupt):
        status = _INTERRUPTED
    except (BrokenPipeError, SystemExit):
        # The reader of a pipe has gone (`attcheck list | head`), which Click and Rich make a SystemExit.
        # Keep Python from flushing into it again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:  # Standard output is full, or a path is no path.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = _fail(str(error))
    sys.exit(status)


def _fail(message: str) -> int:
    line = " ".join(message.split())
    print(f"attcheck: error: {line}", file=sys.stderr)
    return 2


def _console(stderr: bool = False) -> Console:
    console = Console(stderr=stderr, highlight=False)
    return console if console.is_terminal else Console(stderr=stderr, highlight=False, width=_PLAIN_WIDTH)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="attcheck", prog_name="attcheck")
def cli() -> None:
    """Verify claims about how softmax attention is optimised.

    Exit status: 0 everything as expected; 1 something refuted that should hold, or a control not
    refuted; 2 usage or bad input; 3 only vacuous or undecided results in the way.
    """


@cli.command()
@click.argument("targets", nargs=-1, metavar="[ID|FILE]...")
@click.option("--examples", type=click.IntRange(min=1), help="Examples for each claim.")
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed, the same results.")
@click.option(
    "--profile",
    type=click.Choice(list(PROFILES)),
    default="quick",
    show_default=True,
    help=f"Examples for each claim: {', '.join(f'{name} {number}' for name, number in PROFILES.items())}.",
)
@click.option("--jobs", type=click.IntRange(min=1), help="Processes; the available cores if not given.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write the results to a file.")
@click.option(
    "--store",
    type=click.Path(path_type=Path, file_okay=False),
    default=DEFAULT_STORE,
    show_default=True,
    help="Folder for counterexamples.",
)
def verify(
    targets: tuple[str, ...],
    examples: int | None,
    seed: int,
    profile: str,
    jobs: int | None,
    json_file: Path | None,
    store: Path,
) -> int:
    """Verify statements and claims by ID, or the claims in a FILE; by default the whole catalogue."""
    if json_file is not None and not (json_file.absolute().parent.is_dir() and not json_file.is_dir()):
        raise click.ClickException(f"--json: got {json_file}, expected a file in an existing folder")
    interrupted = False
    with LiveProgress(_console(stderr=True)) as progress:
        try:
            run_verify(
                *targets,
                examples=examples,
                seed=seed,
                profile=profile,
                jobs=jobs or available_cores(),
                store=store,
                progress=progress,
            )
        except TargetError as error:
            raise click.ClickException(str(error)) from error
        except KeyboardInterrupt:
            interrupted = True
    verdicts = progress.in_order
    with suppress(BrokenPipeError, SystemExit):  # Without a reader, file and exit status still count.
        print_verdicts(verdicts, _console())
    if json_file is not None:
        _write(json_file, results_document(verdicts, seed, interrupted))
    if interrupted:
        print(f"attcheck: interrupted, {len(verdicts)} results kept", file=sys.stderr)
        return _INTERRUPTED
    return exit_status(verdicts)


@cli.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_checks(as_json: bool) -> int:
    """List the statements and claims of the catalogue, with their controls."""
    rows: list[dict[str, Any]] = [
        {
            "id": check.id,
            "kind": "statement" if isinstance(check, Proof) else "claim",
            "expected": check.expected,
            "statement": check.statement,
            "source": _source(check),
            "controls": [control.id for control in check.controls],
        }
        for check in built_in()
    ]
    if as_json:
        click.echo(json.dumps(rows, indent=1, ensure_ascii=False))
        return 0
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("id", "kind", "controls", "statement"):
        table.add_column(column, no_wrap=column != "statement")
    for row in rows:
        table.add_row(
            Text(row["id"]), Text(row["kind"]), Text(str(len(row["controls"]))), Text(row["statement"])
        )
    _console().print(table)
    return 0


@cli.command()
@click.argument("id")
def show(id: str) -> int:
    """Show a statement, claim or control in full."""
    check = _known(id)
    console = _console()
    lines = [("id", check.id), ("statement", check.statement), ("source", _source(check) or "none given")]
    if isinstance(check, Claim):
        lines += [("hypothesis", hypothesis) for hypothesis in check.hypotheses]
    if isinstance(check, Proof):
        lines += [("hypothesis", hypothesis) for hypothesis in check.of.hypotheses]
        lines += [("LaTeX", check.of.latex)]
    if isinstance(check, Claim | Control):
        lines += [("draws", f"{name}: {_drawn_from(source)}") for name, source in check.arguments.items()]
        lines += [("given", f"{len(check.examples)} examples")] if check.examples else []
    lines += [("expected", check.expected)]
    if isinstance(check, Claim | Proof):
        lines += [("control", f"{control.id}: {control.statement}") for control in check.controls]
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    last = ""
    for label, text in lines:
        table.add_row("" if label == last else label, Text(text))
        last = label
    console.print(table)
    return 0


@cli.command()
@click.argument("counterexample", type=click.Path(path_type=Path))
@click.option("--claims", type=click.Path(path_type=Path), help="The claim file, if it is not where it was.")
def replay(counterexample: Path, claims: Path | None) -> int:
    """Run a saved COUNTEREXAMPLE again: exit status 1 if it still fails, 0 if it no longer does."""
    try:
        result = replay_file(counterexample, claims)
    except (CounterexampleError, TargetError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"{result.check.id}: {result.counterexample.statement}")
    for line in argument_lines(result.counterexample.arguments):
        click.echo(f"  {line}")
    click.echo(f"then: {result.counterexample.why}")
    click.echo(f"now:  {result.trial.outcome}{': ' + result.trial.why if result.trial.why else ''}")
    if result.trial.outcome == "error":
        raise click.ClickException(f"{result.check.id}: {result.trial.why}")
    return 1 if result.trial.outcome == "failed" else 0


@cli.command()
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the numeric re-checks.")
@click.option(
    "--notes",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write statements.md and derivations/*.md to a folder instead.",
)
def derive(ids: tuple[str, ...], seed: int, notes: Path | None) -> int:
    """Derive symbolic statements step by step, each step with how it was established.

    Exit status 1 when a step is refuted, 3 when one is only supported at some sizes.
    """
    if notes is not None:
        if ids:
            raise click.ClickException("--notes: writes all statements, expected no ids beside it")
        try:
            click.echo(f"{len(theory.write_notes(notes))} pages written to {notes}")
        except OSError as error:
            raise click.ClickException(f"--notes: {error}") from error
        return 0
    checks = [_known(id) for id in ids] or built_in()
    symbolic = [check for check in checks if isinstance(check, Proof | FalseVariant)]
    for check in checks if ids else ():
        if check not in symbolic:
            raise click.ClickException(f"{check.id}: is a numeric claim, expected a symbolic statement")
    statuses = []
    for check in symbolic:
        for derivation in check.derivations:
            report = derivation.check(seed)
            statuses.append(report.status)
            click.echo(theory.derivation_text(derivation, report))
            click.echo()
    return _standing(statuses)


@cli.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the numeric checks.")
def review(file: Path, seed: int) -> int:
    """Check every derivation in FILE line by line.

    Exit status 1 when a step is refuted, 3 when one is only supported at some sizes.
    """
    try:
        derivations = theory.load_derivations(file)
        reports = [derivation.check(seed) for derivation in derivations]
    except theory.DerivationError as error:
        raise click.ClickException(str(error)) from error
    for derivation, report in zip(derivations, reports, strict=True):
        click.echo(theory.derivation_text(derivation, report))
        click.echo()
    return _standing([report.status for report in reports])


@cli.command()
@click.argument("problem_file", metavar="PROBLEM", type=click.Path(path_type=Path))
@click.option("--png", type=click.Path(path_type=Path), help="Draw a phase portrait to a file; for D = 2.")
@click.option(
    "--starts", type=click.IntRange(min=1), default=200, show_default=True, help="Random starts to follow."
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the starts.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def atlas(problem_file: Path, png: Path | None, starts: int, seed: int, as_json: bool) -> int:
    """Map where training can end on the data set in PROBLEM, and how often it ends there.

    PROBLEM is JSON, or an .npz archive, with keys and scores, or with tokens, labels and head.
    """
    try:
        problem = load_problem(problem_file)
        dim = problem.shape[2]
        if png is not None and dim != 2:
            raise click.ClickException(f"--png: got a problem with D = {dim}, expected D = 2 for a picture")
        if png is not None and not (png.absolute().parent.is_dir() and not png.is_dir()):
            raise click.ClickException(f"--png: got {png}, expected a file in an existing folder")
        with _console(stderr=True).status(f"following {starts} starts"):
            chart = map_problem(problem, starts, seed)
        if png is not None:
            with _console(stderr=True).status("drawing the basins"):
                draw_portrait(problem, chart, png)
    except ProblemFileError as error:
        raise click.ClickException(str(error)) from error
    except (ValueError, EnumerationLimitError) as error:
        raise click.ClickException(f"{problem_file}: {error}") from error
    except OSError as error:
        raise click.ClickException(f"--png: cannot write {png}: {error.strerror or error}") from error
    if as_json:
        click.echo(readable_json(chart.to_dict()))
    else:
        print_atlas(chart, _console())
    return 0


@cli.command()
@click.argument("name")
@click.option("--derivation", is_flag=True, help="A derivation to review instead of a claim.")
def new(name: str, derivation: bool) -> int:
    """Write a claim file called NAME to fill in; it runs as it stands."""
    try:
        text = theory.derivation_template(name) if derivation else claim_template(name)
    except (ClaimError, theory.DerivationError) as error:
        raise click.ClickException(str(error)) from error
    path = Path(f"{name.replace('-', '_')}.py")
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise click.ClickException(f"{path}: {error.strerror or error}, nothing was written") from error
    click.echo(f"{path}: try `attcheck {'review' if derivation else 'verify'} {path}`")
    return 0


@cli.command()
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("figures"),
    show_default=True,
    help="Folder for the pictures.",
)
def figures(ids: tuple[str, ...], out: Path) -> int:
    """Run the published experiments again and draw them; by default all of them."""
    try:
        results = draw(ids or tuple(FIGURES), out)
    except (ValueError, OSError) as error:
        raise click.ClickException(str(error)) from error
    for result in results:
        click.echo(f"{result.id}: {result.picture}")
        for reading in result.readings:
            click.echo(f"  {reading}")
    return 0 if all(result.ok for result in results) else 1


def _standing(statuses: Sequence[str]) -> int:
    """Exit status of checked derivations."""
    return 1 if "refuted" in statuses else 3 if "supported" in statuses else 0


def _known(id: str) -> Check:
    try:
        return find(id)
    except TargetError as error:
        raise click.ClickException(str(error)) from error


def _source(check: Check) -> str:
    of: Any = check.of if isinstance(check, Proof | FalseVariant) else check
    return f"{check.source} (reading)" if getattr(of, "reading", False) else check.source


def _drawn_from(source: ArgumentSource) -> str:
    """A strategy as it prints itself, or a function with its parameters."""
    if isinstance(source, SearchStrategy):
        return repr(source)
    return f"{getattr(source, '__name__', repr(source))}{inspect.signature(source)}"


def _write(path: Path, document: dict[str, Any]) -> None:
    try:
        write_atomically(path, readable_json(document) + "\n")
    except OSError as error:
        raise click.ClickException(f"--json: cannot write {path}: {error.strerror or error}") from error
