"""``sufrep encode`` and ``sufrep apply``: tables with new columns, from a new encoder or from a saved one."""

from __future__ import annotations

import warnings

import numpy as np
import polars as pl
import pytest

from sufrep import ContrastEncoder, MeansEncoder, load, make_encoder
from sufrep._files import open_table
from sufrep.cli import _apply
from sufrep.errors import TargetError

ZIPS = ("01234", "01235", "98178", "98001", "00007", "12345")


def houses(n: int = 120, seed: int = 0) -> pl.DataFrame:
    """Houses in a few zip codes, some of which begin with zeros."""
    rng = np.random.default_rng(seed)
    code = rng.integers(0, len(ZIPS), n)
    size = rng.normal(100 + 20 * code, 10)
    return pl.DataFrame(
        {
            "id": np.arange(n),
            "zipcode": [ZIPS[j] for j in code],
            "sqft": size,
            "rooms": rng.integers(1, 6, n),
            "price": 3 * size + 50 * (code % 2) + rng.normal(size=n),
            "note": [f"house {i}" for i in range(n)],
        }
    )


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "houses.csv"
    houses().write_csv(path)
    return path


def test_the_new_table_is_that_of_the_python_pipeline(sufrep, table, tmp_path):
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
    command = f"encode {table} --group zipcode --method means --no-target --out {tmp_path}/out.csv"
    assert sufrep(f"{command} --save {tmp_path}/zip.sufrep").code == 0
    assert ",01234," in (tmp_path / "out.csv").read_text()
    assert set(load(tmp_path / "zip.sufrep").representations_["zipcode"].levels) == set(ZIPS)


@pytest.mark.parametrize(
    ("options", "means"),
    [
        ("--target price", ["id", "sqft", "rooms"]),
        ("--no-target", ["id", "sqft", "rooms", "price"]),
        ("--covariates sqft", ["sqft"]),
    ],
)
def test_no_target_is_averaged_unless_the_user_says_so(sufrep, table, tmp_path, options, means):
    command = f"encode {table} --group zipcode --method means {options} --out {tmp_path}/out.csv"
    assert sufrep(command).code == 0
    new = pl.read_csv(tmp_path / "out.csv").columns[6:]
    assert new == [f"zipcode_mean_{name}" for name in means]


@pytest.mark.parametrize(
    "form", ["0.9 * pl.col('price')", "(pl.col('price') + 1000).log()", "-pl.col('price')"]
)
def test_a_covariate_that_is_nearly_the_target_is_reported(sufrep, tmp_path, form):
    houses().with_columns(other=eval(form)).write_csv(tmp_path / "houses.csv")
    options = f"--group zipcode --method means --target price --out {tmp_path}/out.csv"
    result = sufrep(f"encode {tmp_path}/houses.csv {options}")
    assert result.code == 0
    assert "warning: the covariate 'other' is nearly the target 'price': the correlation of" in result.err
    assert result.err.count("nearly the target") == 1
    assert "nearly" not in sufrep(f"encode {tmp_path}/houses.csv {options} --drop other --force").err


def test_a_text_target_and_a_few_rows_are_not_compared_with_covariates(sufrep, tmp_path):
    (tmp_path / "few.csv").write_text("g,x,y,z\na,1,1,u\nb,2,2,v\na,3,3,u\n")
    for target in ("y", "z"):
        command = f"encode {tmp_path}/few.csv --group g --method means --target {target} --drop z"
        command = command.replace("--drop z", "") if target == "z" else command
        result = sufrep(f"{command} --out {tmp_path}/out.csv")
        assert (result.code, "nearly" in result.err) == (0, False)


def test_whole_numbers_that_are_taken_for_classes_are_reported_with_the_option(sufrep, table, tmp_path):
    options = f"--group zipcode --method fisher --target rooms --out {tmp_path}/out.csv --force"
    result = sufrep(f"encode {table} {options}")
    assert "warning: The target has 5 distinct whole numbers, which are treated as classes." in result.err
    assert "Hint: --param target_type=continuous treats them as numbers" in result.err
    assert "whole numbers" not in sufrep(f"encode {table} {options} --param target_type=continuous").err


def test_text_that_describes_no_levels_is_noted(sufrep, table, tmp_path):
    means = f"encode {table} --group zipcode --method means --target price --out {tmp_path}/out.csv"
    expected = "note: columns that are not numeric do not describe the levels: 'note'.\nHint: --param"
    assert expected in sufrep(means).err
    one_hot = means.replace("means", "one_hot")
    for command in (f"{means} --drop note", f"{means} --covariates sqft", f"{one_hot}"):
        assert "do not describe" not in sufrep(f"{command} --force").err


@pytest.mark.parametrize("columns", [["zipcode", "price"], ["zipcode", "price", "note", "sqft"]])
def test_the_command_does_not_warn_of_what_python_users_may_have_overlooked(sufrep, tmp_path, columns):
    houses().select(columns).write_csv(tmp_path / "houses.csv")
    options = f"--group zipcode --target price --method random_intercept --out {tmp_path}/out.csv"
    result = sufrep(f"encode {tmp_path}/houses.csv {options}")
    assert result.code == 0
    assert "warning" not in result.err


