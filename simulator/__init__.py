"""Bad days for programs of merchants: the real service, with faults around it.

`make simulate` starts it, and `python -m simulator exam` judges a program. Nothing of the service
imports this package.
"""
