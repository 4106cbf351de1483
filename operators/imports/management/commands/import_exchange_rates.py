from operators.imports.rate_file import KIND
from operators.imports.table_command import TableImportCommand


class Command(TableImportCommand):
    help = "Adds and changes the exchange rates in a CSV or XLSX file, all or nothing."
    kind = KIND
