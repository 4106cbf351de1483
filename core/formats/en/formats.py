"""Dates and times as the logs and the API have them: 11/12 is read in two ways."""

DATE_FORMAT = SHORT_DATE_FORMAT = "Y-m-d"
DATETIME_FORMAT = "Y-m-d H:i:s"
SHORT_DATETIME_FORMAT = "Y-m-d H:i"
TIME_FORMAT = "H:i:s"
MONTH_DAY_FORMAT = "m-d"
