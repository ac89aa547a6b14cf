"""What the commands share: arguments and options, the roles of columns, messages on the error stream."""

from __future__ import annotations

import json
import os
import re
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import pairwise, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Self

import typer
from typer.core import TyperCommand, TyperGroup

from sufrep.errors import UNSAFE, FileEndingError, InvalidParameterError, SufrepError, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from sufrep._files import TableSource

# Columns of a printed table where the width of the screen is not known.
_WIDTH = 120


def known_names(names: Collection[str]) -> Callable[[Any], Any]:
    """A callback of an option that refuses other names, before anything heavy is loaded."""

    def check(given: Any) -> Any:
        for name in [given] if isinstance(given, str) else given or ():
            if name not in names:
                near = get_close_matches(name, names)
                hint = f"did you mean {' or '.join(near)}?" if near else f"the names are {', '.join(names)}."
                raise typer.BadParameter(f"{name!r} is unknown; {hint}")
        return given

    return check


def _not_zero(jobs: int) -> int:
    if not jobs:
        raise typer.BadParameter("it cannot be 0; 1 runs one job at a time.")
    return jobs


TableArgument = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="A file (.csv, .tsv, .txt, each also with .gz; .parquet; .feather, .arrow), or a table of a "
        "database, as in duckdb:houses.db#sales or sqlite:houses.db#sales.",
        show_default=False,
    ),
]
TablesArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="TABLE",
        help="A file (.csv, .tsv, .txt, each also with .gz; .parquet; .feather, .arrow), or a table of a "
        "database, as in duckdb:houses.db#sales or sqlite:houses.db#sales. Several files, a folder or a "
        "pattern in quotes, as in 'data/*.parquet', are one table.",
        show_default=False,
    ),
]
LazyOption = Annotated[
    bool,
    typer.Option(
        "--lazy",
        help="Do not read the table into memory: what is learnt comes from queries, and rows are written "
        "while they are read, in any order. Several files are always treated in this way.",
    ),
]
PartitionOption = Annotated[
    list[str],
    typer.Option(
        "--partition-by",
        help="Columns: --out is a folder then, in which the rows of each of their values have Parquet files "
        "of their own; several may follow.",
    ),
]
DropOption = Annotated[list[str], typer.Option("--drop", help="Columns to leave out; several may follow.")]
TextOption = Annotated[
    list[str],
    typer.Option(
        "--text",
        help="Further columns to read as text, such as numbers with leading zeros; several may follow.",
    ),
]
JobsOption = Annotated[
    int,
    typer.Option(
        "--jobs",
        callback=_not_zero,
        help="Jobs to run in parallel, each with one method on one split; -1 uses all cores.",
    ),
]
ForceOption = Annotated[
    bool, typer.Option("--force", help="Replace existing files even if they hold something else.")
]


def _stream(path: Path | None) -> Path | None:
    return Path("/dev/stdout") if path == Path("-") else path


def output_option(name: str, description: str, **settings: Any) -> Any:
    """An option that names a file to write, or - for the standard output."""
    return typer.Option(name, help=description, callback=_stream, **settings)


