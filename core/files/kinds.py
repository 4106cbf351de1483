"""Files that are no table, whatever their names say: each is named as what it is."""

import re
from collections.abc import Collection

from django.utils.translation import gettext_noop

from core.inputs import InputProblem

KINDS_OF_FILES = {
    "ole": gettext_noop(
        "The file is a workbook in the old format XLS, or one with a password. Remove the password,"
        " and save it as XLSX or as CSV UTF-8."
    ),
    "password": gettext_noop(
        "The workbook is protected by a password. Remove the password in the spreadsheet, and save"
        " it again as XLSX or as CSV UTF-8."
    ),
    "xls": gettext_noop(
        "The file is a workbook in the old format XLS. Open it in a spreadsheet, and save it as"
        " XLSX or as CSV UTF-8."
    ),
    "ods": gettext_noop(
        "The file is an OpenDocument spreadsheet. Save it as XLSX or as CSV UTF-8: open it, choose"
        " Save as, and that file type."
    ),
    "numbers": gettext_noop(
        "The file is a Numbers spreadsheet. Open it in Numbers, and export it to Excel (XLSX) or"
        " to CSV UTF-8."
    ),
    "xlsb": gettext_noop("The file is a binary workbook (XLSB). Save it as XLSX or as CSV UTF-8."),
    "document": gettext_noop(
        "The file is a document, not a table. Copy the table into a spreadsheet, and save it as"
        " XLSX or as CSV UTF-8."
    ),
    "html": gettext_noop(
        "The file is a web page (HTML), whatever its name says. Open it in a spreadsheet, and save"
        " it as XLSX or as CSV UTF-8."
    ),
    "xml": gettext_noop(
        "The file is XML, whatever its name says. Open it in a spreadsheet, and save it as XLSX or"
        " as CSV UTF-8."
    ),
    "archive": gettext_noop(
        "The file is a compressed archive. Unpack it, and use the file that is inside."
    ),
    "picture": gettext_noop("The file is a picture. Type the table into a spreadsheet."),
    "pdf": gettext_noop(
        "The file is a PDF. Copy the table into a spreadsheet, and save it as XLSX or as CSV UTF-8."
    ),
    "binary": gettext_noop("The file is not a text. Save it as XLSX or as CSV UTF-8."),
}
WRONG_KINDS = tuple(KINDS_OF_FILES.values())

STARTS = (
    (b"\x1f\x8b", "archive"),
    (b"7z\xbc\xaf\x27\x1c", "archive"),
    (b"Rar!", "archive"),
    (b"BZh", "archive"),
    (b"\xfd7zXZ", "archive"),
    (b"\x28\xb5\x2f\xfd", "archive"),  # zstd
    (b"%PDF-", "pdf"),
    (b"{\\rtf", "document"),
    (b"\x89PNG", "picture"),
    (b"\xff\xd8\xff", "picture"),
    (b"GIF8", "picture"),
    (b"\xff\xfe\0\0", "binary"),  # UTF-32
    (b"MIME-Version:", "html"),  # a web page with its pictures, as one file
)
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
# The names of streams in such a file.
PASSWORD, DOCUMENT = "EncryptedPackage".encode("utf-16-le"), "WordDocument".encode("utf-16-le")
WORKBOOKS = ("Workbook\0".encode("utf-16-le"), "Book\0".encode("utf-16-le"))
BYTE_ORDER_MARKS = (b"\xff\xfe", b"\xfe\xff")  # of UTF-16
ZIP = b"PK\x03\x04"
EMPTY_ZIP = b"PK\x05\x06"
TAR = (257, b"ustar")  # a place, and what is there
UTF_8_MARK = b"\xef\xbb\xbf"
HTML = re.compile(rb"\s*(<!--.*?-->\s*)*<(!doctype html|html|head|body|table|meta)", re.I | re.S)
XML = re.compile(rb"\s*<(\?xml|workbook|[a-z]+:workbook)", re.IGNORECASE)


def is_archive(start: bytes) -> bool:
    """Whether a file that begins like this is a ZIP archive, as workbooks are, and not a text."""
    return start.startswith(ZIP)


def refuse_other_kinds(start: bytes, whole: bytes = b"") -> None:
    """Raises InputProblem if the file that begins like this is neither a text nor a ZIP archive.
    An old office file is named more precisely if its `whole` is known."""
    text = start.removeprefix(UTF_8_MARK)
    place, mark = TAR
    if start.startswith(OLE):
        kind = _kind_of_ole(whole)
    elif HTML.match(text):
        kind = "html"
    elif XML.match(text):
        kind = "xml"
    elif start.startswith(EMPTY_ZIP) or start[place : place + len(mark)] == mark:
        kind = "archive"
    else:
        kind = next((kind for magic, kind in STARTS if start.startswith(magic)), "")
        if not kind and not start.startswith(BYTE_ORDER_MARKS):
            kind = "binary" if start.count(b"\0") > len(start) // 8 else ""
    if kind:
        raise InputProblem(KINDS_OF_FILES[kind])


def refuse_other_archives(names: Collection[str], mimetype: bytes) -> None:
    """Raises InputProblem if a ZIP archive with these files, in small letters, is no workbook.
    `mimetype` is what a file of this name has, such as in OpenDocument."""
    if b"opendocument.spreadsheet" in mimetype:
        kind = "ods"
    elif b"opendocument" in mimetype or any(
        one.startswith(("word/", "ppt/", "meta-inf/container.xml")) for one in names
    ):
        kind = "document"
    elif any(one.endswith(".iwa") or one == "index.zip" for one in names):
        kind = "numbers"
    elif any(one.startswith("xl/") and one.endswith("workbook.bin") for one in names):
        kind = "xlsb"
    elif "_rels/.rels" not in names:
        kind = "archive"
    else:
        return
    raise InputProblem(KINDS_OF_FILES[kind])


def _kind_of_ole(whole: bytes) -> str:
    if PASSWORD in whole:
        return "password"
    if DOCUMENT in whole:
        return "document"
    return "xls" if any(one in whole for one in WORKBOOKS) else "ole"
