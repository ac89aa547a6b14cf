"""``import sufrep`` loads nothing heavy, and every public name is there when it is used."""

from __future__ import annotations

import subprocess
import sys
from operator import attrgetter
from types import FunctionType, ModuleType

import pytest

import sufrep


def test_importing_the_package_loads_only_the_standard_library():
    code = (
        "import sys; before = set(sys.modules); import sufrep; "
        "print(*{name.partition('.')[0] for name in set(sys.modules) - before})"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(shown.stdout.split()) - sys.stdlib_module_names == {"sufrep"}


def test_an_encoder_loads_no_learner():
    heavy = ("sklearn.ensemble", "sklearn.model_selection", "sklearn.cluster", "sufrep._files")
    code = (
        "import sys, sklearn.base, scipy.sparse; before = set(sys.modules); from sufrep import MeansEncoder; "
        f"print(*(set(sys.modules) - before) & {{*{heavy}}})"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout == "\n"


def test_names_are_loaded_by_the_import_statement_by_star_and_by_dir():
    code = (
        "import sufrep; from sufrep import *; from sufrep import compare, simulate, MeansEncoder; "
        "assert all(hasattr(sufrep, name) for name in sufrep.__all__); "
        "assert all(hasattr(sufrep.encoders, name) for name in sufrep.encoders.__all__); "
        "import sufrep._compare, sufrep._simulate; "
        "print(type(sufrep.compare).__name__, type(sufrep.simulate).__name__)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout == "function function\n"


@pytest.mark.parametrize("name", ["datasets", "encoders", "errors", "moments", "representation", "solvers"])
def test_public_modules_are_attributes(name):
    assert isinstance(getattr(sufrep, name), ModuleType)


def test_dir_lists_the_public_names_for_completion():
    assert {*sufrep.__all__, "__version__", "datasets", "errors"} <= set(dir(sufrep))
    assert isinstance(sufrep.compare, FunctionType)
    assert isinstance(sufrep.simulate, FunctionType)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'sufrep' has no attribute 'MeanEncoder'"):
        attrgetter("MeanEncoder")(sufrep)
    with pytest.raises(AttributeError, match=r"module 'sufrep\.encoders' has no attribute 'MeanEncoder'"):
        attrgetter("MeanEncoder")(sufrep.encoders)
