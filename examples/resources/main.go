// Command resources serves the notes of a folder: a list of their names, and each note by its name.
//
//	patchbay read notes://list -- go run ./examples/resources NOTES
package main

import (
	"context"
	"errors"
	"io/fs"
	"log"
	"os"
	"strings"

	"github.com/patchbay-dev/patchbay/mcp"
)

// A folder is an os.Root: no name leads out of it, by .. or by a link.
type folder struct{ *os.Root }

func (f folder) list(context.Context) ([]string, error) {
	files, err := fs.Glob(f.FS(), "*.txt")
	for i, name := range files {
		files[i] = strings.TrimSuffix(name, ".txt")
	}
	return files, err // anything but a string or bytes becomes JSON
}

type Note struct {
	Name string `json:"name"`
}

func (f folder) read(_ context.Context, in Note) (string, error) {
	text, err := f.ReadFile(in.Name + ".txt")
	if errors.Is(err, fs.ErrNotExist) {
		return "", mcp.ResourceNotFound("notes://note/" + in.Name)
	}
	return string(text), err
}

func (f folder) names(ctx context.Context, prefix string, _ map[string]string) (found []string, err error) {
	all, err := f.list(ctx)
	for _, name := range all {
		if strings.HasPrefix(name, prefix) {
			found = append(found, name)
		}
	}
	return found, err
}

func newServer(f folder) *mcp.Server {
	srv := &mcp.Server{Name: "notes", Version: "1.0.0"}
	mcp.AddResource(srv, mcp.Resource{URI: "notes://list", Name: "list", Description: "The names of all notes"}, f.list)
	mcp.AddResourceTemplate(srv, mcp.ResourceTemplate{
		URITemplate: "notes://note/{name}", Name: "note", MIMEType: "text/plain",
		Complete: map[string]mcp.CompleteFunc{"name": f.names},
	}, f.read)
	return srv
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: resources FOLDER")
	}
	root, err := os.OpenRoot(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	defer root.Close()
	if err := newServer(folder{root}).ServeStdio(context.Background()); err != nil {
		log.Print(err)
	}
}
