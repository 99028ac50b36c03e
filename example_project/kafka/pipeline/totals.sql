-- The orders that count.
CREATE VIEW sales AS
SELECT id, customer_id, amount
FROM orders
WHERE state IN ('paid', 'shipped');

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
