// Command caller lists the tools of a server and calls one. The server is at a URL, or a command that
// it starts:
//
//	go run ./examples/caller convert '{"value":2,"from":"mi"}' go run ./examples/units
//	go run ./examples/caller add '{"a":1,"b":2}' http://127.0.0.1:7420/mcp
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"strings"

	"github.com/patchbay-dev/patchbay/mcp"
)

// open opens a session with the server at a URL, or with a command.
func open(ctx context.Context, server []string) (*mcp.Session, error) {
	client := &mcp.Client{Name: "caller", Version: "1.0.0"}
	if strings.Contains(server[0], "://") {
		return client.Dial(ctx, server[0])
	}
	cmd := exec.Command(server[0], server[1:]...)
	cmd.Stderr = os.Stderr // where servers write their logs
	return client.Start(ctx, cmd)
}

func call(ctx context.Context, s *mcp.Session, tool, args string, w io.Writer) error {
	for tool, err := range s.Tools(ctx) {
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s: %s\n", tool.Name, tool.Description)
	}
	res, err := s.CallTool(ctx, tool, json.RawMessage(args))
	if err != nil {
		return err // the call failed: the connection, the protocol, a time limit
	}
	if res.IsError {
		return fmt.Errorf("%s: %s", tool, res.Text()) // the tool failed; a model reads the text
	}
	fmt.Fprintln(w, res.Text())
	return nil
}

func run(ctx context.Context, tool, args string, server []string) error {
	s, err := open(ctx, server)
	if err != nil {
		return err
	}
	defer s.Close() // ends the command too
	return call(ctx, s, tool, args, os.Stdout)
}

func main() {
	log.SetFlags(0)
	if len(os.Args) < 4 {
		log.Fatal("usage: caller TOOL ARGUMENTS URL | COMMAND…")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		log.Fatal(err)
	}
}
