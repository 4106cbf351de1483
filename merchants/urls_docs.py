"""The public documentation, below /docs/."""

from django.urls import path

from merchants.docs import docs_pages

app_name = "docs"
urlpatterns = [
    *(
        path(address, docs_pages.show_page, {"name": name}, name=name)
        for name, address in {
            "start": "",
            "retries": "retries/",
            "topups": "top-ups/",
            "abandoned": "request-abandoned/",
            "live": "go-live/",
            "statements": "statements/",
            "api": "api/",
        }.items()
    ),
    path("search/", docs_pages.search, name="search"),
    path("snippets/<str:name>", docs_pages.snippet_file, name="snippet"),
    path("ledger-key", docs_pages.ledger_key, name="ledger_key"),
    path("verify_statement.py", docs_pages.verify_statement, name="verify_statement"),
]
