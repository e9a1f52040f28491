package files_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/servers/files"
)

func Example() {
	dir, err := os.MkdirTemp("", "files")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("buy milk\ncall Ada\n"), 0o666); err != nil {
		log.Fatal(err)
	}

	ctx, cancel := context.WithCancel(context.Background())
	srv := files.New(files.Options{Roots: []string{dir}})
	near, far := jsonrpc.Pipe()
	served := make(chan struct{})
	go func() {
		defer close(served)
		srv.Serve(ctx, far)
	}()
	defer func() {
		cancel()
		<-served
		srv.Shutdown(context.Background())
	}()

	var client mcp.Client
	s, err := client.Connect(ctx, mcptest.Wire(near))
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	for _, call := range []struct {
		tool string
		args map[string]any
	}{
		{"search", map[string]any{"text": "(?i)ada"}},
		{"edit", map[string]any{"path": "notes.txt", "edits": []any{map[string]any{"old_text": "milk", "new_text": "oat milk"}}}},
		{"read", map[string]any{"path": "../secrets.txt"}},
	} {
		res, err := s.CallTool(ctx, call.tool, call.args)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(res.Text())
	}
	// Output:
	// {"matches":[{"path":"notes.txt","line":2,"text":"call Ada"}]}
	// --- a/notes.txt
	// +++ b/notes.txt
	// @@ -1,2 +1,2 @@
	// -buy milk
	// +buy oat milk
	//  call Ada
	//
	// "../secrets.txt" is outside of the roots; the tool roots names them
}
