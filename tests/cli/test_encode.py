"""``sufrep encode``: columns for the levels of a table, and an encoder for rows to come."""

from __future__ import annotations

import warnings

import numpy as np
import polars as pl
import pytest

from sufrep import MeansEncoder, load, make_encoder
from sufrep._files import open_table

ZIPS = ("01234", "01235", "98178", "98001", "00007", "12345")


def houses(n: int = 120, seed: int = 0) -> pl.DataFrame:
    """Houses in a few zip codes, some of which begin with zeros."""
    rng = np.random.default_rng(seed)
    place = rng.integers(0, len(ZIPS), n)
    size = rng.normal(100 + 20 * place, 10)
    return pl.DataFrame(
        {
            "id": np.arange(n),
            "zipcode": [ZIPS[j] for j in place],
            "sqft": size,
            "rooms": rng.integers(1, 6, n),
            "price": 3 * size + 50 * (place % 2) + rng.normal(size=n),
            "note": [f"house {i}" for i in range(n)],
        }
    )


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "houses.csv"
    houses().write_csv(path)
    return path


def test_the_new_table_is_what_the_python_pipeline_gives(sufrep, table, tmp_path):
    result = sufrep(
        f"encode {table} --group zipcode --method means --target price --drop id --seed 3 "
        f"--param use_target=true --out {tmp_path}/out.parquet --save {tmp_path}/zip.sufrep"
    )
    assert result.code == 0, result.err
    frame = open_table(table, text=["zipcode"], drop=["id"]).read()
    encoder = make_encoder("means", "zipcode", use_target=True, random_state=3).set_output(transform="polars")
    expected = encoder.fit_transform(frame.drop("price"), frame["price"])
    out = pl.read_parquet(tmp_path / "out.parquet")
    new = [name for name in expected.columns if name not in frame.columns]
    assert out.columns == [*frame.columns, *new]
    assert out.select(expected.columns).equals(expected)
    assert out.select(frame.columns).equals(frame)
    assert result.out == (
        "zipcode: 6 level(s) in 120 row(s)\n"
        "3 new column(s): zipcode_mean_sqft, zipcode_mean_rooms, zipcode_mean_target\n"
        f"table: {tmp_path}/out.parquet\nencoder: {tmp_path}/zip.sufrep\n"
    )


def test_levels_keep_their_leading_zeros_in_the_table_and_in_the_encoder(sufrep, table, tmp_path):
    command = f"encode {table} --group zipcode --method means --out {tmp_path}/out.csv"
    assert sufrep(f"{command} --save {tmp_path}/zip.sufrep").code == 0
    assert (
        "\n0,01234," in (tmp_path / "out.csv").read_text() or ",01234," in (tmp_path / "out.csv").read_text()
    )
    assert set(load(tmp_path / "zip.sufrep").representations_["zipcode"].levels) == set(ZIPS)


def test_the_sufficient_encoder_is_the_default_and_tells_its_choice(sufrep, table, tmp_path):
    options = "--group zipcode --target price --drop id --param max_candidates=2"
    result = sufrep(f"encode {table} {options} --save {tmp_path}/zip.sufrep")
    assert result.code == 0, result.err
    assert "\nchosen: target\n1 new column(s): zipcode_mean_target\n" in result.out
    assert load(tmp_path / "zip.sufrep").chosen_ == ("target",)


def test_a_column_that_does_not_help_is_left_out_and_told(sufrep, table, tmp_path):
    options = "--group zipcode --target price --param max_candidates=1"
    result = sufrep(f"encode {table} {options} --out {tmp_path}/out.csv")
    assert "chosen: to leave the column out, because it does not help\n0 new column(s)\n" in result.out


def test_several_groups_and_covariates_in_a_row(sufrep, table, tmp_path):
    options = "--group zipcode note --covariates sqft rooms --method means --drop id price"
    assert sufrep(f"encode {table} {options} --out {tmp_path}/out.feather").code == 0
    assert pl.read_ipc(tmp_path / "out.feather").columns == [
        *("zipcode", "sqft", "rooms", "note", "zipcode_mean_sqft", "zipcode_mean_rooms"),
        *("note_mean_sqft", "note_mean_rooms"),
    ]


