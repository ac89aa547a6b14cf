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
    FileEndingError,
    NotSavableError,
    NotWritableError,
    StoreError,
    TableColumnError,
    TableContentError,
    TableNotFoundError,
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
    ComparisonError,
    GroupValueError,
    InfiniteValueError,
    LengthMismatchError,
    MissingLevelError,
    NoLevelError,
    NoRowsError,
    OneLevelError,
    SampleWeightError,
    SplitError,
    TargetError,
    UnseenLevelError,
)

__all__ = [
    "ClashingNamesError",
    "ColumnNameError",
    "ComparisonError",
    "DataContentError",
    "DataNotFoundError",
    "DownloadError",
    "EmptyGroupError",
    "EncoderFileError",
    "ExpertError",
    "FileEndingError",
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
    "NotWritableError",
    "OneLevelError",
    "SampleWeightError",
    "SparseCodingError",
    "SparseOutputError",
    "SplitError",
    "StoreError",
    "SufrepError",
    "TableColumnError",
    "TableContentError",
    "TableNotFoundError",
    "TargetError",
    "TooManyComponentsError",
    "TooManySharesError",
    "UnknownColumnError",
    "UnknownGroupError",
    "UnknownLibraryError",
    "UnknownMethodError",
    "UnseenLevelError",
]
