"""The messages about workbooks: problems and doubts."""

from django.utils.translation import gettext_noop

# What is wrong with a workbook. Imports store it in English, and pages translate it.
UNREADABLE = gettext_noop("The workbook cannot be read. Save it again as XLSX, or as CSV.")
UNREADABLE_BELOW = gettext_noop("Below line %(line)s: %(problem)s")
TOO_LARGE = gettext_noop("The workbook is larger than %(size)s MB. Save it as CSV.")
TOO_LARGE_UNPACKED = gettext_noop("The workbook is too large when it is unpacked. Save it as CSV.")
NO_SHEET = gettext_noop("The workbook has no sheet that can be seen. Show the sheet to be read.")
LATE_LINES = gettext_noop("The file has more than %(most)s lines. Split it into smaller ones.")
LATE_ROWS = gettext_noop("The sheet has more than %(most)s rows. Split it into smaller ones.")
MANY_ODD_VALUES = gettext_noop(
    "More than %(most)s values have unusual characters, words or numbers. Split the file into"
    " smaller ones."
)
ERROR_CELL = gettext_noop("column %(column)s has an error of the spreadsheet")
DATE_CELL = gettext_noop("column %(column)s has a date: format it as text")
PERCENT_CELL = gettext_noop("column %(column)s has a percentage: format it as a number")
NO_RESULT = gettext_noop(
    "column %(column)s has a formula without a value: open the file in a spreadsheet and save it,"
    " or put the value in its place"
)
WRONG_WORKBOOKS = (
    *(UNREADABLE_BELOW, UNREADABLE, TOO_LARGE, TOO_LARGE_UNPACKED, NO_SHEET, LATE_LINES, LATE_ROWS),
    *(MANY_ODD_VALUES, ERROR_CELL, DATE_CELL, PERCENT_CELL, NO_RESULT),
)
# Doubts about a workbook. They are stored and translated, too.
HIDDEN_ROWS = gettext_noop(
    "Hidden or filtered rows have values, and are read: %(count)s, the first in line %(line)s."
)
HIDDEN_COLUMN = gettext_noop("The hidden column %(name)s has values, and is read: %(count)s.")
MERGED = gettext_noop(
    "Cells are merged: %(count)s areas, the first %(name)s. Only the first cell of an area has a"
    " value."
)
FORMULAS = gettext_noop(
    "Cells have formulas: %(count)s, the first in line %(line)s. The values that the spreadsheet"
    " stored are read."
)
OTHER_SHEET = gettext_noop("The sheet %(name)s has values, too, and is not read.")
HIDDEN_SHEET = gettext_noop("The hidden sheet %(name)s has values, and is not read.")
OTHER_NUMBERS = gettext_noop(
    "Cells show another number than they have, such as one with fewer decimals: %(count)s, the"
    " first in line %(line)s. The whole number is read."
)
HIDDEN_VALUES = gettext_noop(
    "Cells have values that cannot be seen, because of their number format or because the letters"
    " have the colour of the cell: %(count)s, the first in %(name)s. The values are read."
)
WORKBOOK_DOUBTS = (
    *(HIDDEN_ROWS, HIDDEN_COLUMN, MERGED, FORMULAS, OTHER_SHEET, HIDDEN_SHEET, OTHER_NUMBERS),
    HIDDEN_VALUES,
)
