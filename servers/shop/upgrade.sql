-- From version 1 of the tables to version 2: categories have a description. A new shop
-- gets it too.

ALTER TABLE categories ADD COLUMN description TEXT NOT NULL DEFAULT '';

UPDATE categories SET description = 'Tents for two and for four, tarps, and a bivouac bag for one.' WHERE id = 'tents';
UPDATE categories SET description = 'Packs for a day or a trek, dry bags, panniers for a bike.'     WHERE id = 'packs';
UPDATE categories SET description = 'Bags of down and of synthetic fibre, and mats to lie on.'      WHERE id = 'sleeping';
UPDATE categories SET description = 'Stoves, pots and cutlery for cooking outdoors.'                WHERE id = 'kitchen';
UPDATE categories SET description = 'Layers against cold, wind and rain.'                           WHERE id = 'clothing';
UPDATE categories SET description = 'Lamps for the evening, and tools to find the way.'             WHERE id = 'lights';
