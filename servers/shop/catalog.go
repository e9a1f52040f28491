package shop

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

const catalogURI = "catalog://products"

func categoryURI(id string) string { return catalogURI + "/" + id }

// catalogPart is the content of a resource, with at most maxProducts products.
type catalogPart struct {
	Products []product `json:"products"`
}

func (s *server) addCatalog() {
	mcp.AddResource(s.mcp, mcp.Resource{
		URI: catalogURI, Name: "products", Title: "Catalogue", Description: "All products of the shop.", MIMEType: "application/json",
	}, func(ctx context.Context) (*catalogPart, error) { return s.catalog(ctx, "") })

	type variables struct {
		Category string `json:"category"`
	}
	mcp.AddResourceTemplate(s.mcp, mcp.ResourceTemplate{
		URITemplate: catalogURI + "/{category}", Name: "category", Title: "Category", Description: "The products of a category.", MIMEType: "application/json",
		Complete: map[string]mcp.CompleteFunc{"category": s.completeCategory},
	}, func(ctx context.Context, in variables) (*catalogPart, error) {
		if in.Category == "" {
			return nil, mcp.ResourceNotFound(categoryURI(""))
		}
		return s.catalog(ctx, in.Category)
	})

	type subject struct {
		Product string `json:"product" doc:"id of the product, such as prd-1001"`
	}
	mcp.AddPrompt(s.mcp, mcp.Prompt{
		Name: "describe_product", Title: "Describe a product",
		Description: "Asks for a description of a product for customers.",
		Complete:    map[string]mcp.CompleteFunc{"product": s.completeProduct},
	}, func(ctx context.Context, in subject) (string, error) {
		p, err := view(ctx, s.db, func(tx *sql.Tx) (*product, error) { return productOf(ctx, tx, in.Product) })
		if errors.Is(err, errUnknown) {
			return "", mcp.Errorf(jsonrpc.CodeInvalidParams, "product: %v", err)
		}
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%s\n\nThe description in the catalogue today: %s", task(p.Name, p.Category, p.Price), p.Description), nil
	})
}

// catalog returns the products of a category or, if it is empty, all of them.
func (s *server) catalog(ctx context.Context, category string) (*catalogPart, error) {
	all, err := view(ctx, s.db, func(tx *sql.Tx) ([]product, error) {
		if category != "" {
			if err := knownCategory(ctx, tx, category); err != nil {
				return nil, err
			}
		}
		return products(ctx, tx, category, 0, maxProducts)
	})
	if errors.Is(err, errUnknown) {
		return nil, mcp.ResourceNotFound(categoryURI(category))
	}
	return &catalogPart{all}, err
}

// catalogChanged notifies subscribers of changed products of these categories.
func (s *server) catalogChanged(categories ...string) {
	if len(categories) == 0 {
		return
	}
	s.mcp.ResourceUpdated(catalogURI)
	for _, c := range categories {
		s.mcp.ResourceUpdated(categoryURI(c))
	}
}

// listCategories adds each category as a resource of its own, so that lists show it.
func (s *server) listCategories(ctx context.Context, d *database) error {
	all, err := view(ctx, d, func(tx *sql.Tx) ([]category, error) { return categories(ctx, tx) })
	for _, c := range all {
		s.listCategory(c.ID, c.Title)
	}
	return err
}

func (s *server) listCategory(id, title string) {
	mcp.AddResource(s.mcp, mcp.Resource{
		URI: categoryURI(id), Name: id, Title: title, Description: "The products of this category.", MIMEType: "application/json",
	}, func(ctx context.Context) (*catalogPart, error) { return s.catalog(ctx, id) })
}

func (s *server) completeCategory(ctx context.Context, prefix string, _ map[string]string) ([]string, error) {
	all, err := view(ctx, s.db, func(tx *sql.Tx) ([]category, error) { return categories(ctx, tx) })
	ids := []string{}
	for _, c := range all {
		if strings.HasPrefix(c.ID, strings.ToLower(prefix)) {
			ids = append(ids, c.ID)
		}
	}
	return ids, err
}

// completeProduct suggests ids that begin with the prefix, and ids of products with
// the prefix in their names.
func (s *server) completeProduct(ctx context.Context, prefix string, _ map[string]string) ([]string, error) {
	all, err := view(ctx, s.db, func(tx *sql.Tx) ([]product, error) { return products(ctx, tx, "", 0, maxProducts) })
	ids := []string{}
	for _, p := range all {
		if strings.HasPrefix(p.ID, prefix) || strings.Contains(strings.ToLower(p.Name), strings.ToLower(prefix)) {
			ids = append(ids, p.ID)
		}
	}
	return ids, err
}
