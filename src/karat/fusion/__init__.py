"""Several rankings into one."""

from karat.fusion.ranks import reciprocal_rank

__all__ = ["reciprocal_rank"]
