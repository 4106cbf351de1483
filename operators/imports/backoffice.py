"""The declarations of imports for the back office (core/backoffice/)."""

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from core.backoffice.declarations import (
    BackOffice,
    Expiring,
    Finder,
    MenuEntry,
    Rights,
    Sealed,
    Section,
    StaffRight,
    read_access,
)
from core.backoffice.search import by_number
from core.backoffice.staff_roles import StaffRole
from core.database.sealing import Context
from core.texts import lazy
from operators.imports.models import FileImport, open_file, row_of_import, row_of_part

NAME = gettext_noop("Import %(name)s")


def _describe(row: FileImport) -> tuple[str, str]:
    return _(NAME) % {"name": row.pk}, f"{row.file_name}, {row.get_state_display()}"


BACK_OFFICE = BackOffice(
    finders=[
        Finder(
            lazy("Imported file"),
            FileImport,
            lambda text: by_number(FileImport.objects.all(), text, NAME),
            _describe,
        )
    ],
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
            check=gettext_noop("every file to import opens"),
            read=open_file,
            at_once=10,
        ),
        Sealed(
            kind="file_parts",
            table="imports_filepart",
            column="sealed",
            context=Context.IMPORTED_FILE,
            identity=["upload", "number"],
            row=row_of_part,
            check=gettext_noop("every part of a file to import opens"),
            read=open_file,
            at_once=10,
        ),
    ],
    triggers=["imports_end_deletes_the_parts"],
    rights={"imports_fileimport": Rights.CHANGE, "imports_filepart": Rights.CHANGE},
    staff_rights=[
        StaffRight(
            Section.CATALOGUE,
            lazy("Import codes"),
            ["imports.import_codes", *read_access(FileImport)],
            [StaffRole.STOCK_KEEPER],
        ),
        StaffRight(
            Section.CATALOGUE,
            lazy("Import the catalogue"),
            ["imports.import_catalogue", *read_access(FileImport)],
            [StaffRole.STOCK_KEEPER],
        ),
    ],
    menu=[MenuEntry(Section.CATALOGUE, lazy("Imports"), FileImport, "upload_file")],
)
