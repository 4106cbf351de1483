"""Imports of codes and catalogues, from files that are checked first."""
