package inputs

import (
	"os"
	"slices"
	"time"

	"github.com/patchbay-dev/patchbay/config"
)

// Row is an input in a list for people.
type Row struct {
	ID          string     `json:"id"`
	Description string     `json:"description,omitempty"`
	Password    bool       `json:"password"`
	Servers     []string   `json:"servers"`
	Models      []string   `json:"models,omitempty"`
	Variable    string     `json:"variable"`       // the environment variable that also answers it
	Set         bool       `json:"set"`            // the variable is set
	Kept        *time.Time `json:"kept,omitempty"` // since when an answer is kept; nil: none is
	Gone        bool       `json:"gone,omitempty"` // the file no longer has the input
}

// Rows lists the inputs of a file, and kept answers to inputs that it no longer has.
func Rows(file *config.File, kept []Kept) []Row {
	rows := []Row{}
	for _, in := range file.Inputs {
		_, set := os.LookupEnv(in.EnvName())
		row := Row{ID: in.ID, Description: in.Description, Password: in.Password, Servers: []string{}, Variable: in.EnvName(), Set: set}
		uses := func(list []config.Input) bool {
			return slices.ContainsFunc(list, func(of config.Input) bool { return of.ID == in.ID })
		}
		for _, s := range file.Servers {
			if uses(s.Inputs()) {
				row.Servers = append(row.Servers, s.Name)
			}
		}
		for _, m := range file.Models {
			if uses(m.Inputs()) {
				row.Models = append(row.Models, m.Name)
			}
		}
		rows = append(rows, row)
	}
	for _, k := range kept {
		i := slices.IndexFunc(rows, func(r Row) bool { return r.ID == k.ID })
		if i < 0 {
			i = len(rows)
			rows = append(rows, Row{ID: k.ID, Servers: []string{}, Variable: config.Input{ID: k.ID}.EnvName(), Gone: true})
		}
		rows[i].Kept = &k.Since
	}
	return rows
}
