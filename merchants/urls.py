"""The paths of the merchants' page, under /merchant/."""

from django.urls import path

from merchants.views import account, clients, overview, people, references, sign_in

app_name = "merchants"

urlpatterns = [
    path("", overview.overview, name="overview"),
    path("sign-in/", sign_in.SignIn.as_view(), name="sign_in"),
    path("sign-out/", sign_in.sign_out, name="sign_out"),
    path("join/", sign_in.join, name="join"),
    path("password/forgotten/", sign_in.ask_reset, name="ask_reset"),
    path("password/new/", sign_in.reset, name="reset"),
    path("clients/", clients.client_list, name="clients"),
    path("clients/new/", clients.add_client, name="add_client"),
    path("clients/<int:client_id>/", clients.client_page, name="client"),
    path("clients/<int:client_id>/rename/", clients.rename, name="rename_client"),
    path("clients/<int:client_id>/switch/", clients.switch, name="switch_client"),
    path("clients/<int:client_id>/allowlist/", clients.allowlist, name="allowlist"),
    path("clients/<int:client_id>/keys/issue/", clients.issue, name="issue_key"),
    path("clients/<int:client_id>/keys/rotate/", clients.rotate, name="rotate_keys"),
    path("clients/<int:client_id>/keys/<int:key_id>/revoke/", clients.revoke, name="revoke_key"),
    path("references/", references.reference_list, name="references"),
    path("references/name/", references.name_shelf, name="name_shelf"),
    path("references/export/", references.export, name="export_references"),
    path("references/import/", references.import_file, name="import_references"),
    path("people/", people.people, name="people"),
    path("people/invite/", people.invite, name="invite"),
    path("people/invitations/<int:invitation_id>/withdraw/", people.withdraw, name="withdraw"),
    path("people/<int:membership_id>/role/", people.role, name="role"),
    path("people/<int:membership_id>/remove/", people.remove, name="remove"),
    path("two-factor/", account.two_factor, name="two_factor"),
    path("account/", account.account, name="account"),
    path("account/password/", account.password, name="password"),
    path("account/two-factor/on/", account.two_factor_on, name="two_factor_on"),
    path("account/two-factor/off/", account.two_factor_off, name="two_factor_off"),
    path("account/sessions/end/", account.end_sessions, name="end_sessions"),
    path("account/sessions/<int:visit_id>/end/", account.end_session, name="end_session"),
]
