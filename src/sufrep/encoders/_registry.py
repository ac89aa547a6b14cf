"""All encoders by the name of their method."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sufrep.encoders._classical import ContrastEncoder, FisherEncoder, PermutationEncoder
from sufrep.encoders._latent_state import LatentStateEncoder
from sufrep.encoders._level_models import LocalEffectEncoder, MixedModelEncoder, RandomInterceptEncoder
from sufrep.encoders._low_rank import LowRankEncoder, SparseLowRankEncoder
from sufrep.encoders._means import MeansEncoder
from sufrep.encoders._mnl import MNLEncoder
from sufrep.encoders._persistence import load_encoder
from sufrep.encoders._sufficient import SufficientEncoder
from sufrep.errors import UnknownMethodError

if TYPE_CHECKING:
    import os

    from sufrep.encoders._base import GroupEncoder
    from sufrep.encoders._inputs import Group

METHODS: dict[str, tuple[type[GroupEncoder], dict[str, Any]]] = {
    "one_hot": (ContrastEncoder, {"coding": "one_hot"}),
    "deviation": (ContrastEncoder, {"coding": "deviation"}),
    "difference": (ContrastEncoder, {"coding": "difference"}),
    "helmert": (ContrastEncoder, {"coding": "helmert"}),
    "repeated_effect": (ContrastEncoder, {"coding": "repeated_effect"}),
    "simple_effect": (ContrastEncoder, {"coding": "simple_effect"}),
    "permutation": (PermutationEncoder, {}),
    "multi_permutation": (PermutationEncoder, {"n_permutations": 4}),
    "fisher": (FisherEncoder, {}),
    "random_intercept": (RandomInterceptEncoder, {}),
    "mixed_model": (MixedModelEncoder, {}),
    "local_effect": (LocalEffectEncoder, {}),
    "means": (MeansEncoder, {}),
    "low_rank": (LowRankEncoder, {}),
    "sparse_low_rank": (SparseLowRankEncoder, {}),
    "mnl": (MNLEncoder, {}),
    "latent_state": (LatentStateEncoder, {}),
    "sufficient": (SufficientEncoder, {}),
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
    """Return the most specific method for which `make_encoder` makes an encoder like this."""
    fitting = [
        name
        for name, (kind, fixed) in METHODS.items()
        if type(encoder) is kind and all(getattr(encoder, key) == value for key, value in fixed.items())
    ]
    return max(fitting, key=lambda name: len(METHODS[name][1]), default=None)


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
