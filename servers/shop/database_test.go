package shop

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// opened opens a database that is closed with the test.
func opened(t *testing.T, path string) *database {
	t.Helper()
	d, err := open(t.Context(), Options{DB: path})
	if err != nil {
		t.Fatalf("open %q: %v", path, err)
	}
	t.Cleanup(func() {
		if err := d.close(); err != nil {
			t.Errorf("close %q: %v", path, err)
		}
	})
	return d
}

// another runs statements in a database file that need not be of a shop.
func another(t *testing.T, path, query string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), query); err != nil {
		t.Fatal(err)
	}
}

func count(t *testing.T, d *database, table string) int {
	t.Helper()
	n, err := view(t.Context(), d, func(tx *sql.Tx) (n int, err error) {
		err = tx.QueryRowContext(t.Context(), "SELECT count(*) FROM "+table).Scan(&n)
		return n, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A file other than a shop's database is refused with a clear error, and not changed.
func TestForeignFiles(t *testing.T) {
	for _, tt := range []struct {
		name  string
		make  func(t *testing.T, path string)
		want  string
		early bool // Check sees it
	}{
		{"text", func(t *testing.T, path string) {
			if err := os.WriteFile(path, []byte("to do: tents, ropes, stoves"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "not an SQLite database", true},
		{"folder", func(t *testing.T, path string) {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, "is a folder", true},
		{"other tables", func(t *testing.T, path string) { another(t, path, "CREATE TABLE notes (x)") }, "belongs to another program", false},
		{"other application", func(t *testing.T, path string) {
			another(t, path, "PRAGMA application_id = 7; CREATE TABLE notes (x)")
		}, "belongs to another program", true},
		{"newer shop", func(t *testing.T, path string) {
			another(t, path, fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = 9", application))
		}, "schema 9, this one knows 2", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.db")
			tt.make(t, path)
			before, _ := os.ReadFile(path)
			d, err := open(t.Context(), Options{DB: path})
			if err == nil {
				d.close()
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "x.db") {
				t.Errorf("open = %v, want %q in it", err, tt.want)
			}
			if err := (Options{DB: path}).Check(); (err != nil) != tt.early {
				t.Errorf("Check = %v, want an error: %t", err, tt.early)
			}
			if after, _ := os.ReadFile(path); string(after) != string(before) {
				t.Error("the file was changed")
			}
		})
	}
	if err := (Options{DB: filepath.Join(t.TempDir(), "no", "x.db")}).Check(); err == nil || !strings.Contains(err.Error(), "create it") {
		t.Errorf("Check of a folder that is missing = %v", err)
	}
}

func TestNewFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "no 100%#.db")
	if err := (Options{DB: path}).Check(); err != nil {
		t.Errorf("Check of a file to be made = %v", err)
	}
	// Two programs start at once; one makes the database.
	var opening [4]*database
	done := make(chan error)
	for i := range opening {
		go func() {
			var err error
			opening[i], err = open(t.Context(), Options{DB: path})
			done <- err
		}()
	}
	for range opening {
		if err := <-done; err != nil {
			t.Errorf("open: %v", err)
		}
	}
	for _, d := range opening {
		if d == nil {
			continue
		}
		if got := count(t, d, "products"); got != 24 {
			t.Errorf("there are %d products, want 24", got)
		}
		d.close()
	}
	d := opened(t, path)
	var mode string
	if err := d.db.QueryRowContext(t.Context(), "PRAGMA journal_mode").Scan(&mode); err != nil || mode != "wal" {
		t.Errorf("journal_mode = %q, %v; want wal", mode, err)
	}
	if err := (Options{DB: path}).Check(); err != nil {
		t.Errorf("Check of a shop = %v", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("the file has the rights %v, want those of its owner alone", info.Mode().Perm())
	}
}

// A file of the first version keeps its data and gets the descriptions of categories.
func TestFirstVersion(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shop.db")
	another(t, path, schemaSQL+seedSQL+fmt.Sprintf(`PRAGMA application_id = %d; PRAGMA user_version = 1;
		INSERT INTO categories (id, title) VALUES ('own', 'Own'); UPDATE products SET stock = 77 WHERE id = 'prd-1001'`, application))
	for range 2 {
		d := opened(t, path)
		all, err := view(t.Context(), d, func(tx *sql.Tx) ([]category, error) { return categories(t.Context(), tx) })
		if err != nil || len(all) != 7 || all[0].Description == "" || all[5].Description == "" || all[6].Description != "" {
			t.Errorf("categories = %+v, %v; want six with a description and one without", all, err)
		}
		p, err := view(t.Context(), d, func(tx *sql.Tx) (*product, error) { return productOf(t.Context(), tx, "prd-1001") })
		if err != nil || p.Stock != 77 {
			t.Errorf("prd-1001 = %+v, %v; want 77 in stock", p, err)
		}
	}
}

// The tables of the seed refer to each other, and prices are what they say.
func TestSeed(t *testing.T) {
	d := opened(t, "")
	for _, query := range []string{"PRAGMA foreign_key_check", "SELECT 1 FROM pragma_integrity_check WHERE integrity_check <> 'ok'"} {
		err := d.db.QueryRowContext(t.Context(), query).Scan(new(any), new(any), new(any), new(any))
		if !errors.Is(err, sql.ErrNoRows) {
			t.Errorf("%s: %v, want no rows", query, err)
		}
	}
	for table, prefix := range map[string]string{"products": "prd", "customers": "cus", "carts": "crt", "orders": "ord", "trips": "trp"} {
		var wrong string
		err := d.db.QueryRowContext(t.Context(), "SELECT id FROM "+table+" WHERE id <> ? || '-' || n", prefix).Scan(&wrong)
		if !errors.Is(err, sql.ErrNoRows) {
			t.Errorf("%s: the id %q is not of its number (%v)", table, wrong, err)
		}
	}
	var wrong string
	prices := "SELECT t.id FROM trips t WHERE t.price <> t.people * CASE t.destination"
	for _, one := range destinations {
		prices += fmt.Sprintf(" WHEN '%s' THEN %d", one.id, one.price)
	}
	if err := d.db.QueryRowContext(t.Context(), prices+" END").Scan(&wrong); !errors.Is(err, sql.ErrNoRows) {
		t.Errorf("the price of %s is wrong (%v)", wrong, err)
	}
}

// A full disk fails the order that it is too small for, as a whole, and says so.
func TestFullDisk(t *testing.T) {
	d := opened(t, filepath.Join(t.TempDir(), "shop.db"))
	s := &server{db: d, mcp: New(Options{})}
	one := placement{Customer: "cus-1001", Items: []wanted{{whichProduct{Product: "prd-1016"}, 1}}} // there are 120
	if _, err := d.db.ExecContext(t.Context(), "PRAGMA max_page_count = 1"); err != nil {           // no less than there are
		t.Fatal(err)
	}
	placed := 0
	var err error
	for ; err == nil; placed++ {
		_, err = s.placeOrder(t.Context(), one)
	}
	placed--
	if !strings.Contains(err.Error(), "nothing was changed: the disk is full; make room") {
		t.Errorf("order %d: %v, want that the disk is full", placed+1, err)
	}
	if _, err := d.db.ExecContext(t.Context(), "PRAGMA max_page_count = 100000"); err != nil {
		t.Fatal(err)
	}
	p, err := view(t.Context(), d, func(tx *sql.Tx) (*product, error) { return productOf(t.Context(), tx, "prd-1016") })
	if err != nil || p.Stock != 120-placed || count(t, d, "orders") != 10+placed {
		t.Errorf("%d are left, and there are %d orders, after %d; %v", p.Stock, count(t, d, "orders"), placed, err)
	}
	if _, err := s.placeOrder(t.Context(), one); err != nil {
		t.Errorf("with room again: %v", err)
	}
}

// A call that ends while it waits says why, and the database goes on, also in memory.
func TestCancelled(t *testing.T) {
	for name, path := range map[string]string{"memory": "", "file": filepath.Join(t.TempDir(), "shop.db")} {
		t.Run(name, func(t *testing.T) {
			d := opened(t, path)
			gone := errors.New("the caller is gone")
			ctx, cancel := context.WithCancelCause(t.Context())
			_, err := change(ctx, d, func(tx *sql.Tx) (string, error) {
				id, err := newCart(ctx, tx)
				cancel(gone)
				return id, err
			})
			if !errors.Is(err, gone) {
				t.Errorf("change = %v, want %v", err, gone)
			}
			if got := count(t, d, "carts"); got != 2 {
				t.Errorf("there are %d carts, want 2", got)
			}
		})
	}
}

// The oldest carts go when there are too many, with what is in them.
func TestCartsAreBounded(t *testing.T) {
	d := opened(t, "")
	_, err := change(t.Context(), d, func(tx *sql.Tx) (none, error) {
		_, err := tx.ExecContext(t.Context(), `WITH RECURSIVE i(n) AS (SELECT 1003 UNION ALL SELECT n + 1 FROM i WHERE n < 11000)
			INSERT INTO carts (n, id, created) SELECT n, 'crt-' || n, '' FROM i`)
		return none{}, err
	})
	if err != nil || count(t, d, "carts") != maxCarts {
		t.Fatalf("%d carts, %v", count(t, d, "carts"), err)
	}
	id, err := change(t.Context(), d, func(tx *sql.Tx) (string, error) { return newCart(t.Context(), tx) })
	if err != nil || id != "crt-11001" || count(t, d, "carts") != maxCarts || count(t, d, "cart_items") != 1 {
		t.Errorf("newCart = %q, %v; %d carts and %d items, want %d and 1", id, err, count(t, d, "carts"), count(t, d, "cart_items"), maxCarts)
	}
}

// A catalogue has an end.
func TestCatalogIsBounded(t *testing.T) {
	d := opened(t, "")
	ctx := t.Context()
	try := func(in creation) error {
		_, err := view(ctx, d, func(tx *sql.Tx) (bool, error) { return creatable(ctx, tx, in) })
		return err
	}
	fill := func(query string) {
		t.Helper()
		if _, err := change(ctx, d, func(tx *sql.Tx) (none, error) {
			_, err := tx.ExecContext(ctx, query)
			return none{}, err
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := try(creation{Name: "x", Category: "new", CategoryTitle: "New"}); err != nil {
		t.Errorf("a new category: %v", err)
	}
	fill(`WITH RECURSIVE i(n) AS (SELECT 7 UNION ALL SELECT n + 1 FROM i WHERE n < 100)
		INSERT INTO categories (n, id, title) SELECT n, 'c' || n, 'c' FROM i`)
	if err := try(creation{Name: "x", Category: "new", CategoryTitle: "New"}); err == nil || !strings.Contains(err.Error(), "100 categories") {
		t.Errorf("a category too many: %v", err)
	}
	fill(`WITH RECURSIVE i(n) AS (SELECT 1025 UNION ALL SELECT n + 1 FROM i WHERE n < 2000)
		INSERT INTO products (n, id, name, category, description, price, stock) SELECT n, 'prd-' || n, 'p' || n, 'tents', '', 1, 1 FROM i`)
	if err := try(creation{Name: "x", Category: "tents"}); err == nil || !strings.Contains(err.Error(), "1000 products") {
		t.Errorf("a product too many: %v", err)
	}
}

// Free days are looked for from the wanted one on, and before it when none follows.
func TestFreeDates(t *testing.T) {
	now := time.Date(2026, 7, 28, 23, 30, 0, 0, time.UTC)
	taken := map[string]bool{"2026-08-01": true, "2026-08-02": true, "2026-08-04": true, "2027-07-29": true}
	for _, tt := range []struct{ date, want string }{
		{"2026-07-29", ""},
		{"2027-07-28", ""},
		{"2026-07-28", "2026-07-28 is not in the future; free are 2026-07-29, 2026-07-30, 2026-07-31"},
		{"2027-07-30", "2027-07-30 is too far ahead; free are 2026-07-29, 2026-07-30, 2026-07-31"},
		{"2026-08-01", "Walk is taken on 2026-08-01; free are 2026-08-03, 2026-08-05, 2026-08-06"},
		{"2027-07-29", "Walk is taken on 2027-07-29; free are 2026-07-29, 2026-07-30, 2026-07-31"},
	} {
		got := ""
		if err := checkDate(tt.date, "Walk", now, taken); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("checkDate %s = %q, want %q", tt.date, got, tt.want)
		}
	}
	all := map[string]bool{}
	for d := now; d.Before(now.AddDate(1, 1, 0)); d = d.AddDate(0, 0, 1) {
		all[d.Format(time.DateOnly)] = true
	}
	if err := checkDate("2026-08-01", "Walk", now, all); err == nil || !strings.Contains(err.Error(), "every day of the year is taken") {
		t.Errorf("checkDate when all is taken = %v", err)
	}
}

// A file that cannot be written gives a clear error.
func TestReadOnlyFile(t *testing.T) {
	if os.Geteuid() == 0 || runtime.GOOS == "windows" {
		t.Skip("whoever runs this may write everything")
	}
	path := filepath.Join(t.TempDir(), "shop.db")
	opened(t, path).close()
	if err := os.Chmod(path, 0o400); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t.Context(), Options{DB: path}); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("open = %v, want that it is not permitted", err)
	}
}
