package mcp_test

import (
	"context"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/store"
)

// changesOnly is a store.Shared of changes, of a single process.
type changesOnly struct {
	told []string
	hear func(change []byte)
}

func (*changesOnly) Sessions() store.Sessions          { return nil }
func (*changesOnly) Events() store.Events              { return nil }
func (*changesOnly) Tasks() store.Tasks                { return nil }
func (*changesOnly) StateKeys() [][]byte               { return [][]byte{[]byte("a key of thirty-two bytes or so.")} }
func (c *changesOnly) Tell(change []byte)              { c.told = append(c.told, string(change)) }
func (c *changesOnly) OnTold(hear func(change []byte)) { c.hear = hear }

// A server tells updates of resources, before it serves too, and no changes of lists. It leaves out what it hears and does not know. A server
// with a Handler, such as a gateway, tells and hears nothing.
func TestSharedChanges(t *testing.T) {
	shared := new(changesOnly)
	srv := &mcp.Server{Name: "s", Version: "1", Shared: shared}
	mcp.AddResource(srv, mcp.Resource{URI: "test://clock", Name: "clock"}, func(context.Context) (string, error) { return "now", nil })
	srv.ResourceUpdated("test://<&>")
	events := watching(t, t.Context(), mcptest.Connect(t, srv, nothing(), mcp.V2026_07_28), "test://clock")
	addTools(srv, 0, 1)
	expect(t, events, "tools/list_changed ")
	if len(shared.told) != 1 {
		t.Fatalf("told %q", shared.told)
	}
	for _, change := range []string{"", "null", "{", "[]", `{}`, `{"updated":7}`, `{"more":{}}`, shared.told[0], `{"updated":"test://clock","more":{}}`} {
		shared.hear([]byte(change))
	}
	expect(t, events, "resources/updated test://clock")
	if len(shared.told) != 1 {
		t.Errorf("told %q after what was heard", shared.told)
	}

	gateway := &changesOnly{}
	front := &mcp.Server{Name: "front", Version: "1", Handler: srv, Shared: gateway}
	if err := front.Check(); err != nil {
		t.Fatal(err)
	}
	front.ResourceUpdated("test://clock")
	if gateway.hear != nil || len(gateway.told) > 0 {
		t.Errorf("a server with a Handler has told %q", gateway.told)
	}
}
