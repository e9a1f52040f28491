package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/schema"
)

// objectSet is a rowSet whose rows are objects.
type objectSet struct {
	Columns   []string `json:"columns" doc:"the members of each row, in their order"`
	Rows      objects  `json:"rows" doc:"a repeated name of a column ends in :1, :2 and so on"`
	RowCount  int      `json:"row_count" doc:"number of rows here"`
	Truncated bool     `json:"truncated" doc:"whether there are more rows"`
	Note      string   `json:"note,omitempty" doc:"how to read the rest"`
}

// writtenObjects is a written whose returned rows are objects.
type writtenObjects struct {
	RowsAffected int64      `json:"rows_affected"`
	LastInsertID *int64     `json:"last_insert_id,omitempty" doc:"rowid of the last row inserted"`
	Returned     *objectSet `json:"returned,omitempty" doc:"the rows of RETURNING"`
}

// addObjects adds the tools that return rows, for [Options.Objects].
func (s *server) addObjects(reading, writing mcp.Tool) {
	set, err := schema.ForOutput[*objectSet]()
	if err != nil {
		panic(err) // no input can cause it
	}
	reading.OutputSchema = set.JSON()
	mcp.AddTool(s.mcp, reading, func(ctx context.Context, in readInput) (*mcp.ToolResult, error) {
		rows, err := s.read(ctx, in)
		if err != nil {
			return nil, err
		}
		out := rows.objects()
		structured, err := set.Encode(out)
		res := &mcp.ToolResult{Content: []mcp.Content{mcp.Text(string(out.Rows))}, Structured: structured}
		if out.Note != "" {
			res.Content = append(res.Content, mcp.Text(out.Note))
		}
		return res, err
	})
	mcp.AddTool(s.mcp, writing, func(ctx context.Context, in writeInput) (*writtenObjects, error) {
		w, err := s.write(ctx, in)
		if err != nil {
			return nil, err
		}
		return &writtenObjects{w.RowsAffected, w.LastInsertID, w.Returned.objects()}, nil
	})
}

// objects is a JSON array of objects, with their members in the order of the columns.
type objects json.RawMessage

// JSONSchema returns the schema of the array.
func (objects) JSONSchema() json.RawMessage {
	return json.RawMessage(`{"type":"array","items":{"type":"object"}}`)
}

// MarshalJSON returns the array.
func (o objects) MarshalJSON() ([]byte, error) { return o, nil }

// objects returns the set with objects as rows. The columns have unique names, see memberNames.
func (r *rowSet) objects() *objectSet {
	if r == nil {
		return nil
	}
	keys := make([]json.RawMessage, len(r.Columns))
	for i, name := range r.Columns {
		keys[i] = textCell(name)
	}
	rows := objects("[")
	for n, row := range r.Rows {
		if n > 0 {
			rows = append(rows, ',')
		}
		rows = append(rows, '{')
		for i, cell := range row {
			if i > 0 {
				rows = append(rows, ',')
			}
			rows = append(append(append(rows, keys[i]...), ':'), cell...)
		}
		rows = append(rows, '}')
	}
	return &objectSet{r.Columns, append(rows, ']'), r.RowCount, r.Truncated, r.Note}
}

// memberNames makes the names of columns unique. A repeated name gets a number, as SQLite itself
// names the columns of a view: name, name:1, name:2.
func memberNames(columns []string) []string {
	names := make([]string, len(columns))
	used, next := map[string]bool{}, map[string]int{}
	for i, column := range columns {
		column = strings.ToValidUTF8(column, "\uFFFD")
		name := column
		for used[name] {
			next[column]++
			name = fmt.Sprintf("%s:%d", column, next[column])
		}
		names[i], used[name] = name, true
	}
	return names
}
