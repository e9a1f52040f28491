-- What a new shop begins with: an outdoor shop in its first year. Everybody and
-- everything is made up.

INSERT INTO categories (n, id, title) VALUES
	(1, 'tents',    'Tents & shelters'),
	(2, 'packs',    'Packs & bags'),
	(3, 'sleeping', 'Sleeping bags & mats'),
	(4, 'kitchen',  'Camp kitchen'),
	(5, 'clothing', 'Clothing'),
	(6, 'lights',   'Lights & navigation');

INSERT INTO products (n, id, name, category, price, stock, description) VALUES
	(1001, 'prd-1001', 'Fjordlight 2',       'tents',    34900,  12, 'Two-person tunnel tent of 1.9 kg, with a porch for two packs.'),
	(1002, 'prd-1002', 'Fjordlight 4',       'tents',    52900,   6, 'The same tunnel for a family of four, 3.2 kg.'),
	(1003, 'prd-1003', 'Bivy One',           'tents',    14950,   9, 'Waterproof bivouac bag for one, with a hooped hood against drips.'),
	(1004, 'prd-1004', 'Tarp 3 x 3',         'tents',     8990,  25, 'Ripstop tarp with sixteen loops and a stuff sack of its own.'),
	(1005, 'prd-1005', 'Hauler 55',          'packs',    18900,  14, 'Trekking pack of 55 litres with a back length that adjusts.'),
	(1006, 'prd-1006', 'Daytrip 18',         'packs',     6490,  40, 'Light pack of 18 litres for a day, with a sleeve for water.'),
	(1007, 'prd-1007', 'Dry Bag 20',         'packs',     2490,  60, 'Roll-top bag of 20 litres that keeps water out, or in.'),
	(1008, 'prd-1008', 'Bike Pannier Pair',  'packs',    11900,   8, 'Two panniers of 20 litres each that click onto any rack.'),
	(1009, 'prd-1009', 'Nordlys -5',         'sleeping', 22900,  10, 'Down sleeping bag that is comfortable at five degrees of frost.'),
	(1010, 'prd-1010', 'Summerset +8',       'sleeping',  9900,  18, 'Synthetic bag for summer nights that dries within an hour.'),
	(1011, 'prd-1011', 'Feather Mat',        'sleeping', 12950,  15, 'Inflatable mat of 480 g, 8 cm thick.'),
	(1012, 'prd-1012', 'Foldaway Mat',       'sleeping',  3490,  50, 'Closed-cell mat in folds; also a seat.'),
	(1013, 'prd-1013', 'Ember Stove',        'kitchen',   7990,  16, 'Gas stove of 86 g that boils half a litre in three minutes.'),
	(1014, 'prd-1014', 'Titan Pot 900',      'kitchen',   5490,  22, 'Titanium pot of 900 ml with folding handles and a lid that strains.'),
	(1015, 'prd-1015', 'Moka for Two',       'kitchen',   3250,  30, 'Coffee maker for two cups, for stoves of any kind.'),
	(1016, 'prd-1016', 'Spork Set',          'kitchen',    990, 120, 'Four sporks in four colours, so that nobody argues.'),
	(1017, 'prd-1017', 'Squall Jacket',      'clothing', 19900,  11, 'Three-layer rain jacket of recycled nylon.'),
	(1018, 'prd-1018', 'Merino Base',        'clothing',  7490,  28, 'Long-sleeved merino shirt of 180 g per square metre.'),
	(1019, 'prd-1019', 'Ridge Trousers',     'clothing',  9490,  17, 'Stretch trousers whose knees last.'),
	(1020, 'prd-1020', 'Wool Beanie',        'clothing',  2490,  45, 'Ribbed hat of lambswool.'),
	(1021, 'prd-1021', 'Beam 400',           'lights',    5990,  20, 'Head torch of 400 lumens that charges over USB-C.'),
	(1022, 'prd-1022', 'Glow Lantern',       'lights',    3990,  24, 'Lantern that folds flat and lasts a week of evenings.'),
	(1023, 'prd-1023', 'Needle Compass',     'lights',    2990,  33, 'Baseplate compass with a mirror, for both hemispheres.'),
	(1024, 'prd-1024', 'Brass Sextant',      'lights',   48900,   1, 'For those who do not trust batteries. The last one.');

