"""The declarations of the sign-in of staff for the back office (core/backoffice/)."""

from core.backoffice.declarations import BackOffice, Personal, Rights, Whose

BACK_OFFICE = BackOffice(
    personal=[
        Personal(
            "sign_in_companyidentity",
            Whose.STAFF,
            "the company account with which a person signs in",
            columns=["issuer", "subject", "email"],
            context=["linked_at", "signed_in_at"],
            find="user_id = ANY(%(users)s)",
            delete="DELETE",
        ),
        Personal(
            "sign_in_twopersonchange",
            Whose.STAFF,
            "changes for which two people ask; a new name and email are among them",
            columns=["what", "data"],
            context=["asked_at", "approved_at"],
            find="about_id = ANY(%(users)s)",
            delete="what = 'the name and the email of the person, change ' || id, data = '{}'",
            when="what LIKE 'the name %% and the email %%'",
            kept="the row, and which roles a person got and lost",
        ),
    ],
    rights={
        "sign_in_companyidentity": Rights.CHANGE,
        "sign_in_twopersonchange": Rights.KEEP,
    },
)
