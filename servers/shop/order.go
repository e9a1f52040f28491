package shop

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/mcp"
)

// order is an order as lists show it.
type order struct {
	ID           string `json:"id" examples:"ord-1001"`
	Customer     string `json:"customer" doc:"id of the customer"`
	CustomerName string `json:"customer_name"`
	Placed       string `json:"placed" format:"date-time"`
	Status       string `json:"status" enum:"placed,shipped,delivered"`
	Items        int    `json:"items" doc:"number of pieces in it"`
	Total        money  `json:"total" examples:"49.80 EUR"`
}

func (o *order) fields() []any {
	return []any{&o.ID, &o.Customer, &o.CustomerName, &o.Placed, &o.Status, &o.Items, &o.Total}
}

// orders selects the fields of an order; a WHERE clause follows.
const orders = `SELECT o.id, c.id, c.name, o.placed, o.status,
		(SELECT sum(quantity) FROM order_items WHERE "order" = o.id),
		(SELECT sum(quantity * price) FROM order_items WHERE "order" = o.id)
	FROM orders o JOIN customers c ON c.id = o.customer `

type orderList struct {
	Orders []order `json:"orders" doc:"newest first"`
	Next   string  `json:"next,omitempty" doc:"set if there are older ones: the value of after for the next page"`
}

type fullOrder struct {
	order
	Lines []line `json:"lines"`
}

// wanted is an ordered product.
type wanted struct {
	whichProduct
	Quantity int `json:"quantity,omitempty" doc:"how many" default:"1" min:"1" max:"1000"`
}

type placement struct {
	Cart  string   `json:"cart,omitempty" doc:"id of the cart to order and empty; or give items" max:"100"`
	Items []wanted `json:"items,omitempty" doc:"products to order without a cart; or give one product" max:"100"`
	whichProduct
	Quantity int    `json:"quantity,omitempty" doc:"how many of the product; absent: one" min:"1" max:"1000"`
	Customer string `json:"customer,omitempty" doc:"id of the customer; not needed if the cart belongs to one" max:"100"`
}

func (s *server) addOrders() {
	type filter struct {
		Customer string `json:"customer,omitempty" doc:"id of a customer; without it, of all" max:"100"`
		page
	}
	mcp.AddTool(s.mcp, mcp.Tool{
		Name: "get-orders", Title: "List orders", Description: "Lists orders, of one customer or all, newest first.",
		Annotations: reads,
	}, func(ctx context.Context, in filter) (*orderList, error) {
		return view(ctx, s.db, func(tx *sql.Tx) (*orderList, error) {
			if in.Customer != "" {
				if err := knownCustomer(ctx, tx, in.Customer); err != nil {
					return nil, err
				}
			}
			before, err := in.start(ctx, tx, "orders", math.MaxInt64)
			if err != nil {
				return nil, err
			}
			rows, err := list(ctx, tx, (*order).fields,
				orders+"WHERE (?1 = '' OR o.customer = ?1) AND o.n < ?2 ORDER BY o.n DESC LIMIT ?3", in.Customer, before, in.Limit+1)
			if err != nil {
				return nil, err
			}
			out := &orderList{}
			out.Orders, out.Next = cut(in.page, rows, func(o *order) string { return o.ID })
			return out, nil
		})
	})

	type one struct {
		Order string `json:"order" doc:"id of the order, such as ord-1001" max:"100"`
	}
	mcp.AddTool(s.mcp, mcp.Tool{
		Name: "get-order", Title: "Show an order", Description: "Returns one order, with its lines.",
		Annotations: reads,
	}, func(ctx context.Context, in one) (*fullOrder, error) {
		return view(ctx, s.db, func(tx *sql.Tx) (*fullOrder, error) { return orderOf(ctx, tx, in.Order) })
	})

	mcp.AddTool(s.mcp, mcp.Tool{
		Name: "place-order", Title: "Place an order",
		Description: "Orders the products of a cart, which it empties, or the given items, all of them or none, or one product.",
		Annotations: &mcp.ToolAnnotations{Destructive: new(true), OpenWorld: new(false)},
	}, s.placeOrder)
}

