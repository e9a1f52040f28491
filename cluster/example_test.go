package cluster_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"

	"github.com/patchbay-dev/patchbay/cluster"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Two nodes serve the same tools at two addresses. With package cluster/nats in place of Memory they are on two machines.
func ExampleNode() {
	ctx := context.Background()
	shared := new(cluster.Memory)
	var addresses []string
	for _, name := range []string{"n1", "n2"} {
		server := &mcp.Server{Name: "tools", Version: "1"}
		type none struct{}
		mcp.AddTool(server, mcp.Tool{Name: "where", Description: "Says which node this is"},
			func(context.Context, none) (string, error) { return name, nil })
		node := &cluster.Node{Name: name, State: shared, Bus: shared, Handler: server}
		if err := node.Join(ctx); err != nil {
			log.Fatal(err)
		}
		defer node.Leave(ctx)
		web := httptest.NewServer(node)
		defer web.Close()
		addresses = append(addresses, web.URL)
	}
	names, err := (&cluster.Node{State: shared}).Nodes(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("nodes:", names, "at", len(addresses), "addresses")
	// Output: nodes: [n1 n2] at 2 addresses
}
