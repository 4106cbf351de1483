"""A Bot API server for tests: real HTTP, long polling, people who type and press.

It follows the public description of the Bot API: what it accepts, what it refuses and in which
words, and when an update counts as confirmed. `server.BotApi` is also how a test acts as a member
of staff; `faults` holds what can go wrong.
"""
