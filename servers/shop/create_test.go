package shop_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/servers/shop"
)

func kettle(more args) args {
	in := args{"name": "Kettle", "category": "kitchen", "price": "39.50"}
	for k, v := range more {
		in[k] = v
	}
	return in
}

// The model is asked once, and only for what can be created.
func TestCreateAsksTheModel(t *testing.T) {
	eras(t, func(t *testing.T, rev mcp.Revision) {
		text := "  A kettle\nthat\x1b[31m whistles. "
		var fails error
		p := &person{write: func() (string, error) { return text, fails }}
		s := mcptest.Connect(t, newServer(t, shop.Options{}), p.client(), rev)

		refused(t, s, "create-product", kettle(args{"category": "cars"}), `no category "cars"`, "category_title")
		refused(t, s, "create-product", kettle(args{"name": " fjordlight  2"}), "prd-1001 has the name")
		refused(t, s, "create-product", kettle(args{"name": " \n"}), "name is empty")
		if len(p.asked) != 0 {
			t.Errorf("the model was asked %q, for nothing", p.asked)
		}

		got := call[product](t, s, "create-product", kettle(nil))
		if got.ID != "prd-1025" || got.Description != "A kettle that[31m whistles." || got.Stock != 0 {
			t.Errorf("create-product = %+v", got)
		}
		if len(p.asked) != 1 || !strings.Contains(p.asked[0], `"Kettle"`) || !strings.Contains(p.asked[0], "39.50 EUR") {
			t.Errorf("the model was asked %q, want once, for the kettle", p.asked)
		}
		refused(t, s, "create-product", kettle(nil), "prd-1025 has the name")

		text = strings.Repeat("ü", 1500)
		if got := call[product](t, s, "create-product", kettle(args{"name": "B"})); len([]rune(got.Description)) != 1000 || !strings.HasSuffix(got.Description, "ü…") {
			t.Errorf("a long description has %d characters, want 1000 with an ellipsis", len([]rune(got.Description)))
		}
		text = " \n"
		refused(t, s, "create-product", kettle(args{"name": "C"}), "answered without text", "set description")

		// Clients of 2026-07-28 cannot send a refusal, and end the call themselves.
		for _, fails = range []error{mcp.ErrDeclined, errors.New("out of words " + strings.Repeat("!", 500))} {
			res, err := s.CallTool(t.Context(), "create-product", kettle(args{"name": "C"}))
			if rev == mcp.V2026_07_28 {
				if err == nil {
					t.Errorf("create-product = %v after %v, want an error of the client", res, fails)
				}
				continue
			}
			if err != nil || !res.IsError || !strings.Contains(res.Text(), "set description") || len(res.Text()) > 250 {
				t.Errorf("create-product = %v, %v after %v; want a short tool error", res, err, fails)
			}
		}
		if c := call[product](t, s, "create-product", kettle(args{"name": "C", "description": "Given."})); c.ID != "prd-1027" || c.Description != "Given." {
			t.Errorf("create-product = %+v, want prd-1027", c)
		}
	})
}

// Keywords, as text or as a list, reach the model. A description that is given needs none.
func TestCreateWithKeywords(t *testing.T) {
	for _, tt := range []struct {
		keywords any
		want     string
	}{
		{"light, whistling", "costs 39.50 EUR. Use these keywords: light, whistling. Answer"},
		{[]string{"light", "whistling\nloud"}, "Use these keywords: light, whistling loud. Answer"},
		{[]string{}, "costs 39.50 EUR. Answer"},
		{nil, "costs 39.50 EUR. Answer"},
	} {
		p := &person{write: func() (string, error) { return "It whistles.", nil }}
		s := mcptest.Connect(t, newServer(t, shop.Options{}), p.client(), mcp.V2026_07_28)
		call[product](t, s, "create-product", kettle(args{"keywords": tt.keywords}))
		call[product](t, s, "create-product", kettle(args{"keywords": tt.keywords, "name": "B", "description": "Given."}))
		if len(p.asked) != 1 || !strings.Contains(p.asked[0], tt.want) {
			t.Errorf("keywords %v: the model was asked %q, want once, with %q", tt.keywords, p.asked, tt.want)
		}
	}
}

// A name that differs in letter case alone is taken; the error has it as the shop does.
func TestTakenName(t *testing.T) {
	s := mcptest.Connect(t, newServer(t, shop.Options{DB: ":memory:"}), &mcp.Client{}, mcp.V2026_07_28)
	refused(t, s, "create-product", kettle(args{"name": "ember stove", "description": "x"}), `prd-1013 has the name "Ember Stove" already`)
}

// product_name is another name of name, and quantity of stock.
func TestCreateTakesOtherNames(t *testing.T) {
	s := connect(t)
	in := args{"product_name": "Kettle", "quantity": 7, "category": "kitchen", "price": "39.50", "description": "It whistles."}
	if got := call[product](t, s, "create-product", in); got.ID != "prd-1025" || got.Stock != 7 {
		t.Errorf("create-product = %+v, want 7 of prd-1025", got)
	}
	refused(t, s, "create-product", in, `prd-1025 has the name "Kettle"`)
	in["name"] = "Kettle"
	refused(t, s, "create-product", in, "name and product_name are two names of one argument")
	delete(in, "product_name")
	in["stock"] = 0
	refused(t, s, "create-product", in, "stock and quantity are two names of one argument")
	delete(in, "name")
	delete(in, "stock")
	refused(t, s, "create-product", in, "set name")

	in = args{"product_name": "Rope", "category": "climbing", "category_title": "Climbing", "category_description": "Up and\ndown.", "price": "9", "description": "x"}
	call[product](t, s, "create-product", in)
	if res, err := s.CallTool(t.Context(), "categories", nil); err != nil || !strings.Contains(res.Text(), `"title":"Climbing","products":1,"description":"Up and down."`) {
		t.Errorf("categories = %v, %v; want climbing with its description", res.Text(), err)
	}
}

// Without a model the error asks the caller for the description, in words that a model
// can act on.
func TestCreateWithoutModel(t *testing.T) {
	for _, rev := range mcp.Revisions() {
		s := mcptest.Connect(t, newServer(t, shop.Options{}), &mcp.Client{}, rev)
		refused(t, s, "create-product", kettle(nil), "sampling", "set description")
		if got := call[product](t, s, "create-product", kettle(args{"description": "It whistles."})); got.Description != "It whistles." {
			t.Errorf("%s: create-product = %+v", rev, got)
		}
	}
}

func TestCreateIsChecked(t *testing.T) {
	s := connect(t)
	for _, tt := range []struct {
		in   args
		want string
	}{
		{args{"price": "39.5"}, "such as 24.90"},
		{args{"price": 39.5}, "price"},
		{args{"price": "-1.00"}, "such as 24.90"},
		{args{"price": "1000000"}, "at most 999999.99"},
		{args{"stock": -1}, "stock"},
		{args{"category": "../x"}, "category"},
		{args{"name": strings.Repeat("x", 101)}, "name"},
		{args{"quantity": -1}, "quantity"},
		{args{"keywords": 5}, "keywords"},
		{args{"keywords": strings.Repeat("x", 501)}, "keywords"},
		{args{"description": strings.Repeat("x", 1001)}, "description"},
	} {
		refused(t, s, "create-product", kettle(tt.in), tt.want)
	}
}
