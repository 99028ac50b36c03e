-- Input tables. They are kept in Delta; a row with the same key replaces the former one.

CREATE TABLE customers (
  id BIGINT,
  name STRING NOT NULL,
  PRIMARY KEY (id)
);

CREATE TABLE orders (
  id BIGINT,
  customer_id BIGINT NOT NULL,
  amount DECIMAL(10, 2) NOT NULL,
  ordered_on DATE NOT NULL,
  PRIMARY KEY (id)
);

-- A source feeds a table with the files that arrive in a folder:
--
--   CREATE SOURCE order_files INTO orders USING json OPTIONS (path 'landing/orders');
