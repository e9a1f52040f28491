-- The tables of a shop. Rows have a number, which orders them, and an id for people
-- made from it. Money is in cents.

CREATE TABLE categories (
	n     INTEGER PRIMARY KEY,
	id    TEXT NOT NULL UNIQUE,
	title TEXT NOT NULL
) STRICT;

CREATE TABLE products (
	n           INTEGER PRIMARY KEY,
	id          TEXT    NOT NULL UNIQUE,
	name        TEXT    NOT NULL COLLATE NOCASE UNIQUE,
	category    TEXT    NOT NULL REFERENCES categories (id),
	description TEXT    NOT NULL,
	price       INTEGER NOT NULL CHECK (price >= 0),
	stock       INTEGER NOT NULL CHECK (stock >= 0)
) STRICT;
CREATE INDEX products_category ON products (category, n);

CREATE TABLE customers (
	n      INTEGER PRIMARY KEY,
	id     TEXT    NOT NULL UNIQUE,
	name   TEXT    NOT NULL,
	email  TEXT    NOT NULL,
	city   TEXT    NOT NULL,
	member INTEGER NOT NULL DEFAULT 0 CHECK (member IN (0, 1))
) STRICT;

CREATE TABLE carts (
	n        INTEGER PRIMARY KEY,
	id       TEXT NOT NULL UNIQUE,
	customer TEXT REFERENCES customers (id), -- NULL: nobody's yet
	created  TEXT NOT NULL
) STRICT;

CREATE TABLE cart_items (
	cart     TEXT    NOT NULL REFERENCES carts (id) ON DELETE CASCADE,
	product  TEXT    NOT NULL REFERENCES products (id),
	quantity INTEGER NOT NULL CHECK (quantity > 0),
	PRIMARY KEY (cart, product)
) STRICT;

CREATE TABLE orders (
	n        INTEGER PRIMARY KEY,
	id       TEXT NOT NULL UNIQUE,
	customer TEXT NOT NULL REFERENCES customers (id),
	placed   TEXT NOT NULL,
	status   TEXT NOT NULL CHECK (status IN ('placed', 'shipped', 'delivered'))
) STRICT;
CREATE INDEX orders_customer ON orders (customer, n);

-- The price is that of the day of the order.
CREATE TABLE order_items (
	"order"  TEXT    NOT NULL REFERENCES orders (id),
	product  TEXT    NOT NULL REFERENCES products (id),
	quantity INTEGER NOT NULL CHECK (quantity > 0),
	price    INTEGER NOT NULL CHECK (price >= 0),
	PRIMARY KEY ("order", product)
) STRICT;

-- A destination takes one group a day.
CREATE TABLE trips (
	n           INTEGER PRIMARY KEY,
	id          TEXT    NOT NULL UNIQUE,
	destination TEXT    NOT NULL,
	date        TEXT    NOT NULL,
	customer    TEXT    NOT NULL REFERENCES customers (id),
	people      INTEGER NOT NULL CHECK (people > 0),
	price       INTEGER NOT NULL CHECK (price >= 0), -- of all of them
	request     TEXT    NOT NULL UNIQUE, -- of the call that booked it
	UNIQUE (destination, date)
) STRICT;

-- Delivery notes of suppliers, each of one product.
CREATE TABLE files (
	n         INTEGER PRIMARY KEY,
	name      TEXT    NOT NULL UNIQUE,
	product   TEXT    NOT NULL REFERENCES products (id),
	quantity  INTEGER NOT NULL CHECK (quantity > 0),
	processed TEXT -- NULL: pending
) STRICT;
