"""How fast is it, compared with what? `make bench` answers with one table of ratios.

    __main__    which measures, how many rounds, and where the report goes
    subjects    what is run: each returns figures of one short run
    measures    the promises: a ratio of two figures, and its target
    world       databases, loaded once, and the programs that serve them
    data        merchants, products, codes and a history, made by SQL
    load        the load generator, wrk, over HTTP
    floor       the limit: the same writes by pgbench and nothing else
    peers/      the same purchase by other hands
    machine     what it ran on
    report      the table, and docs/benchmarks.md
    charts      its charts

Only ratios mean anything beyond one machine, and only of runs that took turns: whatever disturbs
the machine then disturbs both sides. So every round runs each subject once, a measure is the ratio
within a round, and the table shows the median of the rounds with the lowest and the highest.
"""
