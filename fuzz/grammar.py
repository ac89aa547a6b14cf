"""Random command lines: words that are usual, odd and wrong, put together as the commands expect them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

# The values of an option, drawn when it is used.
Options = dict[str, Callable[[], list[str]]]

_LONG = "a" * 260 + ".csv"
# Tables, encoders and outputs are files that `fuzz.commands.write_inputs` writes, or that do not exist.
_TABLES = """
table.csv table.csv table.csv table.tsv table.csv.gz table.parquet table.feather
sqlite:table.sqlite sqlite:table.sqlite#sales duckdb:table.duckdb#sales duckdb:table.duckdb
""".split()
_ODD_TABLES = [
    *"""
    empty.csv header.csv one_row.csv one_level.csv nulls.csv mostly_nulls.csv constant.csv large.csv
    infinite.csv emoji.csv controls.csv twice.csv ragged.csv quotes.csv latin.csv wide.csv classes.csv
    clash.csv random.csv text.parquet cut.csv.gz cut.parquet link.csv dangling.csv circle.csv folder
    nowhere.csv means.sufrep nowhere/table.csv sqlite:table.csv duckdb:table.sqlite#sales
    sqlite:table.sqlite#nothing - sqlite: duckdb:nowhere.db table.xlsx /dev/null table.sqlite old.html
    """.split(),
    *("name [1] *.csv", _LONG, ""),
]
# Tables of several files, which are not read into memory.
_SEVERAL_TABLES = [
    *([name] for name in "parts parts/*.parquet csvs csvs/*.csv".split()),
    *(["parts/a.parquet", "parts/b.parquet"], ["table.csv", "table.csv"], ["csvs/a.csv", "csvs/b.csv"]),
]
_ODD_SEVERAL_TABLES = [
    *(
        [name]
        for name in "mixed mixed/* nothing/*.parquet *.csv parts/c.parquet ** folder broken_store".split()
    ),
    *(["table.csv", "table.parquet"], ["parts", "csvs"], ["parts", "nowhere"], ["parts", "cut.parquet"]),
    *(["means.sufrep", "parts"], ["parts/a.parquet", "-"], ["sqlite:table.sqlite#sales", "table.csv"]),
    ["", ""],
]
_ENCODERS = "means.sufrep low_rank.sufrep one_hot.sufrep fisher.sufrep mixed_model.sufrep".split()
_ODD_ENCODERS = ["", *"cut.sufrep text.sufrep table.csv folder nowhere.sufrep /dev/null old.html".split()]
_NEW = "new.csv new.tsv new.csv.gz new.parquet new.feather - /dev/stdout".split()
_ODD_OUTPUTS = [
    *"""
    old.csv old.html old.sufrep notes.csv table.csv means.sufrep link.csv dangling.csv circle.csv folder
    new.csv new.html new.sufrep /dev/null folder/new.csv nowhere/new.csv new.xlsx new
    folder/../table.csv new.csv.gz empty.csv ./means.sufrep 😀.csv
    """.split(),
    *("\x1b[31m.csv", _LONG, ""),
]
_COLUMNS = "place place size rooms garden day price".split()
_ODD_COLUMNS = [
    "",
    "place ",
    "\x1b[31mred",
    *"nothing Place 😀 c1 place_mean_size --out = a,b place+size place,size".split(),
]
_METHODS = """
means low_rank one_hot sparse_low_rank permutation multi_permutation helmert deviation fisher random_intercept
""".split()
_COMPARED = [*_METHODS, "drop", "target_encoder"]
_SLOW_METHODS = "mnl latent_state crossed_effects mixed_model local_effect".split()
_ODD_METHODS = ["", "sufficient ", *"mean MEANS 😀 means,low_rank".split()]
_PARAMETERS = """
n_components=2 shrinkage=auto use_target=true leave_one_out=true standardize=false cv=2 n_components=0
n_components=-1 n_components=1e9 nothing=1 = cv cv=[] cv={} cv=((((( shrinkage=1 target_type=binary
unseen=error target_type=multiclass group=size covariates=[] n_permutations=3
categorical_covariates=share remainder=drop coding=nope cv=0 cv=99
""".split()
_NUMBERS = ["", *"2 3 10 0 -1 1.5 nan 1e9 x 99999999999999999999".split()]
_NONSENSE = """
encode apply compare describe demo paper --help --version -h -- - --jobs 0 --group place --seed -1 table.csv
means.sufrep 😀 --out new.csv \x01
""".split()


def command_line(rng: np.random.Generator) -> list[str]:
    """The words after ``sufrep``."""
    makers = [_encode, _encode, _encode, _apply, _apply, _compare, _describe, _paper, _nonsense]
    arguments = makers[rng.integers(len(makers))](rng)
    while rng.random() < 0.15:
        arguments = _mutated(arguments, rng)
    return arguments


def _pick(rng: np.random.Generator, usual: list[str], odd: list[str], share: float = 0.2) -> str:
    return str(rng.choice(odd if rng.random() < share else usual))


def _several(rng: np.random.Generator, pick: Callable[[], str]) -> list[str]:
    return [pick() for _ in range(rng.choice([1, 1, 1, 2, 3]))]


def _table(rng: np.random.Generator) -> str:
    return _pick(rng, _TABLES, _ODD_TABLES, 0.4)


def _tables(rng: np.random.Generator) -> list[str]:
    """What commands take that read several files as one table."""
    if rng.random() < 0.75:
        return [_table(rng)]
    several = _ODD_SEVERAL_TABLES if rng.random() < 0.3 else _SEVERAL_TABLES
    return several[rng.integers(len(several))]


def _column(rng: np.random.Generator) -> str:
    return _pick(rng, _COLUMNS, _ODD_COLUMNS, 0.06)


def _group(rng: np.random.Generator) -> str:
    return _pick(rng, ["place"], [*_COLUMNS, *_ODD_COLUMNS], 0.1)


def _options(
    rng: np.random.Generator, share: float, options: dict[str, Callable[[], list[str]]]
) -> list[str]:
    """Each option with some probability, in any order."""
    names = [name for name in options if rng.random() < share]
    rng.shuffle(names)
    return [word for name in names for word in (name, *options[name]())]


def _shared(rng: np.random.Generator) -> Options:
    return {
        "--covariates": lambda: _several(rng, lambda: _column(rng)),
        "--drop": lambda: _several(rng, lambda: _column(rng)),
        "--text": lambda: _several(rng, lambda: _column(rng)),
        "--force": list,
    }


def _lazy(rng: np.random.Generator) -> Options:
    """Options for tables that are not read into memory."""
    return {"--lazy": list, "--partition-by": lambda: _several(rng, lambda: _column(rng))}


def _encode(rng: np.random.Generator) -> list[str]:
    method = _pick(rng, _METHODS if rng.random() < 0.9 else _SLOW_METHODS, _ODD_METHODS, 0.05)
    words = ["encode", *_tables(rng), "--group", *_several(rng, lambda: _group(rng)), "--method", method]
    if rng.random() < 0.8:
        words += ["--target", _pick(rng, ["price"], [*_COLUMNS, *_ODD_COLUMNS], 0.1)]
    if rng.random() < 0.95:
        words += ["--out", _pick(rng, _NEW, _ODD_OUTPUTS)]
    if rng.random() < 0.4:
        words += ["--save", _pick(rng, ["new.sufrep"], [*_NEW, *_ODD_OUTPUTS])]
    return words + _options(
        rng,
        0.07,
        {
            **_shared(rng),
            **_lazy(rng),
            "--fold": lambda: [_column(rng)],
            "--sample-rows": lambda: [_pick(rng, ["10", "1000"], _NUMBERS)],
            "--sample-by": lambda: [_column(rng)],
            "--param": lambda: _several(rng, lambda: str(rng.choice(_PARAMETERS))),
            "--seed": lambda: [str(rng.choice(_NUMBERS))],
            "--unseen": lambda: [_pick(rng, ["prior", "error"], ["", "x"])],
            "--missing": lambda: [_pick(rng, ["level", "prior", "error"], ["", "x"])],
            "--min-frequency": lambda: [_pick(rng, ["2", "0.2", "100"], _NUMBERS)],
            "--no-target": list,
        },
    )


def _apply(rng: np.random.Generator) -> list[str]:
    words = ["apply", _pick(rng, _ENCODERS, _ODD_ENCODERS), *_tables(rng)]
    if rng.random() < 0.95:
        words += ["--out", _pick(rng, _NEW, _ODD_OUTPUTS)]
    shared = {**_shared(rng), **_lazy(rng)}
    del shared["--covariates"]
    return words + _options(rng, 0.07, shared)


def _compare(rng: np.random.Generator) -> list[str]:
    """Of few cheap methods, so that many comparisons are made in a minute."""
    words = ["compare", _table(rng), "--target", _pick(rng, ["price"], [*_COLUMNS, *_ODD_COLUMNS])]
    words += [
        "--group",
        *_several(rng, lambda: _group(rng)),
        "--jobs",
        "1",
        "--folds",
        "2",
        "--models",
        "linear",
    ]
    words += ["--methods", *_several(rng, lambda: _pick(rng, _COMPARED, _ODD_METHODS, 0.03))]
    return words + _options(
        rng,
        0.15,
        {
            **_shared(rng),
            "--html": lambda: [_pick(rng, ["new.html"], [*_NEW, *_ODD_OUTPUTS])],
            "--save": lambda: [_pick(rng, ["new.sufrep"], [*_NEW, *_ODD_OUTPUTS])],
            "--repeats": lambda: [_pick(rng, ["2"], ["0", "-1", "x", ""])],
            "--new-levels": list,
            "--task": lambda: [_pick(rng, ["auto", "regression", "binary", "multiclass"], ["", "x"])],
            "--scoring": lambda: [_pick(rng, ["r2", "accuracy", "roc_auc", "neg_log_loss"], ["", "x"])],
            "--sample": lambda: [_pick(rng, ["10", "30"], ["0", "x", "-1", "99999999999"])],
            "--seed": lambda: [str(rng.choice(_NUMBERS))],
            "--json": list,
        },
    )


def _describe(rng: np.random.Generator) -> list[str]:
    return [
        "describe",
        _pick(rng, _ENCODERS, _ODD_ENCODERS, 0.4),
        *(["--json"] if rng.random() < 0.5 else []),
    ]


def _paper(rng: np.random.Generator) -> list[str]:
    runs = ["simulations", "empirical", "benchmark"]
    command = _pick(rng, ["tables", "figures", "export"], [*runs, "nothing", ""], 0.5)
    stores = ["broken_store", "empty_store", "new_store"]
    store = _pick(rng, stores, ["table.csv", "folder", "nowhere/store", ""])
    words = ["paper", command, "--store", store]
    if command in runs:
        words += ["--methods", _pick(rng, ["drop", "means"], _ODD_METHODS), "--jobs", "1", "--trees", "4"]
        # Never the real runs: each lacks what it needs.
        words += ["--seeds", str(rng.choice(["0", "-1", "x", ""]))]
    return words + _options(
        rng,
        0.4,
        {
            "--out": lambda: [_pick(rng, ["new.txt", "new_folder"], [*_NEW, *_ODD_OUTPUTS])],
            "--format": lambda: [_pick(rng, ["text", "markdown", "latex"], ["", "x"])],
        },
    )


def _nonsense(rng: np.random.Generator) -> list[str]:
    picked = [str(word) for word in rng.choice(_NONSENSE, rng.integers(0, 5))]
    # The demonstration takes minutes; only what is refused is tried.
    return [*picked, "--seed", "x"] if "demo" in picked or picked[:1] == ["paper"] else picked


def _mutated(arguments: list[str], rng: np.random.Generator) -> list[str]:
    """One word lost, repeated, exchanged, cut or added."""
    words = list(arguments)
    if len(words) < 2:
        return words
    place, other = (int(p) for p in rng.integers(1, len(words), 2))
    kind = rng.integers(5)
    if kind == 0:
        del words[place]
    elif kind == 1:
        words.insert(place, words[place])
    elif kind == 2:
        words[place], words[other] = words[other], words[place]
    elif kind == 3:
        words[place] = words[place][: len(words[place]) // 2]
    else:
        words.insert(place, str(rng.choice(["--nothing", "--help", "--", "-x", "--json", "", "table.csv"])))
    # Without these, a comparison takes minutes and a run of the paper hours.
    needed = {"compare": ("--jobs", "1", "--methods", "--models", "linear", "--folds"), "paper": ("--seeds",)}
    had = [word for word in needed.get(words[0], ()) if word in arguments]
    return words if all(word in words for word in had) else list(arguments)