@dataclass(frozen=True, slots=True)
class ColumnRoles:
    """The columns that the options name, each once.

    Attributes
    ----------
    groups : tuple of tuple of str
        The columns of each group; several if they are crossed.
    target : str or None
    covariates, drop : tuple of str
    time : str or None
    fold : str or None
    """

    groups: tuple[tuple[str, ...], ...]
    target: str | None
    covariates: tuple[str, ...]
    drop: tuple[str, ...]
    time: str | None = None
    fold: str | None = None

    @classmethod
    def from_options(
        cls,
        group: Sequence[str],
        target: str | None,
        covariates: Sequence[str],
        drop: Sequence[str],
        time: str | None = None,
        fold: str | None = None,
    ) -> Self:
        """The roles, without repeated names; raise if a column has two roles."""
        groups = tuple((name,) for name in _unique(group))
        roles = cls(groups, target, _unique(covariates), _unique(drop), time, fold)
        roles._check()
        return roles

    def open(
        self, table: str | Sequence[str], text: Sequence[str], needed: Sequence[str] = ()
    ) -> tuple[TableSource, Self]:
        """Open a table that has these columns and others that are needed; find which groups are crossed."""
        typed = [name for (name,) in self.groups]
        others = [name for name in (*self.used(), *needed) if name not in typed]
        source, groups = open_groups(table, typed, text=text, drop=self.drop, needed=others)
        roles = replace(self, groups=groups)
        roles._check()
        return source, roles

    @property
    def group(self) -> Any:
        """The groups as encoders take them: names, and tuples of names that are crossed."""
        found = [columns[0] if len(columns) == 1 else columns for columns in self.groups]
        return found[0] if len(found) == 1 else found

    def group_columns(self) -> tuple[str, ...]:
        """All columns that groups are made of."""
        return _unique([column for columns in self.groups for column in columns])

    def used(self) -> list[str]:
        """Every column that is named and not dropped."""
        named = [name for name in (self.target, self.fold) if name is not None]
        return [*named, *self.features()]

    def features(self) -> list[str]:
        """Every column that is named, and neither dropped nor the target."""
        time = [] if self.time is None else [self.time]
        return list(_unique([*self.group_columns(), *self.covariates, *time]))

    def _check(self) -> None:
        named = {"--group": self.group_columns(), "--covariates": self.covariates, "--drop": self.drop}
        for option, columns in named.items():
            if self.target in columns:
                raise usage_error(f"{self.target!r} is also in {option}.", "--target")
        for option in ("--covariates", "--drop"):
            both = set(self.group_columns()).intersection(named[option])
            if both:
                raise usage_error(f"{min(both)!r} is also in --group.", option)
        both = set(self.covariates).intersection(self.drop)
        if both:
            raise usage_error(f"{min(both)!r} is also in --covariates.", "--drop")
        if self.time is not None:
            for option in ("--group", "--drop"):
                if self.time in named[option]:
                    raise usage_error(f"{self.time!r} is also in {option}.", "--time")
            if self.time == self.target:
                raise usage_error(f"{self.time!r} is also the target.", "--time")
        for option, columns in named.items():
            if self.fold in columns:
                raise usage_error(f"{self.fold!r} is also in {option}.", "--fold")
        if self.fold is not None and self.fold == self.target:
            raise usage_error(f"{self.fold!r} is also the target.", "--fold")
        if self.fold is not None and self.time is not None:
            raise usage_error("it cannot be combined with --time.", "--fold")


