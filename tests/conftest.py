"""Shared by every test: real servers come from `python -m config.embedded exec` (`make test`)."""
