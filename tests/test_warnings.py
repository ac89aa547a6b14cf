from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

from sufrep import MeansEncoder
from sufrep.encoders import NoGroupWarning, UnseenLevelsWarning


@pytest.mark.parametrize("method", ["fit", "fit_transform"])
@pytest.mark.parametrize("wrapped", [False, True], ids=["alone", "in a pipeline"])
def test_a_warning_points_at_the_line_of_the_user(method, wrapped):
    encoder = make_pipeline(MeansEncoder()) if wrapped else MeansEncoder()
    with pytest.warns(NoGroupWarning, match="X has none") as caught:
        getattr(encoder, method)(pd.DataFrame({"a": [1.0, 2.0]}))
    assert caught[0].filename == __file__


def test_a_warning_of_transform_points_there_too():
    encoder = MeansEncoder("a").fit(pd.DataFrame({"a": ["1", "2"], "x": np.arange(2.0)}))
    with pytest.warns(UnseenLevelsWarning, match="of type int") as caught:
        encoder.transform(pd.DataFrame({"a": [1, 2], "x": np.arange(2.0)}))
    assert caught[0].filename == __file__
