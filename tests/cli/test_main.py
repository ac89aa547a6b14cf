"""The command itself: exit codes, messages instead of tracebacks, and a hint if packages are missing."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from io import BytesIO, TextIOWrapper
from threading import Thread

import polars as pl
import pytest

from sufrep import MeansEncoder, __version__, cli
from sufrep._paper import run
from sufrep._paper.store import Store

COLOUR = re.compile(r"\x1b\[([0-9;]*;)?[39][0-7]m")


HEAVY = {"numpy", "scipy", "sklearn", "joblib", "narwhals", "polars", "pandas", "pyarrow", "altair"}
HEAVY |= {"xgboost", "econml", "dask", "distributed", "duckdb", "lightgbm", "catboost", "gpboost"}
# Runs one command after the other, and prints the exit code and the packages that are loaded after each.
LOADED = """
import json, sys
from sufrep.cli import main
for command in sys.argv[1:]:
    sys.argv = ["sufrep", *command.split()]
    try:
        main()
    except SystemExit as end:
        loaded = sorted({name.partition(".")[0] for name in sys.modules})
        print("\\n" + json.dumps([command, end.code or 0, loaded]))
"""


@pytest.fixture
def not_loaded(monkeypatch):
    """As if no command had been called yet."""
    for module in ("_arguments", "_compare", "_describe", "_encode", "_paper", "_progress"):
        monkeypatch.delitem(sys.modules, f"sufrep.cli.{module}", raising=False)
        monkeypatch.delattr(cli, module, raising=False)
    cli._command.cache_clear()
    yield
    cli._command.cache_clear()


@pytest.mark.usefixtures("not_loaded")
@pytest.mark.parametrize("package", ["typer", "rich"])
def test_without_its_packages_the_command_says_what_to_install(sufrep, monkeypatch, package, tmp_path):
    for module in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, package, None)
    result = sufrep(f"paper simulations --store {tmp_path}")
    assert (result.code, result.out) == (1, "")
    assert result.err == (
        f"The command line needs the package '{package}', which is not installed.\n"
        'Hint: pip install "sufrep[cli]"\n'
    )


@pytest.mark.usefixtures("not_loaded")
def test_another_missing_module_is_not_hidden(sufrep, monkeypatch):
    monkeypatch.setitem(sys.modules, "enum", None)
    result = sufrep("paper tables")
    assert result.code == 1
    assert "Unexpected error, ModuleNotFoundError: import of enum halted" in result.err


def test_without_polars_the_demonstration_says_what_to_install(sufrep, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "polars", None)
    result = sufrep(f"demo --html {tmp_path}/demo.html")
    assert (result.code, result.out) == (1, "")
    assert result.err == (
        "sufrep: The demonstration needs the package 'polars', which is not installed.\n"
        'Hint: pip install "sufrep[cli]"\n'
    )


def test_our_errors_are_messages_with_code_1(sufrep, tmp_path):
    result = sufrep(f"paper tables --store {tmp_path}")
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith(f"sufrep: The store '{tmp_path}' holds no results")
    assert "\nHint: run `sufrep paper simulations`" in result.err


@pytest.fixture
def failing(monkeypatch) -> Callable[[BaseException], None]:
    """``failing(error)`` makes a command fail with that error."""

    def fail(error: BaseException) -> None:
        def broken(*_: object, **__: object) -> None:
            raise error

        monkeypatch.setattr(run, "run_trials", broken)

    return fail


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ZeroDivisionError("a slip\nof several lines"), "ZeroDivisionError: a slip"),
        (AssertionError(), "AssertionError"),
        (pl.exceptions.PanicException("index out of bounds"), "PanicException: index out of bounds"),
        (ValueError("\x1b]0;pwned\x07"), r"ValueError: \x1b]0;pwned\x07"),
    ],
)
def test_an_error_that_is_not_ours_is_a_line_and_how_to_report_it(sufrep, failing, tmp_path, error, text):
    failing(error)
    result = sufrep(f"paper simulations --store {tmp_path}")
    assert (result.code, result.out) == (1, "")
    assert result.err == (
        f"sufrep: Unexpected error, {text}\n"
        "Hint: this is probably a bug; please report it with the output of: "
        f"sufrep --debug paper simulations --store {tmp_path}\n"
    )


def test_with_debug_the_traceback_is_printed(sufrep, failing, tmp_path):
    failing(ZeroDivisionError("a slip \x9b31m"))
    result = sufrep(f"--debug paper simulations --store {tmp_path}")
    assert result.code == 1
    assert result.err.startswith("Traceback (most recent call last):\n")
    assert "\nZeroDivisionError: a slip \\x9b31m\nsufrep: Unexpected error, ZeroDivisionError" in result.err
    assert f"sufrep --debug paper simulations --store {tmp_path}\n" in result.err


def test_with_debug_an_error_of_ours_has_its_traceback_too(sufrep, tmp_path):
    options = f"--group a --method means --no-target --out {tmp_path}/out.csv"
    result = sufrep(f"--debug encode {tmp_path}/none.csv {options}")
    assert result.code == 1
    assert result.err.startswith("Traceback (most recent call last):\n")
    assert "\nsufrep.errors.TableNotFoundError: There is no file" in result.err
    assert result.err.endswith(sufrep(f"encode {tmp_path}/none.csv {options}").err)


def test_results_that_cannot_be_printed_are_no_bug(sufrep, failing, tmp_path):
    failing(OSError(28, "No space left on device"))
    result = sufrep(f"paper simulations --store {tmp_path}")
    assert result.code == 1
    assert result.err.startswith("sufrep: Cannot write the results: No space left on device.\nHint: check")


def test_the_version_is_that_of_the_package(sufrep):
    result = sufrep("--version")
    assert (result.code, result.out, result.err) == (0, f"sufrep {__version__}\n", "")


def test_too_little_memory_is_reported_with_a_hint(sufrep, failing, tmp_path):
    failing(MemoryError())
    result = sufrep(f"paper simulations --store {tmp_path}")
    assert result.code == 1
    assert result.err.startswith("sufrep: There is not enough memory for this table.\nHint: use fewer")


def test_a_terminal_without_unicode_shows_escapes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "table.csv").write_text("日,x\na,1\nb,2\n", encoding="utf-8")
    command = "sufrep encode table.csv --group 日 --method means --no-target --out o.csv"
    monkeypatch.setattr(sys, "argv", command.split())
    out, err = (TextIOWrapper(BytesIO(), "latin-1", write_through=True) for _ in range(2))
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    with pytest.raises(SystemExit, match=r"^0$"):
        cli.main()
    messages = err.buffer.getvalue().decode()
    assert messages in ("", f"encode: done in {messages[16:-3]} s\n")  # on a slow machine
    assert out.buffer.getvalue().startswith(rb"\u65e5: 2 level(s)")


def test_ctrl_c_has_code_130_and_no_traceback(sufrep, monkeypatch, tmp_path):
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "run_trials", stopped)
    result = sufrep(f"paper simulations --store {tmp_path}")
    assert (result.code, result.out) == (130, "")
    assert result.err == "sufrep: stopped\n"


@pytest.mark.usefixtures("not_loaded")
def test_ctrl_c_while_modules_load_has_code_130_too(sufrep, monkeypatch):
    class Stopping:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "sufrep.cli._compare":
                raise KeyboardInterrupt

    monkeypatch.setattr(sys, "meta_path", [Stopping(), *sys.meta_path])
    assert (result := sufrep("paper tables")).code == 130
    assert result.err == "sufrep: stopped\n"


@pytest.fixture
def heard() -> Iterator[None]:
    """Ctrl-C is heard; a shell may let background processes ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heard")
