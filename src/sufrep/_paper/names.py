"""The names of the experiments' methods, models and data sets, and which of them each experiment compares.

As in `sufrep._names`, nothing heavy is imported: the command line checks names and shows defaults without it.
tests/paper/test_names.py compares them with what is run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sufrep._names import DROP, ENCODERS, TARGET_ENCODER

if TYPE_CHECKING:
    from typing import Any

# Encoders of the registry with other parameters.
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "shrunken_means": ("means", {"shrinkage": "auto"}),
    "latent_state_target": ("latent_state", {"use_target": True, "output": "posterior"}),
}
PEER_ENCODINGS = (TARGET_ENCODER, "james_stein", "catboost_encoder", "glmm")
# Our encoders, those of peers, and the covariates alone.
TRIAL_METHODS = (*ENCODERS, *VARIANTS, *PEER_ENCODINGS, DROP)
# What only simulations know: the probabilities of the hidden states, and the conditional mean.
REFERENCES = ("oracle", "bayes")
SIMULATED_METHODS = (*TRIAL_METHODS, *REFERENCES)

# Methods whose number of components is chosen by cross-validation, and how they are called with the authors'
# bug, which used the index of the chosen number instead.
COMPONENT_METHODS = ("low_rank", "sparse_low_rank")
BUG_SUFFIX = " (k index)"

# The method of models that need no encoding.
NATIVE = "native"
PEER_MODELS = ("lightgbm_native", "catboost_native", "gpboost")
NATIVE_MODELS = ("latent_state_regressor", "xgboost_native", *PEER_MODELS)
PAPER_MODELS = ("forest", "sklearn_forest", "xgboost", "xgboost_tuned", *NATIVE_MODELS)
# Those that predict classes too; for gpboost, two of them.
CLASS_MODELS = ("xgboost", "xgboost_native", *PEER_MODELS)
# What is made for numbers and two classes only.
AT_MOST_BINARY = ("james_stein", "catboost_encoder", "glmm", "gpboost")

# What figures can show.
DRAWN_METHODS = (*SIMULATED_METHODS, *(method + BUG_SUFFIX for method in COMPONENT_METHODS), NATIVE)

# The methods of the paper's figures and appendix, and its data.
PAPER_METHODS = (
    "one_hot",
    "deviation",
    "difference",
    "helmert",
    "repeated_effect",
    "permutation",
    "multi_permutation",
    "fisher",
    "means",
    "low_rank",
    "sparse_low_rank",
    "mnl",
)
PAPER_DATASETS = ("pakistan", "ames", "ames_full", "king_county")

# The comparison with peers: our encoder, and what others have published. Small data sets first.
BENCHMARK_DATASETS = (
    "pakistan",
    "ames",
    "king_county",
    "ames_full",
    "orange_juice",
    "county_murders",
    "insteval",
    "nycflights",
    "midwest_survey",
    "open_payments",
    "nycflights_delayed",
    "wages",
    "insteval_sigrist",
    "midwest_survey_text",
    "videogame_sales",
    "open_payments_text",
    "movielens",
)
BENCHMARK_METHODS = (
    "sufficient",
    "one_hot",
    "target_encoder",
    "james_stein",
    "catboost_encoder",
    "glmm",
    "drop",
)
BENCHMARK_MODELS = ("xgboost", "xgboost_native", *PEER_MODELS)

# Treatment effects with a group as confounder: the samples of `sufrep._simulate_effects`, what is compared on
# them, and the models of outcome and treatment.
EFFECT_ARMS = (
    "main",
    "silent",
    "small_5",
    "small_10",
    "small_20",
    "drawn_levels",
    "uneven",
    "slope",
    "violation",
    "experiment",
)
EFFECT_REFERENCE = "true_psi"
EFFECT_OURS = "means_w"
EFFECT_METHODS = (
    EFFECT_REFERENCE,
    "nothing",
    "one_hot",
    "target_encoder",
    "fixed_effects",
    "means",
    EFFECT_OURS,
    "w",
    "low_rank",
    "low_rank_w",
    "latent_state",
    "latent_state_w",
    "loo_w",
    "means_wx",
    "row_folds",
)
EFFECT_MODELS = ("linear", "penalised", "boosting")
