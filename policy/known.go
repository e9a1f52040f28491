package policy

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/mcp"
)

// known caches the lists of servers for a few seconds, by caller. It is filled when a policy asks
// for annotations in a call. The zero value is ready for use.
type known struct {
	mu   sync.Mutex
	said map[saidKey]*said // guarded by mu
}

type saidKey struct {
	who  string // principal: servers may give each a different list
	list *featureList
}

// said is a list at one moment. It is immutable.
type said struct {
	at time.Time
	by map[string]*Annotations
}

const (
	knownFor    = 5 * time.Second
	maxSaid     = 200    // lists
	maxEntries  = 10_000 // of a list; later entries are not annotated
	maxListPage = 1000   // pages of a list
)

// find returns the server's annotations of the feature of a call, nil for none.
func (k *known) find(ctx context.Context, next mcp.Handler, a *Access) *Annotations {
	l, name := listFor(a)
	key := saidKey{list: l}
	if a.Principal != nil {
		key.who = a.Principal.ID
	}
	k.mu.Lock()
	s := k.said[key]
	k.mu.Unlock()
	if s != nil && time.Since(s.at) < knownFor {
		if n, ok := s.by[name]; ok {
			return n
		}
	}
	s = ask(ctx, next, l)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.said == nil || len(k.said) >= maxSaid {
		k.said = map[saidKey]*said{}
	}
	k.said[key] = s
	return s.by[name]
}

// listFor returns the list that contains the feature of an access, and the name of the feature in
// that list.
func listFor(a *Access) (*featureList, string) {
	switch {
	case a.Kind == mcp.KindTool:
		return toolList, a.Name
	case a.Kind == mcp.KindPrompt:
		return promptList, a.Name
	case a.Template != "":
		return templateList, a.Template
	}
	return resourceList, a.Name
}

// ask reads a list of the server. Entries that cannot be read are not annotated.
func ask(ctx context.Context, next mcp.Handler, l *featureList) *said {
	s := &said{at: time.Now(), by: map[string]*Annotations{}}
	params := json.RawMessage(`{}`)
	for range maxListPage {
		res, err := next.Handle(ctx, &mcp.Request{Method: l.Method, Params: params})
		if err != nil {
			return s
		}
		raw := res.JSON()
		entries, _ := jsonx.Lookup(raw, l.Member)
		for e := range jsonx.Elements(entries) {
			if len(s.by) >= maxEntries {
				return s
			}
			if name := nameOf(e, l.Key); name != "" {
				s.by[name] = annotationsOf(e)
			}
		}
		cursor, ok := jsonx.Lookup(raw, "nextCursor")
		if !ok || string(cursor) == "null" {
			return s
		}
		params = append(append([]byte(`{"cursor":`), cursor...), '}')
	}
	return s
}

// annotationsOf returns the annotations of an entry of a list, or nil if it has none. Members of the
// wrong type are ignored.
func annotationsOf(entry json.RawMessage) *Annotations {
	raw, ok := jsonx.Lookup(entry, "annotations")
	if !ok || jsonx.KindOf(raw) != '{' {
		return nil
	}
	n := Unannotated
	for name, v := range jsonx.Members(raw) {
		switch string(name) {
		case "title":
			n.Title, _ = jsonx.Unquote(v)
		case "readOnlyHint":
			flag(v, &n.ReadOnly)
		case "destructiveHint":
			flag(v, &n.Destructive)
		case "idempotentHint":
			flag(v, &n.Idempotent)
		case "openWorldHint":
			flag(v, &n.OpenWorld)
		case "priority":
			_ = jsonx.Unmarshal(v, &n.Priority)
		case "audience":
			for e := range jsonx.Elements(v) {
				if who, err := jsonx.Unquote(e); err == nil {
					n.Audience = append(n.Audience, who)
				}
			}
		}
	}
	return &n
}

func flag(v json.RawMessage, to *bool) {
	switch string(v) {
	case "true":
		*to = true
	case "false":
		*to = false
	}
}