def test_the_sufficient_encoder_is_the_default_and_reports_its_choice(sufrep, table, tmp_path):
    options = '--group zipcode --target price --drop id --param families=[\\"prediction\\"]'
    result = sufrep(f"encode {table} {options} --save {tmp_path}/zip.sufrep")
    assert result.code == 0, result.err
    assert "\nThe column is encoded by a prediction by level: the loss on rows held out is" in result.out
    assert "\n4 new column(s): zipcode_mean_target, zipcode_fit, " in result.out
    assert load(tmp_path / "zip.sufrep").chosen_ == ("target_mean", "mixed_model", "local_effect")


def test_a_column_that_does_not_help_is_left_out(sufrep, table, tmp_path):
    options = "--group zipcode --target price --param families=[]"
    result = sufrep(f"encode {table} {options} --out {tmp_path}/out.csv")
    assert "The column is dropped: there is nothing to judge an encoding by.\n0 new column(s)\n" in result.out


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
    sufrep(f"encode {table} --group zipcode --method means --no-target --save {tmp_path}/zip.sufrep")
    encoder = load(tmp_path / "zip.sufrep")
    assert type(encoder.transform(open_table(table, text=["zipcode"]).read())).__name__ == "ndarray"


@pytest.mark.parametrize(
    ("levels", "n_levels"),
    [(["😀", "👩‍👩‍👧", "😀"], 2), ([str(10**30), str(10**30 + 1), "7"], 3), (["a", "a", "a"], 1), (["a"], 1)],
)
def test_odd_levels_are_levels(sufrep, tmp_path, levels, n_levels):
    path = tmp_path / "odd.csv"
    pl.DataFrame({"g": levels, "x": range(len(levels))}).write_csv(path)
    result = sufrep(f"encode {path} --group g --method means --no-target --out {tmp_path}/out.csv")
    assert result.out.startswith(f"g: {n_levels} level(s) in {len(levels)} row(s)\n"), result.err
    assert open_table(tmp_path / "out.csv", text=["g"]).read()["g"].to_list() == levels


def test_a_column_without_any_value_passes_through(sufrep, tmp_path):
    path = tmp_path / "nulls.csv"
    path.write_text("g,x,nothing\na,1,\nb,2,\n")
    assert (
        sufrep(f"encode {path} --group g --method means --no-target --out {tmp_path}/out.parquet").code == 0
    )
    assert pl.read_parquet(tmp_path / "out.parquet")["nothing"].to_list() == [None, None]


def test_notes_about_reading_are_printed(sufrep, tmp_path):
    path = tmp_path / "orte.csv"
    path.write_bytes("ort;preis\nKöln;1,5\nAachen;2,5\nKöln;3,0\n".encode("latin-1"))
    result = sufrep(f"encode {path} --group ort --method means --no-target --out {tmp_path}/out.csv")
    assert f"sufrep: {path}: read as Windows-1252 (Latin-1), because it is not UTF-8\n" in result.err
    assert f"sufrep: {path}: commas read as decimal signs in 'preis'\n" in result.err
    assert "Köln,1.5,2.25\n" in (tmp_path / "out.csv").read_text(encoding="utf-8")


def test_notes_and_warnings_come_before_an_error(sufrep, tmp_path, monkeypatch):
    def failing(*_):
        warnings.warn("levels are few", UserWarning, stacklevel=1)
        raise TargetError("This cannot be encoded.", "try another method.")

    monkeypatch.setattr(MeansEncoder, "_represent", failing)
    path = tmp_path / "orte.csv"
    path.write_text("ort;preis\nAachen;1,5\nBonn;2,5\n")
    result = sufrep(f"encode {path} --group ort --method means --no-target --out {tmp_path}/out.csv")
    note, warning, error, _ = result.err.splitlines()
    assert note == f"sufrep: {path}: commas read as decimal signs in 'preis'"
    assert warning == "sufrep: warning: levels are few"
    assert error == "sufrep: This cannot be encoded."


@pytest.mark.parametrize("option", ["--out", "--save"])
def test_the_table_that_is_read_is_never_replaced(sufrep, table, tmp_path, option):
    before = table.read_bytes()
    link = tmp_path / "link.csv"
    link.symlink_to(table)
    for source, path in ((table, table), (link, table), (table, link), (table, f"{tmp_path}/./houses.csv")):
        result = sufrep(f"encode {source} --group zipcode --method means --no-target {option} {path}")
        assert result.code == 2
        assert "is an input, which would be replaced" in result.err
    assert table.read_bytes() == before


def test_the_database_that_is_read_is_never_replaced(sufrep, tmp_path):
    result = sufrep(
        f"encode sqlite:{tmp_path}/a.csv#sales --group g --method means --no-target --out {tmp_path}/a.csv"
    )
    assert result.code == 2
    assert "is an input, which would be replaced" in result.err


