"""Secrets with recognisable values go through every path, and appear only where they belong.

canaries.py   the secrets, every form in which they could appear, and where each may
running.py    the whole service, with everything that it writes to: the sinks
browser.py    a browser that follows forms over real HTTP
walk.py       the paths: purchases, failures, both sites, Telegram, emails, commands
"""
