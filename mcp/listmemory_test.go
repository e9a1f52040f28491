package mcp_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/internal/long"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// A list has memory to find out that its pages have no end. It does not grow with the length of the
// texts on them.
func TestListRemembersLittle(t *testing.T) {
	long.WithoutRace(t)
	const pages, length = 60, 1 << 20
	n := 0
	srv := &mcp.Server{Name: "s", Version: "1", Handler: mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		if req.Method != "resources/list" {
			return &mcp.ServerInfo{Capabilities: mcp.Capabilities{"resources": []byte(`{}`)}}, nil
		}
		n++
		next := ""
		if n < pages {
			next = fmt.Sprintf(`,"nextCursor":"%d%s"`, n, strings.Repeat("c", length))
		}
		return mcp.RawResult(fmt.Sprintf(`{"resources":[{"uri":"x:%d%s","name":"x"}]%s}`, n, strings.Repeat("u", length), next)), nil
	})}
	s := mcptest.Connect(t, srv, &mcp.Client{Name: "c", Version: "1", Limits: mcp.Limits{Cache: -1}}, mcp.V2026_07_28)
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, seen := heap(), 0
	for _, err := range s.Resources(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if seen++; seen == pages {
			if grown := int64(heap()) - int64(before); grown > pages*length/2 {
				t.Errorf("after %d pages of %d bytes the heap has grown by %d", pages, 2*length, grown)
			}
		}
	}
	if seen != pages {
		t.Errorf("%d entries, want %d", seen, pages)
	}
}
