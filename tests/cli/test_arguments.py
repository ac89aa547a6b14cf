"""Options of several values, texts that speak of options, files that are written, and what is printed."""

from __future__ import annotations

import ast
import json
import os
import sqlite3
import stat
import sys
from contextlib import closing
from pathlib import Path
from shlex import join

import polars as pl
import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from sufrep import MeansEncoder, cli, load
from sufrep.cli._arguments import Command, Spelling, repeat_names
from sufrep.errors import shown

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

    @app.command(cls=Command)
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

    @app.command(cls=Command)
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


# Files to write


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """The current folder, with a table, a database and an encoder."""
    monkeypatch.chdir(tmp_path)
    frame = pl.DataFrame({"g": list("abab"), "x": [1.0, 2.0, 3.0, 5.0], "y": [1.0, 2.0, 1.0, 2.0]})
    frame.write_csv("d.csv")
    MeansEncoder("g").fit(frame).save("e.sufrep")
    with closing(sqlite3.connect("x.db")) as connection:
        connection.execute("CREATE TABLE t (g TEXT, x REAL)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", [("a", 1.0), ("b", 2.0)])
        connection.commit()
    (tmp_path / "notes").write_text("Dear diary, today\nI wrote a test.\n")
    Path("symbolic.csv").symlink_to("d.csv")
    os.link("d.csv", "hard.csv")
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize(
    "command",
    [
        "encode d.csv --group g --method means --no-target --save d.csv",
        "encode d.csv --group g --method means --no-target --save symbolic.csv",
        "encode d.csv --group g --method means --no-target --save hard.csv",
        "encode symbolic.csv --group g --method means --no-target --out hard.csv",
        "encode d.csv --group g --method means --no-target --out ./d.csv --force",
        "encode sqlite:x.db#t --group g --method means --no-target --save x.db",
        "encode sqlite:x.db#t --group g --method means --no-target --save x.db-wal",
        "encode sqlite:x.db#t --group g --method means --no-target --save x.db-journal",
        "encode duckdb:x.db#t --group g --method means --no-target --save x.db.wal",
        "apply e.sufrep d.csv --out e.sufrep",
        "apply e.sufrep d.csv --out d.csv",
        "compare d.csv --group g --target y --html d.csv",
        "compare d.csv --group g --target y --save hard.csv",
    ],
)
def test_an_input_is_never_an_output(sufrep, folder, command):
    before = contents(folder)
    result = sufrep(command)
    assert (result.code, result.out) == (2, "")
    assert "is an input, which would be replaced" in result.err
    assert contents(folder) == before


@pytest.mark.parametrize("other", ["out.csv", "./out.csv", "link.csv", "sub/../out.csv"])
def test_two_outputs_are_never_one_file(sufrep, folder, other):
    (folder / "sub").mkdir()
    (folder / "link.csv").symlink_to("out.csv")
    result = sufrep(f"encode d.csv --group g --method means --no-target --out out.csv --save {other}")
    assert result.code == 2
    assert "is also the file of --out" in result.err


