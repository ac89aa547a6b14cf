"""Loaders of tables that consist of text, whose targets are classes.

Each takes its column of most levels as the group and the others as codes, or all of them as groups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from sufrep.datasets._dataset import assemble
from sufrep.datasets._sources import DataFile, Folder, open_raw_table
from sufrep.errors import InvalidParameterError

if TYPE_CHECKING:
    from sufrep.datasets._dataset import Dataset
    from sufrep.datasets._sources import RawTable

Groups: TypeAlias = Literal["one", "all"]

_COMPANY = "Applicable_Manufacturer_or_Applicable_GPO_Making_Payment_Name"
_PAYMENT_COVARIATES = (
    "Dispute_Status_for_Publication",
    "Name_of_Associated_Covered_Device_or_Medical_Supply1",
    "Name_of_Associated_Covered_Drug_or_Biological1",
    "Physician_Specialty",
)
_OWN_NAME = "What_would_you_call_the_part_of_the_country_you_live_in_now"
# The number of the respondent, and the ZIP code, which implies the region.
_SURVEY_DROPPED = ("RespondentID", "In_what_ZIP_code_is_your_home_located")
_OPEN_PAYMENTS = DataFile(
    "text_tables/open_payments_unique.csv.gz",
    "the example data of skrub (open_payments, with one row for each distinct tuple)",
    _COMPANY,
)
_MIDWEST_SURVEY = DataFile(
    "text_tables/midwest_survey.csv.gz", "the example data of skrub (midwest_survey)", _OWN_NAME
)


def load_open_payments(data_dir: Folder = None, *, groups: Groups = "one") -> Dataset:
    """Payments of companies to physicians: 71,657 rows, 1,466 companies, 4 covariates; two classes.

    The covariates are text: whether the payment is disputed, the device, the drug and the specialty of the
    physician. They become codes 1, 2, … in sorted order of their levels (by code point), and missing values
    become 0, as in :func:`load_ames`.

    Parameters
    ----------
    data_dir : path, optional
        Folder with ``text_tables/open_payments_unique.csv.gz``; by default the value of the environment
        variable ``SUFREP_DATA``. The file is ``open_payments`` of skrub's example data, with one row for each
        distinct tuple: the original has a row for each tuple and status, so a repeated tuple reveals the
        other status.
    groups : {"one", "all"}, default "one"
        With "all", the four covariates are further groups instead.

    Returns
    -------
    Dataset
        Group ``Applicable_Manufacturer_or_Applicable_GPO_Making_Payment_Name``, target ``status``
        ("allowed" or "disallowed").
    """
    table = open_raw_table(_OPEN_PAYMENTS, data_dir)
    table.require((_COMPANY, "status", *_PAYMENT_COVARIATES))
    others = [name for name in table.names if name in _PAYMENT_COVARIATES]
    return _assemble("open_payments", table, _COMPANY, "status", others, groups)


def load_midwest_survey(data_dir: Folder = None, *, groups: Groups = "one") -> Dataset:
    """A survey on the Midwest: 2,494 rows, 934 names that people give their region, 25 covariates; 9 classes.

    The other answers become codes 1, 2, … in sorted order of their levels (by code point), and missing values
    become 0, as in :func:`load_ames`. The number of the respondent is left out, and so is the ZIP code,
    because it implies the target.

    Parameters
    ----------
    data_dir : path, optional
        Folder with ``text_tables/midwest_survey.csv.gz``; by default the value of the environment variable
        ``SUFREP_DATA``. The file is ``midwest_survey`` of skrub's example data.
    groups : {"one", "all"}, default "one"
        With "all", the other answers are further groups instead.

    Returns
    -------
    Dataset
        Group ``What_would_you_call_the_part_of_the_country_you_live_in_now``, target ``Census_Region``.
    """
    table = open_raw_table(_MIDWEST_SURVEY, data_dir)
    others = (_OWN_NAME, "Census_Region", *_SURVEY_DROPPED)
    table.require(others)
    answers = [name for name in table.names if name not in others]
    return _assemble("midwest_survey", table, _OWN_NAME, "Census_Region", answers, groups)


def _assemble(
    name: str, table: RawTable, group: str, target: str, others: list[str], groups: Groups
) -> Dataset:
    """The data set with the other columns as codes, or as further groups."""
    if groups not in get_args(Groups):
        raise InvalidParameterError("groups", groups, "'one' or 'all'")
    classes, y = table.classes(target)
    if groups == "all":
        name = f"{name}_text"
        return assemble(name, table, group, target, {}, y, classes=classes, other_groups=tuple(others))
    covariates = {column: table.codes(column, missing=0.0) for column in others}
    return assemble(name, table, group, target, covariates, y, classes=classes)