def _unique(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def open_groups(
    table: str | Sequence[str],
    group: Sequence[str],
    *,
    text: Sequence[str],
    drop: Sequence[str],
    needed: Sequence[str],
) -> tuple[TableSource, tuple[tuple[str, ...], ...]]:
    """Open a table that has these columns, and return it with the columns of each group.

    ``store+brand`` stands for two columns that are crossed, unless there is a column of that name. The table
    is therefore opened with the groups as they were typed, and once more if some of them are crossed.
    """
    from sufrep._files import open_table
    from sufrep.errors import TableColumnError

    def opened(columns: Sequence[str]) -> TableSource:
        return open_table(table, text=(*columns, *text), drop=drop, needed=needed)

    try:
        return opened(group), tuple((name,) for name in _unique(group))
    except TableColumnError as error:
        _refuse_commas(group, error.names)
        groups = tuple(_crossed(name, error.names) for name in _unique(group))
        columns = [column for parts in groups for column in parts]
        if columns == list(_unique(group)):
            raise
    return opened(columns), groups


def _crossed(name: str, names: Sequence[str]) -> tuple[str, ...]:
    """The columns of a group: its parts between signs of addition, unless it is a column itself.

    >>> _crossed("store+brand", ["store", "brand"]), _crossed("a+b", ["a+b"]), _crossed("c++", ["d"])
    (('store', 'brand'), ('a+b',), ('c++',))
    """
    parts = name.split("+")
    return (name,) if name in names or not all(parts) else _unique(parts)


def _refuse_commas(group: Sequence[str], names: Sequence[str]) -> None:
    """Raise if groups were written as a list with commas."""
    for name in group:
        parts = [part.strip() for part in name.split(",")]
        if name not in names and len(parts) > 1 and set(parts) <= set(names):
            several, one = " ".join(parts), "+".join(parts)
            what = f"{name!r} is no column; write --group {several} for several groups"
            raise usage_error(f"{what}, or --group {one} for their combinations.", "--group")


# Files to write


class Output(NamedTuple):
    """A file to be written: the option that names it, and its kind.

    The kind is a key of ``sufrep._files.KINDS``, "table" for the format of the path's ending or a table of a
    database, or "parts" for a folder of Parquet files.
    """

    option: str
    path: Path | None
    kind: str


def check_outputs(inputs: Sequence[Path], outputs: Sequence[Output], *, force: bool) -> None:
    """Raise if an output cannot be written, or would replace something else.

    That is a file that the command reads, the file of another option, and an existing file of another kind
    unless ``force`` allows it.
    """
    from sufrep._atomic import check_path
    from sufrep._files import KINDS, check_partitions, is_database, is_replaceable, written_file

    seen: list[tuple[str, Path]] = []
    files = [(option, written_file(path)) for option, path, _ in outputs if path is not None]
    for option, path in files:
        if any(_is_same_file(path, read) for read in inputs):
            raise usage_error(
                f"{str(path)!r} is an input, which would be replaced; name another file.", option
            )
        for earlier, other in seen:
            if _is_same_file(path, other):
                raise usage_error(f"{str(path)!r} is also the file of {earlier}; name another file.", option)
        seen.append((option, path))
    for option, path, kind in ((option, path, kind) for option, path, kind in outputs if path is not None):
        if kind == "parts":
            check_partitions(path)
            continue
        if is_database(path):
            _check_database(option, path, force=force)
            continue
        written = _table_kind(option, path) if kind == "table" else kind
        check_path(path)
        if not force and not is_replaceable(path, written):
            what = f"{str(path)!r} exists and is not {KINDS[written]}; name another file, or replace it"
            raise usage_error(f"{what} with --force.", option)


def _check_database(option: str, path: Path, *, force: bool) -> None:
    from sufrep._files import check_database

    if check_database(path) and not force:
        raise usage_error(f"{str(path)!r} exists; name another table, or replace it with --force.", option)


def _table_kind(option: str, path: Path) -> str:
    """The kind of table that an option asks for; its ending is a part of the option's value."""
    from sufrep._files import table_kind

    try:
        return table_kind(path)
    except FileEndingError as error:
        raise usage_error(str(error).partition("\n")[0], option) from error


def _is_same_file(path: Path, other: Path) -> bool:
    """Whether two paths lead to the same file, which need not exist yet."""
    try:
        return os.path.samefile(path, other)
    except OSError:
        return os.path.realpath(path) == os.path.realpath(other)


# Messages


def message(text: str) -> None:
    """Print something that is not a result."""
    typer.echo(shown(f"sufrep: {text}"), err=True)


def print_result(text: str, outputs: Sequence[Path | None] = ()) -> None:
    """Print a result; to the error stream if the standard output is one of the output files."""
    from sufrep._atomic import is_standard_output

    typer.echo(shown(text), err=any(path is not None and is_standard_output(path) for path in outputs))


def print_json(value: Any, indent: int) -> None:
    """Print JSON in which nothing controls a terminal; its values are the same."""
    text = json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False)
    # JSON has its own spelling of these characters; those below U+0020 are escaped already.
    typer.echo(UNSAFE.sub(lambda found: json.dumps(found[0])[1:-1], text))


