"""Reproducible filesystem and kernel experiments in virtual machines."""

__version__ = "0.1.0"