def test_repeated_columns_count_once(sufrep, table, tmp_path):
    options = "--group zipcode zipcode --covariates sqft sqft --drop id id --method means"
    assert sufrep(f"encode {table} {options} --out {tmp_path}/out.csv").code == 0


def test_other_separators_are_reported(sufrep, tmp_path):
    (tmp_path / "spaces.csv").write_text("zip x\na 1\nb 2\n")
    result = sufrep(
        f"encode {tmp_path}/spaces.csv --group zip --method means --no-target --out {tmp_path}/out.csv"
    )
    assert result.code == 1
    assert "Hint: fields must be separated by commas, semicolons, tabs or pipes." in result.err


def test_warnings_of_encoders_are_messages(sufrep, table, tmp_path, monkeypatch):
    original = MeansEncoder._represent

    def warning(self, *rest):
        warnings.warn("levels are few", UserWarning, stacklevel=1)
        return original(self, *rest)

    monkeypatch.setattr(MeansEncoder, "_represent", warning)
    result = sufrep(f"encode {table} --group zipcode --method means --no-target --out {tmp_path}/out.csv")
    assert result.code == 0
    assert "sufrep: warning: levels are few\n" in result.err
    assert ".py" not in result.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--group zipcode --method means", "nothing would be written"),
        ("--group zipcode --method means --out o.csv", "means describes levels by all numeric columns"),
        ("--group zipcode --target price --no-target --out o.csv", "it cannot be combined with --target"),
        ("--group zipcode --no-target --out o.csv", "sufficient learns from the target; name its column."),
        ("--group zipcode --out o.csv", "sufficient learns from the target; name its column"),
        ("--group zipcode --target zipcode --out o.csv", "'zipcode' is also in --group"),
        ("--group zipcode --drop zipcode --out o.csv --method means", "'zipcode' is also in --group"),
        ("--group zipcode --covariates zipcode --out o.csv", "'zipcode' is also in --group"),
        ("--group zipcode --drop sqft --covariates sqft --out o.csv", "'sqft' is also in --covariates"),
        ("--group zipcode --target price --covariates price --out o.csv", "is also in --covariates"),
        (
            "--group zipcode --method means --no-target --param foo=1 --out o.csv",
            "means has no parameter 'foo'; it has",
        ),
        (
            "--group zipcode --method means --no-target --param shrinkge=auto --out o.csv",
            "did you mean shrinkage?",
        ),
        (
            "--group zipcode --method means --no-target --param shrinkage=5 --out o.csv",
            "Invalid value for --param: The 'shrinkage' parameter of MeansEn",
        ),
        ("--group zipcode --method means --param unseen=error --out o.csv", "unseen is set by --unseen"),
        ("--group zipcode --param estimator=x --out o.csv", "estimator cannot be set on the command line"),
        ("--group zipcode --method means --param shrinkage --out o.csv", "not of the form name=value"),
        (
            "--group zipcode --method means --no-target --min-frequency -1 --out o.csv",
            "Invalid value for --min-frequency: The 'min_frequency' parameter of Mean",
        ),
        (
            "--group zipcode --method means --no-target --out o.csv --save ./o.csv",
            "'o.csv' is also the file of --out",
        ),
        ("--method means --out o.csv", "Missing option '--group'"),
        (
            "--group zipcode --method means --no-target --time id --out o.csv",
            "Invalid value for --time: means with these parameters does not use the target",
        ),
        ("--group zipcode --method one_hot --time id --out o.csv", "does not use the target"),
        ("--group zipcode --target price --time zipcode --out o.csv", "'zipcode' is also in --group"),
        ("--group zipcode --target price --param time=id --out o.csv", "time is set by --time"),
    ],
)
def test_wrong_usage_is_reported_before_the_table_is_read(sufrep, tmp_path, options, message):
    result = sufrep(f"encode {tmp_path}/not-there.csv {options}")
    assert result.code == 2
    assert message in result.err


def test_a_table_after_an_option_of_several_values_is_reported_with_a_hint(sufrep, table):
    result = sufrep(f"encode --group zipcode {table} --out o.csv")
    assert result.code == 2
    assert "Missing argument 'TABLE'. It comes before options that take several values." in result.err
    assert sufrep(f"encode --out o.csv --method nope --group zipcode -- {table}").code == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--group zipcod --no-target", "has no column 'zipcod'.\nHint: did you mean 'zipcode' for 'zipcod'?"),
        ("--group zipcode --target ''", "has no column ''."),
        ("--group zipcode --target pricee", "did you mean 'price' for 'pricee'?"),
        ("--group zipcode --covariates sqftt", "did you mean 'sqft' for 'sqftt'?"),
        ("--group zipcode --no-target --drop idd", "did you mean 'id' for 'idd'?"),
        ("--group zipcode --no-target --text idd", "did you mean 'id' for 'idd'?"),
        ("--group zipcode --covariates note", "Column 'note' holds String, but it is to be a covariate"),
    ],
)
def test_unusable_columns_have_code_1_and_leave_no_table(sufrep, table, tmp_path, options, message):
    result = sufrep(f"encode {table} {options} --method means --out {tmp_path}/out.csv")
    assert result.code == 1
    assert message in result.err
    assert [path.name for path in tmp_path.iterdir()] == ["houses.csv"]