class Printer:
    """Prints tables and styled lines of text from anywhere, which neither markup nor controls change.

    Without a terminal the width is fixed.
    """

    def __init__(self, outputs: Sequence[Path | None] = ()) -> None:
        from rich.console import Console

        from sufrep._atomic import is_standard_output

        stderr = any(path is not None and is_standard_output(path) for path in outputs)
        self._console = Console(soft_wrap=True, stderr=stderr)
        if not self._console.is_terminal:
            self._console = Console(width=_WIDTH, soft_wrap=True, stderr=stderr)

    def line(self, text: str = "", style: str = "") -> None:
        """Print one line, in a style of rich."""
        from rich.text import Text

        self._console.print(Text(shown(text)), style=style)

    def table(self, titles: Sequence[str], rows: Iterable[Sequence[str]], n_left: int) -> None:
        """Print a table whose first columns are text, and the others numbers."""
        from rich.table import Table
        from rich.text import Text

        table = Table(header_style="bold", box=None, pad_edge=False)
        for position, title in enumerate(titles):
            table.add_column(Text(shown(title)), justify="left" if position < n_left else "right")
        for row in rows:
            table.add_row(*(Text(shown(cell)) for cell in row))
        self._console.print(table)


def report_notes(source: TableSource) -> None:
    """Print how a table was read, where that is not obvious."""
    for note in source.notes:
        message(f"{source.where}: {note}")


@contextmanager
def report_warnings(spelling: Spelling | None = None) -> Iterator[None]:
    """Print each warning once, without the line of code that it comes from; also before an error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        try:
            yield
        finally:
            for text in dict.fromkeys(str(warning.message) for warning in caught):
                message(f"warning: {spelling.text(text) if spelling else text}")


def usage_error(text: str, option: str) -> typer.BadParameter:
    """An error with exit code 2 that names the option."""
    return typer.BadParameter(text, param_hint=option)


def _print_version(asked: bool) -> None:
    from sufrep import __version__

    if asked:
        typer.echo(f"sufrep {__version__}")
        raise typer.Exit


def global_options(
    _debug: Annotated[
        bool, typer.Option("--debug", help="Print the traceback of an error, for a report of a bug.")
    ] = False,
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Short, sufficient vectors for columns with many categories."""
    # `main` looks for the option itself, because errors may occur before it is parsed.


# Parameters of Python as options


