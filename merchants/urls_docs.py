"""The public documentation, below /docs/."""

from django.urls import path

from merchants.views import api_reference, docs

app_name = "docs"
urlpatterns = [
    path("", docs.start, name="start"),
    path("retries/", docs.retries, name="retries"),
    path("top-ups/", docs.topups, name="topups"),
    path("request-abandoned/", docs.abandoned, name="abandoned"),
    path("go-live/", docs.live, name="live"),
    path("statements/", docs.statements, name="statements"),
    path("snippets/<str:name>", docs.snippet_file, name="snippet"),
    path("api/", api_reference.docs, name="api"),
    path("ledger-key", docs.ledger_key, name="ledger_key"),
    path("verify_statement.py", docs.verify_statement, name="verify_statement"),
]
