"""The parts of the docstrings that all encoders share."""

from __future__ import annotations

COMMON_PARAMETERS = """group : str, int, tuple, list of these, or None, default=None
        The categorical column: its name or position; several in a list; a tuple of columns is one
        group of their combinations, as in ``group=[("store", "brand")]``. None takes every text or
        categorical column.
    covariates : list of str or int, default=None
        The columns that describe the levels; by default every numeric column that is no group.
    categorical_covariates : {"ignore", "share"}, default="ignore"
        With "share", text columns of at most 30 levels that are no group (of those in ``covariates``, if
        that is given) join the covariates, by one indicator for each of their levels.
    remainder : {"passthrough", "drop"}, default="passthrough"
        Whether the other columns stand before the encoding in the output.
    unseen : {"prior", "error"}, default="prior"
        What a level that ``fit`` did not see gets: an average vector (as a rule the weighted mean of
        the level vectors), or an error.
    missing : {"level", "prior", "error"}, default="level"
        What a null in the group column is: a level of its own, a level never seen, or an error.
    min_frequency : int or float, default=None
        Levels with fewer rows (or a smaller share of them) are pooled into one before encoding, where there
        are at least two of them."""

COMMON_ATTRIBUTES = """representations_ : dict of str to Representation
        The table of each group.
    moments_ : dict of str to GroupMoments
        What the tables were made from, where no more than that is needed.
    n_features_in_ : int
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Where X had names."""
