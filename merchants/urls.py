"""The paths of the merchant site, under /merchant/."""

from django.urls import path, re_path

from merchants import overview, search_page
from merchants.api_access import client_pages, reference_pages, request_pages
from merchants.email import report_pages
from merchants.frame import file_pages
from merchants.money import month_pages, price_pages, transfer_pages, wallet_pages
from merchants.orders import case_pages, order_pages
from merchants.people import company_pages, member_pages, profile_pages, sign_in_pages

app_name = "merchants"

urlpatterns = [
    path("", overview.overview, name="overview"),
    path("sign-in/", sign_in_pages.SignIn.as_view(), name="sign_in"),
    path("sign-out/", sign_in_pages.sign_out, name="sign_out"),
    path("wallet/", wallet_pages.wallet, name="wallet"),
    re_path(
        r"^wallet/statement\.(?P<format>csv|json|xlsx)$",
        wallet_pages.export,
        name="statement_export",
    ),
    path("wallet/signed-statement.json", wallet_pages.signed_statement, name="signed_statement"),
    path("wallet/months/", month_pages.months, name="months"),
    path("wallet/months/<str:month>.<str:format>", month_pages.statement, name="month_statement"),
    path("company/", company_pages.company, name="company"),
    path("company/propose/", company_pages.propose, name="propose_company"),
    path("company/withdraw/", company_pages.withdraw, name="withdraw_company"),
    path("wallet/alert/", wallet_pages.alert, name="alert"),
    re_path(
        r"^wallet/transfers\.(?P<format>csv|xlsx)$", transfer_pages.export, name="export_transfers"
    ),
    path("wallet/transfers/new/", transfer_pages.announce, name="announce_transfer"),
    path(
        "wallet/transfers/<int:transfer_id>/withdraw/",
        transfer_pages.withdraw,
        name="withdraw_transfer",
    ),
    path("wallet/spend/", wallet_pages.spend, name="spend"),
    path("orders/", order_pages.orders, name="orders"),
    re_path(r"^orders/orders\.(?P<format>csv|xlsx)$", order_pages.export, name="orders_export"),
    path("orders/<str:reference>/", order_pages.order, name="order"),
    path("orders/<str:reference>/case/", case_pages.new_case, name="new_case"),
    path(
        "orders/<str:reference>/proofs/<int:proof_id>/",
        order_pages.delivery_proof,
        name="delivery_proof",
    ),
    path("cases/", case_pages.case_list, name="cases"),
    re_path(r"^cases/cases\.(?P<format>csv|xlsx)$", case_pages.export, name="export_cases"),
    path("cases/<int:case_id>/", case_pages.case_page, name="case"),
    path("cases/<int:case_id>/files/<int:file_id>/", case_pages.case_file, name="case_file"),
    path("requests/", request_pages.request_list, name="requests"),
    re_path(
        r"^requests/requests\.(?P<format>csv|xlsx)$", request_pages.export, name="export_requests"
    ),
    path("files/<uuid:token>/", file_pages.file, name="file"),
    path("files/<uuid:token>/cancel/", file_pages.cancel, name="cancel_file"),
    path("files/<uuid:token>/<int:number>/", file_pages.file_part, name="file_part"),
    path("search/", search_page.search, name="search"),
    path("join/", sign_in_pages.join, name="join"),
    path("password/forgotten/", sign_in_pages.ask_reset, name="ask_reset"),
    path("password/new/", sign_in_pages.reset, name="reset"),
    path("clients/", client_pages.client_list, name="clients"),
    re_path(r"^clients/clients\.(?P<format>csv|xlsx)$", client_pages.export, name="export_clients"),
    path("clients/new/", client_pages.add_client, name="add_client"),
    path("clients/books/issue/", client_pages.issue_books, name="issue_book_key"),
    path(
        "clients/books/<int:book_key_id>/revoke/", client_pages.revoke_books, name="revoke_book_key"
    ),
    path("clients/<int:client_id>/", client_pages.client_page, name="client"),
    path("clients/<int:client_id>/rename/", client_pages.rename, name="rename_client"),
    path("clients/<int:client_id>/switch/", client_pages.switch, name="switch_client"),
    path("clients/<int:client_id>/allowlist/", client_pages.allowlist, name="allowlist"),
    path("clients/<int:client_id>/spending/", client_pages.spending_limit, name="spending_limit"),
    path("clients/<int:client_id>/keys/issue/", client_pages.issue, name="issue_key"),
    path("clients/<int:client_id>/keys/rotate/", client_pages.rotate, name="rotate_keys"),
    path(
        "clients/<int:client_id>/keys/<int:key_id>/revoke/", client_pages.revoke, name="revoke_key"
    ),
    path("references/", reference_pages.reference_list, name="references"),
    path("references/name/", reference_pages.set_reference, name="set_reference"),
    path("references/export/", reference_pages.export, name="references_file"),
    re_path(
        r"^references/references\.(?P<format>csv|xlsx)$",
        reference_pages.export,
        name="export_references",
    ),
    path("references/import/", reference_pages.import_file, name="import_references"),
    path("prices/", price_pages.prices, name="prices"),
    re_path(r"^prices/prices\.(?P<format>csv|xlsx)$", price_pages.export, name="export_prices"),
    path("people/", member_pages.people, name="people"),
    re_path(r"^people/people\.(?P<format>csv|xlsx)$", member_pages.export, name="export_people"),
    path("people/invite/", member_pages.invite, name="invite"),
    path("people/second-factors/", member_pages.second_factors, name="second_factors"),
    path(
        "people/invitations/<int:invitation_id>/withdraw/", member_pages.withdraw, name="withdraw"
    ),
    path("people/<int:membership_id>/role/", member_pages.role, name="role"),
    path("people/<int:membership_id>/remove/", member_pages.remove, name="remove"),
    path("reports/", report_pages.reports, name="reports"),
    path("reports/<int:report_id>/end/", report_pages.end, name="end_report"),
    path("two-factor/", profile_pages.two_factor, name="two_factor"),
    path("profile/", profile_pages.profile, name="profile"),
    path("profile/password/", profile_pages.password, name="password"),
    path("profile/time-zone/", profile_pages.choose_zone, name="time_zone"),
    path("profile/two-factor/on/", profile_pages.two_factor_on, name="two_factor_on"),
    path("profile/two-factor/codes/", profile_pages.backup_codes, name="backup_codes"),
    path("profile/two-factor/off/", profile_pages.two_factor_off, name="two_factor_off"),
    path("profile/sessions/end/", profile_pages.end_sessions, name="end_sessions"),
    path("profile/sessions/<int:session_id>/end/", profile_pages.end_session, name="end_session"),
]
