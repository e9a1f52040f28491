package limit_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/patchbay-dev/patchbay/cluster"
	"github.com/patchbay-dev/patchbay/limit"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Nodes of a cluster have a limit together, whichever of them a caller uses.
func ExampleGroup() {
	ctx := context.Background()
	shared := new(cluster.Memory) // package cluster/nats connects several machines
	server := &mcp.Server{Name: "shop", Version: "1"}
	node := &cluster.Node{Name: "n1", State: shared, Bus: shared, Handler: server}
	limits := &limit.Limiter{
		Caller: limit.Rate{Count: 100, Per: time.Second},
		Group:  &limit.Group{Nodes: node, Bus: shared},
	}
	server.Use(limits.Limit)
	leave, err := limits.Group.Join()
	if err != nil {
		log.Fatal(err)
	}
	defer leave()
	if err := node.Join(ctx); err != nil {
		log.Fatal(err)
	}
	defer node.Leave(ctx)
	fmt.Println(limits.Caller, "at", node.Seen(), "node")
	// Output: 100/s at 1 node
}