def test_ctrl_c_in_a_real_run_keeps_the_finished_trials(sufrep, tmp_path):
    store = Store(tmp_path, "simulations")

    def press() -> None:
        deadline = time.monotonic() + 60
        while len(store.records()) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    pressing = Thread(target=press)
    pressing.start()
    options = f"--setups latent_linear --latent 2 --levels 5 --n 2000 --jobs 1 --store {tmp_path}"
    result = sufrep(f"paper simulations --methods one_hot --seeds 5000 {options}")
    pressing.join()
    assert (result.code, result.err) == (130, "sufrep: stopped\n")
    assert 2 <= len(store.records()) < 5000


HELP = [
    "--help",
    "compare --help",
    "effect --help",
    "drift --help",
    "paper simulations --help",
]
WRONG_USAGE = [
    "compare",
    "compare rows.csv",
    "encode",
    "apply",
    "drift",
    "effect",
    "describe",
    "encode rows.csv --group g --method means --no-target",
    "encode rows.csv --group g --method means --out out.csv",
    "compare rows.csv --group g --target g",
    "compare rows.csv --group g --target y --html rows.csv",
    "compare rows.csv --group g --target y --methods men",
    "compare rows.csv --group g --target y --models forst",
    "compare rows.csv --group g --target y --scoring rocauc",
    "effect rows.csv --group g --treatment w --outcome y --estimand ATX",
    "effect rows.csv --group g --treatment w --outcome y --covariates w",
    "encode rows.csv --group g --method men --out out.csv",
    "encode rows.csv --group g --method fisher --out out.csv",
    "encode rows.csv --group g --method means --no-target --out out.xlsx",
    "encode rows.csv --group g --method means --save --force",
    "compare rows.csv --group --target y",
    "paper tables --out --force",
    "encode rows.csv --group g --out out.csv",
    "apply zip.sufrep rows.csv --out rows.csv",
    "drift zip.sufrep rows.csv --html rows.csv",
    "drift zip.sufrep rows.csv --fail-over 5",
    "paper simulations --methods men",
    "paper simulations --setups flat",
    "paper simulations --scheduler tcp://x:1",
    "paper empirical --datasets boston",
    "paper benchmark --models gboost",
    "paper figures --methods men",
    "encode rows.csv --group g --out out.csv --param shrinkage",
    "paper simulations --latent 0",
]


