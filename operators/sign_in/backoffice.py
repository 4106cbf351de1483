"""The declarations of the sign-in of staff for the back office (core/backoffice/)."""

from core.backoffice.declarations import BackOffice, Rights

BACK_OFFICE = BackOffice(
    rights={
        "sign_in_companyidentity": Rights.CHANGE,
        "sign_in_twopersonchange": Rights.KEEP,
    }
)