def test_an_unknown_method_is_reported(sufrep, table):
    result = sufrep(f"encode {table} --group zipcode --method mean --out o.csv")
    assert result.code == 2
    assert "Invalid value for '--method': 'mean' is unknown; did you mean means" in result.err


def test_errors_name_the_option_that_was_typed(sufrep, table, tmp_path):
    options = f"--group zipcode --covariates sqft --out {tmp_path}/out.csv"
    result = sufrep(f"encode {table} {options} --method low_rank --param n_components=5")
    assert result.code == 1
    assert "sufrep: --param n_components=5 is more than the covariates allow" in result.err
    assert "\nHint: use --param n_components=auto or a number from 1 to 1." in result.err


@pytest.mark.parametrize("option", ["--out", "--save"])
def test_files_that_cannot_be_written_are_reported_before_the_table_is_read(sufrep, tmp_path, option):
    options = f"--group g --method means --no-target {option} {tmp_path}/nowhere/out.csv"
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
    result = sufrep(f"encode {tmp_path / name} --group a --method means --no-target --out {tmp_path}/out.csv")
    assert result.code == 1
    assert message in result.err
    assert "\nHint: " in result.err
    assert not (tmp_path / "out.csv").exists()


def test_an_encoded_table_is_not_encoded_again(sufrep, table, tmp_path):
    encode = "encode {} --group zipcode --method means --covariates sqft --out {}"
    assert sufrep(encode.format(table, tmp_path / "once.csv")).code == 0
    result = sufrep(encode.format(tmp_path / "once.csv", tmp_path / "twice.csv"))
    assert result.code == 1
    assert "zipcode_mean_sqft" in result.err


# New rows through a saved encoder


TRAIN = "zipcode,sqft,rooms,price\n01234,100,3,300\n01234,120,4,330\n98178,80,2,250\n00007,200,6,900\n"
NEW = "rooms,zipcode,sqft,extra\n3,01234,90,a\n5,00007,210,b\n2,55555,70,c\n1,,60,d\n"


@pytest.fixture
def encoder(sufrep, tmp_path):
    """An encoder file, written by the command."""
    (tmp_path / "train.csv").write_text(TRAIN)
    path = tmp_path / "zip.sufrep"
    result = sufrep(
        f"encode {tmp_path}/train.csv --group zipcode --target price --method means --save {path}"
    )
    assert result.code == 0, result.err
    return path


@pytest.fixture
def new(tmp_path):
    path = tmp_path / "new.csv"
    path.write_text(NEW)
    return path


def test_neither_input_of_apply_is_replaced(sufrep, encoder, new):
    for path in (encoder, new):
        result = sufrep(f"apply {encoder} {new} --out {path}")
        assert result.code == 2
        assert "is an input, which would be replaced" in result.err


def test_new_rows_get_the_values_of_the_python_encoder(sufrep, encoder, new, tmp_path):
    result = sufrep(f"apply {encoder} {new} --out {tmp_path}/out.parquet")
    assert result.code == 0, result.err
    frame = open_table(new, text=["zipcode"]).read()
    train = open_table(tmp_path / "train.csv", text=["zipcode"]).read()
    python = MeansEncoder("zipcode").set_output(transform="polars").fit(train.drop("price"))
    expected = python.transform(frame.select("zipcode", "sqft", "rooms"))
    out = pl.read_parquet(tmp_path / "out.parquet")
    assert out.columns == ["rooms", "zipcode", "sqft", "extra", "zipcode_mean_sqft", "zipcode_mean_rooms"]
    assert out.select(expected.columns).equals(expected)
    assert out["zipcode"].to_list() == ["01234", "00007", "55555", None]
    assert out["zipcode_mean_sqft"].to_list() == [110.0, 200.0, frame["sqft"][2], 125.0]
    assert result.out == f"4 row(s) in {tmp_path}/out.parquet; 2 of them with a new level\n"


