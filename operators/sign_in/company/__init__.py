"""Sign-in of staff at the company's OpenID Connect provider (docs/operate/company-sign-in.md).

`provider` speaks the protocol, with Authlib. `people` decides who gets in, as whom and with which
roles. `views` are the two pages. `identities` unlinks a person. Only `urls` loads the first
three, and config/urls_pages.py includes it when company sign-in is configured. config/settings.py
loads `settings` in every process, before Django is set up.
"""
