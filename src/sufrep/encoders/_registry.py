"""All encoders by the name of their method."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sufrep._names import ENCODERS
from sufrep.encoders._persistence import load_encoder
from sufrep.errors import UnknownMethodError

if TYPE_CHECKING:
    import os

    from sufrep.encoders._base import GroupEncoder
    from sufrep.encoders._inputs import Group

# Class, and the parameters that the name of the method implies.
METHODS: dict[str, tuple[type[GroupEncoder], dict[str, Any]]] = {
    method: (getattr(import_module(f"sufrep.encoders.{module}"), name), fixed)
    for method, (module, name, fixed) in ENCODERS.items()
}


def make_encoder(method: str, group: Group | list[Group] | None = None, **parameters: Any) -> GroupEncoder:
    """Make an encoder by the name of its method.

    Parameters
    ----------
    method : str
        One of one_hot, deviation, difference, helmert, repeated_effect, simple_effect, permutation,
        multi_permutation, fisher, random_intercept, mixed_model, local_effect, means, low_rank,
        sparse_low_rank, mnl, latent_state, sufficient.
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


def method_of(encoder: Any) -> str | None:
    """Return the most specific method for which `make_encoder` makes an encoder like this, if any."""
    fitting = {
        method: len(fixed)
        for method, (kind, fixed) in METHODS.items()
        if kind is type(encoder) and all(getattr(encoder, key) == value for key, value in fixed.items())
    }
    return max(fitting, key=fitting.__getitem__, default=None)


def load(path: str | os.PathLike[str]) -> GroupEncoder:
    """Read an encoder that ``encoder.save(path)`` wrote.

    Nothing in the file is executed. A file that is truncated, damaged, of another program or of a newer
    format is refused with an :class:`sufrep.errors.EncoderFileError`.

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
    encoder: GroupEncoder = load_encoder(path, {cls.__name__: cls for cls, _ in METHODS.values()})
    return encoder
