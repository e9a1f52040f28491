package config_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/patchbay-dev/patchbay/config"
)

func ExampleLoad() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "mcp.json")
	text := `{
	// started as a child process
	"mcpServers": {
		"files": {"command": "server-files", "args": ["${FOLDER:-.}"]},
		"web":   {"url": "https://example.com/mcp", "comment": "ignored"},
	},
}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	file, err := config.Load(path, os.LookupEnv)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range file.Servers {
		fmt.Printf("%s: %s%s %q\n", s.Name, s.Command, s.URL, s.Args)
	}

	if err := os.WriteFile(path, []byte(`{"mcpServers": {"files": {"comand": "server-files"}}}`), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	_, err = config.Load(path, os.LookupEnv)
	var problems config.Problems
	if errors.As(err, &problems) {
		for _, p := range problems {
			fmt.Printf("line %d, column %d: %s: %s\n", p.Line, p.Column, p.Text, p.Fix)
		}
	}
	// Output:
	// files: server-files ["."]
	// web: https://example.com/mcp []
	// line 1, column 27: the server "files" has neither command nor url: did you mean "command" instead of "comand"?
}

func ExampleEdit() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "mcp.json")
	text := `{
  "mcpServers": {
    "files": {"command": "server-files"}, // ours
    "old": {"command": "server-old"}
  }
}
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	err = config.Edit(context.Background(), path, func(doc *config.Document) error {
		return errors.Join(
			doc.Remove("old"),
			doc.Add(config.Entry{Name: "web", Object: []byte(`{"type": "http", "url": "https://example.com/mcp"}`)}),
		)
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	now, err := os.ReadFile(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s", now)
	// Output:
	// {
	//   "mcpServers": {
	//     "files": {"command": "server-files"}, // ours
	//     "web": {
	//       "type": "http",
	//       "url": "https://example.com/mcp"
	//     }
	//   }
	// }
}
