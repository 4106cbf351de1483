"""Benchmarks: `make bench` measures the service against other programs and prints the ratios.

    __main__    the command line: which measures, how many rounds, where the report goes
    subjects    the short runs; each returns one or more figures
    measures    the ratios of two figures, each with its target
    world       the databases, each loaded once, and the programs that serve them
    data        merchants, products, codes and past orders, written by SQL
    load        the load generator: wrk, over HTTP
    floor       the database alone: the writes of a purchase, or the service's functions, by pgbench
    peers/      other implementations of the purchase, to compare with, and a check of them
    machine     a description of the machine and the software
    report      the table, and docs/benchmarks.md

Absolute figures depend on the machine, so a measure is a ratio of two figures. Each round runs
every subject once, and a ratio is taken within one round, where other load on the machine affects
both figures. What metrics, request records and a price list cost is too small for that: the service
with and without them sells at the same time, and the processor times of a purchase are compared.
The table shows the median, the lowest and the highest ratio of all rounds.
"""