INSERT INTO customers (n, id, name, email, city, member) VALUES
	(1001, 'cus-1001', 'Amara Lindqvist',  'amara.lindqvist@example.com',  'Uppsala',   1),
	(1002, 'cus-1002', 'Bram de Wit',      'bram.dewit@example.com',       'Groningen', 0),
	(1003, 'cus-1003', 'Chiara Montesi',   'chiara.montesi@example.com',   'Trento',    0),
	(1004, 'cus-1004', 'Dawid Zielonka',   'dawid.zielonka@example.com',   'Gdynia',    1),
	(1005, 'cus-1005', 'Eilidh MacRae',    'eilidh.macrae@example.com',    'Inverness', 0),
	(1006, 'cus-1006', 'Farid Haddad',     'farid.haddad@example.com',     'Lyon',      0),
	(1007, 'cus-1007', 'Greta Obermoser',  'greta.obermoser@example.com',  'Innsbruck', 1),
	(1008, 'cus-1008', 'Hiro Tanabe',      'hiro.tanabe@example.com',      'Ghent',     0);

INSERT INTO orders (n, id, customer, placed, status) VALUES
	(1001, 'ord-1001', 'cus-1001', '2026-02-03T08:12:40Z', 'delivered'),
	(1002, 'ord-1002', 'cus-1004', '2026-02-11T19:47:05Z', 'delivered'),
	(1003, 'ord-1003', 'cus-1007', '2026-02-28T12:30:11Z', 'delivered'),
	(1004, 'ord-1004', 'cus-1001', '2026-03-09T21:03:52Z', 'delivered'),
	(1005, 'ord-1005', 'cus-1003', '2026-03-17T06:55:30Z', 'delivered'),
	(1006, 'ord-1006', 'cus-1005', '2026-04-02T15:21:09Z', 'delivered'),
	(1007, 'ord-1007', 'cus-1002', '2026-04-20T10:09:44Z', 'shipped'),
	(1008, 'ord-1008', 'cus-1008', '2026-04-21T17:38:00Z', 'shipped'),
	(1009, 'ord-1009', 'cus-1001', '2026-04-25T09:00:17Z', 'shipped'),
	(1010, 'ord-1010', 'cus-1004', '2026-04-27T22:14:36Z', 'placed');

INSERT INTO order_items ("order", product, quantity, price) VALUES
	('ord-1001', 'prd-1001', 1, 34900), ('ord-1001', 'prd-1011', 2, 12950), ('ord-1001', 'prd-1016', 1, 990),
	('ord-1002', 'prd-1005', 1, 18900),
	('ord-1003', 'prd-1009', 2, 21900), ('ord-1003', 'prd-1012', 2, 3490),
	('ord-1004', 'prd-1013', 1, 7990), ('ord-1004', 'prd-1014', 1, 5490),
	('ord-1005', 'prd-1017', 1, 19900), ('ord-1005', 'prd-1018', 3, 7490), ('ord-1005', 'prd-1020', 1, 2490),
	('ord-1006', 'prd-1004', 1, 8990), ('ord-1006', 'prd-1022', 2, 3990),
	('ord-1007', 'prd-1008', 1, 11900), ('ord-1007', 'prd-1007', 2, 2490),
	('ord-1008', 'prd-1021', 1, 5990), ('ord-1008', 'prd-1023', 1, 2990),
	('ord-1009', 'prd-1015', 1, 3250),
	('ord-1010', 'prd-1002', 1, 52900), ('ord-1010', 'prd-1010', 4, 9900), ('ord-1010', 'prd-1016', 1, 990);

INSERT INTO carts (n, id, customer, created) VALUES
	(1001, 'crt-1001', 'cus-1002', '2026-04-27T18:22:10Z'),
	(1002, 'crt-1002', NULL,       '2026-04-28T07:41:55Z');

INSERT INTO cart_items (cart, product, quantity) VALUES
	('crt-1001', 'prd-1006', 1), ('crt-1001', 'prd-1013', 1), ('crt-1001', 'prd-1016', 2),
	('crt-1002', 'prd-1020', 3);

-- The next Saturdays are gone already, here and there.
INSERT INTO trips (n, id, destination, date, customer, people, price, request) VALUES
	(1001, 'trp-1001', 'lofoten', date('now', '+7 days', 'weekday 6'),  'cus-1001', 2, 29800, 'seed-1'),
	(1002, 'trp-1002', 'lofoten', date('now', '+14 days', 'weekday 6'), 'cus-1007', 4, 59600, 'seed-2'),
	(1003, 'trp-1003', 'tatra',   date('now', '+7 days', 'weekday 6'),  'cus-1004', 6, 53400, 'seed-3');

INSERT INTO files (n, name, product, quantity) VALUES
	(1, 'delivery-0412-fjordlight.csv', 'prd-1001', 10),
	(2, 'delivery-0413-ember.csv',      'prd-1013', 24),
	(3, 'delivery-0413-titan.csv',      'prd-1014', 12),
	(4, 'delivery-0415-squall.csv',     'prd-1017',  8),
	(5, 'delivery-0416-beam.csv',       'prd-1021', 30);