QUICK = "--methods drop --models linear --folds 2 --jobs 1"
COMMANDS = {
    "encode --save": "encode d.csv --group g --method means --no-target --save notes",
    "encode --out": "encode d.csv --group g --method means --no-target --out notes.csv",
    "apply": "apply e.sufrep d.csv --out notes.csv",
    "compare --html": f"compare d.csv --group g --target y {QUICK} --html notes",
    "compare --save": f"compare d.csv --group g --target y {QUICK} --save notes",
    "demo": "demo --html notes",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_of_another_kind_needs_force(sufrep, folder, command):
    (folder / "notes").rename(COMMANDS[command].split()[-1])
    before = contents(folder)
    result = sufrep(COMMANDS[command])
    assert (result.code, result.out) == (2, "")
    assert "exists and is not a" in result.err
    assert "--force" in result.err
    assert contents(folder) == before


def test_force_replaces_a_file_of_any_kind_and_no_force_is_needed_for_the_same_kind(sufrep, folder):
    command = COMMANDS["encode --save"]
    assert sufrep(f"{command} --force").code == 0
    assert load(folder / "notes").representations_["g"].levels.tolist() == ["a", "b"]
    assert sufrep(command).code == 0


def test_a_hyphen_prints_the_table_and_nothing_else(folder, monkeypatch, capfd):
    command = "sufrep encode d.csv --group g --method means --no-target --out -"
    monkeypatch.setattr(sys, "argv", command.split())
    with pytest.raises(SystemExit, match=r"^0$"):
        cli.main()
    printed = capfd.readouterr()
    assert printed.out.startswith("g,x,y,g_mean_x,g_mean_y\na,1.0,")
    assert len(printed.out.splitlines()) == 5
    assert printed.err.startswith("g: 2 level(s) in 4 row(s)\n")
    assert "-" not in contents(folder)


def test_a_device_stays_a_device(sufrep, folder):
    assert sufrep("encode d.csv --group g --method means --no-target --out /dev/null").code == 0
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert folder.is_dir()


# What is printed


ODD = "a\x1b]0;pwned\x07\x9b31m[bold]\u202e\u2028\x7f"
CONTROLS = set("\x1b\x07\x9b\x7f\r\u202e\u2028\u2029")
ESCAPED = r"a\x1b]0;pwned\x07\x9b31m[bold]\u202e\u2028\x7f"


@given(st.text())
def test_what_is_shown_controls_nothing_and_other_text_stays(text):
    found = shown(text)
    assert all(part.isprintable() or ord(part) > 0xFF or part in "\n\xad\xa0" for part in found)
    assert not set(found) & CONTROLS
    assert found == shown(found)
    assert found == text or any(not part.isprintable() for part in text)


def test_ordinary_text_is_shown_as_it_is():
    assert shown("größe [bold]\n日本 👩\u200d🚀") == "größe [bold]\n日本 👩\u200d🚀"
    assert shown(ODD) == ESCAPED
    assert shown("\udc80") == r"\udc80"


@pytest.fixture
def odd(tmp_path) -> Path:
    """A table with control characters in names and levels."""
    frame = pl.DataFrame({ODD: [ODD, "b"] * 10, f"{ODD}x": [1.0, 2.0] * 10, "y": [1.0, 3.0] * 10})
    frame = frame.with_columns(pl.int_range(20).alias("n"))
    path = tmp_path / f"{ODD}.csv"
    frame.write_csv(path)
    return path


def test_names_and_levels_cannot_control_the_terminal(sufrep, odd, tmp_path, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    encoder = f"{tmp_path}/{ODD}.sufrep"
    tested, means = QUICK.split(), ["--method", "means", "--no-target"]
    commands = {
        "encode": ["encode", odd, "--group", ODD, *means, "--save", encoder],
        "describe": ["describe", encoder],
        "apply": ["apply", encoder, odd, "--out", f"{tmp_path}/{ODD}.out.csv"],
        "drift": ["drift", encoder, odd],
        "compare": ["compare", odd, "--target", "y", "--group", ODD, *tested],
        "another kind": ["encode", odd, "--group", ODD, *means, "--save", f"{encoder}.out.csv"],
        "no such column": ["encode", odd, "--group", f"{ODD}z", *means, "--save", encoder],
        "no such file": ["describe", f"{encoder}z"],
        "wrong usage": ["describe", encoder, ODD],
    }
    Path(f"{encoder}.out.csv").write_text("notes")
    for name, command in commands.items():
        result = sufrep(join(map(str, command)))
        assert result.code == {"another kind": 2, "wrong usage": 2}.get(name, int(name.startswith("no "))), (
            name
        )
        printed = result.out + result.err
        assert not set(printed) & CONTROLS, name
        assert ESCAPED in printed, name
    # What is written keeps the names.
    assert pl.read_csv(f"{tmp_path}/{ODD}.out.csv", glob=False).columns[0] == ODD


def test_json_has_the_same_values_without_control_characters(sufrep, odd, tmp_path):
    encoder = f"{tmp_path}/e.sufrep"
    sufrep(join(["encode", str(odd), "--group", ODD, "--method", "means", "--no-target", "--save", encoder]))
    result = sufrep(f"describe --json {encoder}")
    assert not set(result.out) & CONTROLS
    described = json.loads(result.out)
    assert described["groups"][0]["name"] == ODD
    assert described["groups"][0]["first_levels"][0]["level"] == ODD


def test_markup_in_names_is_shown_as_it_is(sufrep, tmp_path):
    names = ["[bold]g[/bold]", "[red]x", "y"]
    rows = [[level, float(j), 2.0 * j] for j, level in enumerate("abab" * 5)]
    pl.DataFrame(rows, schema=names, orient="row").write_csv(tmp_path / "t.csv")
    options = QUICK.split()
    result = sufrep(join(["compare", f"{tmp_path}/t.csv", "--target", "y", "--group", names[0], *options]))
    assert "[bold]g[/bold]" in result.out


def test_commands_print_through_the_functions_that_escape():
    """No command calls typer.echo, print or a console of rich itself."""
    found = set()
    for path in Path(cli.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("print", "typer.echo", "Console"):
                found.add(path.name)
    # The first has `shown` in its place, the bars of the other show our own words.
    assert found == {"__init__.py", "_arguments.py", "_progress.py"}
