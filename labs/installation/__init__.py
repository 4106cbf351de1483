"""The parts of an installation of the service, which all laboratories start, load, kill and judge.

    postgres.py    a durable PostgreSQL that a test may kill
    pgbouncer.py   PgBouncer before the test's database
    rabbitmq.py    RabbitMQ as the broker
    network.py     hosts with addresses of their own, which can be killed or cut off
    cluster.py     three database hosts with Patroni, etcd and HAProxy
    hosts.py       ten hosts: databases, queues, web, workers and a proxy
    machine.py     a bare Debian 12 with systemd
    buyers.py      merchants who buy and retry all the time, and the check of what they were told

`tests/` has the rest: web servers (tests/live.py), workers, schedulers and brokers
(tests/tasks/running.py), the bot (tests/telegram/running.py) and the books
(tests/concurrency/books.py).
"""
