package shop_test

import (
	"context"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/servers/shop"
)

// Answered changes survive a restart on the same file, over HTTP as for a user.
func TestRestart(t *testing.T) {
	mcptest.LeakCheck(t)
	db := filepath.Join(t.TempDir(), "shop.db")
	// running serves the file, as a process of its own would, for as long as body runs.
	running := func(body func(s *mcp.Session)) {
		t.Helper()
		srv := shop.New(shop.Options{DB: db})
		web := httptest.NewServer(srv)
		defer web.Close()
		defer func() {
			if err := srv.Shutdown(context.Background()); err != nil {
				t.Errorf("Shutdown: %v", err)
			}
		}()
		p := &person{
			date:   func(string) (string, error) { return day(80), nil },
			member: func() (bool, error) { return true, nil },
			write:  func() (string, error) { return "It whistles.", nil },
		}
		s, err := p.client().Dial(t.Context(), web.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		body(s)
	}

	var open cart
	running(func(s *mcp.Session) {
		call[order](t, s, "place-order", args{"cart": "crt-1001"})
		open = call[cart](t, s, "add-to-cart", args{"product": "prd-1016", "quantity": 4, "customer": "cus-1003"})
		call[product](t, s, "create-product", args{"name": "Rope", "category": "climbing", "category_title": "Climbing", "price": "99.00", "stock": 3})
		call[trip](t, s, "book-trip", args{"customer": "cus-1005", "destination": "tatra", "date": day(79)})
		call[files](t, s, "process-files", nil)
	})
	running(func(s *mcp.Session) {
		if o := call[order](t, s, "get-order", args{"order": "ord-1011"}); o.Customer != "cus-1002" || o.Total != "164.60 EUR" || len(o.Lines) != 3 {
			t.Errorf("order = %+v", o)
		}
		if c := call[cart](t, s, "get-cart", args{"cart": "crt-1001"}); c.Items != 0 {
			t.Errorf("the cart that was ordered = %+v, want it empty", c)
		}
		if c := call[cart](t, s, "get-cart", args{"cart": open.ID}); c != open {
			t.Errorf("the open cart = %+v, want %+v", c, open)
		}
		if p := call[product](t, s, "product", args{"product": "prd-1025"}); p.Description != "It whistles." || p.Stock != 3 {
			t.Errorf("product = %+v", p)
		}
		if _, err := s.ReadResource(t.Context(), "catalog://products/climbing"); err != nil {
			t.Errorf("read the new category: %v", err)
		}
		if got := call[files](t, s, "process-files", nil); got != (files{}) {
			t.Errorf("process-files = %+v, want none", got)
		}
		// The day is still taken, the customer is still a member, and ids go on.
		got := call[trip](t, s, "book-trip", args{"customer": "cus-1005", "destination": "tatra", "date": day(79)})
		if got.Trip == nil || got.Trip.ID != "trp-1005" || got.Trip.Date != day(80) || !got.Member {
			t.Errorf("book-trip = %+v", got)
		}
		if o := call[order](t, s, "place-order", args{"cart": open.ID}); o.ID != "ord-1012" {
			t.Errorf("the next order = %s, want ord-1012", o.ID)
		}
	})
}
