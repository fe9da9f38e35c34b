"""Plots as SVG text to be put inside an HTML page: a module for each kind, and what they share in `page`."""
