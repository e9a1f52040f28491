package shop

import (
	"context"
	"database/sql"
	"errors"

	"github.com/patchbay-dev/patchbay/mcp"
)

type product struct {
	ID          string `json:"id" examples:"prd-1001"`
	Name        string `json:"name"`
	Category    string `json:"category" doc:"id of its category"`
	Price       money  `json:"price" examples:"24.90 EUR"`
	Stock       int    `json:"stock" doc:"pieces in stock"`
	Description string `json:"description"`
}

func (p *product) fields() []any {
	return []any{&p.ID, &p.Name, &p.Category, &p.Price, &p.Stock, &p.Description}
}

const productColumns = "id, name, category, price, stock, description"

type productList struct {
	Products []product `json:"products"`
	Next     string    `json:"next,omitempty" doc:"set if there are more: the value of after for the next page"`
}

type category struct {
	ID       string `json:"id" examples:"tents"`
	Title    string `json:"title"`
	Products int    `json:"products" doc:"number of products"`

	Description string `json:"description" doc:"a sentence for customers; may be empty"`
}

func (c *category) fields() []any { return []any{&c.ID, &c.Title, &c.Products, &c.Description} }

type categoryList struct {
	Categories []category `json:"categories"`
}

func (s *server) addProducts() {
	type filter struct {
		Category string `json:"category,omitempty" doc:"id of a category; without it, of all" max:"100"`
		page
	}
	mcp.AddTool(s.mcp, mcp.Tool{
		Name: "products", Title: "List products", Description: "Lists the products of the shop, of one category or all.",
		Annotations: reads,
	}, func(ctx context.Context, in filter) (*productList, error) {
		return view(ctx, s.db, func(tx *sql.Tx) (*productList, error) {
			if in.Category != "" {
				if err := knownCategory(ctx, tx, in.Category); err != nil {
					return nil, err
				}
			}
			first, err := in.start(ctx, tx, "products", 0)
			if err != nil {
				return nil, err
			}
			rows, err := products(ctx, tx, in.Category, first, in.Limit+1)
			if err != nil {
				return nil, err
			}
			out := &productList{}
			out.Products, out.Next = cut(in.page, rows, func(p *product) string { return p.ID })
			return out, nil
		})
	})

	mcp.AddTool(s.mcp, mcp.Tool{
		Name: "product", Title: "Show a product", Description: "Returns one product: price, stock, description.",
		Annotations: reads,
	}, func(ctx context.Context, in whichProduct) (*product, error) {
		return view(ctx, s.db, func(tx *sql.Tx) (*product, error) { return in.find(ctx, tx) })
	})

	mcp.AddTool(s.mcp, mcp.Tool{
		Name: "categories", Title: "List categories", Description: "Lists the categories of products.",
		Annotations: reads,
	}, func(ctx context.Context, _ none) (*categoryList, error) {
		all, err := view(ctx, s.db, func(tx *sql.Tx) ([]category, error) { return categories(ctx, tx) })
		if err != nil {
			return nil, err
		}
		return &categoryList{all}, nil
	})
}

// products returns up to limit products after a number, of a category or, if it is
// empty, of all.
func products(ctx context.Context, tx *sql.Tx, category string, after int64, limit int) ([]product, error) {
	return list(ctx, tx, (*product).fields,
		"SELECT "+productColumns+" FROM products WHERE (?1 = '' OR category = ?1) AND n > ?2 ORDER BY n LIMIT ?3", category, after, limit)
}

// whichProduct selects a product. It is embedded in arguments.
type whichProduct struct {
	Product     string `json:"product,omitempty" doc:"id of the product, such as prd-1001; or give product_name" max:"100" examples:"prd-1001"`
	ProductName string `json:"product_name,omitempty" doc:"name of the product, in any letter case" max:"100"`
}

func (w whichProduct) find(ctx context.Context, tx *sql.Tx) (*product, error) {
	if (w.Product == "") == (w.ProductName == "") {
		return nil, errors.New("give either product, an id, or product_name")
	}
	p := &product{}
	err := tx.QueryRowContext(ctx, "SELECT "+productColumns+" FROM products WHERE id = ? OR name = ?", w.Product, w.ProductName).Scan(p.fields()...)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, unknown("product", w.Product+w.ProductName, "products")
	}
	return p, err
}

func productOf(ctx context.Context, tx *sql.Tx, id string) (*product, error) {
	return whichProduct{Product: id}.find(ctx, tx)
}

func categories(ctx context.Context, tx *sql.Tx) ([]category, error) {
	return list(ctx, tx, (*category).fields,
		"SELECT id, title, (SELECT count(*) FROM products WHERE category = categories.id), description FROM categories ORDER BY n")
}

func knownCategory(ctx context.Context, tx *sql.Tx, id string) error {
	return known(ctx, tx, "categories", "category", id, "categories")
}
