package sqlite

import (
	"context"
	_ "embed" // for the sample data
	"fmt"

	"github.com/patchbay-dev/patchbay/mcp"
)

//go:embed demo.sql
var demoSQL string

// fill fills a database without tables with sample data, all or nothing.
func (db *database) fill(ctx context.Context) error {
	tx, err := db.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	var tables int
	if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil || tables > 0 {
		return err
	}
	if _, err := tx.ExecContext(ctx, demoSQL); err != nil {
		return fmt.Errorf("fill the database: %w", err)
	}
	return tx.Commit()
}

// addDemo adds the prompt that leads a model and its user through the server.
func addDemo(srv *mcp.Server) {
	type input struct {
		Topic string `json:"topic" doc:"topic of the data, for instance a bakery"`
	}
	mcp.AddPrompt(srv, mcp.Prompt{
		Name: "mcp-demo", Title: "Demonstration",
		Description: "Invents a small database about a topic and explores it with you.",
	}, func(_ context.Context, in input) (string, error) { return fmt.Sprintf(demo, in.Topic), nil })
}

const demo = `Show me what this server can do, with a small made-up business case about: %s

Go step by step, and say in a sentence what you do before each step.

1. Call list_tables. If there are tables already, leave them as they are and choose other names for yours.
2. Invent a question that somebody responsible for this topic would want answered, and two or three related tables that could answer it. Create them with create_table, with primary and foreign keys.
3. Fill them with write_query: ten to twenty plausible rows each. Pass the values as params, never inside the SQL.
4. Show me the tables with describe_table, and offer me three queries of growing depth. Wait for my choice.
5. Run it with read_query and explain the result in plain words. Whenever you find something that matters for the question, note it with append_insight.
6. When I have seen enough, read ` + insightsURI + ` and write a summary of at most ten lines from it.

Everything is made up, so say so in the summary.`
