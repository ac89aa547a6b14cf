"""Levels by the means of their covariates (algorithm 1 of the paper)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sufrep.encoders._base import GroupEncoder
from sufrep.encoders._vectors import Rows, Suffix, Vectors

if TYPE_CHECKING:
    from sufrep.moments import GroupMoments


class MeansEncoder(GroupEncoder):
    """Represent each level by the mean of the covariates of its rows.

    Assumption (lemma 2 of the paper): the level acts on the target only through a hidden state L, and
    the matrix A of the means E[X | L = l] has a left inverse. Then ω(g) = E[X | G = g] = A·P(L | G = g)
    loses nothing that the level says about the target. It needs no target, so it cannot leak one.

    Nulls in the covariates are skipped; a level that has no value of a covariate gets its overall mean.

    Parameters
    ----------
    {common parameters}

    Attributes
    ----------
    {common attributes}

    Examples
    --------
    >>> import polars as pl
    >>> from sufrep import MeansEncoder
    >>> houses = pl.DataFrame(
    ...     {"zipcode": ["98178", "98178", "98125"], "sqft": [1000.0, 1400.0, 2600.0], "floors": [1, 2, 2]}
    ... )
    >>> encoder = MeansEncoder("zipcode").set_output(transform="polars")
    >>> encoder.fit_transform(houses)
    shape: (3, 4)
    ┌────────┬────────┬───────────────────┬─────────────────────┐
    │ sqft   ┆ floors ┆ zipcode_mean_sqft ┆ zipcode_mean_floors │
    │ ---    ┆ ---    ┆ ---               ┆ ---                 │
    │ f64    ┆ i64    ┆ f64               ┆ f64                 │
    ╞════════╪════════╪═══════════════════╪═════════════════════╡
    │ 1000.0 ┆ 1      ┆ 1200.0            ┆ 1.5                 │
    │ 1400.0 ┆ 2      ┆ 1200.0            ┆ 1.5                 │
    │ 2600.0 ┆ 2      ┆ 2600.0            ┆ 2.0                 │
    └────────┴────────┴───────────────────┴─────────────────────┘
    """

    def _represent(self, moments: GroupMoments, rows: Rows | None) -> Vectors:  # noqa: ARG002
        suffixes = [Suffix("mean_", j) for j in range(len(moments.covariates))]
        return Vectors(moments.filled_mean(), suffixes)
