"""Rows that are read once for several encoders: components of `SufficientEncoder`, methods of ``compare``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sufrep.encoders._base import GroupEncoder, Needs
from sufrep.encoders._inputs import own_groups
from sufrep.encoders._times import ORDERED

if TYPE_CHECKING:
    from sufrep.encoders._inputs import Column, Group, Inputs


def read_for_several(
    group: Group | list[Group], X: Any, y: Any, new: Any, *, target_type: str, time: Column | None = None
) -> tuple[Inputs, Inputs]:
    """Read training rows and new rows for all encoders of a group that read with default parameters.

    With ``time``, those that use the target have ``cv="ordered"`` and the same ``time``.
    """
    reader = _Reader(group, target_type=target_type, cv=None if time is None else ORDERED, time=time)
    inputs = reader._read(X, y, None)
    reader.layout_, reader.covariates_ = inputs.layout, list(inputs.covariates)
    return inputs, reader._read_new(new)


def fit_encode(encoder: GroupEncoder, inputs: Inputs) -> Any:
    """Fit an encoder to rows that were read before, and encode them; the result of ``fit_transform``."""
    own = own_inputs(encoder, inputs)
    encoder._learn(own)
    return encoder._encode(own, encoder._lookups(own, training=True))


def encode_new(encoder: GroupEncoder, inputs: Inputs) -> Any:
    """Encode new rows that were read before; the result of ``transform``."""
    own = own_inputs(encoder, inputs)
    return encoder._encode(own, encoder._lookups(own, training=False))


def own_inputs(encoder: GroupEncoder, inputs: Inputs) -> Inputs:
    """Return what an encoder needs of rows that were read for several: its groups, covariates and target."""
    inputs = inputs.only(own_groups(encoder.group, inputs.layout))
    needs, layout = encoder._needs, inputs.layout
    if encoder.remainder == "drop":
        layout = replace(layout, kept=())
    target = inputs.target if needs.uses_target else None
    if needs.covariates == "unused" or (encoder.covariates is not None and not len(encoder.covariates)):
        return replace(inputs, layout=layout, covariates=(), columns=(), target=target, scores=None)
    return replace(inputs, layout=layout, target=target)


@dataclass(eq=False, repr=False, kw_only=True)
class _Reader(GroupEncoder):
    """Reads all that any encoder needs; it is never fitted."""

    target_type: str = "auto"
    cv: Any = None
    time: Column | None = None

    @property
    def _needs(self) -> Needs:
        return Needs(
            rows=True,
            covariates="optional",
            target="response",
            target_type=self.target_type,
            own_covariates=True,
        )
