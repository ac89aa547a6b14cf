"""From what the user passes to one frozen record, with every check on the way.

A fit reads its table once: `read_table` wraps it, `resolve_layout` decides which columns are groups, which
are covariates and which pass through, `read_factor` and `read_covariates` read them, and `Inputs` holds the
result for everything that follows.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np
from sklearn.utils.validation import validate_data

from sufrep._accumulate import LARGEST
from sufrep._frames import (
    ArrayTable,
    Factor,
    FrameTable,
    LazyTable,
    Table,
    cross,
    is_frame,
    is_lazy,
    refuse_other_tables,
    with_missing_level,
)
from sufrep.encoders._warnings import spellings_of, warn_of_unseen
from sufrep.errors import (
    ClashingNamesError,
    ColumnsMismatchError,
    EmptyGroupError,
    GroupAsCovariateError,
    LazyFrameError,
    LengthMismatchError,
    MagnitudeError,
    MissingLevelError,
    NoGroupWarning,
    NoRowsError,
    NotNumericError,
    ParentError,
    SampleWeightError,
    TooManySharesError,
    UnknownColumnError,
    UnnamedColumnsError,
    UnseenLevelError,
    warn,
)
from sufrep.moments import MomentsTarget, label_order
from sufrep.representation import as_levels, level_label
from sufrep.solvers.regressions import fit_normal_scores

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from sufrep._arrays import Array, Codes, Floats
    from sufrep._frames import Key
    from sufrep.encoders._target import Target
    from sufrep.moments import GroupMoments
    from sufrep.representation import Representation
    from sufrep.solvers.nesting import Nesting
    from sufrep.solvers.regressions import NormalScores

# The attribute of the first step of a saved file that holds how its table was read.
READING = "reading_"

Column: TypeAlias = str | int
Group: TypeAlias = Column | tuple[Column, ...]
Parents: TypeAlias = "Mapping[Group, Column | Sequence[Column]]"

# Roles that columns of X may have which are neither groups nor covariates, and the parameters that name them.
_PARAMETERS = {"target": "y", "weight": "sample_weight", "fold": "fold"}

# A text column with more levels than this passes through instead of joining as shares.
MOST_SHARES = 30


@dataclass(frozen=True, slots=True, eq=False)
class Inputs:
    """What was read from the user's table: all that learning and encoding need.

    Parameters
    ----------
    table : Table
    layout : Layout
        The roles of its columns.
    factors : tuple of Factor
        Levels and codes of each group.
    covariates : tuple of Covariate
    columns : tuple of ndarray, each of shape (n,)
        The values of the covariates.
    weights : ndarray, shape (n,), or None
    target : Target or None
        Where the encoder uses one.
    times : ndarray, shape (n,), or None
        When each row happened, if the encoder uses the target and ``time`` is given.
    parents : tuple of tuple of Factor
        The columns that contain each group, from the nearest to the farthest; empty without any.
    folds : sequence of (train, test), or None
        The folds of cross-fitting, if they were decided before.
    quick_folds : bool
        Whether folds may take from the whole what a single target hardly changes: variances, kernels.
    scores : SharedScores or None
        Normal scores of the columns, for all encoders that are fitted to these rows.
    fold : Key or None
        The column of the folds, if the table is lazy.
    """

    table: Table
    layout: Layout
    factors: tuple[Factor, ...]
    covariates: tuple[Covariate, ...] = ()
    columns: tuple[Array, ...] = ()
    weights: Floats | None = None
    target: Target | None = None
    times: Array | None = None
    parents: tuple[tuple[Factor, ...], ...] = ()
    folds: Sequence[tuple[Codes, Codes]] | None = None
    quick_folds: bool = False
    scores: SharedScores | None = None
    fold: Key | None = None

    def only(self, groups: Sequence[int]) -> Inputs:
        """Return what was read of some of the groups, given by their positions."""
        if list(groups) == list(range(len(self.factors))):
            return self
        layout = replace(
            self.layout,
            groups=tuple(self.layout.groups[number] for number in groups),
            parents=tuple(self.layout.parents[number] for number in groups if self.layout.parents),
        )
        return replace(
            self,
            layout=layout,
            factors=tuple(self.factors[number] for number in groups),
            parents=tuple(self.parents[number] for number in groups if self.parents),
        )

    def permute_levels(self, group: int, order: Codes) -> Inputs:
        """Return the rows with the levels of a group in another order, as if they said nothing."""
        factors = list(self.factors)
        factors[group] = factors[group].take(order)
        return replace(self, factors=tuple(factors))

    def take(self, rows: Codes) -> Inputs:
        """Return what was read of some rows; the table itself is left behind, so they cannot pass through."""
        weights, times = (None if part is None else part[rows] for part in (self.weights, self.times))
        columns = tuple(np.asarray(column)[rows] for column in self.columns)
        return Inputs(
            ArrayTable(np.empty((len(rows), 0)), self.table.names),
            self.layout,
            tuple(factor.take(rows) for factor in self.factors),
            self.covariates,
            columns,
            weights,
            None if self.target is None else self.target.take(rows),
            times,
            tuple(tuple(factor.take(rows) for factor in above) for above in self.parents),
            scores=SharedScores(columns),
        )


class SharedScores:
    """Normal scores of the covariates of all rows, computed once for the encoders and folds that use them."""

    def __init__(self, columns: Sequence[Array]) -> None:
        self._columns = columns
        self._maps: dict[Any, NormalScores] = {}
        self._scores: dict[int, tuple[NormalScores, Floats]] = {}

    def maps(self, rows: Rows, *, ranks: bool) -> NormalScores:
        """Return the transformations that are learnt from some of the rows."""
        key = (ranks, None if rows.positions is None else rows.positions.tobytes())
        if key not in self._maps:
            self._maps[key] = fit_normal_scores(rows.columns, rows.weights, ranks=ranks)
        return self._maps[key]

    def scores(self, maps: NormalScores) -> Floats:
        """Return the scores of all rows; (n, p)."""
        if id(maps) not in self._scores:  # they are kept, so that no others get their id
            self._scores[id(maps)] = maps, maps.apply(self._columns)
        return self._scores[id(maps)][1]


@dataclass(frozen=True, slots=True)
class Layout:
    """Roles of the columns of X, by position.

    Parameters
    ----------
    names : tuple of str
        Names of all columns.
    groups : tuple of tuple of int
        The column of each group, or the columns that are crossed to make it.
    covariates : tuple of int
        Numeric columns that describe the levels.
    shares : tuple of int
        Text columns that join the covariates by an indicator for each of their levels.
    kept : tuple of int
        Columns that pass through.
    parents : tuple of tuple of int
        The columns that contain each group, from the nearest to the farthest; empty if no group has any.
    """

    names: tuple[str, ...]
    groups: tuple[tuple[int, ...], ...]
    covariates: tuple[int, ...]
    shares: tuple[int, ...]
    kept: tuple[int, ...]
    parents: tuple[tuple[int, ...], ...] = ()

    @property
    def others(self) -> list[int]:
        """Positions of the columns that are part of no group."""
        used = {position for columns in self.groups for position in columns}
        return [position for position in range(len(self.names)) if position not in used]

    def group_names(self, names: Sequence[str]) -> list[str]:
        """Names of the groups, crossed columns joined by a colon."""
        return [":".join(names[position] for position in group) for group in self.groups]


@dataclass(frozen=True, slots=True)
class Covariate:
    """A column of X (or the target), or the indicator of one of its levels or of null."""

    position: int | None
    level: str | None = None
    null: bool = False

    def name(self, names: Sequence[str]) -> str:
        """Return its name, given the names of the columns of X."""
        name = "target" if self.position is None else names[self.position]
        if self.null:
            return f"{name} is null"  # a level may well be called "missing"
        return name if self.level is None else f"{name}={self.level}"

    @property
    def is_indicator(self) -> bool:
        """Whether it stands for one level of a column."""
        return self.null or self.level is not None


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """A column that ``transform`` adds: the columns of X that its name begins with, and the name's end."""

    columns: tuple[int, ...]
    text: str
    covariate: Covariate | None = None

    def name(self, names: Sequence[str]) -> str:
        """Return its name, given the names of the columns of X."""
        described = "" if self.covariate is None else self.covariate.name(names)
        return f"{':'.join(names[position] for position in self.columns)}_{self.text}{described}"


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rows of one group.

    Parameters
    ----------
    codes : ndarray of int, shape (n,)
        Position of each row's level, rare levels pooled; −1 for rows without a known level.
    n_levels : int
        Number of levels, rare ones pooled, also of those without a row here.
    columns : sequence of ndarray, each of shape (n,)
        The covariates; NaN is a null.
    weights : ndarray, shape (n,), or None
    target : Target or None
    training : bool
        Whether the vectors that these rows are to be encoded with were learnt from them.
    shared : SharedScores or None
        Normal scores of all rows, if these are training rows.
    positions : ndarray of int, shape (n,), or None
        Where these rows are among all; None if they are all.
    """

    codes: Codes
    n_levels: int
    columns: Sequence[Array]
    weights: Floats | None = None
    target: Target | None = None
    training: bool = False
    shared: SharedScores | None = None
    positions: Codes | None = None

    def normal_scores(self, *, ranks: bool = True) -> NormalScores:
        """Return the transformations of the covariates to normal scores, learnt from these rows."""
        if self.shared is None:
            return fit_normal_scores(self.columns, self.weights, ranks=ranks)
        return self.shared.maps(self, ranks=ranks)

    def scores(self, maps: NormalScores) -> Floats:
        """Return the normal scores of the covariates; (n, p)."""
        if not len(self.columns):
            return np.empty((len(self.codes), 0))
        if self.shared is None:
            return maps.apply(self.columns)
        found = self.shared.scores(maps)
        return found if self.positions is None else found[self.positions]

    def counted(self) -> Codes:
        """Positions of the rows that have a level and a positive weight."""
        counts = self.codes >= 0
        if self.weights is not None:
            counts &= self.weights > 0
        return np.flatnonzero(counts)

    def take(self, rows: Codes) -> Rows:
        """Return some of the rows, which are then no longer all the training rows."""
        if len(rows) == len(self.codes) and np.array_equal(rows, np.arange(len(rows))):
            return replace(self, training=False)
        return Rows(
            self.codes[rows],
            self.n_levels,
            [np.asarray(column)[rows] for column in self.columns],
            None if self.weights is None else self.weights[rows],
            None if self.target is None else self.target.take(rows),
            shared=self.shared,
            positions=rows if self.positions is None else self.positions[rows],
        )

    def response(self) -> Target:
        """Return the target; only for encoders whose needs include it."""
        if self.target is None:
            raise TypeError("the encoder does not declare that it needs the target")
        return self.target


@dataclass(frozen=True, slots=True, eq=False)
class GroupSample:
    """What the vectors of one group are learnt from, rare levels pooled.

    Parameters
    ----------
    _moments : GroupMoments or None
        None for the rows outside a fold, if the encoder learns from rows.
    _rows : Rows or None
        The rows that have a level and a positive weight; None unless the encoder needs rows.
    nesting : Nesting or None
        What the levels are part of: those of the moments, or all that codes of rows may refer to.
    quick : bool
        Whether what a single target hardly changes may be taken from the whole, if these rows are outside a
        fold.
    """

    _moments: GroupMoments | None
    _rows: Rows | None = None
    nesting: Nesting | None = None
    quick: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether no row has a level and a positive weight."""
        if self._rows is None:
            return not self.moments.n_levels
        return not len(self._rows.codes)

    @property
    def moments(self) -> GroupMoments:
        """The moments; of the rows outside a fold only for encoders that need no rows."""
        if self._moments is None:
            raise TypeError("the moments were not collected, because the encoder needs rows")
        return self._moments

    @property
    def rows(self) -> Rows:
        """The rows; only for encoders whose needs include them."""
        if self._rows is None:
            raise TypeError("the encoder does not declare that it needs rows")
        return self._rows


