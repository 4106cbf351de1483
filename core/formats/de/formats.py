"""German dates, times and numbers: 28.11.2026, 25.940,37.

Forms show ISO dates, which number fields, calendars and scripts read. They also take German dates.
"""

DATE_FORMAT = SHORT_DATE_FORMAT = "d.m.Y"
DATETIME_FORMAT = "d.m.Y H:i:s"
SHORT_DATETIME_FORMAT = "d.m.Y H:i"
TIME_FORMAT = "H:i:s"
MONTH_DAY_FORMAT = "d.m."
DATE_INPUT_FORMATS = ["%Y-%m-%d", "%d.%m.%Y"]
TIME_INPUT_FORMATS = ["%H:%M:%S", "%H:%M"]
DATETIME_INPUT_FORMATS = ["%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%d.%m.%Y %H:%M"]
DECIMAL_SEPARATOR = ","
THOUSAND_SEPARATOR = "."
NUMBER_GROUPING = 3
