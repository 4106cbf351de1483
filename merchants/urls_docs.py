"""The public documentation, below /docs/."""

from django.urls import path

from merchants.views import api_reference, docs

app_name = "docs"
urlpatterns = [
    *(
        path(address, docs.show_page, {"name": name}, name=name)
        for name, address in {
            "start": "",
            "retries": "retries/",
            "topups": "top-ups/",
            "abandoned": "request-abandoned/",
            "live": "go-live/",
            "statements": "statements/",
        }.items()
    ),
    path("search/", docs.search, name="search"),
    path("snippets/<str:name>", docs.snippet_file, name="snippet"),
    path("api/", api_reference.docs, name="api"),
    path("ledger-key", docs.ledger_key, name="ledger_key"),
    path("verify_statement.py", docs.verify_statement, name="verify_statement"),
]