@pytest.mark.parametrize("method", ["means", "random_intercept"])
def test_new_levels_do_not_depend_on_where_a_batch_ends(sufrep, method, tmp_path, monkeypatch):
    train = pl.DataFrame({"shop": list("aabbccdd") * 3, "size": [float(i % 7) for i in range(24)]})
    train = train.with_columns(sold=pl.col("size") * 2 + pl.int_range(24) % 4)
    train.write_csv(tmp_path / "train.csv")
    files = f"--save {tmp_path}/shop.sufrep --group shop --target sold"
    assert sufrep(f"encode {tmp_path}/train.csv {files} --method {method}").code == 0
    new = train.drop("sold").with_columns(shop=pl.Series(["new", "a", "newer", "b"] * 6))
    new.write_csv(tmp_path / "new.csv")
    expected = load(tmp_path / "shop.sufrep").set_output(transform="polars").transform(new)
    for size in (1, 5, 100):
        monkeypatch.setattr(_apply, "BATCH", size)
        assert (
            sufrep(f"apply {tmp_path}/shop.sufrep {tmp_path}/new.csv --out {tmp_path}/o.parquet --force").code
            == 0
        )
        found = pl.read_parquet(tmp_path / "o.parquet").select(expected.columns)
        np.testing.assert_allclose(found.to_numpy(), expected.to_numpy(), rtol=1e-9)


def test_new_levels_get_an_average_if_the_encoder_was_set_to_do_so(sufrep, new, tmp_path):
    (tmp_path / "train.csv").write_text(TRAIN)
    options = "--group zipcode --method means --target price --unseen prior"
    assert sufrep(f"encode {tmp_path}/train.csv {options} --save {tmp_path}/zip.sufrep").code == 0
    assert sufrep(f"apply {tmp_path}/zip.sufrep {new} --out {tmp_path}/out.parquet").code == 0
    assert pl.read_parquet(tmp_path / "out.parquet")["zipcode_mean_sqft"].to_list() == [
        110.0,
        200.0,
        125.0,
        125.0,
    ]


@pytest.mark.parametrize("ending", ["csv", "tsv", "csv.gz", "tsv.gz", "feather"])
def test_all_formats_hold_the_same(sufrep, encoder, new, tmp_path, ending):
    for out in ("out.parquet", f"out.{ending}"):
        assert sufrep(f"apply {encoder} {new} --out {tmp_path / out}").code == 0
    frames = [open_table(tmp_path / out, text=["zipcode"]).read() for out in ("out.parquet", f"out.{ending}")]
    assert frames[0].equals(frames[1])


def test_batches_change_nothing(sufrep, encoder, new, tmp_path, monkeypatch):
    sufrep(f"apply {encoder} {new} --out {tmp_path}/whole.parquet")
    monkeypatch.setattr(_apply, "BATCH", 1)
    result = sufrep(f"apply {encoder} {new} --out {tmp_path}/parts.parquet")
    assert "2 of them with a new level" in result.out
    frames = [pl.read_parquet(tmp_path / f"{name}.parquet") for name in ("whole", "parts")]
    assert frames[0].equals(frames[1])


def test_only_one_batch_is_in_memory(sufrep, encoder, tmp_path, monkeypatch):
    (tmp_path / "long.csv").write_text("zipcode,sqft,rooms\n" + "01234,100,3\n98178,80,2\n" * 20_000)
    monkeypatch.setattr(_apply, "BATCH", 1000)
    heights = []
    original = _apply.BatchEncoder.transform

    def measured(self, X):
        heights.append(X.height)
        return original(self, X)

    monkeypatch.setattr(_apply.BatchEncoder, "transform", measured)
    assert sufrep(f"apply {encoder} {tmp_path}/long.csv --out {tmp_path}/out.csv").code == 0
    assert sum(heights) == 40_000
    assert max(heights) <= 1000


def test_dropped_columns_may_include_those_that_the_encoder_needs(sufrep, encoder, new, tmp_path):
    assert sufrep(f"apply {encoder} {new} --drop extra sqft --out {tmp_path}/out.csv").code == 0
    header = (tmp_path / "out.csv").read_text().splitlines()[0]
    assert header == "rooms,zipcode,zipcode_mean_sqft,zipcode_mean_rooms"


def test_further_columns_are_read_as_text_on_request(sufrep, encoder, tmp_path):
    (tmp_path / "new.csv").write_text("zipcode,sqft,rooms,phone\n01234,1,1,0049\n")
    assert sufrep(f"apply {encoder} {tmp_path}/new.csv --text phone --out {tmp_path}/out.csv").code == 0
    assert "01234,1,1,0049," in (tmp_path / "out.csv").read_text()


def test_a_table_of_new_levels_gives_one_warning(sufrep, encoder, tmp_path, monkeypatch):
    monkeypatch.setattr(_apply, "BATCH", 1)
    (tmp_path / "new.csv").write_text("zipcode,sqft,rooms\n1234,100,3\n7,80,2\n")
    result = sufrep(f"apply {encoder} {tmp_path}/new.csv --out {tmp_path}/out.csv")
    assert result.code == 0
    assert result.err.count("warning: no row has a level of 'zipcode' that the encoder knows") == 1
    assert "(00007, 01234, 98178, …)" in result.err
    assert "2 of them with a new level" in result.out


def test_a_batch_of_new_levels_among_others_gives_no_warning(sufrep, encoder, new, tmp_path, monkeypatch):
    monkeypatch.setattr(_apply, "BATCH", 1)
    assert "warning" not in sufrep(f"apply {encoder} {new} --out {tmp_path}/out.csv").err


