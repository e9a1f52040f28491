package shop_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/servers/shop"
)

// An invalid or unknown argument is a tool error that names the valid values
// (TOOL-26-028).
func TestWhatCannotBe(t *testing.T) {
	s := connect(t)
	for _, tt := range []struct {
		tool string
		in   args
		want []string
	}{
		{"product", args{"product": "prd-9"}, []string{`no product "prd-9"`, "products lists"}},
		{"products", args{"category": "cars"}, []string{`no category "cars"`, "categories lists"}},
		{"products", args{"after": "prd-9"}, []string{`"prd-9"`, "leave it out"}},
		{"products", args{"limit": 101}, []string{"limit", "100"}},
		{"get-orders", args{"customer": "cus-9"}, []string{`no customer "cus-9"`, "get-customers lists"}},
		{"get-order", args{"order": "ord-9"}, []string{`no order "ord-9"`, "get-orders lists"}},
		{"get-cart", args{"cart": "crt-9"}, []string{`no cart "crt-9"`, "add-to-cart"}},
		{"get-cart-items", args{"cart": strings.Repeat("x", 100)}, []string{`no cart "xxx`, "…"}},
		{"add-to-cart", args{"product": "prd-9"}, []string{`no product "prd-9"`}},
		{"add-to-cart", args{"product": "prd-1001", "cart": "crt-9"}, []string{`no cart "crt-9"`}},
		{"add-to-cart", args{"product": "prd-1001", "customer": "cus-9"}, []string{`no customer "cus-9"`}},
		{"add-to-cart", args{"product": "prd-1001", "cart": "crt-1001", "customer": "cus-1001"}, []string{"crt-1001 belongs to cus-1002"}},
		{"add-to-cart", args{"product": "prd-1001", "quantity": 0}, []string{"quantity", "at least 1"}},
		{"add-to-cart", args{"product": "prd-1001", "quantity": -2}, []string{"quantity", "at least 1"}},
		{"add-to-cart", args{"product": "prd-1001", "quantity": 1001}, []string{"quantity", "at most 1000"}},
		{"add-to-cart", args{"product": "prd-1001", "quantity": 1.5}, []string{"quantity"}},
		{"add-to-cart", args{"product": "prd-1001", "quantity": 13}, []string{"only 12 of Fjordlight 2 (prd-1001) are left"}},
		{"add-to-cart", args{"product": "prd-1024", "quantity": 2}, []string{"only one Brass Sextant"}},
		{"place-order", args{}, []string{"either the cart"}},
		{"place-order", args{"cart": "crt-1001", "items": []args{{"product": "prd-1001"}}}, []string{"either the cart"}},
		{"place-order", args{"cart": "crt-1001", "product": "prd-1001"}, []string{"either the cart"}},
		{"place-order", args{"cart": "crt-1001", "quantity": 2}, []string{"either the cart"}},
		{"place-order", args{"items": []args{{"product": "prd-1001"}}, "product_name": "Bivy One"}, []string{"either the cart"}},
		{"place-order", args{"items": []args{{"product": "prd-1001", "product_name": "Bivy One"}}, "customer": "cus-1001"}, []string{"either product, an id, or product_name"}},
		{"place-order", args{"items": []args{{"quantity": 2}}, "customer": "cus-1001"}, []string{"either product, an id, or product_name"}},
		{"place-order", args{"product_name": "Bivy", "customer": "cus-1001"}, []string{`no product "Bivy"`}},
		{"place-order", args{"quantity": 2, "customer": "cus-1001"}, []string{"either product, an id, or product_name"}},
		{"product", args{}, []string{"either product, an id, or product_name"}},
		{"add-to-cart", args{"product": "prd-1001", "product_name": "Fjordlight 2"}, []string{"either product, an id, or product_name"}},
		{"get-cart", args{}, []string{"either the cart or the customer"}},
		{"get-cart", args{"cart": "crt-1001", "customer": "cus-1002"}, []string{"either the cart or the customer"}},
		{"get-cart", args{"customer": "cus-9"}, []string{`no customer "cus-9"`}},
		{"get-cart-items", args{"customer": "cus-1001"}, []string{"cus-1001 has no cart"}},
		{"place-order", args{"cart": "crt-1002"}, []string{"set customer"}},
		{"place-order", args{"cart": "crt-1001", "customer": "cus-1001"}, []string{"belongs to cus-1002"}},
		{"place-order", args{"items": []args{{"product": "prd-1001"}}, "customer": "cus-9"}, []string{`no customer "cus-9"`}},
		{"place-order", args{"items": []args{{"product": "prd-9"}}, "customer": "cus-1001"}, []string{`no product "prd-9"`}},
		{"place-order", args{"items": []args{{"product": "prd-1001", "quantity": 0}}, "customer": "cus-1001"}, []string{"at least 1"}},
	} {
		refused(t, s, tt.tool, tt.in, tt.want...)
	}
	if _, err := s.GetPrompt(t.Context(), "describe_product", map[string]string{"product": "prd-9"}); err == nil || !strings.Contains(err.Error(), "prd-9") {
		t.Errorf("describe_product of prd-9 = %v, want an error that names it", err)
	}
	if _, err := s.ReadResource(t.Context(), "catalog://products/cars"); err == nil {
		t.Error("catalog://products/cars can be read")
	}
	if c := call[cart](t, s, "add-to-cart", args{"product": "prd-1001"}); c.ID != "crt-1003" {
		t.Errorf("the next cart is %s: a refused call has left one", c.ID)
	}
}

