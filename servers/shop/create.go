package shop

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/patchbay-dev/patchbay/mcp"
)

const (
	maxProducts   = 1_000
	maxCategories = 100

	// maxDescription bounds a description, in characters; the tag of the argument
	// repeats it.
	maxDescription = 1_000
)

type creation struct {
	Name        string `json:"name,omitempty" doc:"its name, which no other product has; required, as name or as product_name" min:"1" max:"100" examples:"Trail Tent"`
	ProductName string `json:"product_name,omitempty" doc:"another name of name" min:"1" max:"100"`

	Category            string `json:"category" doc:"id of its category, such as tents" pattern:"^[a-z][a-z0-9-]{0,39}$" examples:"tents"`
	CategoryTitle       string `json:"category_title,omitempty" doc:"the title of the category, which is created if it does not exist" max:"100"`
	CategoryDescription string `json:"category_description,omitempty" doc:"a sentence about a category that is created" max:"1000"`

	Price       money    `json:"price" doc:"in EUR, such as 24.90" examples:"24.90"`
	Stock       *int     `json:"stock,omitempty" doc:"pieces in stock; absent: none" min:"0" max:"100000"`
	Quantity    *int     `json:"quantity,omitempty" doc:"another name of stock" min:"0" max:"100000"`
	Description string   `json:"description,omitempty" doc:"a sentence or two; without it, the model of the client writes it" max:"1000"`
	Keywords    keywords `json:"keywords,omitempty" doc:"words for the model that writes the description: text, or a list"`
}

// normal returns the arguments under their first names and without layout.
func (in creation) normal() (creation, error) {
	switch {
	case in.Name != "" && in.ProductName != "":
		return in, errors.New("name and product_name are two names of one argument; give one of them")
	case in.Stock != nil && in.Quantity != nil:
		return in, errors.New("stock and quantity are two names of one argument; give one of them")
	case in.Stock == nil:
		in.Stock = cmp.Or(in.Quantity, new(0))
	}
	if in.Name = plain(in.Name + in.ProductName); in.Name == "" {
		return in, errors.New("the name is empty; set name")
	}
	in.CategoryTitle, in.CategoryDescription, in.Description = plain(in.CategoryTitle), plain(in.CategoryDescription), plain(in.Description)
	return in, nil
}

// keywords is text, or a list of texts.
type keywords []string

// JSONSchema returns the schema of both.
func (keywords) JSONSchema() json.RawMessage {
	return json.RawMessage(`{"type":["string","array"],"maxLength":500,"items":{"type":"string","maxLength":50},"maxItems":20}`)
}

// UnmarshalJSON reads both.
func (k *keywords) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		*k = keywords{text}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(k))
}

func (s *server) addCreation() {
	mcp.AddTool(s.mcp, mcp.Tool{
		Name: "create-product", Title: "Create a product",
		Description: "Adds a product to the catalogue. Without a description, the client's model writes one (sampling).",
		Annotations: adds,
	}, s.createProduct)
}

func (s *server) createProduct(ctx context.Context, in creation) (*product, error) {
	in, err := in.normal()
	if err != nil {
		return nil, err
	}
	// A product that cannot be created is refused before the model is asked.
	_, err = view(ctx, s.db, func(tx *sql.Tx) (bool, error) { return creatable(ctx, tx, in) })
	if err != nil {
		return nil, err
	}
	if in.Description == "" {
		if in.Description, err = write(ctx, in); err != nil {
			return nil, err
		}
	}
	// No question follows, so this runs once. A repeated answer finds the name taken.
	newCategory := false
	out, err := change(ctx, s.db, func(tx *sql.Tx) (_ *product, err error) {
		if newCategory, err = creatable(ctx, tx, in); err != nil {
			return nil, err
		}
		return create(ctx, tx, in, newCategory)
	})
	if err != nil {
		return nil, err
	}
	if newCategory {
		s.listCategory(in.Category, in.CategoryTitle)
	}
	s.catalogChanged(in.Category)
	return out, nil
}

// creatable returns an error if a product cannot be created, and whether its
// category must be created.
func creatable(ctx context.Context, tx *sql.Tx, in creation) (newCategory bool, err error) {
	var same, name string // the name may differ in letter case
	err = tx.QueryRowContext(ctx, "SELECT id, name FROM products WHERE name = ?", in.Name).Scan(&same, &name)
	if err == nil {
		return false, fmt.Errorf("%s has the name %s already; choose another", same, quoted(name))
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return false, err
	}
	var products, categories int
	err = tx.QueryRowContext(ctx, "SELECT (SELECT count(*) FROM products), (SELECT count(*) FROM categories), NOT EXISTS (SELECT 1 FROM categories WHERE id = ?)",
		in.Category).Scan(&products, &categories, &newCategory)
	switch {
	case err != nil:
		return false, err
	case newCategory && in.CategoryTitle == "":
		return false, fmt.Errorf("%w; category_title creates it", unknown("category", in.Category, "categories"))
	case products >= maxProducts:
		return false, fmt.Errorf("the catalogue is full with %d products", products)
	case newCategory && categories >= maxCategories:
		return false, fmt.Errorf("the catalogue already has the maximum of %d categories; choose one of them", categories)
	}
	return newCategory, nil
}

func create(ctx context.Context, tx *sql.Tx, in creation, newCategory bool) (*product, error) {
	if newCategory {
		if _, err := tx.ExecContext(ctx, "INSERT INTO categories (id, title, description) VALUES (?, ?, ?)",
			in.Category, in.CategoryTitle, in.CategoryDescription); err != nil {
			return nil, err
		}
	}
	n, id, err := nextID(ctx, tx, "products", "prd")
	if err != nil {
		return nil, err
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO products (n, id, name, category, price, stock, description) VALUES (?, ?, ?, ?, ?, ?, ?)",
		n, id, in.Name, in.Category, in.Price, *in.Stock, in.Description)
	return &product{id, in.Name, in.Category, in.Price, *in.Stock, in.Description}, err
}

// write has the client's model write a description.
func write(ctx context.Context, in creation) (string, error) {
	res, err := mcp.Sample(ctx, &mcp.SampleRequest{
		SystemPrompt: "You write for the catalogue of a small outdoor shop: plainly, and nothing that you were not told.",
		Messages:     []mcp.SampleMessage{{Role: "user", Content: []mcp.Content{mcp.Text(task(in.Name, in.Category, in.Price, in.Keywords...))}}},
		MaxTokens:    300,
	}, mcp.QuestionKey("description"))
	var refused *mcp.Error
	switch {
	case errors.Is(err, mcp.ErrNotSupported):
		return "", errors.New("this client does not offer a model to write the description (sampling); set description")
	case errors.As(err, &refused):
		return "", fmt.Errorf("the client's model did not write a description: %s; set description", quoted(refused.Message))
	case err != nil:
		return "", err
	}
	text := plain(res.Text())
	if text == "" {
		return "", errors.New("the client's model answered without text; set description")
	}
	if utf8.RuneCountInString(text) > maxDescription {
		text = string([]rune(text)[:maxDescription-1]) + "…"
	}
	return text, nil
}

// task returns the prompt that asks a language model to describe a product.
func task(name, category string, price money, keywords ...string) string {
	use := ""
	if words := plain(strings.Join(keywords, ", ")); words != "" {
		use = fmt.Sprintf(" Use these keywords: %s.", words)
	}
	return fmt.Sprintf("Write a description of one or two sentences for the product %q of the category %q, which costs %s.%s Answer with the description alone.", name, category, price, use)
}

// plain is text on one line, without control characters.
func plain(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}
