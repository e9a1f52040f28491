// Package listfeatures is the port of go-sdk's examples/client/listfeatures: a client that lists the
// features of any server.
package listfeatures

import (
	"context"
	"flag"
	"fmt"
	"iter"
	"log"
	"os/exec"

	"github.com/patchbay-dev/patchbay/mcp"
)

func Main() {
	url := flag.String("http", "", "URL of a server; without it, the arguments are a command that starts one")
	flag.Parse()
	var (
		ctx    = context.Background()
		client = &mcp.Client{Name: "mcp-client", Version: "v1.0.0"}
		s      *mcp.Session
		err    error
	)
	switch {
	case *url != "":
		s, err = client.Dial(ctx, *url)
	case flag.NArg() > 0:
		s, err = client.Start(ctx, exec.Command(flag.Arg(0), flag.Args()[1:]...))
	default:
		log.Fatal("usage: listfeatures COMMAND [ARGUMENT ...] | listfeatures -http URL")
	}
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	has := s.Server().Capabilities.Has
	if has("tools") {
		list("tools", s.Tools(ctx), func(t *mcp.Tool) string { return t.Name })
	}
	if has("resources") {
		list("resources", s.Resources(ctx), func(r *mcp.Resource) string { return r.Name })
		list("resource templates", s.ResourceTemplates(ctx), func(r *mcp.ResourceTemplate) string { return r.Name })
	}
	if has("prompts") {
		list("prompts", s.Prompts(ctx), func(p *mcp.Prompt) string { return p.Name })
	}
}

func list[T any](title string, features iter.Seq2[T, error], name func(T) string) {
	fmt.Printf("%s:\n", title)
	for f, err := range features {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("\t%s\n", name(f))
	}
	fmt.Println()
}
