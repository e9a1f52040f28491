-- A small library: what it has, who reads there, and what is out.
CREATE TABLE books (
  id      INTEGER PRIMARY KEY,
  title   TEXT NOT NULL,
  author  TEXT NOT NULL,
  year    INTEGER NOT NULL,
  copies  INTEGER NOT NULL CHECK (copies > 0)
);
CREATE TABLE readers (
  id      INTEGER PRIMARY KEY,
  name    TEXT NOT NULL,
  joined  TEXT NOT NULL -- a date
);
CREATE TABLE loans (
  id        INTEGER PRIMARY KEY,
  book      INTEGER NOT NULL REFERENCES books (id),
  reader    INTEGER NOT NULL REFERENCES readers (id),
  lent      TEXT NOT NULL, -- dates
  due       TEXT NOT NULL,
  returned  TEXT           -- NULL while it is out
);
CREATE INDEX loans_out ON loans (book) WHERE returned IS NULL;

INSERT INTO books (id, title, author, year, copies) VALUES
  (1, 'Frankenstein', 'Mary Shelley', 1818, 3),
  (2, 'Moby-Dick', 'Herman Melville', 1851, 2),
  (3, 'Middlemarch', 'George Eliot', 1871, 1),
  (4, 'Around the World in Eighty Days', 'Jules Verne', 1872, 4),
  (5, 'The Adventures of Sherlock Holmes', 'Arthur Conan Doyle', 1892, 3),
  (6, 'Dracula', 'Bram Stoker', 1897, 2),
  (7, 'The War of the Worlds', 'H. G. Wells', 1898, 2),
  (8, 'My Ántonia', 'Willa Cather', 1918, 1);

INSERT INTO readers (id, name, joined) VALUES
  (1, 'Amina Diallo', '2023-02-11'),
  (2, 'Björn Lindqvist', '2023-09-30'),
  (3, 'Chiara Rossi', '2024-01-08'),
  (4, 'Daichi Mori', '2024-05-19'),
  (5, 'Elif Yılmaz', '2025-03-02');

INSERT INTO loans (book, reader, lent, due, returned) VALUES
  (1, 1, '2025-01-10', '2025-02-07', '2025-01-29'),
  (5, 1, '2025-02-03', '2025-03-03', '2025-03-09'),
  (2, 2, '2025-02-14', '2025-03-14', NULL),
  (4, 3, '2025-03-01', '2025-03-29', '2025-03-20'),
  (4, 4, '2025-03-05', '2025-04-02', '2025-04-02'),
  (6, 5, '2025-03-08', '2025-04-05', '2025-04-21'),
  (7, 2, '2025-04-11', '2025-05-09', '2025-05-01'),
  (5, 3, '2025-04-15', '2025-05-13', NULL),
  (1, 4, '2025-05-06', '2025-06-03', '2025-05-30'),
  (3, 5, '2025-05-20', '2025-06-17', NULL),
  (5, 2, '2025-06-01', '2025-06-29', NULL),
  (8, 1, '2025-06-07', '2025-07-05', NULL);
