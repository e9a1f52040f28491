// Command nodes serves the same tools on three machines as one MCP server. A client may send each request to any of them.
// On one machine for a try, in three terminals:
//
//	go run ./examples/nodes n1
//	go run ./examples/nodes n2
//	go run ./examples/nodes n3
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/patchbay-dev/patchbay/cluster"
	"github.com/patchbay-dev/patchbay/cluster/nats"
	"github.com/patchbay-dev/patchbay/mcp"
)

// machines have the addresses for clients, and for the other machines.
var machines = map[string]struct{ clients, others string }{
	"n1": {"127.0.0.1:7431", "127.0.0.1:7441"},
	"n2": {"127.0.0.1:7432", "127.0.0.1:7442"},
	"n3": {"127.0.0.1:7433", "127.0.0.1:7443"},
}

// newServer returns the server of each node. They have the same name.
func newServer(name string) *mcp.Server {
	srv := &mcp.Server{Name: "nodes", Version: "1.0.0"}
	mcp.AddTool(srv, mcp.Tool{Name: "where", Description: "Says which node has run it"},
		func(context.Context, struct{}) (string, error) { return name, nil })
	return srv
}

// join makes a node of the cluster, and returns its server and what ends it.
func join(ctx context.Context, name, dir, listen string, routes []string) (srv *mcp.Server, node *cluster.Node, end func(context.Context) error, err error) {
	server, err := nats.Start(nats.ServerOptions{Cluster: "nodes", Node: name, Dir: filepath.Join(dir, name), Listen: listen, Routes: routes})
	if err != nil {
		return nil, nil, nil, err
	}
	conn, err := server.Connect()
	if err != nil {
		return nil, nil, nil, errors.Join(err, server.Close(ctx))
	}
	shared, err := nats.Open(ctx, conn, nats.Options{Cluster: "nodes"}) // waits for a majority; the first time, for three machines
	if err != nil {
		return nil, nil, nil, errors.Join(err, server.Close(context.WithoutCancel(ctx)))
	}
	srv = newServer(name)
	node = &cluster.Node{Name: name, State: shared, Bus: shared, Handler: srv}
	srv.Shared = node.Share("/mcp") // when a machine dies, another one goes on with its sessions, and has the results of its tasks
	if err := node.Join(ctx); err != nil {
		return nil, nil, nil, errors.Join(err, server.Close(context.WithoutCancel(ctx)))
	}
	return srv, node, func(ctx context.Context) error {
		err := errors.Join(node.Leave(ctx), shared.Close())
		conn.Close()
		return errors.Join(err, server.Close(ctx))
	}, nil
}

func run(ctx context.Context, name string) error {
	me, ok := machines[name]
	if !ok {
		return errors.New("usage: nodes n1|n2|n3")
	}
	var routes []string
	for _, m := range machines {
		routes = append(routes, m.others)
	}
	dir, err := os.MkdirTemp("", "nodes-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	srv, node, end, err := join(ctx, name, dir, me.others, routes)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", me.clients)
	if err != nil {
		return err
	}
	web := &http.Server{Handler: node, ReadHeaderTimeout: 10 * time.Second}
	go web.Serve(l)
	fmt.Printf("http://%s/mcp\n", me.clients)
	<-ctx.Done()
	last, stop := context.WithTimeout(context.Background(), 10*time.Second)
	defer stop()
	node.Retire() // the others go on with its sessions
	calls := make(chan error, 1)
	go func() { calls <- srv.Shutdown(last) }() // it waits for calls, and ends streams for which web would wait
	return errors.Join(web.Shutdown(last), <-calls, end(last))
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	name := ""
	if len(os.Args) == 2 {
		name = os.Args[1]
	}
	if err := run(ctx, name); err != nil {
		log.Fatal(err)
	}
}
