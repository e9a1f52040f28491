package shop

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
)

const (
	// maxLines bounds the products of a cart or an order, maxQuantity the pieces of each. The
	// tags of arguments repeat them.
	maxLines    = 100
	maxQuantity = 1000

	// maxCarts bounds the stored carts. A new cart beyond it removes the oldest.
	maxCarts = 10_000
)

type cart struct {
	ID       string `json:"id" examples:"crt-1001"`
	Customer string `json:"customer,omitempty" doc:"id of the customer; absent: none yet"`
	Created  string `json:"created" format:"date-time"`
	Items    int    `json:"items" doc:"number of pieces in it"`
	Total    money  `json:"total" examples:"24.90 EUR"`
}

// line is one product of a cart or an order.
type line struct {
	Product  string `json:"product" doc:"id of the product"`
	Name     string `json:"name"`
	Quantity int    `json:"quantity"`
	Price    money  `json:"price" doc:"of one" examples:"24.90 EUR"`
	Total    money  `json:"total" examples:"49.80 EUR"`
}

func (l *line) fields() []any { return []any{&l.Product, &l.Name, &l.Quantity, &l.Price, &l.Total} }

type cartItem struct {
	ID string `json:"id" examples:"itm-1001-1006"`
	line
	Description string `json:"description" doc:"of the product"`
}

func (i *cartItem) fields() []any { return append(i.line.fields(), &i.ID, &i.Description) }

type cartItems struct {
	Cart  string     `json:"cart" doc:"id of the cart"`
	Items []cartItem `json:"items"`
	Total money      `json:"total" examples:"49.80 EUR"`
}

// whichCart selects a cart.
type whichCart struct {
	Cart     string `json:"cart,omitempty" doc:"id of the cart, such as crt-1001; or give customer" max:"100"`
	Customer string `json:"customer,omitempty" doc:"id of a customer, such as cus-1001, for their newest cart" max:"100"`
}

type addition struct {
	whichProduct
	Quantity int    `json:"quantity,omitempty" doc:"number of pieces to add" default:"1" min:"1" max:"1000"`
	Cart     string `json:"cart,omitempty" doc:"id of the cart, such as crt-1001; without it, a new cart" max:"100"`
	Customer string `json:"customer,omitempty" doc:"id of the customer of the cart, such as cus-1001" max:"100"`
}

func (s *server) addCarts() {
	mcp.AddTool(s.mcp, mcp.Tool{
		Name: "get-cart", Title: "Show a cart", Description: "Returns a cart's customer, number of pieces and total price.",
		Annotations: reads,
	}, func(ctx context.Context, in whichCart) (*cart, error) {
		return view(ctx, s.db, func(tx *sql.Tx) (*cart, error) { return in.find(ctx, tx) })
	})

	mcp.AddTool(s.mcp, mcp.Tool{
		Name: "get-cart-items", Title: "List a cart", Description: "Lists the products in a cart.",
		Annotations: reads,
	}, func(ctx context.Context, in whichCart) (*cartItems, error) {
		return view(ctx, s.db, func(tx *sql.Tx) (*cartItems, error) {
			c, err := in.find(ctx, tx)
			if err != nil {
				return nil, err
			}
			items, err := itemsOf(ctx, tx, c.ID)
			return &cartItems{c.ID, items, c.Total}, err
		})
	})

	mcp.AddTool(s.mcp, mcp.Tool{
		Name: "add-to-cart", Title: "Add to a cart",
		Description: "Puts a product into a cart, or increases its quantity. Creates a cart if none is given. Nothing is reserved before the order is placed.",
		Annotations: adds,
	}, func(ctx context.Context, in addition) (*cart, error) {
		return change(ctx, s.db, func(tx *sql.Tx) (*cart, error) { return addToCart(ctx, tx, in) })
	})
}

func (w whichCart) find(ctx context.Context, tx *sql.Tx) (*cart, error) {
	switch {
	case (w.Cart == "") == (w.Customer == ""):
		return nil, errors.New("give either the cart or the customer")
	case w.Cart != "":
		return cartOf(ctx, tx, w.Cart)
	}
	if err := knownCustomer(ctx, tx, w.Customer); err != nil {
		return nil, err
	}
	var id string
	err := tx.QueryRowContext(ctx, "SELECT id FROM carts WHERE customer = ? ORDER BY n DESC LIMIT 1", w.Customer).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("%s has no cart; add-to-cart with this customer creates one", w.Customer)
	}
	if err != nil {
		return nil, err
	}
	return cartOf(ctx, tx, id)
}

