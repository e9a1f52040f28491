// Package basic is the port of go-sdk's examples/server/basic: a client and a server in one process.
package basic

import (
	"context"
	"fmt"
	"log"

	"github.com/patchbay-dev/patchbay/mcp"
)

type Person struct {
	Name string `json:"name"`
}

func NewServer() *mcp.Server {
	srv := &mcp.Server{Name: "greeter", Version: "v0.0.1"}
	mcp.AddTool(srv, mcp.Tool{Name: "greet", Description: "say hi"},
		func(_ context.Context, in Person) (string, error) { return "Hi " + in.Name, nil })
	return srv
}

func Main() {
	ctx := context.Background()
	s, err := (&mcp.Client{Name: "client"}).Open(ctx, NewServer())
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	text, err := mcp.CallAs[string](ctx, s, "greet", Person{"user"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(text)
}
