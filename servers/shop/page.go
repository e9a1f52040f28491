package shop

import (
	"context"
	"database/sql"
	"errors"
)

// page selects a part of a list. It is embedded in arguments.
type page struct {
	Limit int    `json:"limit,omitempty" doc:"maximum number of entries" default:"20" min:"1" max:"100"`
	After string `json:"after,omitempty" doc:"next of the previous answer, for the next page" max:"100"`
}

// start returns the number after which the page begins; without After it is first.
func (p page) start(ctx context.Context, tx *sql.Tx, table string, first int64) (int64, error) {
	if p.After == "" {
		return first, nil
	}
	err := tx.QueryRowContext(ctx, "SELECT n FROM "+table+" WHERE id = ?", p.After).Scan(&first)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, errors.New("after: unknown value " + quoted(p.After) + "; use next of the previous answer, or leave it out for the first page")
	}
	return first, err
}

// cut cuts a list of up to Limit+1 rows to Limit, and returns the start of the next page
// if there is one.
func cut[T any](p page, rows []T, id func(*T) string) ([]T, string) {
	if len(rows) <= p.Limit {
		return rows, ""
	}
	rows = rows[:p.Limit]
	return rows, id(&rows[p.Limit-1])
}
