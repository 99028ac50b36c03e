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