def test_options_reach_the_encoder(sufrep, table, tmp_path):
    options = "--unseen error --missing prior --min-frequency 5 --seed 7 --param n_permutations=2"
    command = f"encode {table} --group zipcode --method permutation {options}"
    assert sufrep(f"{command} --save {tmp_path}/zip.sufrep").code == 0
    encoder = load(tmp_path / "zip.sufrep")
    assert (encoder.unseen, encoder.missing, encoder.min_frequency) == ("error", "prior", 5)
    assert (encoder.random_state, encoder.n_permutations) == (7, 2)
    assert encoder.get_params()["group"] == "zipcode"


def test_a_saved_encoder_gives_arrays_in_python_as_others_do(sufrep, table, tmp_path):
    sufrep(f"encode {table} --group zipcode --method means --save {tmp_path}/zip.sufrep")
    encoder = load(tmp_path / "zip.sufrep")
    assert type(encoder.transform(open_table(table, text=["zipcode"]).read())).__name__ == "ndarray"


@pytest.mark.parametrize(
    ("levels", "n_levels"),
    [(["😀", "👩‍👩‍👧", "😀"], 2), ([str(10**30), str(10**30 + 1), "7"], 3), (["a", "a", "a"], 1), (["a"], 1)],
)
def test_odd_levels_are_levels(sufrep, tmp_path, levels, n_levels):
    path = tmp_path / "odd.csv"
    pl.DataFrame({"g": levels, "x": range(len(levels))}).write_csv(path)
    result = sufrep(f"encode {path} --group g --method means --out {tmp_path}/out.csv")
    assert result.out.startswith(f"g: {n_levels} level(s) in {len(levels)} row(s)\n"), result.err
    assert open_table(tmp_path / "out.csv", text=["g"]).read()["g"].to_list() == levels


def test_a_column_without_any_value_passes_through(sufrep, tmp_path):
    path = tmp_path / "nulls.csv"
    path.write_text("g,x,nothing\na,1,\nb,2,\n")
    assert sufrep(f"encode {path} --group g --method means --out {tmp_path}/out.parquet").code == 0
    assert pl.read_parquet(tmp_path / "out.parquet")["nothing"].to_list() == [None, None]


def test_how_a_table_was_read_is_told(sufrep, tmp_path):
    path = tmp_path / "orte.csv"
    path.write_bytes("ort;preis\nKöln;1,5\nAachen;2,5\nKöln;3,0\n".encode("latin-1"))
    result = sufrep(f"encode {path} --group ort --method means --out {tmp_path}/out.csv")
    assert f"sufrep: {path}: read as Windows-1252 (Latin-1), because it is not UTF-8\n" in result.err
    assert f"sufrep: {path}: commas taken as decimal signs in 'preis'\n" in result.err
    assert "Köln,1.5,2.25\n" in (tmp_path / "out.csv").read_text(encoding="utf-8")


def test_warnings_of_encoders_are_messages(sufrep, table, tmp_path, monkeypatch):
    original = MeansEncoder._represent

    def warning(self, *rest):
        warnings.warn("levels are few", UserWarning, stacklevel=1)
        return original(self, *rest)

    monkeypatch.setattr(MeansEncoder, "_represent", warning)
    result = sufrep(f"encode {table} --group zipcode --method means --out {tmp_path}/out.csv")
    assert result.code == 0
    assert "sufrep: warning: levels are few\n" in result.err
    assert ".py" not in result.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--group zipcode --method means", "nothing would be kept"),
        ("--group zipcode --out o.csv", "sufficient learns from the column to be predicted; name it"),
        ("--group zipcode --target zipcode --out o.csv", "'zipcode' is named by --group too"),
        ("--group zipcode --drop zipcode --out o.csv --method means", "'zipcode' is named by --group too"),
        ("--group zipcode --covariates zipcode --out o.csv", "'zipcode' is named by --group too"),
        ("--group zipcode --drop sqft --covariates sqft --out o.csv", "'sqft' is named by --covariates too"),
        ("--group zipcode --target price --covariates price --out o.csv", "named by --covariates too"),
        (
            "--group zipcode --method means --param foo=1 --out o.csv",
            "means has no parameter 'foo'; there are",
        ),
        ("--group zipcode --method means --param shrinkge=auto --out o.csv", "did you mean shrinkage?"),
        (
            "--group zipcode --method means --param shrinkage=5 --out o.csv",
            "'shrinkage' parameter of MeansEn",
        ),
        ("--group zipcode --method means --param unseen=error --out o.csv", "unseen is set by --unseen"),
        ("--group zipcode --param estimator=x --out o.csv", "estimator cannot be set in a command"),
        ("--group zipcode --method means --param shrinkage --out o.csv", "not of the form name=value"),
        (
            "--group zipcode --method means --min-frequency -1 --out o.csv",
            "'min_frequency' parameter of Mean",
        ),
        ("--method means --out o.csv", "Missing option '--group'"),
    ],
)
def test_wrong_usage_is_told_before_the_table_is_read(sufrep, tmp_path, options, message):
    result = sufrep(f"encode {tmp_path}/not-there.csv {options}")
    assert result.code == 2
    assert message in result.err


