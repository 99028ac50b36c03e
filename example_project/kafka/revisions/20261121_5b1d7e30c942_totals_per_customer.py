"""totals per customer

Revision ID: 5b1d7e30c942
Revises: <base>
Create Date: 2026-11-21T19:59:40+00:00

+ materialized view customer_totals
+ sink customer_totals.feed
+ table customers
+ source customers.files
+ table orders
+ source orders.feed
+ view sales
"""

revision = "5b1d7e30c942"
down_revision = None
branch_labels = None
depends_on = None

program = {
    "pipeline/tables.sql": """\
-- Customers come as files, orders from a Kafka topic. A new record of a key replaces its row;
-- an order's record without a value deletes it.

CREATE TABLE customers (
  id BIGINT,
  name STRING NOT NULL,
  country STRING,
  PRIMARY KEY (id)
);

CREATE TABLE orders (
  id BIGINT,
  customer_id BIGINT NOT NULL,
  amount DECIMAL(10, 2) NOT NULL,
  state STRING NOT NULL,
  PRIMARY KEY (id)
);

CREATE SOURCE files INTO customers USING csv OPTIONS (path 'landing/customers', header 'true');

CREATE SOURCE feed INTO orders USING kafka OPTIONS (
  'kafka.bootstrap.servers' '${env:KAFKA_SERVERS}',
  subscribe 'orders',
  format 'json'
);
""",
    "pipeline/totals.sql": """\
-- The orders that count.
CREATE VIEW sales AS
SELECT id, customer_id, amount
FROM orders
WHERE state IN ('paid');

-- What each customer has bought.
CREATE MATERIALIZED VIEW customer_totals AS
SELECT
  customers.id AS customer_id,
  name,
  country,
  count(*) AS orders,
  sum(amount) AS total
FROM sales
JOIN customers ON sales.customer_id = customers.id
GROUP BY customers.id, name, country;

-- A topic that has the same rows: one that changes is sent again, one that goes is sent without a value.
CREATE SINK feed FROM customer_totals USING kafka OPTIONS (
  'kafka.bootstrap.servers' '${env:KAFKA_SERVERS}',
  topic 'customer_totals',
  key 'customer_id'
);
""",
}


def up(op):
    pass


def down(op):
    pass
