package shop_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/servers/shop"
)

func TestMain(m *testing.M) { mcptest.Main(m) }

type args = map[string]any

type product struct {
	ID          string `json:"id"`
	Category    string `json:"category"`
	Price       string `json:"price"`
	Stock       int    `json:"stock"`
	Description string `json:"description"`
}

type cart struct {
	ID       string `json:"id"`
	Customer string `json:"customer"`
	Items    int    `json:"items"`
	Total    string `json:"total"`
}

type cartItems struct {
	Items []item `json:"items"`
	Total string `json:"total"`
}

type item struct {
	ID          string `json:"id"`
	Description string `json:"description"`
	line
}

type order struct {
	ID       string `json:"id"`
	Customer string `json:"customer"`
	Status   string `json:"status"`
	Items    int    `json:"items"`
	Total    string `json:"total"`
	Lines    []line `json:"lines"`
}

type line struct {
	Product  string `json:"product"`
	Quantity int    `json:"quantity"`
	Total    string `json:"total"`
}

type trip struct {
	Trip *struct {
		ID    string `json:"id"`
		Date  string `json:"date"`
		Price string `json:"price"`
	} `json:"trip"`
	Member bool   `json:"member"`
	Note   string `json:"note"`
}

type files struct {
	Processed int `json:"processed"`
	Left      int `json:"left"`
}

// newServer makes a shop that is shut down with the test.
func newServer(t *testing.T, o shop.Options) *mcp.Server {
	srv := shop.New(o)
	t.Cleanup(func() {
		if err := srv.Shutdown(context.Background()); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
	})
	return srv
}

// connect opens a session of the newest revision with a new shop in memory.
func connect(t *testing.T) *mcp.Session {
	t.Helper()
	return mcptest.Connect(t, newServer(t, shop.Options{}), &mcp.Client{}, mcp.V2026_07_28)
}

func call[Out any](t *testing.T, s *mcp.Session, tool string, in args) Out {
	t.Helper()
	out, err := mcp.CallAs[Out](t.Context(), s, tool, in)
	if err != nil {
		t.Fatalf("%s %v: %v", tool, in, err)
	}
	return out
}

// refused calls a tool that must answer with a tool error that has all of want in it.
func refused(t *testing.T, s *mcp.Session, tool string, in args, want ...string) {
	t.Helper()
	res, err := s.CallTool(t.Context(), tool, in)
	if err != nil || !res.IsError {
		t.Errorf("%s %v = %v, %v; want a tool error", tool, in, res, err)
		return
	}
	for _, part := range want {
		if !strings.Contains(res.Text(), part) {
			t.Errorf("%s %v says %q, want %q in it", tool, in, res.Text(), part)
		}
	}
}

func stock(t *testing.T, s *mcp.Session, id string) int {
	t.Helper()
	return call[product](t, s, "product", args{"product": id}).Stock
}

// day is a date so many days from now.
func day(n int) string { return time.Now().UTC().AddDate(0, 0, n).Format(time.DateOnly) }

// person is a client whose user and model answer what a shop asks. It is for one
// session.
type person struct {
	date   func(message string) (string, error) // another date; nil: nobody can be asked
	member func() (bool, error)
	rest   func(form string) (args, error) // of a booking
	write  func() (string, error)          // nil: there is no model

	mu    sync.Mutex
	asked []string // guarded by mu
}

func (p *person) client() *mcp.Client {
	c := &mcp.Client{Name: "person", Version: "1"}
	note := func(message string) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.asked = append(p.asked, message)
	}
	if p.date != nil {
		c.OnElicit = func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			note(r.Message)
			content := args{}
			var err error
			if strings.Contains(r.Message, "member") {
				content["confirm"], err = p.member()
			} else if strings.Contains(r.Message, "needs more") {
				content, err = p.rest(string(r.Schema))
			} else {
				content["date"], err = p.date(r.Message)
			}
			switch {
			case errors.Is(err, mcp.ErrDeclined):
				return &mcp.ElicitResult{Action: "decline"}, nil
			case errors.Is(err, mcp.ErrDismissed):
				return &mcp.ElicitResult{Action: "cancel"}, nil
			case err != nil:
				return nil, err
			}
			return &mcp.ElicitResult{Action: "accept", Content: content}, nil
		}
	}
	if p.write != nil {
		c.OnSample = func(_ context.Context, r *mcp.SampleRequest) (*mcp.SampleResult, error) {
			note(r.Messages[0].Content[0].(mcp.TextContent).Text)
			text, err := p.write()
			if err != nil {
				return nil, err
			}
			return &mcp.SampleResult{Role: "assistant", Model: "m", Content: []mcp.Content{mcp.Text(text)}}, nil
		}
	}
	return c
}

