from operators.imports.price_list_file import KIND
from operators.imports.table_command import TableImportCommand


class Command(TableImportCommand):
    help = "Adds and changes the prices of price lists in a CSV or XLSX file, all or nothing."
    kind = KIND
