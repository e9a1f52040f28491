// Command projectname is an MCP client. It connects to a server at a URL, or to a command that it starts,
// lists the tools of the server, and calls one of them:
//
//	go run . http://127.0.0.1:7420/mcp
//	go run . --call greet --args '{"name": "Ada"}' ./server
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"github.com/patchbay-dev/patchbay/mcp"
)

func newClient() *mcp.Client { return &mcp.Client{Name: "projectname", Version: "0.1.0"} }

// connect opens a session with the server at a URL, or with a command and its arguments.
func connect(ctx context.Context, server []string) (*mcp.Session, error) {
	switch {
	case len(server) == 0:
		return nil, errors.New("name a server: a URL, or a command with its arguments; see --help")
	case !strings.Contains(server[0], "://"):
		cmd := exec.Command(server[0], server[1:]...)
		cmd.Stderr = os.Stderr
		return newClient().Start(ctx, cmd)
	case len(server) > 1:
		return nil, fmt.Errorf("unknown argument %q after the URL; flags come before it", server[1])
	}
	return newClient().Dial(ctx, server[0])
}

// list writes the name and the description of each tool.
func list(ctx context.Context, s *mcp.Session, w io.Writer) error {
	for tool, err := range s.Tools(ctx) {
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s: %s\n", tool.Name, tool.Description)
	}
	return nil
}

// call calls a tool with arguments in JSON, and writes the text of its result.
func call(ctx context.Context, s *mcp.Session, tool, args string, w io.Writer) error {
	if !json.Valid([]byte(args)) {
		return fmt.Errorf("--args %s: not JSON; write an object such as {\"name\": \"Ada\"}", args)
	}
	res, err := s.CallTool(ctx, tool, json.RawMessage(args))
	if err != nil {
		return err // the call failed: the connection, the protocol, a time limit
	}
	if res.IsError {
		return errors.New(res.Text()) // the tool failed
	}
	fmt.Fprintln(w, res.Text())
	return nil
}

func run(ctx context.Context, tool, args string, server []string, w io.Writer) error {
	s, err := connect(ctx, server)
	if err != nil {
		return err
	}
	defer s.Close()
	if tool == "" {
		return list(ctx, s, w)
	}
	return call(ctx, s, tool, args, w)
}

func main() {
	tool := flag.String("call", "", "call this `tool`; without it, list the tools")
	args := flag.String("args", "{}", "the arguments of the call, a JSON `object`")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: projectname [--call tool] [--args object] URL | COMMAND ARGUMENTS")
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *tool, *args, flag.Args(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}
