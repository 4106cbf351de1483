"""Odd requests: wrong bodies, headers, paths, queries, methods and sequences, by Hypothesis.

world.py     clients of every kind, and what they may buy
making.py    strategies of requests, each with the answers that it may get
rules.py     the contract's rules of a purchase body, written a second time
sending.py   sends them in this process, and compares the answers with the document and with what
             was expected, and the money and stock before and after
"""
