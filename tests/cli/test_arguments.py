"""Options of several values mean the same as repeated options; texts speak of options."""

from __future__ import annotations

import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from sufrep.cli._arguments import SeveralValues, Spelling, repeat_names

REPEATABLE = {"--latent", "--methods"}
values = st.text("abc0123._", min_size=1, max_size=4)
# Options as they are typed: a name, and its values.
options = st.lists(
    st.tuples(st.sampled_from(sorted(REPEATABLE)), st.lists(values, min_size=1, max_size=4)), max_size=5
)


def in_a_row(typed: list[tuple[str, list[str]]]) -> list[str]:
    return [argument for name, given in typed for argument in (name, *given)]


def repeated(typed: list[tuple[str, list[str]]]) -> list[str]:
    return [argument for name, given in typed for value in given for argument in (name, value)]


@given(options)
@settings(deadline=None)
def test_values_in_a_row_become_repeated_options(typed):
    assert repeat_names(in_a_row(typed), REPEATABLE) == repeated(typed)


@given(options)
@settings(deadline=None)
def test_repeated_options_stay_as_they_are(typed):
    assert repeat_names(repeated(typed), REPEATABLE) == repeated(typed)


@pytest.mark.parametrize(
    ("typed", "understood"),
    [
        ("", ""),
        ("--seeds 3 --jobs 2", "--seeds 3 --jobs 2"),
        ("--seeds 3 4", "--seeds 3 4"),  # click refuses the 4
        ("--latent=2 10", "--latent=2 --latent 10"),
        ("--latent=2 10 --latent 3 4", "--latent=2 --latent 10 --latent 3 --latent 4"),
        ("--latent --seeds 3", "--latent --seeds 3"),
        ("--latent 2 --bug 10", "--latent 2 --bug 10"),
        ("2 --latent 3", "2 --latent 3"),
    ],
)
def test_only_values_of_repeatable_options_get_a_name(typed, understood):
    assert repeat_names(typed.split(), REPEATABLE) == understood.split()


@pytest.fixture
def app() -> typer.Typer:
    app = typer.Typer()

    @app.command(cls=SeveralValues)
    def add(
        number: list[int] = typer.Option([7], "--number", "-n"),  # noqa: B008
        times: int = typer.Option(1, "--times"),
    ) -> None:
        typer.echo(sum(number) * times)

    return app


@pytest.mark.parametrize(
    ("typed", "result"),
    [
        ("", "7"),
        ("--number 1 2 3", "6"),
        ("-n 1 2 --times 2", "6"),
        ("--times 2 --number 1 2", "6"),
        ("--number 1 --number 2", "3"),
        ("--number=1 2 -n 3 4", "10"),
    ],
)
def test_a_command_takes_both_spellings(app, typed, result):
    assert CliRunner().invoke(app, typed).stdout.strip() == result


@pytest.mark.parametrize("typed", ["--times 1 2", "5", "--number", "--number 1 x"])
def test_values_that_do_not_fit_are_wrong_usage(app, typed):
    assert CliRunner().invoke(app, typed).exit_code == 2


@pytest.fixture
def with_file() -> typer.Typer:
    app = typer.Typer()

    @app.command(cls=SeveralValues)
    def show(
        file: str = typer.Argument(...),
        number: list[int] = typer.Option([], "--number"),  # noqa: B008
        name: str = typer.Option("", "--name"),
    ) -> None:
        typer.echo(f"{file} {number} {name}".strip())

    return app


@pytest.mark.parametrize(
    "typed",
    ["f --number 1 2", "--number 1 2 -- f", "--number 1 2 --name= f", "--number=1 --number=2 --name '' f"],
)
def test_an_argument_comes_before_such_options_or_after_the_end_of_their_values(with_file, typed):
    assert CliRunner().invoke(with_file, typed).stdout.strip() == "f [1, 2]"


def test_an_argument_parsed_as_a_value_is_reported_with_a_hint(with_file):
    result = CliRunner().invoke(with_file, "--number 1 2")
    assert result.exit_code == 2
    assert "It comes before options" in result.output
    assert "It comes before" not in CliRunner().invoke(with_file, "--name x").output


SPELLING = Spelling(
    {"folds='grouped'": "--new-levels", "task": "--task", "data_dir": "--data-dir", "cv": "--folds"}
)


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("use task='binary', or cv=3.", "use --task binary, or --folds 3."),
        ("folds='grouped' tests new levels", "--new-levels tests new levels"),
        ("data_dir is not a folder", "--data-dir is not a folder"),
        # Words, columns, paths and other parameters stay as they are.
        ("a hard task in few folds", "a hard task in few folds"),
        ("column 'data_dir' of 'task=3'", "column 'data_dir' of 'task=3'"),
        ("the file /home/data_dir/task=3/cv=2.csv", "the file /home/data_dir/task=3/cv=2.csv"),
        ("alpha=0.5, call task(3)", "alpha=0.5, call task(3)"),
    ],
)
def test_only_parameters_of_the_command_are_spelled_as_options(text, spelled):
    assert SPELLING.text(text) == spelled


def test_other_parameters_go_to_the_option_that_takes_them():
    spelling = Spelling({"unseen": "--unseen"}, "--param")
    assert spelling.text("alpha=0.5 and unseen='prior'") == "--param alpha=0.5 and --unseen prior"
