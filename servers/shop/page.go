package shop

import (
	"context"
	"database/sql"
	"errors"
)

// page is the part of a list that a caller wants, a part of the arguments.
type page struct {
	Limit int    `json:"limit,omitempty" doc:"at most so many" default:"20" min:"1" max:"100"`
	After string `json:"after,omitempty" doc:"the next of the answer before this one, to read on" max:"100"`
}

// start returns the number that the page begins after; without After it is first.
func (p page) start(ctx context.Context, tx *sql.Tx, table string, first int64) (int64, error) {
	if p.After == "" {
		return first, nil
	}
	err := tx.QueryRowContext(ctx, "SELECT n FROM "+table+" WHERE id = ?", p.After).Scan(&first)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, errors.New("after: there is no " + quoted(p.After) + "; take next of the answer before, or leave it out to begin")
	}
	return first, err
}

// cut cuts a list of up to Limit+1 rows, and returns where to read on if there are more.
func cut[T any](p page, rows []T, id func(*T) string) ([]T, string) {
	if len(rows) <= p.Limit {
		return rows, ""
	}
	rows = rows[:p.Limit]
	return rows, id(&rows[p.Limit-1])
}
