"""Verifies citations in any text against a collection of regulations."""
