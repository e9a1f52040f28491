// Command subscribe has a resource that changes, and a tool that appears later. Clients that have
// subscribed are notified of both:
//
//	patchbay watch board://today -- go run ./examples/subscribe
package main

import (
	"context"
	"log"
	"sync"

	"github.com/patchbay-dev/patchbay/mcp"
)

// board is a text that everybody may write.
type board struct {
	srv *mcp.Server

	mu   sync.Mutex
	text string // guarded by mu
}

func (b *board) read(context.Context) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text, nil
}

// set changes the text, and offers the tool erase while there is one.
func (b *board) set(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.text = text; text == "" {
		b.srv.Remove(mcp.Feature{Kind: mcp.KindTool, Name: "erase"})
	} else {
		mcp.AddTool(b.srv, mcp.Tool{Name: "erase", Description: "Erase the board"},
			func(context.Context, struct{}) (string, error) { b.set(""); return "erased", nil })
	}
	b.srv.ResourceUpdated("board://today")
}

type Note struct {
	Text string `json:"text" min:"1"`
}

func (b *board) write(_ context.Context, in Note) (string, error) {
	b.set(in.Text)
	return "written", nil
}

func newServer() *mcp.Server {
	b := &board{srv: &mcp.Server{Name: "board", Version: "1.0.0"}}
	mcp.AddResource(b.srv, mcp.Resource{URI: "board://today", Name: "today"}, b.read)
	mcp.AddTool(b.srv, mcp.Tool{Name: "write", Description: "Write on the board"}, b.write)
	return b.srv
}

func main() {
	if err := newServer().ServeStdio(context.Background()); err != nil {
		log.Fatal(err)
	}
}
