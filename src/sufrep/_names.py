"""The names by which users choose encoders, models, scores, setups and data sets.

Nothing is imported here, so the command line can refuse an unknown name at once
(test_help_and_usage_errors_load_only_the_command_line). The registry of encoders is built from `ENCODERS`.
The other registries stand next to what they list, and tests/test_names.py compares their names with these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

if TYPE_CHECKING:
    from typing import Any

# The largest seed. scikit-learn accepts twice as much, and starts and repeats count on from a seed.
MAX_SEED = 2**31 - 1

# Module in sufrep.encoders, class, and the parameters that the name of the method implies.
ENCODERS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "one_hot": ("_classical", "ContrastEncoder", {"coding": "one_hot"}),
    "deviation": ("_classical", "ContrastEncoder", {"coding": "deviation"}),
    "difference": ("_classical", "ContrastEncoder", {"coding": "difference"}),
    "helmert": ("_classical", "ContrastEncoder", {"coding": "helmert"}),
    "repeated_effect": ("_classical", "ContrastEncoder", {"coding": "repeated_effect"}),
    "simple_effect": ("_classical", "ContrastEncoder", {"coding": "simple_effect"}),
    "permutation": ("_classical", "PermutationEncoder", {}),
    "multi_permutation": ("_classical", "PermutationEncoder", {"n_permutations": 4}),
    "fisher": ("_classical", "FisherEncoder", {}),
    "random_intercept": ("_level_models", "RandomInterceptEncoder", {}),
    "crossed_effects": ("_crossed_effects", "CrossedEffectsEncoder", {}),
    "mixed_model": ("_level_models", "MixedModelEncoder", {}),
    "local_effect": ("_level_models", "LocalEffectEncoder", {}),
    "target_mean": ("_means", "MeansEncoder", {"covariates": [], "use_target": True}),
    "means": ("_means", "MeansEncoder", {}),
    "low_rank": ("_low_rank", "LowRankEncoder", {}),
    "sparse_low_rank": ("_low_rank", "SparseLowRankEncoder", {}),
    "mnl": ("_mnl", "MNLEncoder", {}),
    "latent_state": ("_latent_state", "LatentStateEncoder", {}),
    "shares": ("_shares", "SharesEncoder", {}),
    "cells": ("_cells", "CellsEncoder", {}),
    "sufficient": ("_sufficient", "SufficientEncoder", {}),
}
# Those that cannot be fitted without a target; others may use one if a parameter says so.
TARGET_METHODS = (
    "fisher",
    "random_intercept",
    "crossed_effects",
    "mixed_model",
    "local_effect",
    "target_mean",
    "cells",
    "sufficient",
)

# Those that describe levels by covariates and need no target: by default all numeric columns are covariates,
# also a target that nobody named.
DESCRIBING_METHODS = ("means", "low_rank", "sparse_low_rank", "mnl", "latent_state", "shares")

# What a comparison has next to them: leaving the column out, and scikit-learn's encoder.
DROP, TARGET_ENCODER, ONE_HOT = "drop", "target_encoder", "one_hot"
COMPARED_METHODS = (*ENCODERS, TARGET_ENCODER, DROP)
# What each method makes of a level, in one line, and what the components of `SufficientEncoder` do that are
# no methods themselves. The report and docs/how-to/compare.md show these lines.
METHOD_TEXTS = {
    "one_hot": "One column for each level but one: 1 in the rows of the level, 0 elsewhere.",
    "deviation": "One column for each level but one, which compares the level with the mean of all levels.",
    "difference": "One column for each level but one, which compares the level with those before it.",
    "helmert": "One column for each level but one, which compares the level with those after it.",
    "repeated_effect": "One column for each level but one, which compares the level with the next one.",
    "simple_effect": "One column for each level but one, which compares the level with the last one.",
    "permutation": "A number for each level, in random order.",
    "multi_permutation": "Four numbers for each level, in four random orders.",
    "fisher": "The rank of its mean target, cross-fitted.",
    "random_intercept": "What the covariates leave unexplained of its mean target, shrunk, cross-fitted.",
    "crossed_effects": "Its effect on the target net of all other groups, with crossings, cross-fitted.",
    "mixed_model": "The prediction of a regression of its own, shrunk towards a common one, cross-fitted.",
    "local_effect": "The prediction of a smooth function of its own, learnt from nearby rows, cross-fitted.",
    "target_mean": "Its mean target, shrunk, cross-fitted.",
    "means": "The means of the covariates over its rows.",
    "low_rank": "The few directions in which the means of the levels differ most.",
    "sparse_low_rank": "Like low_rank, with directions that combine few covariates each.",
    "mnl": "The coefficients of a multinomial logit that predicts it from the covariates.",
    "latent_state": "The probabilities of its hidden states, estimated from the covariates.",
    "shares": "Its shares over the other groups and over bins of the covariates, in a few numbers.",
    "cells": "Its size and mean target, and those of combinations with other groups, cross-fitted.",
    "sufficient": "A description, a prediction, both or neither: whichever predicts best on rows held out.",
    "target_encoder": "Its mean target, shrunk, cross-fitted: scikit-learn's TargetEncoder.",
    "drop": "Nothing: the column is left out.",
    "states": "The probabilities of the hidden states of the level and of the row.",
    "effects": "Its effect on the target net of all other groups, with crossings, cross-fitted.",
    "indicators": "A column of 0 and 1 for each level of groups with few levels.",
}
# What a comparison runs unless methods are named, the fast ones first; one_hot only where levels are few.
QUICK_METHODS = (DROP, "target_mean", "means", ONE_HOT, "low_rank")
USUAL_METHODS = (*QUICK_METHODS, "mixed_model", "latent_state", "sufficient")
METHOD_LISTS = ("usual", "quick", "all")
COMPARISON_MODELS = ("boosting", "xgboost", "forest", "linear")

# What a treatment effect is averaged over: all rows, treated rows, or rows weighted by overlap.
ESTIMANDS = ("ATE", "ATT", "ATO")
# What is known about a group: its covariates, its share of treated rows, and both multiplied.
GROUP_STATISTICS = ("X", "W", "WX")
# What counts the same in an effect.
EFFECT_WEIGHTS = ("row", "group")

Setup: TypeAlias = Literal["global_linear", "latent_linear", "piecewise_linear"]
SETUPS: tuple[Setup, ...] = get_args(Setup)
DATASET_NAMES = (
    "pakistan",
    "ames",
    "ames_full",
    "king_county",
    "orange_juice",
    "county_murders",
    "insteval",
    "nycflights",
    "nycflights_delayed",
    "open_payments",
    "midwest_survey",
    "wages",
    "insteval_sigrist",
    "videogame_sales",
    "movielens",
    "open_payments_text",
    "midwest_survey_text",
)

# Everyday names of some scorers of scikit-learn; others, such as accuracy, have theirs already.
EVERYDAY_SCORERS = {
    "rmse": "neg_root_mean_squared_error",
    "mae": "neg_mean_absolute_error",
    "mse": "neg_mean_squared_error",
    "auc": "roc_auc",
    "log_loss": "neg_log_loss",
}
# The scorers of scikit-learn, for the command line; in Python, those of the installed version count.
SCORERS = (
    "accuracy",
    "adjusted_mutual_info_score",
    "adjusted_rand_score",
    "average_precision",
    "balanced_accuracy",
    "completeness_score",
    "d2_absolute_error_score",
    "d2_brier_score",
    "d2_log_loss_score",
    "explained_variance",
    "f1",
    "f1_macro",
    "f1_micro",
    "f1_samples",
    "f1_weighted",
    "fowlkes_mallows_score",
    "homogeneity_score",
    "jaccard",
    "jaccard_macro",
    "jaccard_micro",
    "jaccard_samples",
    "jaccard_weighted",
    "matthews_corrcoef",
    "mutual_info_score",
    "neg_brier_score",
    "neg_log_loss",
    "neg_max_error",
    "neg_mean_absolute_error",
    "neg_mean_absolute_percentage_error",
    "neg_mean_gamma_deviance",
    "neg_mean_poisson_deviance",
    "neg_mean_squared_error",
    "neg_mean_squared_log_error",
    "neg_median_absolute_error",
    "neg_negative_likelihood_ratio",
    "neg_root_mean_squared_error",
    "neg_root_mean_squared_log_error",
    "normalized_mutual_info_score",
    "positive_likelihood_ratio",
    "precision",
    "precision_macro",
    "precision_micro",
    "precision_samples",
    "precision_weighted",
    "r2",
    "rand_score",
    "recall",
    "recall_macro",
    "recall_micro",
    "recall_samples",
    "recall_weighted",
    "roc_auc",
    "roc_auc_ovo",
    "roc_auc_ovo_weighted",
    "roc_auc_ovr",
    "roc_auc_ovr_weighted",
    "top_k_accuracy",
    "v_measure_score",
)
