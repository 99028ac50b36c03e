-- A view is only a name for its query; nothing is stored.
CREATE VIEW recent_orders AS
SELECT customer_id, amount
FROM orders
WHERE ordered_on >= DATE '2026-01-01';

-- A materialized view is stored, and always equals its query over the tables as they are now.
CREATE MATERIALIZED VIEW customer_totals AS
SELECT
  c.id AS customer_id,
  c.name AS customer_name,
  count(*) AS order_count,
  sum(o.amount) AS total_amount
FROM recent_orders AS o
JOIN customers AS c ON o.customer_id = c.id
GROUP BY c.id, c.name;
