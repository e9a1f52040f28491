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
	Product  string `json:"product" doc:"id of the delivered product"`
	Quantity int    `json:"quantity" doc:"how many"`

	category string // of the product
}

type processing struct {
	Message string `json:"message,omitempty" doc:"a note for the log messages and the result" max:"1000"`
}

type filesProcessed struct {
	Processed int    `json:"processed" doc:"number of processed files"`
	Left      int    `json:"left" doc:"number of waiting files"`
	Files     []file `json:"files" doc:"the processed files"`
	Message   string `json:"message,omitempty" doc:"the message of the call"`
}

func (s *server) addFiles() {
	mcp.AddTool(s.mcp, mcp.Tool{
		Name: "process-files", Title: "Process files",
		Description: "Adds the waiting delivery notes to the stock, each once, with progress and a log message for each. A second call finds none.",
		Annotations: &mcp.ToolAnnotations{Destructive: new(false), Idempotent: new(true), OpenWorld: new(false)},
	}, s.processFiles)
}

// processFiles processes one file per transaction, so a cancelled call leaves the
// remaining files, and two concurrent calls share them.
func (s *server) processFiles(ctx context.Context, in processing) (*filesProcessed, error) {
	total, err := view(ctx, s.db, func(tx *sql.Tx) (int, error) { return pending(ctx, tx) })
	if err != nil {
		return nil, err
	}
	log := mcp.Log(ctx).With("logger", "shop")
	if in.Message != "" {
		log = log.With("note", in.Message) // "message" is the text of a log message
	}
	out := &filesProcessed{Files: []file{}, Message: in.Message}
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

// processNext processes the oldest waiting file, and returns nil if there is none.
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
