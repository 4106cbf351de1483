"""Sign-in of staff at the company's OpenID Connect provider (docs/operate/company-sign-in.md).

`provider` speaks the protocol, with Authlib. `people` decides who gets in, as whom and with which
roles. `views` are the two pages. Only `urls`, which config/urls.py includes when company sign-in is
configured, loads them.
"""
