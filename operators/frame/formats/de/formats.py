"""The formats of English: figures and times look as in the API, whatever the language.

Scripts and drawings read numbers of pages, too.
"""

from operators.frame.formats.en.formats import DATE_FORMAT, DATETIME_FORMAT, TIME_FORMAT

__all__ = ["DATETIME_FORMAT", "DATE_FORMAT", "TIME_FORMAT"]

DATE_INPUT_FORMATS = ["%Y-%m-%d"]
TIME_INPUT_FORMATS = ["%H:%M:%S", "%H:%M"]
DATETIME_INPUT_FORMATS = ["%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M"]
DECIMAL_SEPARATOR = "."
THOUSAND_SEPARATOR = ","
NUMBER_GROUPING = 3
