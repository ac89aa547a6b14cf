"""All encoders by the name of their method, and the steps that files hold."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sufrep._names import ENCODERS
from sufrep.encoders._base import GroupEncoder
from sufrep.encoders._drop_columns import DropColumns
from sufrep.encoders._persistence import load_steps, save_steps
from sufrep.encoders._to_numbers import ToNumbers
from sufrep.errors import ForeignStepError, UnknownMethodError

if TYPE_CHECKING:
    import os

    from sufrep.encoders._inputs import Group

# Class, and the parameters that the name of the method implies.
METHODS: dict[str, tuple[type[GroupEncoder], dict[str, Any]]] = {
    method: (getattr(import_module(f"sufrep.encoders.{module}"), name), fixed)
    for method, (module, name, fixed) in ENCODERS.items()
}

# What a file may hold.
SAVED_CLASSES: dict[str, type] = {
    kind.__name__: kind for kind in (*(kind for kind, _ in METHODS.values()), ToNumbers, DropColumns)
}


def make_encoder(method: str, group: Group | list[Group] | None = None, **parameters: Any) -> GroupEncoder:
    """Make an encoder by the name of its method.

    Parameters
    ----------
    method : str
        One of one_hot, deviation, difference, helmert, repeated_effect, simple_effect, permutation,
        multi_permutation, fisher, random_intercept, crossed_effects, mixed_model, local_effect, means,
        low_rank, sparse_low_rank, mnl, latent_state, shares, cells, sufficient.
    group : str, int, tuple, list of these, or None
        The categorical column(s).
    **parameters
        Further parameters of the encoder; they override those that the method implies.

    Examples
    --------
    >>> from sufrep import make_encoder
    >>> make_encoder("multi_permutation", "zipcode")
    PermutationEncoder(group='zipcode', n_permutations=4)
    """
    if method not in METHODS:
        raise UnknownMethodError(method, list(METHODS))
    encoder, fixed = METHODS[method]
    return encoder(group, **{**fixed, **parameters})


def save(fitted: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted encoder, or a pipeline of fitted steps of sufrep, to a file that holds no code.

    The file is written completely or not at all. How a table was read (``reading_``) is kept, too.

    Parameters
    ----------
    fitted : encoder, `ToNumbers`, `DropColumns` or scikit-learn Pipeline of these
        A model at the end is another library's: leave it out, as in ``pipeline[:-1]``.
    path : str or path

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import pandas as pd
    >>> from sklearn.pipeline import make_pipeline
    >>> from sufrep import MeansEncoder, ToNumbers, load, save
    >>> X = pd.DataFrame({"zip": ["01", "02"], "view": ["sea", "hill"]})
    >>> steps = make_pipeline(ToNumbers(keep="zip"), MeansEncoder("zip")).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "zip.sufrep"
    ...     save(steps, path)
    ...     load(path).get_feature_names_out().tolist()
    ['view_hill', 'view_sea', 'zip_mean_view_hill', 'zip_mean_view_sea']
    """
    from sklearn.pipeline import Pipeline

    steps = fitted.steps if isinstance(fitted, Pipeline) else [("encoder", fitted)]
    for name, step in steps:
        if not isinstance(step, (GroupEncoder, ToNumbers, DropColumns)):
            raise ForeignStepError(name, step, _instead_of(step, alone=step is fitted))
    save_steps(steps, path)


def _instead_of(step: Any, *, alone: bool) -> str:
    """What to save instead of a model, or of a step of another library."""
    from sklearn.preprocessing import TargetEncoder

    if alone and hasattr(step, "predict"):
        return "joblib.dump saves a model, with its code; sufrep.save its fitted encoder alone."
    if hasattr(step, "predict"):
        return "save the steps before it, as in pipeline[:-1], and the model as its own library does."
    parts = [part for _, part, _ in getattr(step, "transformers", [("", step, "")])]
    if any(isinstance(part, TargetEncoder) for part in parts):
        return "MeansEncoder(group, covariates=[], use_target=True) is sufrep's equivalent, and can be saved."
    return "save the steps of sufrep alone."


def load(path: str | os.PathLike[str]) -> Any:
    """Read what ``sufrep.save`` or ``encoder.save`` wrote.

    Nothing in the file is executed. A file that is truncated, damaged, of another program or of a newer
    format is refused with an :class:`sufrep.errors.EncoderFileError`.

    Returns
    -------
    encoder, or scikit-learn Pipeline
        A fitted pipeline if the file holds several steps.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sufrep import MeansEncoder, load
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "shops.sufrep"
    ...     MeansEncoder(group=0).fit([["a", 1.0], ["b", 3.0]]).save(path)
    ...     load(path).transform([["b", 9.0]])
    array([[9., 3.]])
    """
    steps = load_steps(path, SAVED_CLASSES)
    if len(steps) == 1:
        return steps[0][1]
    from sklearn.pipeline import Pipeline

    return Pipeline(steps)