func cartOf(ctx context.Context, tx *sql.Tx, id string) (*cart, error) {
	c := &cart{}
	err := tx.QueryRowContext(ctx, `SELECT id, coalesce(customer, ''), created,
			(SELECT coalesce(sum(quantity), 0) FROM cart_items WHERE cart = carts.id),
			(SELECT coalesce(sum(quantity * price), 0) FROM cart_items i JOIN products p ON p.id = i.product WHERE cart = carts.id)
		FROM carts WHERE id = ?`, id).Scan(&c.ID, &c.Customer, &c.Created, &c.Items, &c.Total)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("there is no cart %s; add-to-cart without a cart creates one", quoted(id))
	}
	return c, err
}

// itemsOf returns the lines of a cart. The id of an item is made of the numbers of its cart and product.
func itemsOf(ctx context.Context, tx *sql.Tx, cart string) ([]cartItem, error) {
	return list(ctx, tx, (*cartItem).fields, `SELECT p.id, p.name, i.quantity, p.price, i.quantity * p.price, 'itm-' || substr(i.cart, 5) || '-' || p.n, p.description
		FROM cart_items i JOIN products p ON p.id = i.product WHERE i.cart = ? ORDER BY p.n`, cart)
}

func addToCart(ctx context.Context, tx *sql.Tx, in addition) (*cart, error) {
	p, err := in.find(ctx, tx)
	if err != nil {
		return nil, err
	}
	id := in.Cart
	if id == "" {
		if id, err = newCart(ctx, tx); err != nil {
			return nil, err
		}
	}
	c, err := cartOf(ctx, tx, id)
	if err != nil {
		return nil, err
	}
	if c.Customer, err = owner(ctx, tx, c.ID, c.Customer, in.Customer); err != nil {
		return nil, err
	}
	if _, err := tx.ExecContext(ctx, "UPDATE carts SET customer = nullif(?, '') WHERE id = ?", c.Customer, id); err != nil {
		return nil, err
	}
	var quantity, lines int
	err = tx.QueryRowContext(ctx, `INSERT INTO cart_items (cart, product, quantity) VALUES (?1, ?2, ?3)
		ON CONFLICT DO UPDATE SET quantity = quantity + ?3
		RETURNING quantity, (SELECT count(*) FROM cart_items WHERE cart = ?1)`, id, p.ID, in.Quantity).Scan(&quantity, &lines)
	switch {
	case err != nil:
		return nil, err
	case quantity > p.Stock:
		return nil, fmt.Errorf("%w; nothing was added", shortage(p, quantity))
	case quantity > maxQuantity:
		return nil, fmt.Errorf("the cart would hold %d of %s; the maximum is %d", quantity, p.ID, maxQuantity)
	case lines > maxLines:
		return nil, fmt.Errorf("the cart would hold %d products; the maximum is %d, so place the order and use another cart", lines, maxLines)
	}
	return cartOf(ctx, tx, id)
}

// newCart creates a cart without a customer, and deletes the oldest if there are too many.
func newCart(ctx context.Context, tx *sql.Tx) (string, error) {
	n, id, err := nextID(ctx, tx, "carts", "crt")
	if err != nil {
		return "", err
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO carts (n, id, created) VALUES (?, ?, ?)", n, id, now()); err != nil {
		return "", err
	}
	_, err = tx.ExecContext(ctx, "DELETE FROM carts WHERE n <= ?", n-maxCarts)
	return id, err
}

// shortage is the error for a product with less stock than wanted.
func shortage(p *product, wanted int) error {
	switch p.Stock {
	case 0:
		return fmt.Errorf("%s (%s) is sold out", p.Name, p.ID)
	case 1:
		return fmt.Errorf("only one %s (%s) is left, and %d are wanted", p.Name, p.ID, wanted)
	}
	return fmt.Errorf("only %d of %s (%s) are left, and %d are wanted", p.Stock, p.Name, p.ID, wanted)
}

// now is the time as the database keeps it.
func now() string { return time.Now().UTC().Format(time.RFC3339) }
