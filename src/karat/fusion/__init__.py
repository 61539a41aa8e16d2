"""Fusion: several rankings into one."""

from karat.fusion._ranks import reciprocal_rank
from karat.fusion._tuning import Fold, Tuned, tuned
from karat.fusion.scores import NORMALISATIONS, weighted_sum

__all__ = ["NORMALISATIONS", "Fold", "Tuned", "reciprocal_rank", "tuned", "weighted_sum"]
