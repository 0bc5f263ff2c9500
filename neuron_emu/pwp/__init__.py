"""Activation tables: profiles, their generator and their evaluators. Knows no instruction."""