// An order that cannot be met in full takes nothing from stock or cart.
func TestOrderIsAllOrNothing(t *testing.T) {
	s := connect(t)
	c := call[cart](t, s, "add-to-cart", args{"product": "prd-1024", "customer": "cus-1001"})
	call[cart](t, s, "add-to-cart", args{"product": "prd-1002", "quantity": 6, "cart": c.ID})
	call[cart](t, s, "add-to-cart", args{"product": "prd-1003", "quantity": 2, "cart": c.ID})

	// Somebody else is faster.
	call[order](t, s, "place-order", args{"customer": "cus-1002", "items": []args{{"product": "prd-1024"}, {"product": "prd-1002", "quantity": 2}, {"product": "prd-1002"}}})
	refused(t, s, "place-order", args{"cart": c.ID}, "Brass Sextant (prd-1024) is sold out", "only 3 of Fjordlight 4", "nothing was ordered")
	if got := call[cart](t, s, "get-cart", args{"cart": c.ID}); got.Items != 9 {
		t.Errorf("the cart has %d items after an order that was refused, want 9", got.Items)
	}
	if got := stock(t, s, "prd-1003"); got != 9 {
		t.Errorf("stock = %d after an order that was refused, want 9", got)
	}

	// The stock is counted over all lines of the same product.
	refused(t, s, "place-order", args{"customer": "cus-1001", "items": []args{{"product": "prd-1003", "quantity": 5}, {"product": "prd-1003", "quantity": 5}}}, "only 4 of Bivy One")
	o := call[order](t, s, "place-order", args{"customer": "cus-1001", "items": []args{{"product": "prd-1003", "quantity": 5}, {"product": "prd-1003", "quantity": 4}}})
	if len(o.Lines) != 1 || o.Lines[0] != (line{"prd-1003", 9, "1345.50 EUR"}) {
		t.Errorf("lines = %+v, want one of 9 for 1345.50 EUR", o.Lines)
	}

	c = call[cart](t, s, "add-to-cart", args{"product": "prd-1016", "customer": "cus-1001"})
	o = call[order](t, s, "place-order", args{"cart": c.ID})
	if got := call[order](t, s, "get-order", args{"order": o.ID}); got.Total != "9.90 EUR" || got.Status != "placed" {
		t.Errorf("get-order = %+v", got)
	}
	refused(t, s, "place-order", args{"cart": c.ID}, c.ID+" is empty")
}

// Products are also named by their names, and one product needs no list.
func TestProductsByName(t *testing.T) {
	s := connect(t)
	if p := call[product](t, s, "product", args{"product_name": "bivy one"}); p.ID != "prd-1003" {
		t.Errorf("product bivy one = %+v, want prd-1003", p)
	}
	first := call[cart](t, s, "add-to-cart", args{"product_name": "Spork Set", "quantity": 2, "customer": "cus-1002"})
	if got := call[cart](t, s, "get-cart", args{"customer": "cus-1002"}); got != first || first.ID != "crt-1003" || first.Items != 2 {
		t.Errorf("get-cart of cus-1002 = %+v, want the newer cart %+v", got, first)
	}
	if got := call[cartItems](t, s, "get-cart-items", args{"customer": "cus-1002"}); len(got.Items) != 1 || got.Items[0].ID != "itm-1003-1016" {
		t.Errorf("get-cart-items of cus-1002 = %+v, want itm-1003-1016", got)
	}
	for _, tt := range []struct {
		in    args
		items int
	}{
		{args{"product_name": "Bivy One", "quantity": 3}, 3},
		{args{"product": "prd-1003"}, 1},
		{args{"items": []args{{"product_name": "Bivy One"}, {"product": "prd-1016"}}}, 2},
	} {
		tt.in["customer"] = "cus-1001"
		if got := call[order](t, s, "place-order", tt.in); got.Items != tt.items {
			t.Errorf("place-order %v has %d items, want %d", tt.in, got.Items, tt.items)
		}
	}
	if got := stock(t, s, "prd-1003"); got != 4 {
		t.Errorf("stock = %d, want 4", got)
	}
}

