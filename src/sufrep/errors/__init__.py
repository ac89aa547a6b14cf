"""Every error that sufrep raises on purpose.

Each one says what was found, what was expected and, after ``Hint:``, what to do. Each is a
:class:`SufrepError` and the built-in error that fits, so both kinds of ``except`` clause work.
Where scikit-learn's conformance suite looks for a phrase of its own, the message keeps it.
"""

from __future__ import annotations

from sufrep.errors._base import SufrepError
from sufrep.errors._columns import (
    ClashingNamesError,
    ColumnNameError,
    EmptyGroupError,
    LazyFrameError,
    MissingColumnsError,
    NoCovariateError,
    NotNumericError,
    SparseOutputError,
    TooManySharesError,
    UnknownColumnError,
    UnknownGroupError,
)
from sufrep.errors._files import (
    DataContentError,
    DataNotFoundError,
    DownloadError,
    EncoderFileError,
    NotSavableError,
    StoreError,
)
from sufrep.errors._parameters import (
    ExpertError,
    InvalidParameterError,
    MissingDependencyError,
    MissingPandasError,
    MomentsMismatchError,
    SparseCodingError,
    TooManyComponentsError,
    UnknownLibraryError,
    UnknownMethodError,
)
from sufrep.errors._values import (
    GroupValueError,
    InfiniteValueError,
    LengthMismatchError,
    MissingLevelError,
    NoLevelError,
    NoRowsError,
    SampleWeightError,
    SplitError,
    TargetError,
    UnseenLevelError,
)

__all__ = [
    "ClashingNamesError",
    "ColumnNameError",
    "DataContentError",
    "DataNotFoundError",
    "DownloadError",
    "EmptyGroupError",
    "EncoderFileError",
    "ExpertError",
    "GroupValueError",
    "InfiniteValueError",
    "InvalidParameterError",
    "LazyFrameError",
    "LengthMismatchError",
    "MissingColumnsError",
    "MissingDependencyError",
    "MissingLevelError",
    "MissingPandasError",
    "MomentsMismatchError",
    "NoCovariateError",
    "NoLevelError",
    "NoRowsError",
    "NotNumericError",
    "NotSavableError",
    "SampleWeightError",
    "SparseCodingError",
    "SparseOutputError",
    "SplitError",
    "StoreError",
    "SufrepError",
    "TargetError",
    "TooManyComponentsError",
    "TooManySharesError",
    "UnknownColumnError",
    "UnknownGroupError",
    "UnknownLibraryError",
    "UnknownMethodError",
    "UnseenLevelError",
]
