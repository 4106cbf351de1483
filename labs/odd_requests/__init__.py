"""Odd requests by the million: wrong bodies, headers, paths, queries, methods and sequences.

`make odd-requests COUNT=1000000 SEED=7` sends them to the API and judges each answer. Most are sent
inside this process, through the WSGI application on the real database; some travel over sockets to
a real server. A seed repeats a run.

    world.py     clients of every kind, and what they may buy
    values.py    odd values, texts and JSON
    making.py    makes request number N of a seed, and says which answers it may get
    rules.py     the contract's rules of a purchase body, written a second time
    sending.py   sends a request, in this process or over a socket
    judging.py   compares the answer with the document and with what was expected, and the money and
                 stock before and after
"""
