// Command tenants serves several customers at one address. Each has data of its own, and sees only
// the tools of its plan. To make a key for a customer:
//
//	patchbay token key acme --file keys.jsonl
package main

import (
	"context"
	"log"
	"net/http"
	"slices"
	"sync"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/mcp"
)

// plans are the tools that each tenant has.
var plans = map[string][]string{"acme": {"add", "report"}, "zenith": {"add"}}

// ledger keeps the amounts of each tenant.
type ledger struct {
	mu      sync.Mutex
	amounts map[string][]int // by tenant; guarded by mu
}

type Amount struct {
	Cents int `json:"cents" min:"1"`
}

func (l *ledger) add(ctx context.Context, in Amount) (string, error) {
	tenant := auth.From(ctx).Subject
	l.mu.Lock()
	defer l.mu.Unlock()
	l.amounts[tenant] = append(l.amounts[tenant], in.Cents)
	return "added for " + tenant, nil
}

type Report struct {
	Amounts []int `json:"amounts"`
}

func (l *ledger) report(ctx context.Context, _ struct{}) (Report, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Report{slices.Clone(l.amounts[auth.From(ctx).Subject])}, nil
}

func handler() http.Handler {
	l := &ledger{amounts: map[string][]int{}}
	srv := &mcp.Server{Name: "ledger", Version: "1.0.0",
		// A tool that is not visible is not listed, and cannot be called.
		Visible: func(ctx context.Context, f mcp.Feature) bool {
			return slices.Contains(plans[auth.From(ctx).Subject], f.Name)
		},
	}
	mcp.AddTool(srv, mcp.Tool{Name: "add", Description: "Add an amount"}, l.add)
	mcp.AddTool(srv, mcp.Tool{Name: "report", Description: "List all amounts"}, l.report)
	guard := &auth.Guard{Verifiers: []auth.Verifier{&auth.APIKeys{File: "keys.jsonl"}}}
	return guard.Protect(srv)
}

func main() { log.Fatal(http.ListenAndServe("127.0.0.1:7420", handler())) }
