"""The declarations of imports for the back office (core/backoffice/)."""

from core.backoffice.declarations import (
    BackOffice,
    Expiring,
    MenuEntry,
    Rights,
    Sealed,
    Section,
    StaffRight,
    read_access,
)
from core.backoffice.staff_roles import StaffRole
from core.database.sealing import Context
from operators.imports.models import FileImport, open_file, row_of_import

BACK_OFFICE = BackOffice(
    expiring=[
        Expiring(
            kind="file_imports",
            table="imports_fileimport",
            old="finished_at < %(before)s",
            days="runs",
        ),
    ],
    sealed=[
        Sealed(
            kind="file_imports",
            table="imports_fileimport",
            column="sealed",
            context=Context.IMPORTED_FILE,
            identity=["token"],
            row=row_of_import,
            check="every file to import opens",
            read=open_file,
        ),
    ],
    rights={"imports_fileimport": Rights.CHANGE},
    staff_rights=[
        StaffRight(
            Section.CATALOGUE,
            "Import codes",
            ["imports.import_codes", *read_access(FileImport)],
            [StaffRole.STOCK_KEEPER],
        ),
        StaffRight(
            Section.CATALOGUE,
            "Import the catalogue",
            ["imports.import_catalogue", *read_access(FileImport)],
            [StaffRole.STOCK_KEEPER],
        ),
    ],
    menu=[MenuEntry(Section.CATALOGUE, "Imports", FileImport, "upload_file")],
)
