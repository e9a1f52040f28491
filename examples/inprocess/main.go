// Command inprocess uses a server of its own process, without a wire: the tools that hosts get are the
// functions of its command line too.
//
//	go run ./examples/inprocess                serves standard streams
//	go run ./examples/inprocess add a=2 b=3    calls a tool
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"strings"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/schema"
)

type Sum struct {
	A int `json:"a"`
	B int `json:"b"`
}

func newServer() *mcp.Server {
	srv := &mcp.Server{Name: "calc", Version: "1.0.0"}
	mcp.AddTool(srv, mcp.Tool{Name: "add", Description: "Add two numbers"},
		func(_ context.Context, in Sum) (int, error) { return in.A + in.B, nil })
	return srv
}

// run calls a tool with words such as a=2. The schema of the tool says which of them are numbers.
func run(ctx context.Context, srv *mcp.Server, name string, words []string) (string, error) {
	s, err := (&mcp.Client{Name: "calc", Version: "1.0.0"}).Open(ctx, srv)
	if err != nil {
		return "", err
	}
	defer s.Close()
	args := map[string]any{}
	for tool, err := range s.Tools(ctx) {
		if err != nil {
			return "", err
		}
		if tool.Name != name {
			continue
		}
		form, err := schema.FormOf(tool.InputSchema)
		if err != nil {
			return "", err
		}
		for _, f := range form.Fields {
			for _, word := range words {
				if text, ok := strings.CutPrefix(word, f.Name+"="); ok {
					if args[f.Name], err = f.Parse(text); err != nil {
						return "", err
					}
				}
			}
		}
	}
	res, err := s.CallTool(ctx, name, args)
	if err != nil {
		return "", err
	}
	if res.IsError {
		return "", errors.New(res.Text())
	}
	return res.Text(), nil
}

func main() {
	ctx := context.Background()
	flag.Parse()
	if flag.NArg() == 0 {
		if err := newServer().ServeStdio(ctx); err != nil {
			log.Fatal(err)
		}
		return
	}
	result, err := run(ctx, newServer(), flag.Arg(0), flag.Args()[1:])
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result)
}
