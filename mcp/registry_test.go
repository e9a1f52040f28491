package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
)

// Cursors that a client makes up do not make the server keep pages.
func TestPagesKeptAreBounded(t *testing.T) {
	s := &Server{Name: "s", Limits: Limits{PageSize: 10}}
	for i := range 95 {
		AddTool(s, Tool{Name: fmt.Sprint("t", i)}, func(context.Context, struct{}) (string, error) { return "", nil })
	}
	for i := range uint64(1000) {
		params := json.RawMessage(`{"cursor":"` + cursor(i) + `"}`)
		if _, err := s.Handle(t.Context(), &Request{Method: "tools/list", Params: params}); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(s.tools.snapshot().pages); n > 10 {
		t.Errorf("%d pages are kept of a list of 10", n)
	}
}