# They are found before any value is converted.
UNKNOWN_NAMES = ["nope", "compare rows.csv --nope", "encode --no-such-option", "demo --nope", "paper nope"]


def loaded_by(commands: list[str], code: int) -> dict[str, set[str]]:
    """The packages that are loaded after each command, which ends with this code.

    In one process, because each start takes long; what one command loads is loaded for those after it.
    """
    command = [sys.executable, "-c", LOADED, *commands]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    found = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("[")]
    assert [(typed, ended) for typed, ended, _ in found] == [(typed, code) for typed in commands]
    return {typed: set(loaded) for typed, _, loaded in found}


def test_help_and_usage_errors_load_only_the_command_line():
    for typed, loaded in (loaded_by(HELP, 0) | loaded_by(WRONG_USAGE, 2)).items():
        assert {"sufrep", "typer"} <= loaded
        assert not HEAVY & loaded, typed


def test_wrong_usage_is_reported_without_rich():
    for typed, loaded in loaded_by([*UNKNOWN_NAMES, *WRONG_USAGE], 2).items():
        assert "rich" not in loaded, typed


def test_help_and_most_wrong_usage_load_no_pydantic():
    for typed, loaded in (loaded_by(["--version", *HELP], 0) | loaded_by(UNKNOWN_NAMES, 2)).items():
        assert "pydantic" not in loaded, typed


def test_describe_loads_only_the_command_line_and_numpy(tmp_path):
    path = tmp_path / "zip.sufrep"
    MeansEncoder("zip").fit(pl.DataFrame({"zip": ["01", "02"], "x": [1.0, 2.0]})).save(path)
    typed = [f"describe {path}", f"describe {path} --json", f"describe {tmp_path}/none.sufrep"]
    command = [sys.executable, "-c", LOADED, *typed]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "MeansEncoder (method means)" in result.stdout
    found = [json.loads(line) for line in result.stdout.splitlines() if line.startswith('["describe')]
    assert [code for _, code, _ in found] == [0, 0, 1]
    for name, _, loaded in found:
        assert HEAVY.intersection(loaded) == {"numpy"}, name


def test_the_module_is_the_command_and_a_reader_may_stop_early():
    command = f"{sys.executable} -m sufrep.cli paper simulations --help | head -n 2"
    result = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)
    assert "Usage: " in result.stdout
    assert result.stderr == ""


@pytest.mark.parametrize(("command", "code"), [("--help", 0), ("paper --help", 0), ("", 2), ("paper", 2)])
def test_help_lists_the_commands(sufrep, command, code):
    result = sufrep(command)
    assert result.code == code
    assert "Usage: " in result.out + result.err


def test_wrong_usage_is_plain_text_with_code_2(sufrep):
    result = sufrep("--debug compare")
    assert (result.code, result.out) == (2, "")
    assert result.err.splitlines() == [
        "Usage: sufrep compare [OPTIONS] {TABLE}",
        "Try 'sufrep compare --help' for help.",
        "",
        "Error: Missing argument 'TABLE'.",
    ]


@pytest.mark.parametrize(
    ("words", "completed"), [("sufrep com", "compare"), ("sufrep compare --tar", "--target")]
)
def test_shells_can_complete(sufrep, monkeypatch, words, completed):
    monkeypatch.setenv("_SUFREP_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(words.count(" ")))
    assert sufrep("").out.split() == [completed]
    monkeypatch.delenv("_SUFREP_COMPLETE")
    assert "--install-completion" in sufrep("--help").out


@pytest.mark.parametrize("command", ["papers", "paper table", "--stor"])
def test_an_unknown_command_is_wrong_usage(sufrep, command):
    result = sufrep(command)
    assert result.code == 2
    assert "No such" in result.err


@pytest.mark.parametrize(("no_color", "coloured"), [(None, True), ("1", False)])
def test_help_has_colours_unless_no_color_is_set(sufrep, monkeypatch, no_color, coloured):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    if no_color is None:
        monkeypatch.delenv("NO_COLOR", raising=False)
    else:
        monkeypatch.setenv("NO_COLOR", no_color)
    result = sufrep("paper simulations --help")
    assert result.code == 0
    assert bool(COLOUR.search(result.out)) is coloured


def test_piped_output_has_no_colours(sufrep, monkeypatch):
    for name in ("FORCE_COLOR", "NO_COLOR", "PY_COLORS"):
        monkeypatch.delenv(name, raising=False)
    assert "\x1b" not in sufrep("paper simulations --help").out
