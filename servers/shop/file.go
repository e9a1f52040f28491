package shop

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/patchbay-dev/patchbay/mcp"
)

// file is a delivery note.
type file struct {
	Name     string `json:"name"`
	Product  string `json:"product" doc:"id of what was delivered"`
	Quantity int    `json:"quantity" doc:"how many"`

	category string // of the product
}

type filesProcessed struct {
	Processed int    `json:"processed" doc:"how many files were processed"`
	Left      int    `json:"left" doc:"how many still wait"`
	Files     []file `json:"files" doc:"those that were processed"`
}

func (s *server) addFiles() {
	mcp.AddTool(s.mcp, mcp.Tool{
		Name: "process-files", Title: "Process files",
		Description: "Books the delivery notes that wait into the stock, each once, with progress and a log message for each. Nothing is left for a second call.",
		Annotations: &mcp.ToolAnnotations{Destructive: new(false), Idempotent: new(true), OpenWorld: new(false)},
	}, s.processFiles)
}

// processFiles takes one file at a time, so that a call that is cancelled has
// processed some and left the rest, and two calls at once share them.
func (s *server) processFiles(ctx context.Context, _ none) (*filesProcessed, error) {
	total, err := view(ctx, s.db, func(tx *sql.Tx) (int, error) { return pending(ctx, tx) })
	if err != nil {
		return nil, err
	}
	log := mcp.Log(ctx).With("logger", "shop")
	out := &filesProcessed{Files: []file{}}
	for {
		f, err := change(ctx, s.db, func(tx *sql.Tx) (*file, error) { return processNext(ctx, tx) })
		if err != nil {
			return nil, fmt.Errorf("after %d files: %w", out.Processed, err)
		}
		if f == nil {
			break
		}
		s.catalogChanged(f.category)
		out.Processed++
		out.Files = append(out.Files, *f)
		log.Info("file processed", "file", f.Name, "product", f.Product, "quantity", f.Quantity)
		mcp.Progress(ctx, float64(out.Processed), float64(total), f.Name)
	}
	out.Left, err = view(ctx, s.db, func(tx *sql.Tx) (int, error) { return pending(ctx, tx) })
	return out, err
}

func pending(ctx context.Context, tx *sql.Tx) (n int, err error) {
	err = tx.QueryRowContext(ctx, "SELECT count(*) FROM files WHERE processed IS NULL").Scan(&n)
	return n, err
}

// processNext processes the oldest file that waits, and returns nil if none does.
func processNext(ctx context.Context, tx *sql.Tx) (*file, error) {
	f := &file{}
	err := tx.QueryRowContext(ctx, `UPDATE files SET processed = ?
		WHERE n = (SELECT min(n) FROM files WHERE processed IS NULL) RETURNING name, product, quantity`, now()).Scan(&f.Name, &f.Product, &f.Quantity)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	err = tx.QueryRowContext(ctx, "UPDATE products SET stock = stock + ? WHERE id = ? RETURNING category", f.Quantity, f.Product).Scan(&f.category)
	return f, err
}
