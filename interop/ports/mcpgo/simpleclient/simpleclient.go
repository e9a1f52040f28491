// Package simpleclient is the port of mcp-go's examples/simple_client: a client that describes a server.
package simpleclient

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os/exec"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
)

func Main() {
	command := flag.String("stdio", "", "command that starts a server, split at spaces")
	url := flag.String("http", "", "URL of a server")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	client := &mcp.Client{Name: "MCP-Go Simple Client Example", Version: "1.0.0", OnEvent: func(_ *mcp.Session, e mcp.Event) {
		fmt.Println("Received notification:", e.Method)
	}}
	var s *mcp.Session
	var err error
	switch args := strings.Fields(*command); {
	case (len(args) > 0) == (*url != ""):
		log.Fatal("give exactly one of -stdio and -http")
	case *url != "":
		s, err = client.Dial(ctx, *url)
	default:
		s, err = client.Start(ctx, exec.Command(args[0], args[1:]...))
	}
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	info := s.Server()
	fmt.Printf("Connected to server: %s (version %s)\nServer capabilities: %s\n", info.Name, info.Version, info.Capabilities)
	if n := 0; info.Capabilities.Has("tools") {
		for tool, err := range s.Tools(ctx) {
			if err != nil {
				log.Fatal(err)
			}
			n++
			fmt.Printf("  %d. %s - %s\n", n, tool.Name, tool.Description)
		}
		fmt.Printf("Server has %d tools available\n", n)
	}
	if n := 0; info.Capabilities.Has("resources") {
		for res, err := range s.Resources(ctx) {
			if err != nil {
				log.Fatal(err)
			}
			n++
			fmt.Printf("  %d. %s - %s\n", n, res.URI, res.Name)
		}
		fmt.Printf("Server has %d resources available\n", n)
	}
}
