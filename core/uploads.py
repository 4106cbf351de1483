"""Checks of the pictures and documents that people attach."""

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from core.inputs import InputProblem, clean_text

MAX_BYTES = 5_000_000
NAME_LENGTH = 200
# The first bytes of each type of file, and how its name may end.
TYPES = {
    "image/png": (b"\x89PNG\r\n\x1a\n", (".png",)),
    "image/jpeg": (b"\xff\xd8\xff", (".jpg", ".jpeg")),
    "application/pdf": (b"%PDF-", (".pdf",)),
}
ACCEPTED = ".png,.jpg,.jpeg,.pdf"


def check_file(name: str, content: bytes) -> tuple[str, str]:
    """The name without a path, and the type of the content.

    Raises InputProblem if the file is too large, if its name cannot be shown, or if its content is
    not what its name says.
    """
    name = clean_text(
        name.replace("\\", "/").rpartition("/")[2],
        what=gettext_noop("name of the file"),
        max_length=NAME_LENGTH,
    )
    if len(content) > MAX_BYTES:
        raise InputProblem(
            _("%(name)s is larger than %(max_bytes)s MB.")
            % {"name": name, "max_bytes": MAX_BYTES // 1000000}
        )
    for content_type, (begins, endings) in TYPES.items():
        if content.startswith(begins) and name.lower().endswith(endings):
            return name, content_type
    raise InputProblem(_("%(name)s is not a PNG or JPEG picture or a PDF.") % {"name": name})