// TestEveryRevision goes through all features on every revision and wire.
func TestEveryRevision(t *testing.T) {
	wanted, other := day(40), day(41)
	newClient := func() *mcp.Client {
		p := &person{
			date:   func(string) (string, error) { return other, nil },
			member: func() (bool, error) { return true, nil },
			rest: func(string) (args, error) {
				return args{"customer": "cus-1001", "destination": "lofoten", "people": 3}, nil
			},
			write: func() (string, error) { return "A kettle that whistles.", nil },
		}
		return p.client()
	}
	mcptest.Every(t, func() *mcp.Server { return newServer(t, shop.Options{}) }, newClient, func(t *testing.T, s *mcp.Session) {
		// From the catalogue to an order.
		c := call[cart](t, s, "add-to-cart", args{"product": "prd-1016", "quantity": 3, "customer": "cus-1006"})
		c = call[cart](t, s, "add-to-cart", args{"product": "prd-1020", "cart": c.ID})
		if c.ID != "crt-1003" || c.Items != 4 || c.Total != "54.60 EUR" {
			t.Errorf("cart = %+v, want crt-1003 with 4 items for 54.60 EUR", c)
		}
		if items := call[cartItems](t, s, "get-cart-items", args{"cart": c.ID}); items.Total != c.Total || len(items.Items) != 2 || items.Items[0] != (item{"itm-1003-1016", "Four sporks in four colours, so that nobody argues.", line{"prd-1016", 3, "29.70 EUR"}}) {
			t.Errorf("get-cart-items = %+v, want 3 of prd-1016 for 29.70 EUR, and another", items)
		}
		if got := call[cart](t, s, "get-cart", args{"customer": "cus-1006"}); got != c {
			t.Errorf("get-cart of cus-1006 = %+v, want %+v", got, c)
		}
		o := call[order](t, s, "place-order", args{"cart": c.ID})
		if o.ID != "ord-1011" || o.Customer != "cus-1006" || o.Total != c.Total || len(o.Lines) != 2 {
			t.Errorf("order = %+v, want ord-1011 of cus-1006 for %s", o, c.Total)
		}
		if got := stock(t, s, "prd-1016"); got != 117 {
			t.Errorf("stock = %d after an order of 3, want 117", got)
		}
		for _, uri := range []string{"catalog://products", "catalog://products/kitchen"} {
			if r, err := s.ReadResource(t.Context(), uri); err != nil || !strings.Contains(r.Contents[0].Text, `"stock":117`) {
				t.Errorf("%s = %v, %v; want the new stock in it", uri, r, err)
			}
		}
		if res, err := s.CallTool(t.Context(), "categories", nil); err != nil || !strings.Contains(res.Text(), `{"id":"tents","title":"Tents & shelters","products":4,"description":"Tents for two`) {
			t.Errorf("categories = %v, %v", res, err)
		}

		// The model is asked, where there is one that can be.
		p, err := mcp.CallAs[product](t.Context(), s, "create-product", args{"name": "Kettle", "category": "kitchen", "price": "39.50", "stock": 2})
		if err != nil || p.ID != "prd-1025" || p.Description != "A kettle that whistles." || p.Price != "39.50 EUR" {
			t.Errorf("create-product = %+v, %v", p, err)
		}

		// The user is asked, since 2025-06-18.
		trips := func() trip {
			return call[trip](t, s, "book-trip", args{"customer": "cus-1002", "destination": "tatra", "date": wanted, "people": 2})
		}
		first := trips()
		canAsk := s.Revision() >= mcp.V2025_06_18
		if first.Trip == nil || first.Trip.ID != "trp-1004" || first.Trip.Date != wanted || first.Member != canAsk {
			t.Errorf("book-trip = %+v, want trp-1004 on %s, member %t", first, wanted, canAsk)
		}
		if !canAsk {
			refused(t, s, "book-trip", args{"customer": "cus-1002", "destination": "tatra", "date": wanted}, "is taken", "cannot ask", other)
		} else if second := trips(); second.Trip == nil || second.Trip.ID != "trp-1005" || second.Trip.Date != other {
			t.Errorf("book-trip on a day that is taken = %+v, want trp-1005 on %s", second, other)
		}

		// A date alone is enough where the user can be asked for the rest.
		if !canAsk {
			refused(t, s, "book-trip", args{"date": day(80)}, "cannot ask the user", "set customer, destination and call again")
		} else if got := call[trip](t, s, "book-trip", args{"date": day(80)}); got.Trip == nil || got.Trip.Date != day(80) || got.Trip.Price != "447.00 EUR" {
			t.Errorf("book-trip with a date alone = %+v, want a trip of 3 to Lofoten", got)
		}

		if got := call[files](t, s, "process-files", nil); got != (files{5, 0}) {
			t.Errorf("process-files = %+v, want 5 processed and 0 left", got)
		}
		if got := call[files](t, s, "process-files", nil); got != (files{0, 0}) {
			t.Errorf("process-files again = %+v, want none", got)
		}
		if r, err := s.GetPrompt(t.Context(), "describe_product", map[string]string{"product": "prd-1001"}); err != nil ||
			!strings.Contains(r.Messages[0].Content.(mcp.TextContent).Text, "Fjordlight 2") {
			t.Errorf("describe_product = %v, %v", r, err)
		}
	})
}