def test_new_levels_are_refused_if_the_encoder_was_set_to_do_so(sufrep, new, tmp_path):
    (tmp_path / "train.csv").write_text(TRAIN)
    options = "--group zipcode --method means --target price --unseen error"
    assert sufrep(f"encode {tmp_path}/train.csv {options} --save {tmp_path}/zip.sufrep").code == 0
    result = sufrep(f"apply {tmp_path}/zip.sufrep {new} --out {tmp_path}/out.csv")
    assert result.code == 1
    assert "unseen level(s)" in result.err
    assert "Hint: encode --unseen prior gives them" in result.err
    assert not (tmp_path / "out.csv").exists()


def test_an_encoder_fitted_on_numbers_in_python_reads_numbers(sufrep, tmp_path):
    frame = pl.DataFrame({"zip": [7, 7, 8], "x": [1.0, 2.0, 3.0]})
    MeansEncoder("zip").fit(frame).save(tmp_path / "zip.sufrep")
    (tmp_path / "new.csv").write_text("zip,x\n7,0\n8,0\n9,0\n")
    result = sufrep(f"apply {tmp_path}/zip.sufrep {tmp_path}/new.csv --out {tmp_path}/out.csv")
    assert result.out.endswith("1 of them with a new level\n")
    assert open_table(tmp_path / "out.csv").read()["zip_mean_x"].to_list() == [1.5, 3.0, 0.0]


def crossed_table(folder, names="shop,brand,x"):
    path = folder / "shops.csv"
    path.write_text(f"{names}\n01,a,1\n01,b,2\n2,a,3\n01,a,5\n")
    return path


def test_groups_are_crossed_by_a_plus(sufrep, tmp_path):
    options = f"--method means --no-target --out {tmp_path}/out.csv --save {tmp_path}/shops.sufrep"
    result = sufrep(f"encode {crossed_table(tmp_path)} --group shop+brand {options}")
    assert result.code == 0, result.err
    assert result.out.startswith("shop:brand: 3 level(s) in 4 row(s)\n1 new column(s): shop:brand_mean_x\n")
    out = open_table(tmp_path / "out.csv", text=["shop"]).read()
    assert out["shop"].to_list() == ["01", "01", "2", "01"]
    assert out["shop:brand_mean_x"].to_list() == [3, 2, 3, 3]
    assert load(tmp_path / "shops.sufrep").group == ("shop", "brand")


def test_a_column_with_a_plus_in_its_name_is_a_column(sufrep, tmp_path):
    path = crossed_table(tmp_path, names="shop+brand,brand,shop")
    result = sufrep(f"encode {path} --group shop+brand --method means --no-target --out {tmp_path}/out.csv")
    assert result.out.startswith(
        "shop+brand: 2 level(s) in 4 row(s)\n1 new column(s): shop+brand_mean_shop\n"
    )


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (
            "--group shop,brand",
            2,
            "'shop,brand' is no column; write --group shop brand for several groups, or --group shop+brand",
        ),
        ("--group shop+brnd", 1, "has no column 'brnd'.\nHint: did you mean 'brand' for 'brnd'?"),
        ("--group shop,brnd", 1, "has no column 'shop,brnd'."),
        ("--group shop++", 1, "has no column 'shop++'.\nHint: did you mean 'shop'"),
        ("--group shop+x --covariates x", 2, "'x' is also in --group."),
    ],
)
def test_groups_that_are_not_there_say_how_to_write_several(sufrep, tmp_path, options, code, message):
    command = f"encode {crossed_table(tmp_path)} {options} --method one_hot --out {tmp_path}/out.csv"
    result = sufrep(command)
    assert result.code == code
    assert message in result.err


def test_crossed_groups_are_looked_up_together(sufrep, tmp_path):
    frame = pl.DataFrame({"shop": ["01", "01", "2"], "brand": ["a", "b", "a"], "x": [1.0, 2.0, 3.0]})
    MeansEncoder([("shop", "brand")]).fit(frame).save(tmp_path / "shops.sufrep")
    (tmp_path / "new.csv").write_text("shop,brand,x\n01,b,0\n2,b,0\n")
    result = sufrep(f"apply {tmp_path}/shops.sufrep {tmp_path}/new.csv --out {tmp_path}/out.csv")
    assert "1 of them with a new level" in result.out
    assert open_table(tmp_path / "out.csv").read()["shop:brand_mean_x"].to_list()[0] == 2.0


def test_nulls_that_are_not_a_level_are_not_counted_as_new(sufrep, new, tmp_path):
    (tmp_path / "train.csv").write_text(TRAIN)
    options = "--group zipcode --method means --target price --missing prior"
    sufrep(f"encode {tmp_path}/train.csv {options} --save {tmp_path}/zip.sufrep")
    result = sufrep(f"apply {tmp_path}/zip.sufrep {new} --out {tmp_path}/out.csv")
    assert "1 of them with a new level" in result.out


