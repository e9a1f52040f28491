package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/mcp"
)

type tableList struct {
	Tables []tableEntry `json:"tables"`
}

type tableEntry struct {
	Name string `json:"name"`
	Type string `json:"type" enum:"table,view,virtual"`
}

type tableInput struct {
	TableName string `json:"table_name" doc:"name of a table or view"`
}

type table struct {
	Name        string       `json:"name"`
	Type        string       `json:"type" enum:"table,view,virtual,shadow"`
	SQL         string       `json:"sql,omitempty" doc:"the statement that created it"`
	Columns     []column     `json:"columns"`
	Indexes     []index      `json:"indexes"`
	ForeignKeys []foreignKey `json:"foreign_keys"`
}

type column struct {
	Name       string  `json:"name"`
	Type       string  `json:"type" doc:"as declared, may be empty"`
	NotNull    bool    `json:"not_null"`
	Default    *string `json:"default,omitempty" doc:"an SQL expression"`
	PrimaryKey int     `json:"primary_key" doc:"place in the primary key, from 1; 0 if not in it"`
	Generated  bool    `json:"generated,omitzero"`
}

type index struct {
	Name    string   `json:"name"`
	Unique  bool     `json:"unique"`
	Columns []string `json:"columns" doc:"an expression is shown as (expression)"`
}

type foreignKey struct {
	Columns    []string `json:"columns"`
	Table      string   `json:"table"`
	References []string `json:"references" doc:"columns of that table; empty: its primary key"`
}

func (s *server) addTables() {
	mcp.AddTool(s.mcp, mcp.Tool{
		Name: "list_tables", Title: "List tables", Description: "Lists the tables and views of the database.",
		Annotations: reads,
	}, func(ctx context.Context, _ struct{}) (*tableList, error) {
		ctx, cancel := s.bound(ctx)
		defer cancel()
		out, err := s.db.tables(ctx)
		if err != nil {
			return nil, ended(ctx, err)
		}
		return out, nil
	})
	mcp.AddTool(s.mcp, mcp.Tool{
		Name: "describe_table", Title: "Describe a table", Description: "Returns the columns, indexes and foreign keys of a table or view.",
		Annotations: reads,
	}, func(ctx context.Context, in tableInput) (*table, error) {
		ctx, cancel := s.bound(ctx)
		defer cancel()
		out, err := s.db.describe(ctx, in.TableName)
		if err != nil {
			return nil, ended(ctx, err)
		}
		return out, nil
	})
}

// tables lists the tables and views that people made, without the engine's internal ones.
func (db *database) tables(ctx context.Context) (*tableList, error) {
	out := &tableList{Tables: []tableEntry{}}
	err := db.each(ctx, func(rows *sql.Rows) error {
		var t tableEntry
		if err := rows.Scan(&t.Name, &t.Type); err != nil {
			return err
		}
		out.Tables = append(out.Tables, t)
		return nil
	}, `SELECT name, type FROM pragma_table_list
		WHERE schema = 'main' AND type <> 'shadow' AND name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY name`)
	return out, err
}

func (db *database) describe(ctx context.Context, name string) (*table, error) {
	out := &table{Columns: []column{}, Indexes: []index{}, ForeignKeys: []foreignKey{}}
	err := db.each(ctx, func(rows *sql.Rows) error {
		return rows.Scan(&out.Name, &out.Type, &out.SQL)
	}, `SELECT l.name, l.type, coalesce(s.sql, '') FROM pragma_table_list l
		LEFT JOIN sqlite_schema s ON s.name = l.name AND s.type IN ('table', 'view')
		WHERE l.schema = 'main' AND l.name = ?1 COLLATE NOCASE`, name)
	if err != nil {
		return nil, err
	}
	if out.Name == "" {
		return nil, fmt.Errorf("no table or view %q; list_tables lists the existing ones", text.Short(name))
	}
	err = errors.Join(
		db.each(ctx, func(rows *sql.Rows) error {
			var c column
			var hidden int
			if err := rows.Scan(&c.Name, &c.Type, &c.NotNull, &c.Default, &c.PrimaryKey, &hidden); err != nil {
				return err
			}
			if hidden == 1 { // of a virtual table, for its own use
				return nil
			}
			c.Generated = hidden > 1
			out.Columns = append(out.Columns, c)
			return nil
		}, `SELECT name, type, "notnull", dflt_value, pk, hidden FROM pragma_table_xinfo(?1) ORDER BY cid`, out.Name),
		db.each(ctx, func(rows *sql.Rows) error {
			var x index
			var columns string
			if err := rows.Scan(&x.Name, &x.Unique, &columns); err != nil {
				return err
			}
			x.Columns = strings.Split(columns, "\x00")
			out.Indexes = append(out.Indexes, x)
			return nil
		}, `SELECT l.name, l."unique", (SELECT group_concat(coalesce(i.name, '(expression)'), char(0)) FROM (SELECT name FROM pragma_index_info(l.name) ORDER BY seqno) i)
			FROM pragma_index_list(?1) l ORDER BY l.name`, out.Name),
		db.foreignKeys(ctx, out),
	)
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (db *database) foreignKeys(ctx context.Context, out *table) error {
	last := -1
	return db.each(ctx, func(rows *sql.Rows) error {
		var id int
		var to, from string
		var key *string
		if err := rows.Scan(&id, &to, &from, &key); err != nil {
			return err
		}
		if id != last {
			last = id
			out.ForeignKeys = append(out.ForeignKeys, foreignKey{Table: to, Columns: []string{}, References: []string{}})
		}
		fk := &out.ForeignKeys[len(out.ForeignKeys)-1]
		fk.Columns = append(fk.Columns, from)
		if key != nil {
			fk.References = append(fk.References, *key)
		}
		return nil
	}, `SELECT id, "table", "from", "to" FROM pragma_foreign_key_list(?1) ORDER BY id, seq`, out.Name)
}

// each runs a query of this package and passes on its rows.
func (db *database) each(ctx context.Context, row func(*sql.Rows) error, query string, args ...any) error {
	conn, err := db.read.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	g := guard{reading: true}
	if err := g.install(conn); err != nil {
		return err
	}
	rows, err := conn.QueryContext(ctx, query, args...)
	if err != nil {
		return g.explain(err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