func orderOf(ctx context.Context, tx *sql.Tx, id string) (*fullOrder, error) {
	out := &fullOrder{}
	err := tx.QueryRowContext(ctx, orders+"WHERE o.id = ?", id).Scan(out.fields()...)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, unknown("order", id, "get-orders")
	}
	if err != nil {
		return nil, err
	}
	out.Lines, err = list(ctx, tx, (*line).fields, `SELECT p.id, p.name, i.quantity, i.price, i.quantity * i.price
		FROM order_items i JOIN products p ON p.id = i.product WHERE i."order" = ? ORDER BY p.n`, id)
	return out, err
}

func (s *server) placeOrder(ctx context.Context, in placement) (*fullOrder, error) {
	one := in.whichProduct != whichProduct{} || in.Quantity > 0
	ways := 0
	for _, given := range []bool{in.Cart != "", len(in.Items) > 0, one} {
		if given {
			ways++
		}
	}
	if ways != 1 {
		return nil, errors.New("give either the cart to order, or items, or one product with its quantity")
	}
	if one {
		in.Items = []wanted{{in.whichProduct, max(in.Quantity, 1)}}
	}
	var changed []string // categories
	out, err := change(ctx, s.db, func(tx *sql.Tx) (*fullOrder, error) {
		who, items := in.Customer, in.Items
		if in.Cart != "" {
			c, err := cartOf(ctx, tx, in.Cart)
			if err != nil {
				return nil, err
			}
			if who, err = owner(ctx, tx, c.ID, c.Customer, in.Customer); err != nil {
				return nil, err
			}
			if items, err = takeCart(ctx, tx, c.ID); err != nil {
				return nil, err
			}
		}
		if who == "" {
			return nil, errors.New("the order has no customer; set customer to an id from get-customers")
		}
		if err := knownCustomer(ctx, tx, who); err != nil {
			return nil, err
		}
		n, id, err := nextID(ctx, tx, "orders", "ord")
		if err != nil {
			return nil, err
		}
		if _, err := tx.ExecContext(ctx, "INSERT INTO orders (n, id, customer, placed, status) VALUES (?, ?, ?, ?, 'placed')", n, id, who, now()); err != nil {
			return nil, err
		}
		if changed, err = sell(ctx, tx, id, items); err != nil {
			return nil, err
		}
		return orderOf(ctx, tx, id)
	})
	if err != nil {
		return nil, err
	}
	s.catalogChanged(changed...)
	return out, nil
}

// takeCart empties a cart and returns its products.
func takeCart(ctx context.Context, tx *sql.Tx, id string) ([]wanted, error) {
	items, err := list(ctx, tx, func(w *wanted) []any { return []any{&w.Product, &w.Quantity} },
		"DELETE FROM cart_items WHERE cart = ? RETURNING product, quantity", id)
	if err == nil && len(items) == 0 {
		return nil, fmt.Errorf("%s is empty; add-to-cart fills it", id)
	}
	return items, err
}

// sell moves items from the stock to an order, and returns their categories. Its
// error names all products with too little stock.
func sell(ctx context.Context, tx *sql.Tx, order string, items []wanted) (changed []string, err error) {
	var short []string
	for _, w := range items {
		p, err := w.find(ctx, tx)
		if err != nil {
			return nil, err
		}
		// The transaction has held the lock from its beginning, so this still holds.
		if p.Stock < w.Quantity {
			short = append(short, shortage(p, w.Quantity).Error())
			continue
		}
		if _, err := tx.ExecContext(ctx, "UPDATE products SET stock = stock - ? WHERE id = ?", w.Quantity, p.ID); err != nil {
			return nil, err
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO order_items ("order", product, quantity, price) VALUES (?, ?, ?3, ?)
			ON CONFLICT DO UPDATE SET quantity = quantity + ?3`, order, p.ID, w.Quantity, p.Price); err != nil {
			return nil, err
		}
		if !slices.Contains(changed, p.Category) {
			changed = append(changed, p.Category)
		}
	}
	if short != nil {
		return nil, fmt.Errorf("%s; nothing was ordered", strings.Join(short, "; "))
	}
	return changed, nil
}
