"""The store: what a killed run, a full disk, a second writer or a damaged line do to results. Nothing."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sufrep._paper.store import Store, Writer, export_all, trial_key, write_text
from sufrep.errors import NotWritableError, StoreError, SufrepError

IDENTITY = {"n": 500, "p": 20, "xgboost": {"max_depth": 4}}
RESULT = {"loss": 1.2345678901234567, "n_columns": 5, "k": 5, "alpha": None, "seconds": 0.25}


def record(seed: int = 0, method: str = "means", **changes: Any) -> dict[str, Any]:
    trial = {"setup": "latent_linear", "n_latent": 2, "levels_per_latent": 5, "model": "xgboost"}
    return {**trial, "method": method, "seed": seed, "k_index_bug": False, **RESULT, **changes}


def fold(number: int = 0, **changes: Any) -> dict[str, Any]:
    trial = {"dataset": "ames", "model": "xgboost", "method": "means", "seed": 0, "fold": number}
    return {**trial, "k_index_bug": False, **RESULT, **changes}


def benchmarked(number: int = 0, failure: str | None = None) -> dict[str, Any]:
    result = {**RESULT, "loss": None, "k": None} if failure else RESULT
    return {**fold(number), **result, "failure": failure}


def filled(folder: Path, n_records: int = 3) -> Store:
    """A store as a run leaves it."""
    store = Store(folder, "simulations")
    with store.writing(IDENTITY) as writer:
        writer.append_run("sufrep paper simulations", {"numpy": "2"})
        for seed in range(n_records):
            writer.append(record(seed))
    return store


def append(store: Store, *records: dict[str, Any]) -> None:
    with store.writing(IDENTITY) as writer:
        for one in records:
            writer.append(one)


# Appending and reading


def test_records_come_back_as_they_were_written(tmp_path):
    assert filled(tmp_path).records() == [record(0), record(1), record(2)]


def test_a_run_is_kept_with_its_command_versions_and_settings(tmp_path):
    store = filled(tmp_path)
    with store.writing(IDENTITY) as writer:
        writer.append_run("again", {})
    first = {"command": "sufrep paper simulations", "versions": {"numpy": "2"}, "settings": IDENTITY}
    assert store.runs() == [first, {"command": "again", "versions": {}, "settings": IDENTITY}]


def test_records_are_sorted_by_what_they_are_and_not_by_when_they_were_finished(tmp_path):
    store = Store(tmp_path, "simulations")
    append(store, record(2), record(0, "one_hot"), record(1), record(0))
    keys = [trial_key(one) for one in store.records()]
    assert keys == sorted(keys)
    assert len(set(keys)) == 4


def test_a_record_can_be_read_as_soon_as_append_returns(tmp_path):
    store = Store(tmp_path, "simulations")
    with store.writing(IDENTITY) as writer:
        for seed in range(3):
            writer.append(record(seed))
            assert len(store.records()) == seed + 1


def test_each_record_is_forced_to_the_disk(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", synced.append)
    filled(tmp_path, n_records=3)
    assert len(synced) == 4


def test_nothing_is_made_by_reading(tmp_path):
    store = Store(tmp_path / "not" / "there", "empirical")
    assert store.records() == store.runs() == []
    assert not (tmp_path / "not").exists()


def test_folders_are_made_when_writing_starts(tmp_path):
    store = filled(tmp_path / "deep" / "down")
    assert store.path == tmp_path / "deep" / "down" / "simulations.jsonl"
    assert len(store.records()) == 3


def test_the_two_experiments_of_a_folder_do_not_meet(tmp_path):
    filled(tmp_path)
    append(Store(tmp_path, "empirical"), fold(1))
    assert len(Store(tmp_path, "simulations").records()) == 3
    assert Store(tmp_path, "empirical").records() == [fold(1)]


def test_a_benchmark_has_a_file_of_its_own_although_its_trials_are_those_of_real_data(tmp_path):
    append(Store(tmp_path, "empirical"), fold(0))
    append(Store(tmp_path, "benchmark"), benchmarked(0), benchmarked(1))
    assert Store(tmp_path, "benchmark").path == tmp_path / "benchmark.jsonl"
    assert Store(tmp_path, "benchmark").records() == [benchmarked(0), benchmarked(1)]
    assert Store(tmp_path, "empirical").records() == [fold(0)]
    assert trial_key(benchmarked(3, "ValueError: no")) == trial_key(fold(3))


def test_a_trial_is_identified_by_its_own_fields_and_not_by_its_result():
    assert trial_key(record(loss=9.0, seconds=9.0)) == trial_key(record())
    assert trial_key(record(k_index_bug=True)) != trial_key(record())
    assert trial_key(fold(1)) != trial_key(fold(2))


def test_letters_of_all_alphabets_and_line_ends_inside_a_text_survive(tmp_path):
    store = Store(tmp_path, "empirical")
    append(store, fold(dataset="Škoda\n\u2028\x85東京"))
    assert store.records() == [fold(dataset="Škoda\n\u2028\x85東京")]
    assert store.path.read_bytes().count(b"\n") == 1


# Killed runs


def test_a_last_line_cut_at_any_byte_loses_only_that_record_and_is_removed_by_the_next(tmp_path):
    store = filled(tmp_path)
    whole = store.path.read_bytes()
    start = whole.rstrip(b"\n").rfind(b"\n") + 1
    others = [record(0), record(1)]
    for end in range(start, len(whole)):
        store.path.write_bytes(whole[:end])
        assert store.records() == others, f"cut after byte {end}"
        append(store, record(2))
        assert store.path.read_bytes() == whole, f"cut after byte {end}"


def test_a_first_line_cut_at_any_byte_leaves_an_empty_store(tmp_path):
    store = filled(tmp_path, n_records=0)
    whole = store.path.read_bytes()
    for end in range(len(whole)):
        store.path.write_bytes(whole[:end])
        assert store.runs() == []
        with store.writing({"n": 1}):
            assert store.path.read_bytes() == b""


def test_an_incomplete_line_of_settings_does_not_bind_the_next_run(tmp_path):
    store = filled(tmp_path, n_records=0)
    store.path.write_bytes(store.path.read_bytes()[:-1])
    with store.writing({**IDENTITY, "n": 7}) as writer:
        writer.append_run("other", {})
    assert [run["settings"]["n"] for run in store.runs()] == [7]


def test_reading_a_store_does_not_remove_an_incomplete_line(tmp_path):
    store = filled(tmp_path)
    cut = store.path.read_bytes()[:-9]
    store.path.write_bytes(cut)
    store.records()
    store.export(tmp_path / "csv")
    assert store.path.read_bytes() == cut


# Damage


@pytest.mark.parametrize(
    "damage", [b"", b"{", b'{"trial": {"seed"', b"\xff\xfe\xfd", b"\x00" * 8, b"nonsense", b"[1]"]
)
def test_a_damaged_line_in_the_middle_is_an_error_that_names_the_line(tmp_path, damage):
    store = filled(tmp_path)
    lines = store.path.read_bytes().split(b"\n")
    lines[2] = damage
    store.path.write_bytes(b"\n".join(lines))
    with pytest.raises(StoreError, match="is damaged: line 3 of 4 is not a JSON"):
        store.records()
    with pytest.raises(StoreError, match="line 3 of 4"), store.writing(IDENTITY):
        pass
    assert store.path.read_bytes() == b"\n".join(lines)


@pytest.mark.parametrize(
    "line",
    [
        {},
        {"trial": 1},
        {"trial": {"setup": 1}},
        {"trial": {**record(), "seed": "0"}},
        {"trial": {**record(), "loss": "low"}},
        {"trial": {name: value for name, value in record().items() if name != "loss"}},
        {"trial": fold()},
        {"run": {}},
        {"run": {"settings": 1}},
    ],
)
def test_a_line_that_is_no_trial_of_the_experiment_and_no_run_is_damaged_too(tmp_path, line):
    store = filled(tmp_path)
    store.path.write_bytes(store.path.read_bytes() + json.dumps(line).encode() + b"\n")
    with pytest.raises(StoreError, match="is damaged: line 5 of 5 is neither a trial of the simulations nor"):
        store.records()


@pytest.mark.parametrize("text", ["setup,seed\nlatent_linear,0\n", "setup\n1,2,3\n", "\xff\n1\n"])
def test_a_csv_without_the_fields_of_a_trial_is_an_error(tmp_path, text):
    store = Store(tmp_path, "simulations")
    store.csv_path.write_bytes(text.encode("latin-1"))
    with pytest.raises(StoreError, match=r"simulations\.csv' (is damaged: line 2 is|cannot be read)"):
        store.records()


def test_an_export_cannot_be_appended_to(tmp_path):
    filled(tmp_path / "store").export(tmp_path / "csv")
    exported = Store(tmp_path / "csv", "simulations")
    with pytest.raises(StoreError, match=r"simulations\.csv' is an export.*\nHint: name another folder"):
        append(exported, record(9))
    assert exported.records() == filled(tmp_path / "again").records()


def test_the_hint_for_a_damaged_line_works(tmp_path):
    store = filled(tmp_path)
    lines = store.path.read_bytes().split(b"\n")
    del lines[2]
    store.path.write_bytes(b"\n".join(lines))
    assert store.records() == [record(0), record(2)]


# Disks that cannot be written


def test_a_file_in_place_of_the_folder_raises(tmp_path):
    blocked = tmp_path / "results"
    blocked.write_text("not a folder")
    for folder in (blocked, blocked / "deeper"):
        store = Store(folder, "simulations")
        assert store.records() == []
        with (
            pytest.raises(StoreError, match=r"cannot be written: .+\nHint: name a writable folder"),
            store.writing(IDENTITY),
        ):
            pass
    assert blocked.read_text() == "not a folder"


def test_a_folder_in_place_of_a_csv_file_raises_and_leaves_no_temporary_file(tmp_path):
    (tmp_path / "csv" / "simulations.csv").mkdir(parents=True)
    with pytest.raises(
        NotWritableError, match=r"Cannot write .*simulations.csv': it is a folder.\nHint: name a file in it"
    ):
        filled(tmp_path).export(tmp_path / "csv")
    assert [path.name for path in (tmp_path / "csv").iterdir()] == ["simulations.csv"]


def _full_at_once(descriptor: int, data: bytes) -> int:  # noqa: ARG001
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _full_after(n_bytes: int) -> Any:
    real = os.write
    return lambda descriptor, data: real(descriptor, data[:n_bytes])


@pytest.mark.parametrize("write", [_full_at_once, _full_after(1), _full_after(40)])
def test_a_full_disk_raises_and_does_not_change_the_file(tmp_path, monkeypatch, write):
    store = filled(tmp_path)
    before = store.path.read_bytes()
    with store.writing(IDENTITY) as writer:
        monkeypatch.setattr(os, "write", write)
        with pytest.raises(
            StoreError, match=r"cannot be written: .+\nHint: free some space and run the same"
        ):
            writer.append(record(7))
        assert store.path.read_bytes() == before
        monkeypatch.undo()
        writer.append(record(3))
    assert store.records() == [record(seed) for seed in range(4)]


def test_a_record_that_the_disk_does_not_confirm_is_taken_back(tmp_path, monkeypatch):
    store = filled(tmp_path)
    before = store.path.read_bytes()

    def fails(descriptor: int) -> None:  # noqa: ARG001
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(StoreError, match="cannot be written: Input/output error"):
        append(store, record(7))
    assert store.path.read_bytes() == before


@pytest.mark.skipif(sys.platform != "linux", reason="limits of file sizes are set as on Linux")
def test_a_file_that_reaches_a_size_limit_keeps_all_complete_records(tmp_path, limited_file_size):
    store = Store(tmp_path, "simulations")
    with (
        limited_file_size() as limit,
        pytest.raises(StoreError, match=r"The store .*\nHint: free some space"),
    ):
        append(store, *map(record, range(100)))
    size = store.path.stat().st_size
    assert limit - 300 < size <= limit
    assert store.path.read_bytes().endswith(b"}\n")
    n_whole = len(store.records())
    assert [one["seed"] for one in store.records()] == list(range(n_whole))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_line_that_cannot_even_be_taken_back_is_the_same_error():
    descriptor = os.open("/dev/full", os.O_RDWR)  # cannot be truncated
    try:
        with pytest.raises(StoreError, match="'/dev/full' cannot be written: No space left on device"):
            Writer(Path("/dev/full"), descriptor, {}).append(record())
    finally:
        os.close(descriptor)


def test_a_text_that_cannot_be_written_completely_leaves_the_old_one(tmp_path, monkeypatch):
    path = tmp_path / "table.csv"
    write_text(path, "old")

    def fails(descriptor: int) -> None:  # noqa: ARG001
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(NotWritableError, match=r"Cannot write .*: No space left on device"):
        write_text(path, "new and longer")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


# Two writers, other settings


def test_a_second_writer_at_the_same_time_is_refused_and_the_first_goes_on(tmp_path):
    store = filled(tmp_path)
    with store.writing(IDENTITY) as writer:
        with (
            pytest.raises(StoreError, match=r"is being written by another run\.\nHint: wait for it"),
            Store(tmp_path, "simulations").writing(IDENTITY),
        ):
            pass
        writer.append(record(3))
    append(store, record(4))
    assert len(store.records()) == 5


def test_a_store_that_another_process_writes_is_refused(tmp_path):
    store = filled(tmp_path)
    locked = (
        "import fcntl, sys; f = open(sys.argv[1]); fcntl.flock(f, fcntl.LOCK_EX); print(flush=True); input()"
    )
    command = [sys.executable, "-c", locked, str(store.path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with pytest.raises(StoreError, match="is being written by another run"), store.writing(IDENTITY):
            pass
        other.communicate("\n")
    append(store, record(3))


def test_the_other_experiment_of_a_folder_can_be_written_at_the_same_time(tmp_path):
    with Store(tmp_path, "simulations").writing(IDENTITY), Store(tmp_path, "empirical").writing(IDENTITY):
        pass


def test_the_lock_is_released_when_a_run_fails(tmp_path):
    store = filled(tmp_path)
    with pytest.raises(ZeroDivisionError, match="division"), store.writing(IDENTITY):
        _ = 1 / 0
    append(store, record(3))
    assert len(store.records()) == 4


@pytest.mark.parametrize(
    ("other", "names"),
    [
        ({**IDENTITY, "n": 100}, "n"),
        ({**IDENTITY, "n": 100, "p": 3}, "n, p"),
        ({**IDENTITY, "xgboost": {"max_depth": 6}}, "xgboost"),
        ({**IDENTITY, "new": 1}, "new"),
        ({"n": 500, "p": 20}, "xgboost"),
    ],
)
def test_different_settings_are_refused_and_named(tmp_path, other, names):
    store = filled(tmp_path)
    before = store.path.read_bytes()
    expected = re.escape(f"holds results with different settings ({names}).\nHint: name another folder")
    with pytest.raises(StoreError, match=expected), store.writing(other):
        pass
    assert store.path.read_bytes() == before


def test_store_errors_are_ours_and_the_system_s():
    assert issubclass(StoreError, SufrepError)
    assert issubclass(StoreError, OSError)


# CSV


names = st.sampled_from(["latent_linear", "piecewise_linear"])
numbers = st.one_of(st.none(), st.integers(-9, 10**12), st.floats(allow_nan=False))
some_records = st.lists(
    st.builds(
        record,
        setup=names,
        seed=st.integers(0, 100),
        k_index_bug=st.booleans(),
        loss=st.floats(allow_nan=False),
        k=st.one_of(st.none(), st.integers(1, 15)),
        alpha=numbers,
        seconds=st.floats(0, 1e6).map(lambda seconds: round(seconds, 3)),
    ),
    min_size=1,
    max_size=8,
    unique_by=trial_key,
)


@given(some_records)
def test_an_exported_csv_reads_as_the_same_records(tmp_path_factory, records):
    folder = tmp_path_factory.mktemp("store")
    store = Store(folder, "simulations")
    append(store, *records)
    path = store.export(folder / "csv")
    exported = Store(folder / "csv", "simulations")
    assert path == exported.csv_path == folder / "csv" / "simulations.csv"
    assert dumped(exported.records()) == dumped(store.records())


def dumped(records: list[dict[str, Any]]) -> list[str]:
    """As JSON, which distinguishes 1 from 1.0 and True."""
    return [json.dumps(one) for one in records]


def test_a_csv_is_read_only_where_there_is_no_other_file(tmp_path):
    store = filled(tmp_path)
    store.export(tmp_path)
    append(store, record(9))
    assert len(store.records()) == 4
    store.path.unlink()
    assert store.records() == [record(0), record(1), record(2)]


def test_a_csv_holds_one_header_and_one_line_a_record(tmp_path):
    path = filled(tmp_path).export(tmp_path / "csv")
    header, *rows = path.read_text().splitlines()
    assert header.split(",") == list(record())
    assert rows[0] == "latent_linear,2,5,xgboost,means,0,False,1.2345678901234567,5,5,,0.25"
    assert len(rows) == 3


def test_exporting_again_replaces_the_file_whole(tmp_path):
    filled(tmp_path / "long").export(tmp_path / "csv")
    filled(tmp_path / "short", n_records=1).export(tmp_path / "csv")
    assert Store(tmp_path / "csv", "simulations").records() == [record(0)]
    assert len(list((tmp_path / "csv").iterdir())) == 1


def test_all_that_is_there_is_exported_and_what_is_not_is_left_out(tmp_path):
    filled(tmp_path)
    assert [path.name for path in export_all(tmp_path, tmp_path / "a")] == ["simulations.csv"]
    append(Store(tmp_path, "empirical"), fold(0), fold(1))
    exported = export_all(tmp_path, tmp_path / "b")
    assert [path.name for path in exported] == ["simulations.csv", "empirical.csv"]
    assert Store(tmp_path / "b", "empirical").records() == [fold(0), fold(1)]


def test_failures_of_a_benchmark_survive_the_csv(tmp_path):
    records = [benchmarked(0), benchmarked(1, 'ValueError: "3, 4" is\u2028no number'), benchmarked(2)]
    append(Store(tmp_path, "benchmark"), *records)
    assert [path.name for path in export_all(tmp_path, tmp_path / "csv")] == ["benchmark.csv"]
    exported = Store(tmp_path / "csv", "benchmark").records()
    assert dumped(exported) == dumped(Store(tmp_path, "benchmark").records())
    assert exported == records


@pytest.mark.parametrize(("experiment", "n_fields"), [("simulations", 12), ("empirical", 11)])
def test_the_committed_results_can_be_read(experiment, n_fields):
    records = Store(Path(__file__).parents[2] / "results" / "paper", experiment).records()
    assert len({trial_key(one) for one in records}) == len(records) > 100
    assert {len(one) for one in records} == {n_fields}
    assert all(one["loss"] > 0 for one in records)


def test_results_that_were_stored_as_mse_are_losses(tmp_path):
    earlier = {"mse" if name == "loss" else name: value for name, value in benchmarked(0).items()}
    store = Store(tmp_path, "benchmark")
    append(store, earlier, benchmarked(1))
    assert store.records() == [benchmarked(0), benchmarked(1)]
    path = store.export(tmp_path / "csv")
    assert Store(tmp_path / "csv", "benchmark").records() == store.records()
    path.write_text(path.read_text().replace("loss", "mse", 1))
    assert Store(tmp_path / "csv", "benchmark").records() == store.records()


def test_a_csv_of_a_csv_is_the_same(tmp_path):
    first = filled(tmp_path).export(tmp_path / "a")
    second = Store(tmp_path / "a", "simulations").export(tmp_path / "b")
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize("only_a_run", [True, False])
def test_a_store_without_results_has_nothing_to_export(tmp_path, only_a_run):
    if only_a_run:
        filled(tmp_path, n_records=0)
    with pytest.raises(StoreError, match=r"holds no results\.\nHint: run `sufrep paper"):
        export_all(tmp_path, tmp_path / "csv")
    assert not (tmp_path / "csv").exists()