// Many buy the same things at once, through two servers on the same file.
func TestNothingIsOversold(t *testing.T) {
	db := filepath.Join(t.TempDir(), "shop.db")
	var sessions []*mcp.Session
	for range 2 {
		sessions = append(sessions, mcptest.Connect(t, newServer(t, shop.Options{DB: db}), &mcp.Client{}, mcp.V2026_07_28))
	}
	var buyers sync.WaitGroup
	var bought, last atomic.Int64
	for i := range 16 {
		buyers.Go(func() {
			s := sessions[i%2]
			for _, p := range []struct {
				id    string
				count *atomic.Int64
			}{{"prd-1002", &bought}, {"prd-1024", &last}} {
				res, err := s.CallTool(t.Context(), "place-order", args{"customer": "cus-1001", "items": []args{{"product": p.id}}})
				switch {
				case err != nil:
					t.Errorf("place-order: %v", err)
				case !res.IsError:
					p.count.Add(1)
				case !strings.Contains(res.Text(), "sold out"):
					t.Errorf("place-order says %q, want that it is sold out", res.Text())
				}
			}
		})
	}
	buyers.Wait()
	if bought.Load() != 6 || last.Load() != 1 {
		t.Errorf("sold %d of 6 and %d of 1", bought.Load(), last.Load())
	}
	type orderList struct {
		Orders []order `json:"orders"`
	}
	if all := call[orderList](t, sessions[0], "get-orders", args{"customer": "cus-1001", "limit": 100}); len(all.Orders) != 3+7 {
		t.Errorf("there are %d orders, want 10", len(all.Orders))
	}
	if got := stock(t, sessions[1], "prd-1002") + stock(t, sessions[1], "prd-1024"); got != 0 {
		t.Errorf("%d are left, want none", got)
	}
}

// Lists are read on by the id that they end with.
func TestPages(t *testing.T) {
	s := connect(t)
	for _, tt := range []struct {
		tool, list string
		in         args
		want       int
		first      string
		last       string
	}{
		{"products", "products", args{}, 24, "prd-1001", "prd-1024"},
		{"products", "products", args{"category": "tents"}, 4, "prd-1001", "prd-1004"},
		{"get-customers", "customers", args{}, 8, "cus-1001", "cus-1008"},
		{"get-orders", "orders", args{}, 10, "ord-1010", "ord-1001"},
		{"get-orders", "orders", args{"customer": "cus-1001"}, 3, "ord-1009", "ord-1001"},
		{"get-orders", "orders", args{"customer": "cus-1006"}, 0, "", ""},
	} {
		for _, limit := range []int{1, 2, 4, 100} {
			tt.in["limit"] = limit
			delete(tt.in, "after")
			var ids []string
			for calls := 0; ; calls++ {
				out := call[map[string]any](t, s, tt.tool, tt.in)
				rows := out[tt.list].([]any)
				for _, row := range rows {
					ids = append(ids, row.(map[string]any)["id"].(string))
				}
				next, more := out["next"]
				if !more {
					break
				}
				if len(rows) != limit || calls > 100 {
					t.Fatalf("%s %v = %d rows, then there are more", tt.tool, tt.in, len(rows))
				}
				tt.in["after"] = next
			}
			if len(ids) != tt.want || tt.want > 0 && (ids[0] != tt.first || ids[len(ids)-1] != tt.last) {
				t.Errorf("%s %v = %v, want %d from %s to %s", tt.tool, tt.in, ids, tt.want, tt.first, tt.last)
			}
		}
	}
}

// A cart takes no more of a product than an order does.
func TestCartIsBounded(t *testing.T) {
	s := connect(t)
	call[product](t, s, "create-product", args{"name": "Peg", "category": "tents", "price": "0.50", "stock": 100_000, "description": "One peg."})
	c := call[cart](t, s, "add-to-cart", args{"product": "prd-1025", "quantity": 1000})
	refused(t, s, "add-to-cart", args{"product": "prd-1025", "cart": c.ID}, "1001", "the maximum is 1000")
	for i := range 100 {
		id := fmt.Sprintf("prd-%d", 1026+i)
		call[product](t, s, "create-product", args{"name": id, "category": "tents", "price": "1", "stock": 1, "description": "x"})
		if i < 99 {
			call[cart](t, s, "add-to-cart", args{"product": id, "cart": c.ID})
			continue
		}
		refused(t, s, "add-to-cart", args{"product": id, "cart": c.ID}, "the maximum is 100")
	}
	if o := call[order](t, s, "place-order", args{"cart": c.ID, "customer": "cus-1001"}); len(o.Lines) != 100 || o.Total != "599.00 EUR" {
		t.Errorf("order of %d lines for %s, want 100 for 599.00 EUR", len(o.Lines), o.Total)
	}
}
