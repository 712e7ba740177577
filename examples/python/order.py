"""Writes an order and the timeout that closes it in one transaction, from another language.

    pip install 'psycopg[binary]'
    python3 examples/python/order.py postgres://localhost/shop 17 1800

A running `order_close --store postgres://localhost/shop` closes the order.
"""
import sys

import psycopg

url, number, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
with psycopg.connect(url) as connection:
    connection.execute("create table if not exists orders_placed(number int primary key)")
    connection.execute("insert into orders_placed values (%s)", [number])
    (timeout,) = connection.execute(
        "select timer.schedule('order.close', %s::text, make_interval(secs => %s), key => %s)",
        [str(number), seconds, str(number)],
    ).fetchone()
    # Either both are written here, at the end of the block, or neither is.
print(f"order {number} closes in {seconds} s by timeout {timeout}")
