"""A long run of the whole service with faults at random times, and a check that nothing was lost.

`make soak` starts everything on this machine: PostgreSQL and Valkey of its own, two hosts with web
processes and a Celery worker each, the scheduler, and the bot with a Bot API server.

    run.py        opens the shop, lets everybody work while faults happen, and judges what is left
    service.py    the processes, their clocks, and the disk of their logs (clock.c sets a clock)
    faults.py     the faults, and when they happen
    merchants.py  merchants who follow the documented rules, and what they were given
    desk.py       operators who end the top-ups
    logs.py       looks for secrets in all logs
    watch.py      memory, processor time and latency, and whether they stay flat
    verdict.py    what everybody was told, against the database, the logs and the cache
"""
