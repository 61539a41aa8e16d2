"""Several rankings into one."""

from karat.fusion.ranks import reciprocal_rank
from karat.fusion.scores import NORMALISATIONS, weighted_sum
from karat.fusion.tuning import Fold, Tuned, tuned

__all__ = ["NORMALISATIONS", "Fold", "Tuned", "reciprocal_rank", "tuned", "weighted_sum"]
