"""Engines that run computations."""
