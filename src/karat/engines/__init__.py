"""The engines that karat computes with."""