@contextmanager
def all_or_nothing(estimator: Any) -> Iterator[None]:
    """Leave an estimator as it was if learning fails."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        raise


def copy_input_names(source: Any, estimator: Any) -> None:
    """Give an estimator the attributes about the columns of X that another one has."""
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(source, name):
            setattr(estimator, name, getattr(source, name))


def read_table_and_target(
    estimator: Any, X: Any, y: Any, *, reset: bool = True, allow_lazy: bool = False
) -> tuple[Table, Any]:
    """Wrap training rows, and return their target; see `read_training_table`."""
    training = read_training_table(estimator, X, y, reset=reset, allow_lazy=allow_lazy)
    return training.table, training.target


class TrainingTable(NamedTuple):
    """Training rows without the columns that have roles of their own, and these: values, or keys if lazy."""

    table: Any
    target: Any
    weights: Any
    fold: Any


def read_training_table(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    fold: str | None = None,
    *,
    reset: bool = True,
    allow_lazy: bool = False,
) -> TrainingTable:
    """Wrap training rows; target, weights and folds may be given as names of columns of X.

    These columns are not part of the table. Their names are stored, so that `read_table` leaves them out of
    new rows.
    """
    named = {
        role: str(given)
        for role, given in {"target": y, "weight": sample_weight, "fold": fold}.items()
        if isinstance(given, str)
    }
    if is_lazy(X):
        return _read_lazy_training(estimator, X, y, sample_weight, named, reset=reset, allow=allow_lazy)
    if not named:
        table = read_table(estimator, X, reset=reset)
        check_length(y, table.n_rows)
        return TrainingTable(table, y, sample_weight, None)
    first = next(iter(named.values()))
    if not is_frame(X):
        refuse_other_tables(X)
        raise UnnamedColumnsError(first, X)
    whole = rest = FrameTable.from_native(X)
    if not whole.has_names:
        raise UnnamedColumnsError(first, X)
    values = {"target": y, "weight": sample_weight, "fold": fold}
    for role, name in named.items():
        position_of(whole.names, name, _PARAMETERS[role])
        values[role] = whole.take_out(whole.names.index(name))[0]
        if name in rest.names:  # one column may have two roles
            _, rest = rest.take_out(rest.names.index(name))
    _store_roles(estimator, named, reset=reset)
    table = _checked_frame(estimator, X, rest, reset=reset)
    check_length(values["target"], table.n_rows)
    return TrainingTable(table, values["target"], values["weight"], values["fold"])


def _read_lazy_training(
    estimator: Any, X: Any, y: Any, sample_weight: Any, named: Mapping[str, str], *, reset: bool, allow: bool
) -> TrainingTable:
    """The same for a lazy frame, where target, weights and folds are always columns."""
    if not allow:
        raise LazyFrameError(X)
    for role, given in (("target", y), ("weight", sample_weight)):
        if given is not None and role not in named:
            raise _unnamed(X, role, given)
    whole = LazyTable.from_native(X)
    keys = {
        role: whole.key(position_of(whole.names, name, _PARAMETERS[role])) for role, name in named.items()
    }
    _store_roles(estimator, named, reset=reset)
    table = whole.without([*named.values(), *([] if reset else _roles(estimator))])
    _match_columns(estimator, table.names, reset=reset)
    if reset:
        estimator.frame_library_ = table.library
    return TrainingTable(table, keys.get("target"), keys.get("weight"), keys.get("fold"))


def _unnamed(X: Any, role: str, given: Any) -> LazyFrameError:
    """The error for values next to a lazy frame, where only a name will do."""
    return LazyFrameError(
        X,
        f"{_PARAMETERS[role]} is of type {type(given).__name__}",
        f"give the name of its column, as in fit(X, 'price'); {_PARAMETERS[role]} must be in X.",
    )


def _store_roles(estimator: Any, named: Mapping[str, str], *, reset: bool) -> None:
    """Store the names of the columns that have roles of their own; chunks must agree with the first one."""
    if reset:
        _forget_source(estimator)
        for role, name in named.items():
            setattr(estimator, f"{role}_name_", name)


def read_weighted_rows(estimator: Any, X: Any, sample_weight: Any) -> tuple[Any, Any]:
    """Wrap new rows, and return their weights: values, or a key if lazy; they may be a column of X."""
    if isinstance(sample_weight, str) and (is_lazy(X) or is_frame(X)):
        kind: Any = LazyTable if is_lazy(X) else FrameTable
        whole = kind.from_native(X)
        position = position_of(whole.names, sample_weight, _PARAMETERS["weight"])
        weights = whole.key(position) if is_lazy(X) else whole.take_out(position)[0]
        return read_table(estimator, X, reset=False, allow_lazy=True, without=(sample_weight,)), weights
    if is_lazy(X) and sample_weight is not None:
        raise _unnamed(X, "weight", sample_weight)
    return read_table(estimator, X, reset=False, allow_lazy=True), sample_weight


def read_table(
    estimator: Any, X: Any, *, reset: bool, allow_lazy: bool = False, without: Sequence[str] = ()
) -> Any:
    """Check X as scikit-learn does, store its columns (or compare them with those stored), and wrap it.

    Columns that were the target, the weights or the folds of ``fit`` may be in new rows as well, and are left
    out, as are those that ``without`` names.
    """
    if reset:
        _forget_source(estimator)
    roles = [*_roles(estimator), *without]
    if is_frame(X):
        table = FrameTable.from_native(X)
        for name in roles:
            if name in table.names:
                _, table = table.take_out(table.names.index(name))
        return _checked_frame(estimator, X, table, reset=reset)
    if is_lazy(X):
        if not allow_lazy:
            raise LazyFrameError(X)
        lazy = LazyTable.from_native(X).without(roles)
        _match_columns(estimator, lazy.names, reset=reset)
        return lazy
    refuse_other_tables(X)
    if isinstance(X, list) and np.asarray(X).dtype.kind in "US":
        # numpy would turn the numbers next to text into text.
        X = np.asarray(X, dtype=object)
    array = validate_data(estimator, X, reset=reset, dtype=None, ensure_all_finite=False)
    names = getattr(estimator, "feature_names_in_", [f"x{j}" for j in range(array.shape[1])])
    return ArrayTable(array, tuple(names))


def _roles(estimator: Any) -> list[str]:
    """Names of the columns that were the target, the weights or the folds of ``fit``."""
    stored = (vars(estimator).get(f"{role}_name_") for role in _PARAMETERS)
    return [name for name in stored if name is not None]


def _forget_source(estimator: Any) -> None:
    """Remove what an earlier fit stored about where its rows came from."""
    for name in ("frame_library_", READING, *(f"{role}_name_" for role in _PARAMETERS)):
        vars(estimator).pop(name, None)


def _checked_frame(estimator: Any, X: Any, table: FrameTable, *, reset: bool) -> FrameTable:
    """Store the columns of a frame, or compare them with those stored, and refuse one without rows."""
    if table.has_names:
        _match_columns(estimator, table.names, reset=reset)
    else:
        validate_data(estimator, X, reset=reset, skip_check_array=True)
    if not table.n_rows:
        raise NoRowsError(len(table.names))
    if reset:
        estimator.frame_library_ = table.library
    return table


def _match_columns(estimator: Any, names: Sequence[str], *, reset: bool) -> None:
    """Store the names of the columns, or compare them with those stored.

    This does what scikit-learn's ``validate_data`` does, which knows polars or pyarrow in some versions only
    (test_names_of_columns_do_not_depend_on_scikit_learn).
    """
    if reset:
        estimator.n_features_in_ = len(names)
        estimator.feature_names_in_ = np.asarray(names, dtype=object)
        return
    known = getattr(estimator, "feature_names_in_", None)
    if known is None:
        validate_data(estimator, np.empty((1, len(names))), reset=False, skip_check_array=True)
        kind = type(estimator).__name__
        warn(f"X has feature names, but {kind} was fitted without feature names", UserWarning)
    elif list(known) != list(names):
        raise ColumnsMismatchError(list(known), names)


def resolve_layout(
    table: Table,
    *,
    group: Group | Sequence[Group] | None,
    covariates: Sequence[Column] | None = None,
    share_text: bool = False,
    keep: bool = True,
    parent: Parents | None = None,
) -> Layout:
    """Assign every column its roles, or raise an error that names the unknown column."""
    names, everything = table.names, range(len(table.names))
    contained = _named_parents(names, parent)
    above = {position for columns in contained.values() for position in columns}
    groups = _text_groups(table, above) if group is None else _named_groups(names, group)
    _refuse_other_groups(names, groups, contained)
    named = Counter(":".join(names[position] for position in columns) for columns in groups)
    if any(times > 1 for times in named.values()):
        raise ClashingNamesError([name for name, times in named.items() if times > 1])
    used = {position for columns in groups for position in columns}
    free = [position for position in everything if position not in used]
    # A code that contains others, such as the first digits of a zip code, is no number.
    chosen = [position for position in free if position not in above]
    if covariates is not None:
        chosen = positions_of(names, covariates, "covariates")
    text = [position for position in chosen if share_text and table.kind(position) == "text"]
    shares = [position for position in text if table.levels(position, MOST_SHARES) is not None]
    numeric = [position for position in chosen if table.kind(position) == "numeric"]
    for position in chosen if covariates is not None else ():
        if position not in (*numeric, *shares):
            raise NotNumericError(names[position], table.dtype(position))
    parents = tuple(contained.get(columns, ()) for columns in groups) if contained else ()
    layout = Layout(names, groups, tuple(numeric), tuple(shares), tuple(free) if keep else (), parents)
    refuse_own_covariates(layout)
    return layout


def own_groups(group: Group | Sequence[Group] | None, layout: Layout) -> list[int]:
    """Positions, among the groups that were read, of those that an encoder names; all if it names none."""
    if group is None:
        return list(range(len(layout.groups)))
    return [layout.groups.index(columns) for columns in _named_groups(layout.names, group)]


def cross_groups(layout: Layout) -> Layout:
    """Return the layout with all groups crossed into one, which may have no column at all."""
    columns = tuple(column for group in layout.groups for column in group)
    crossed = replace(layout, groups=(columns,))
    refuse_own_covariates(crossed)
    return crossed


def refuse_own_covariates(layout: Layout) -> None:
    """Refuse a covariate that is part of every group; a group may be a covariate of another one."""
    for position in (*layout.covariates, *layout.shares):
        if layout.groups and all(position in columns for columns in layout.groups):
            raise GroupAsCovariateError(layout.names[position], layout.group_names(layout.names))


def read_factor(table: Table, columns: Sequence[int], missing: str) -> Any:
    """Return levels and codes of a group (a `LazyFactor` if lazy), nulls treated according to ``missing``.

    Without any column, all rows have the same level.
    """
    if isinstance(table, LazyTable):
        return table.group(columns, missing)
    if not columns:
        return Factor(np.zeros(table.n_rows, dtype=np.intp), as_levels(["all"]))
    parts = [table.factorize(column) for column in columns]
    nulls = [int((part.codes < 0).sum()) for part in parts]
    if missing == "error" and any(nulls):
        worst = int(np.argmax(nulls))
        raise MissingLevelError(table.names[columns[worst]], nulls[worst])
    if len(parts) > 1:
        return cross(parts, keep_null=missing == "level")
    return with_missing_level(parts[0]) if missing == "level" else parts[0]


def read_parents(table: Table, layout: Layout) -> tuple[tuple[Any, ...], ...]:
    """Return the levels and codes of the columns that contain each group (`LazyFactor` if lazy)."""
    if isinstance(table, LazyTable):
        return tuple(tuple(table.group([c], "prior") for c in columns) for columns in layout.parents)
    return tuple(tuple(table.factorize(column) for column in columns) for columns in layout.parents)


def read_covariates(table: Table, layout: Layout) -> tuple[tuple[Covariate, ...], tuple[Array, ...]]:
    """Return the covariates and their columns; null is a level of a text column like any other."""
    found = [Covariate(position) for position in layout.covariates]
    columns = [table.numbers(position) for position in layout.covariates]
    for position in layout.shares:
        levels, indicator_columns = table.indicators(position)
        indicators = [
            Covariate(position, null=True) if level is None else Covariate(position, level_label(level))
            for level in levels
        ]
        twice = [indicator for indicator, times in Counter(indicators).items() if times > 1]
        if twice:
            hint = f"the column {layout.names[position]!r} holds numbers and text; convert all of it to text."
            raise ClashingNamesError([indicator.name(layout.names) for indicator in twice], hint)
        for code in sorted(range(len(indicators)), key=lambda code: indicator_order(indicators[code])):
            found.append(indicators[code])
            columns.append(indicator_columns[code])
    return tuple(found), tuple(columns)


def read_known_columns(table: Table, layout: Layout, covariates: Sequence[Covariate]) -> tuple[Array, ...]:
    """Return the columns of covariates that ``fit`` saw; 0 for an indicator whose level does not occur."""
    known = dict(zip(*read_covariates(table, layout), strict=True))
    nothing = table.constant(0.0)
    return tuple(known.get(covariate, nothing) for covariate in covariates)


def collect_moments(
    table: Table,
    factor: Factor,
    columns: Sequence[Array],
    *,
    names: Sequence[str],
    weights: Floats | None,
    order: Literal[1, 2] = 1,
) -> GroupMoments:
    """Moments of a group: of order 2 wherever squares exist; with ``order=2``, an error where they do not.

    A table whose squares need another pass over the rows collects them only with ``order=2``.
    """
    wanted = max(order, table.free_order)
    try:
        return table.moments(factor, columns, names=names, weights=weights, order=wanted)
    except MagnitudeError:
        if order == 2:
            raise
        return table.moments(factor, columns, names=names, weights=weights, order=1)


def with_roles(
    moments: Mapping[str, GroupMoments], layout: Layout, covariates: Sequence[Covariate], encoder: Any
) -> dict[str, GroupMoments]:
    """Moments that know the names of their group, and which covariates are the target of an encoder."""
    own, target = [covariate for covariate in covariates if covariate.position is None], None
    if own:
        classes = tuple(covariate.level for covariate in own if covariate.level is not None)
        target = MomentsTarget(vars(encoder).get("target_name_", "target"), encoder.target_type_, classes)
    names = [tuple(layout.names[column] for column in columns) for columns in layout.groups]
    return {
        group: replace(found, group=columns, target=target)
        for columns, (group, found) in zip(names, moments.items(), strict=True)
    }


def merge_covariates(
    old: Sequence[Covariate], new: Sequence[Covariate], names: Sequence[str]
) -> list[Covariate]:
    """Unite the covariates of two chunks: columns, indicators by their levels, and the target last."""
    columns = [covariate for covariate in old if not covariate.is_indicator]
    indicators = {covariate for covariate in (*old, *new) if covariate.is_indicator}
    most = Counter(covariate.position for covariate in indicators).most_common(1)
    # One more than the limit: null is a level too.
    if most and most[0][0] is not None and most[0][1] > MOST_SHARES + 1:
        raise TooManySharesError(names[most[0][0]], most[0][1], MOST_SHARES)
    united = columns + sorted(indicators, key=indicator_order)
    return sorted(united, key=lambda covariate: covariate.position is None)


def indicator_order(covariate: Covariate) -> tuple[int, bool, float, str]:
    """Sort key: levels that are numbers by size, then the others, null last."""
    return covariate.position or 0, covariate.null, *label_order(covariate.level or "")


def find_levels(representation: Representation, factor: Factor, group: str, unseen: str) -> Codes:
    """Position of each level of ``factor`` in a representation, −1 for unseen levels; (n_levels,).

    Raises an error for unseen levels if ``unseen`` is "error", and warns if all are unseen for a suspicious
    reason.
    """
    positions = representation.positions(factor.levels.tolist())
    new = factor.levels[positions < 0].tolist()
    if new and unseen == "error":
        raise UnseenLevelError(group, [level_label(level) for level in new], representation.n_levels)
    if len(new) == len(factor.levels) and new:
        known = representation.remember("spellings", lambda: spellings_of(representation.levels.tolist()))
        warn_of_unseen(group, new, known)
    return positions


def check_weights(sample_weight: Any, n_rows: int, *, allow_zero: bool = False) -> Floats | None:
    """Return the weights as an array (n,), or None; they must not all be zero unless that is allowed."""
    if sample_weight is None:
        return None
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise SampleWeightError(f"contains something that is not a number ({error})") from error
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.ndim != 1:
        raise SampleWeightError(f"has {weights.ndim} dimensions; it must be 1D array or scalar")
    if len(weights) != n_rows:
        raise LengthMismatchError(n_rows, "sample_weight", len(weights))
    if not np.isfinite(weights).all():
        raise SampleWeightError(f"contains NaN or infinity in {int((~np.isfinite(weights)).sum())} row(s)")
    if (weights < 0).any():
        raise SampleWeightError(f"is negative in {int((weights < 0).sum())} row(s)")
    if not (weights.any() or allow_zero):
        raise SampleWeightError("is zero in every row")
    if len(weights) and weights.max() > LARGEST / len(weights):
        raise SampleWeightError(f"is as large as {weights.max():.2g}, and cannot be added up and squared")
    return weights


def check_length(y: Any, n_rows: int) -> None:
    """Refuse a target of another length, which is a mistake even where the target is not used."""
    length = n_rows if y is None else len(y) if hasattr(y, "__len__") else np.asarray(y).size
    if length != n_rows:
        raise LengthMismatchError(n_rows, "y", length)


def positions_of(names: Sequence[str], columns: Sequence[Column], parameter: str) -> list[int]:
    """Return the positions of the columns that a parameter gives by name or by position, each once."""
    return list(dict.fromkeys(position_of(names, column, parameter, columns) for column in columns))


def position_of(names: Sequence[str], column: Column, parameter: str, expected: Sequence[Column] = ()) -> int:
    """Return the position of a column that a parameter gives by name or by position.

    The hint of the error does not propose columns that are ``expected`` anyway.
    """
    if isinstance(column, np.integer):
        column = int(column)
    if isinstance(column, int) and not isinstance(column, bool):
        if -len(names) <= column < len(names):
            return column % len(names)
    elif column in names:
        return names.index(str(column))
    raise UnknownColumnError(parameter, column, names, expected)


def refuse_clashes(names: Sequence[str]) -> None:
    """Raise an error if two of the names are the same."""
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise ClashingNamesError(twice)


def listed_positions(names: Sequence[str], columns: Column | Sequence[Column], parameter: str) -> set[int]:
    """Return the positions of columns that a parameter gives as one column or as a list."""
    listed: Any = [columns] if isinstance(columns, (str, int, np.integer)) else columns
    return set(positions_of(names, listed, parameter))


def _named_parents(names: Sequence[str], parent: Parents | None) -> dict[tuple[int, ...], tuple[int, ...]]:
    """The columns that contain each group, by the columns of the group."""
    found: dict[tuple[int, ...], tuple[int, ...]] = {}
    for key, value in (parent or {}).items():
        crossed = key if isinstance(key, tuple) else (key,)
        above: Sequence[Any] = value if isinstance(value, (list, tuple)) else [value]
        group = tuple(position_of(names, column, "parent") for column in crossed)
        columns = tuple(position_of(names, column, "parent") for column in above)
        if group in found:
            raise ParentError(f"parent names the group {key!r} twice.", "name it once.")
        if not columns:
            raise ParentError(f"parent names no column that contains {key!r}.", "name one, or leave it out.")
        if any((column,) == group for column in columns) or len(set(columns)) < len(columns):
            raise ParentError(
                f"parent says that {key!r} is in {value!r}, but no column contains itself.",
                "name the columns that contain the group, each once, from the nearest to the farthest.",
            )
        found[group] = columns
    return found


def _refuse_other_groups(
    names: Sequence[str], groups: Sequence[tuple[int, ...]], contained: Mapping[tuple[int, ...], Any]
) -> None:
    """Refuse parents of a column that is not a group."""
    for columns in contained:
        if columns not in groups:
            found = ":".join(names[position] for position in columns)
            known = ", ".join(repr(":".join(names[position] for position in group)) for group in groups)
            raise ParentError(
                f"parent has the key {found!r}, which is not a group.", f"the groups are {known or 'none'}."
            )


def _text_groups(table: Table, above: Collection[int] = ()) -> tuple[tuple[int, ...], ...]:
    """The text columns, without those that contain others."""
    text = [position for position in range(len(table.names)) if table.kind(position) == "text"]
    found = [position for position in text if position not in above]
    if not found and isinstance(table, FrameTable):
        warn(
            "group=None selects the text columns, but X has none: nothing is encoded.\n"
            "Hint: name the column, for instance group='zipcode', if its levels are stored as numbers.",
            NoGroupWarning,
        )
    return tuple((position,) for position in found)


def _named_groups(names: Sequence[str], group: Group | Sequence[Group]) -> tuple[tuple[int, ...], ...]:
    listed: Sequence[Any] = group if isinstance(group, list) else [group]
    if not listed or any(isinstance(entry, tuple) and not entry for entry in listed):
        raise EmptyGroupError(group)
    entries = [entry if isinstance(entry, tuple) else (entry,) for entry in listed]
    expected = [column for columns in entries for column in columns]
    found = (
        tuple(position_of(names, column, "group", expected) for column in columns) for columns in entries
    )
    return tuple(dict.fromkeys(found))
