// Command host gives a language model a task and the tools of a server that it starts:
//
//	go run ./examples/host "Which tables are there?" patchbay serve sqlite --demo
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/exec"

	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/host/provider"
	"github.com/patchbay-dev/patchbay/mcp"
)

func answer(ctx context.Context, m model.Model, task string, command []string) (*host.Reply, error) {
	h := &host.Host{Model: m, Allow: []string{"db/list_*", "db/read_query"}}
	defer h.Close()
	if err := h.Add(host.Server{Name: "db", Open: func(ctx context.Context, c *mcp.Client) (mcp.Handler, error) {
		return c.Start(ctx, exec.Command(command[0], command[1:]...))
	}}); err != nil {
		return nil, err
	}
	return h.NewConversation().Send(ctx, task)
}

func main() {
	if len(os.Args) < 3 {
		log.Fatal("usage: host TASK COMMAND [ARGUMENTS]")
	}
	m, err := provider.Open("openai/gpt-5-mini", provider.Options{})
	if err != nil {
		log.Fatal(err)
	}
	reply, err := answer(context.Background(), m, os.Args[1], os.Args[2:])
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(reply.Text)
}
