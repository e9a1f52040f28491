package shop

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/patchbay-dev/patchbay/mcp"
)

type customer struct {
	ID     string `json:"id" examples:"cus-1001"`
	Name   string `json:"name"`
	Email  string `json:"email"`
	City   string `json:"city"`
	Member bool   `json:"member" doc:"whether they learn of new trips first"`
	Orders int    `json:"orders" doc:"number of orders placed"`
}

func (c *customer) fields() []any {
	return []any{&c.ID, &c.Name, &c.Email, &c.City, &c.Member, &c.Orders}
}

type customerList struct {
	Customers []customer `json:"customers"`
	Next      string     `json:"next,omitempty" doc:"set if there are more: the value of after for the next page"`
}

func (s *server) addCustomers() {
	mcp.AddTool(s.mcp, mcp.Tool{
		Name: "get-customers", Title: "List customers", Description: "Lists the customers of the shop.",
		Annotations: reads,
	}, func(ctx context.Context, in page) (*customerList, error) {
		return view(ctx, s.db, func(tx *sql.Tx) (*customerList, error) {
			first, err := in.start(ctx, tx, "customers", 0)
			if err != nil {
				return nil, err
			}
			rows, err := list(ctx, tx, (*customer).fields,
				`SELECT id, name, email, city, member, (SELECT count(*) FROM orders WHERE customer = customers.id)
				FROM customers WHERE n > ? ORDER BY n LIMIT ?`, first, in.Limit+1)
			if err != nil {
				return nil, err
			}
			out := &customerList{}
			out.Customers, out.Next = cut(in, rows, func(c *customer) string { return c.ID })
			return out, nil
		})
	})
}

func knownCustomer(ctx context.Context, tx *sql.Tx, id string) error {
	return known(ctx, tx, "customers", "customer", id, "get-customers")
}

// owner returns the customer of a cart when a caller names one: both may be empty.
func owner(ctx context.Context, tx *sql.Tx, cart, has, given string) (string, error) {
	switch {
	case given == "" || given == has:
		return has, nil
	case has != "":
		return "", fmt.Errorf("%s belongs to %s and not to %s; leave customer out, or create another cart", cart, has, quoted(given))
	}
	return given, knownCustomer(ctx, tx, given)
}
