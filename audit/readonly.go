package audit

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/mcp"
)

// readOnlyTools are the tools of a server that say that they only read.
type readOnlyTools struct {
	mu    sync.Mutex
	names map[string]bool // guarded by mu
	asked time.Time       // guarded by mu
}

const (
	maxPages = 100
	freshFor = time.Minute // how long a list of tools is believed
)

// has reports whether a tool only reads. It lists the tools of next at most once a minute.
func (k *readOnlyTools) has(ctx context.Context, next mcp.Handler, name string) bool {
	k.mu.Lock()
	stale := time.Since(k.asked) > freshFor
	if stale {
		k.asked = time.Now()
	}
	yes := k.names[name]
	k.mu.Unlock()
	if !stale {
		return yes
	}
	names := map[string]bool{}
	params := json.RawMessage(nil)
	for range maxPages {
		res, err := next.Handle(ctx, &mcp.Request{Method: "tools/list", Params: params})
		if err != nil {
			names = map[string]bool{}
			break
		}
		raw := res.JSON()
		list, _ := jsonx.Lookup(raw, "tools")
		for tool := range jsonx.Elements(list) {
			if hint, _ := jsonx.LookupPath(tool, "annotations", "readOnlyHint"); string(hint) == "true" {
				id, _ := jsonx.Lookup(tool, "name")
				names[stringOf(id)] = true
			}
		}
		cursor, _ := jsonx.Lookup(raw, "nextCursor")
		if jsonx.KindOf(cursor) != '"' {
			break
		}
		params = jsonx.With(nil, nil, "cursor", cursor)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.names = names
	return names[name]
}
