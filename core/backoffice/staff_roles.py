"""The roles of staff."""

from enum import StrEnum


class StaffRole(StrEnum):
    """The groups of staff. The value is the name of the Django group."""

    OPERATOR = "Operator"
    SENIOR_OPERATOR = "Senior operator"
    FINANCE = "Finance"
    CATALOGUE_MANAGER = "Catalogue manager"
    PLATFORM_MANAGER = "Platform manager"