def test_a_table_behind_an_option_of_several_values_is_missed_with_a_hint(sufrep, table):
    result = sufrep(f"encode --group zipcode {table} --out o.csv")
    assert result.code == 2
    assert "Missing argument 'TABLE'. It stands before options that take several values." in result.err
    assert sufrep(f"encode --group zipcode --method nope -- {table}").code == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--group zipcod", "has no column 'zipcod'.\nHint: did you mean 'zipcode' for 'zipcod'?"),
        ("--group zipcode --target pricee", "did you mean 'price' for 'pricee'?"),
        ("--group zipcode --covariates sqftt", "did you mean 'sqft' for 'sqftt'?"),
        ("--group zipcode --drop idd", "did you mean 'id' for 'idd'?"),
        ("--group zipcode --text idd", "did you mean 'id' for 'idd'?"),
        ("--group zipcode --covariates note", "Column 'note' holds String, but it is to be a covariate"),
    ],
)
def test_columns_that_do_not_fit_have_code_1_and_leave_no_table(sufrep, table, tmp_path, options, message):
    result = sufrep(f"encode {table} {options} --method means --out {tmp_path}/out.csv")
    assert result.code == 1
    assert message in result.err
    assert [path.name for path in tmp_path.iterdir()] == ["houses.csv"]


def test_an_unknown_method_is_told(sufrep, table):
    result = sufrep(f"encode {table} --group zipcode --method mean --out o.csv")
    assert result.code == 1
    assert "No encoder is called 'mean'.\nHint: did you mean 'means'?" in result.err


@pytest.mark.parametrize("option", ["--out", "--save"])
def test_places_that_cannot_be_written_are_told_before_the_table_is_read(sufrep, tmp_path, option):
    options = f"--group g --method means {option} {tmp_path}/nowhere/out.csv"
    result = sufrep(f"encode {tmp_path}/not-there.csv {options}")
    assert result.code == 1
    assert "there is no folder" in result.err


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("houses2.csv", None, "There is no file"),
        ("empty.csv", b"", "is empty: 0 bytes"),
        ("broken.parquet", b"PAR1 this is no Parquet", "cannot be read; it may be damaged"),
        ("ragged.csv", b"a,b\n1,2\n3\n", "has 1 field(s) in line 3; its header has 2"),
        ("table.xlsx", b"PK", "The ending of"),
    ],
)
def test_tables_that_cannot_be_read_have_code_1_and_a_hint(sufrep, tmp_path, name, content, message):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    result = sufrep(f"encode {tmp_path / name} --group a --method means --out {tmp_path}/out.csv")
    assert result.code == 1
    assert message in result.err
    assert "\nHint: " in result.err
    assert not (tmp_path / "out.csv").exists()


def test_a_table_that_is_encoded_already_is_refused(sufrep, table, tmp_path):
    encode = f"encode {{}} --group zipcode --method means --covariates sqft --out {tmp_path}/out.csv"
    assert sufrep(encode.format(table)).code == 0
    result = sufrep(encode.format(f"{tmp_path}/out.csv"))
    assert result.code == 1
    assert "zipcode_mean_sqft" in result.err