@pytest.mark.parametrize("damage", ["truncated", "flipped", "other"])
def test_a_damaged_encoder_is_refused_and_nothing_is_written(sufrep, encoder, new, tmp_path, damage):
    content = bytearray(encoder.read_bytes())
    if damage == "truncated":
        content = content[: len(content) // 2]
    elif damage == "flipped":
        content[len(content) // 3] ^= 0xFF
    else:
        content = bytearray(b"zipcode,mean\n1,2\n")
    encoder.write_bytes(content)
    result = sufrep(f"apply {encoder} {new} --out {tmp_path}/out.csv")
    assert result.code == 1
    assert f"Cannot read '{encoder}'" in result.err
    assert not (tmp_path / "out.csv").exists()


def test_a_missing_encoder_suggests_its_neighbour(sufrep, encoder, new, tmp_path):
    result = sufrep(f"apply {tmp_path}/zip.suf {new} --out {tmp_path}/out.csv")
    assert result.code == 1
    assert f"Cannot read '{tmp_path}/zip.suf': No such file or directory.\n" in result.err
    assert f"Hint: did you mean '{encoder}'?\n" in result.err


@pytest.mark.parametrize("name", ["", "nowhere/zip.sufrep"])
def test_a_path_without_an_encoder_is_reported(sufrep, new, tmp_path, name):
    result = sufrep(f"apply '{tmp_path}/{name}' {new} --out {tmp_path}/out.csv")
    assert result.code == 1
    assert "Hint: name a file written with --save." in result.err


def test_encoders_that_cannot_encode_files_are_refused(sufrep, new, tmp_path):
    MeansEncoder(group=0).fit([["a", 1.0], ["b", 3.0]]).save(tmp_path / "array.sufrep")
    ContrastEncoder("g", sparse_output=True).fit(pl.DataFrame({"g": ["a", "b"]})).save(
        tmp_path / "sparse.sufrep"
    )
    for name, message in (("array", "whose columns have no names"), ("sparse", "its columns are sparse")):
        result = sufrep(f"apply {tmp_path}/{name}.sufrep {new} --out {tmp_path}/out.csv")
        assert result.code == 1
        assert message in result.err


def test_missing_columns_suggest_similar_names(sufrep, encoder, tmp_path):
    (tmp_path / "new.csv").write_text("zipcode,sq_ft,rooms\n01234,100,3\n")
    result = sufrep(f"apply {encoder} {tmp_path}/new.csv --out {tmp_path}/out.csv")
    assert result.code == 1
    assert "has no column 'sqft'.\nHint: did you mean 'sq_ft' for 'sqft'?" in result.err


def test_a_table_with_the_new_columns_is_refused(sufrep, encoder, new, tmp_path):
    sufrep(f"apply {encoder} {new} --out {tmp_path}/out.csv")
    again = f"apply {encoder} {tmp_path}/out.csv --out {tmp_path}/twice.csv"
    result = sufrep(again)
    assert result.code == 1
    assert "already has columns that the encoder would add: 'zipcode_mean_sqft'" in result.err
    assert sufrep(f"{again} --drop zipcode_mean_sqft zipcode_mean_rooms").code == 0


def test_the_encoder_file_is_not_changed_by_its_use(sufrep, encoder, new, tmp_path):
    before = encoder.read_bytes()
    sufrep(f"apply {encoder} {new} --out {tmp_path}/out.csv")
    assert encoder.read_bytes() == before
    assert load(encoder).get_params()["remainder"] == "passthrough"


# New tables are read as the one that the encoder was fitted on


def commas(path, *rows):
    """A table as a German Excel writes it."""
    path.write_text("\n".join(["g;x", *rows, ""]))
    return path


@pytest.fixture
def fitted(sufrep, tmp_path):
    """An encoder of a table with decimal commas and, in one cell, a point between thousands."""
    table = commas(tmp_path / "old.csv", "a;1,5", "b;2.876", "a;2,5", "b;3,5")
    result = sufrep(f"encode {table} --group g --method means --no-target --save {tmp_path}/g.sufrep")
    assert result.code == 0, result.err
    return tmp_path / "g.sufrep"


def test_numbers_are_read_as_when_the_encoder_was_fitted(sufrep, fitted, tmp_path):
    new = commas(tmp_path / "new.csv", "a;1.708", "b;2.000")
    result = sufrep(f"apply {fitted} {new} --out {tmp_path}/out.parquet")
    assert result.code == 0, result.err
    assert pl.read_parquet(tmp_path / "out.parquet")["x"].to_list() == [1708.0, 2000.0]
    assert "points as thousands separators, as when the encoder was fitted: 'x'" in result.err


def test_a_table_that_can_only_be_read_in_another_way_is_refused(sufrep, fitted, tmp_path):
    new = commas(tmp_path / "new.csv", "a;1.708", "b;2.25")
    result = sufrep(f"apply {fitted} {new} --out {tmp_path}/out.parquet")
    assert result.code == 1
    assert "Column 'x' of " in result.err
    assert "holds '2.25' in row 2, which is 2.25 with a decimal point." in result.err
    assert "fitted on has numbers with decimal commas (1.708 is more than 1700) there." in result.err
    assert "Hint: write it as that table was written, or fit the encoder again" in result.err
    assert not (tmp_path / "out.parquet").exists()


def test_the_same_table_in_another_kind_of_file_is_encoded_alike(sufrep, fitted, tmp_path):
    frame = pl.DataFrame({"g": ["a", "b", "c"], "x": [1.5, 2876.0, 2.5]})
    frame.write_parquet(tmp_path / "new.parquet")
    frame.write_csv(tmp_path / "new.tsv", separator="\t", decimal_comma=True)
    (tmp_path / "new.csv").write_text('g|x\na|1,5\nb|2.876\nc|"2,5"\n', encoding="utf-16")
    found = []
    for name in ("new.parquet", "new.tsv", "new.csv"):
        result = sufrep(f"apply {fitted} {tmp_path}/{name} --out {tmp_path}/out.parquet")
        assert result.code == 0, result.err
        found.append(pl.read_parquet(tmp_path / "out.parquet"))
    assert found[0].equals(found[1])
    assert found[0].equals(found[2])


def test_columns_that_were_text_are_text_again(sufrep, tmp_path):
    (tmp_path / "old.csv").write_text("g,code,x\na,x1,1\nb,002,2\n")
    sufrep(f"encode {tmp_path}/old.csv --group g --method means --no-target --save {tmp_path}/g.sufrep")
    (tmp_path / "new.csv").write_text("g,code,x\na,001,1\nb,NA,2\n")
    result = sufrep(f"apply {tmp_path}/g.sufrep {tmp_path}/new.csv --out {tmp_path}/out.parquet")
    assert result.code == 0, result.err
    assert pl.read_parquet(tmp_path / "out.parquet")["code"].to_list() == ["001", "NA"]


def test_a_column_that_the_encoder_does_not_read_may_hold_anything(sufrep, tmp_path):
    (tmp_path / "old.csv").write_text("g,x,price\na,1.5,10\nb,2.5,20\na,3.5,30\n")
    options = "--group g --target price --method means"
    assert sufrep(f"encode {tmp_path}/old.csv {options} --save {tmp_path}/g.sufrep").code == 0
    (tmp_path / "new.csv").write_text("g,x,price\na,1.5,unknown\n")
    result = sufrep(f"apply {tmp_path}/g.sufrep {tmp_path}/new.csv --out {tmp_path}/out.csv")
    assert result.code == 0, result.err


def test_how_a_table_was_read_survives_loading_and_saving_but_not_another_fit(fitted, tmp_path):
    encoder = load(fitted)
    assert encoder.reading_.decimal == ","
    encoder.save(tmp_path / "again.sufrep")
    assert load(tmp_path / "again.sufrep").reading_ == encoder.reading_
    encoder.fit(pl.DataFrame({"g": ["a", "b"], "x": [1.0, 2.0]}))
    assert not hasattr(encoder, "reading_")


def test_in_time_training_rows_learn_from_earlier_rows(sufrep, table, tmp_path):
    result = sufrep(
        f"encode {table} --group zipcode --method fisher --target price --time id "
        f"--out {tmp_path}/out.csv --save {tmp_path}/zip.sufrep"
    )
    assert result.code == 0, result.err
    frame = open_table(table, text=["zipcode"]).read()
    encoder = make_encoder("fisher", "zipcode", cv="ordered", time="id", remainder="drop")
    expected = encoder.fit_transform(frame.drop("price"), frame["price"])
    out = pl.read_csv(tmp_path / "out.csv")
    np.testing.assert_allclose(out["zipcode_fisher"].to_numpy(), expected[:, 0])
    saved = load(tmp_path / "zip.sufrep")
    assert (saved.cv, saved.time) == ("ordered", "id")


def test_parents_are_read_as_text_too(sufrep, tmp_path):
    train = pl.DataFrame({"zip": ["01", "02", "03", "04"] * 5, "area": ["001", "002"] * 10, "x": range(20)})
    train.write_csv(tmp_path / "train.csv")
    options = (
        """--group zip --method means --no-target --param shrinkage=auto --param "parent={'zip': 'area'}" """
    )
    files = f"--out {tmp_path}/out.csv --save {tmp_path}/zip.sufrep"
    assert sufrep(f"encode {tmp_path}/train.csv {options} {files}").code == 0
    assert (tmp_path / "out.csv").read_text().splitlines()[1].startswith("01,001,0")
    (tmp_path / "new.csv").write_text("zip,area,x\n01,001,3\n09,9A,4\n")
    result = sufrep(f"apply {tmp_path}/zip.sufrep {tmp_path}/new.csv --out {tmp_path}/new_out.csv")
    assert result.code == 0, result.err