@dataclass(frozen=True, slots=True)
class Spelling:
    """How a command spells the parameters of the functions that it calls.

    Attributes
    ----------
    options : mapping of str to str
        The option of a parameter, or of a parameter with a value, as in "folds='grouped'".
    others : str
        The option that takes ``name=value`` for all other parameters, if there is one.
    """

    options: Mapping[str, str]
    others: str = ""

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Let errors speak of options: wrong values become usage errors."""
        try:
            yield
        except SufrepError as error:
            if isinstance(error, InvalidParameterError):
                option = self.options.get(error.parameter, self.others)
                if option:
                    raise usage_error(f"{error.value!r} is not {error.expected}.", option) from error
            raise SufrepError(self.text(str(error))) from error

    def text(self, text: str) -> str:
        """A text in which options take the place of parameters.

        Values must follow, as in ``task='binary'``, or the name must have an underscore: "task" and "folds"
        are words too.

        >>> spelling = Spelling({"task": "--task", "data_dir": "--data-dir"}, "--param")
        >>> spelling.text("The task is hard; use task='binary', data_dir=None or n_components=3.")
        'The task is hard; use --task binary, --data-dir None or --param n_components=3.'
        >>> Spelling({"statistics": "--statistics"}).text("try statistics=('X', 'W').")
        'try --statistics X W.'
        """
        return _PARAMETER.sub(self._option, text)

    def _option(self, found: re.Match[str]) -> str:
        name, value = found["name"], found["value"]
        option = self.options.get(name)
        if value is None:
            return option if option and "_" in name else found[0]
        if found[0] in self.options:
            return self.options[found[0]]
        plain = " ".join(_ITEM.findall(value)) if value.startswith("(") else value.strip("'\"")
        if option:
            return f"{option} {plain}"
        return f"{self.others} {name}={plain}" if self.others else found[0]


# A name, and the value that may follow. What is in quotes or in a path is not a parameter.
_PARAMETER = re.compile(
    r"""(?<![\w'"./\\-])(?P<name>[a-z]\w*)"""
    r"""(?:=(?P<value>'[^']*'|"[^"]*"|\((?:'[^']*'(?:, ?)?)+\)|[\w+-]+(?:\.\d+)?))?(?![\w'"(/\\-]|\.\w)"""
)
# The texts of a tuple, which an option takes one after another.
_ITEM = re.compile(r"'([^']*)'")


# Groups of commands, and commands whose options take several values


class Commands(TyperGroup):
    """A group of commands."""

    def get_help_option(self, ctx: Any) -> Any:
        """The option ``--help``."""
        return _with_default(super().get_help_option(ctx))


def _with_default(help_option: Any) -> Any:
    """The option ``--help``, which is False unless it is given.

    Typer would convert None by pydantic, and loading that takes longer than all the rest of a usage error
    (test_help_and_most_wrong_usage_load_no_pydantic).
    """
    if help_option is not None:
        help_option.default = False
    return help_option


class Command(TyperCommand):
    """A command whose repeatable options may be followed by many values, and the others by exactly one.

    ``--latent 2 10`` becomes ``--latent 2 --latent 10``, the only form that click accepts. Positional
    arguments come before such options, or after options of one value; ``--`` ends a list of values too.
    The name of an option is not a value: click would let ``--save --force`` write a file called ``--force``.
    """

    def get_help_option(self, ctx: Any) -> Any:
        """The option ``--help``."""
        return _with_default(super().get_help_option(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, with the name of the option repeated before each of its values."""
        self._check_values(ctx, args)
        repeatable = {
            name for option in self.params if getattr(option, "multiple", False) for name in option.opts
        }
        expanded = repeat_names(args, repeatable)
        may_be_a_value = not repeatable.isdisjoint(expanded)
        try:
            return super().parse_args(ctx, expanded)
        except typer.BadParameter as error:
            is_argument = getattr(error.param, "param_type_name", "") == "argument"
            if is_argument and not error.message and may_be_a_value:
                error.message = "It comes before options that take several values."
            raise

    def _check_values(self, ctx: Any, args: list[str]) -> None:
        """Raise if the name of an option stands in the place of a value."""
        options = [option for option in self.get_params(ctx) if option.param_type_name == "option"]
        names = {name for option in options for name in option.opts}
        flags = {name for option in options if getattr(option, "is_flag", False) for name in option.opts}
        for name, following in pairwise(takewhile("--".__ne__, args)):
            if name in names - flags and following in names:
                raise usage_error(f"a value is missing before {following}.", name)


def repeat_names(args: list[str], repeatable: set[str]) -> list[str]:
    """Put the name of a repeatable option before each value that follows it.

    >>> repeat_names(["--latent", "2", "10", "--seeds", "3"], {"--latent"})
    ['--latent', '2', '--latent', '10', '--seeds', '3']
    >>> repeat_names(["--latent=2", "10"], {"--latent"})
    ['--latent=2', '--latent', '10']
    """
    expanded: list[str] = []
    current, first = "", True
    for argument in args:
        if argument.startswith("-"):
            name, equals, _ = argument.partition("=")
            current, first = name if name in repeatable else "", not equals
        elif current and not first:
            expanded.append(current)
        else:
            first = False
        expanded.append(argument)
    return expanded
