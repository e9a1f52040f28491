package entry

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/servers"
)

// Explanation is the explanation of a server.
type Explanation struct {
	Name     string   `json:"name"`
	Source   string   `json:"source,omitempty"`
	Search   []Place  `json:"search"`
	Values   []Value  `json:"values,omitempty"`
	Settings []Value  `json:"settings,omitempty"`
	Faults   []string `json:"faults,omitempty"`
}

// Place is a place of mcp.json.
type Place struct {
	Path string `json:"path"`
	Used bool   `json:"used"`
	Why  string `json:"why"`
	Has  bool   `json:"has"` // the file has a server with the name
}

// Searched lists each place of mcp.json, with what is there and why it is used or not: the
// file named if the command line has one, else those for the current folder.
func Searched(named, name string) ([]Place, error) {
	if named != "" {
		return []Place{{Path: named, Used: true, Why: "used: --config names it"}}, nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	winner := ""
	var out []Place
	for _, path := range config.Places(dir) {
		p := Place{Path: Here(path)}
		info, err := os.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			p.Why = "not found"
		case err != nil:
			p.Why = "unreadable"
		case !info.Mode().IsRegular():
			p.Why = "not a file"
		case winner == "":
			winner = p.Path
			p.Used, p.Why = true, "used: the first found"
		default:
			p.Why = "not read: " + winner + " comes first"
			if file, faults, err := config.Inspect(path, nil); err == nil {
				p.Has = slices.ContainsFunc(file.Servers, func(s config.Server) bool { return s.Name == name }) ||
					slices.ContainsFunc(faults, func(p config.Problem) bool { return p.Server == name })
				if p.Has {
					p.Why += fmt.Sprintf("; it has a server %q too", name)
				}
			}
		}
		out = append(out, p)
	}
	return out, nil
}

// Print prints the explanation, with headings by paint.
func (e *Explanation) Print(print func(line string), paint func(text, color string) string) {
	from := HereLine(e.Source)
	if from == "" && slices.Contains(servers.Names(), e.Name) {
		from = "built in"
	}
	print(paint(screen.OneLine(e.Name), "1") + "  " + cmp.Or(from, "nowhere"))
	print("\n" + paint("Search order", "1"))
	wide := 0
	for _, p := range e.Search {
		wide = max(wide, screen.Columns(p.Path))
	}
	for _, p := range e.Search {
		mark := "  "
		if p.Used {
			mark = "* "
		}
		print(mark + screen.Pad(screen.OneLine(p.Path), wide) + "  " + screen.OneLine(p.Why))
	}
	if len(e.Values) > 0 {
		print("\n" + paint("Values", "1"))
	}
	lines := slices.Concat(e.Values, e.Settings)
	wide = 0
	texts := 0
	for _, v := range lines {
		wide, texts = max(wide, screen.Columns(screen.OneLine(v.Name))), max(texts, min(40, screen.Columns(screen.OneLine(v.Text))))
	}
	for i, v := range lines {
		if i == len(e.Values) {
			print("\n" + paint("Settings", "1"))
		}
		line := "  " + screen.Pad(screen.OneLine(v.Name), wide) + "  " + screen.Pad(screen.OneLine(v.Text), texts)
		from := v.From
		if v.Source != "" && len(from) == 0 && !sameFile(v.Source, e.Source) {
			from = []string{v.Source}
		}
		if len(from) > 0 {
			line += "  from " + screen.OneLine(strings.Join(from, ", "))
		}
		print(strings.TrimRight(line, " "))
	}
}

// sameFile reports whether two sources, "path:line", have the same path.
func sameFile(a, b string) bool {
	x, _, _ := CutLast(HereLine(a), ":")
	y, _, _ := CutLast(HereLine(b), ":")
	return x == y
}
