package explain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/chain"
	"github.com/patchbay-dev/patchbay/config/deploy"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/listen"
	"github.com/patchbay-dev/patchbay/internal/note"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/launch"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/policy"
	"github.com/patchbay-dev/patchbay/policy/rules"
)

// stage is a server that lists its tools, and answers calls with nothing.
type stage struct {
	list    mcp.Result
	reached *atomic.Bool // set by a call
}

func (s *stage) Handle(_ context.Context, req *mcp.Request) (mcp.Result, error) {
	switch req.Method {
	case "server/discover":
		return &mcp.ServerInfo{Capabilities: mcp.Capabilities{"tools": json.RawMessage("{}")}}, nil
	case "tools/list":
		return s.list, nil
	case "tools/call":
		s.reached.Store(true)
		return &mcp.ToolResult{}, nil
	}
	return nil, mcp.Errorf(jsonrpc.CodeMethodNotFound, "no method %q", req.Method)
}

// rehearsal is the gateway of a deployment around servers that do nothing.
type rehearsal struct {
	of    *Deployment
	chain *chain.Chain
	views *chain.Views
	front []mcp.Middleware
	made  mcp.Handler // that of the path that was last made

	reached atomic.Bool // the last call has got to a server

	mu      sync.Mutex
	decided []decision // of one call, in order; guarded by mu
	asked   []asked    // likewise
}

// decision is one of a view or of the policy about a call.
type decision struct {
	server string // or view
	note.Decision
}

// asked is an access that the policy decides.
type asked struct {
	set *rules.Set
	policy.Access
}

// Decided implements [note.Recorder].
func (r *rehearsal) Decided(server string, d note.Decision) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.decided = append(r.decided, decision{server, d})
}

// rehearsal makes the gateway as up does. It has neither an audit log nor telemetry, which would write.
func (d *Deployment) rehearsal(servers []launch.Offered, t *tool) (*rehearsal, error) {
	r := &rehearsal{of: d}
	file := *d.File
	file.Audit, file.Telemetry, file.Record = nil, nil, nil
	var err error
	r.chain, err = chain.New(chain.Config{
		Policy: file.Policy, HTTP: true, File: &file,
		Asked: func(set *rules.Set, a *policy.Access) {
			if !a.Partial {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.asked = append(r.asked, asked{set, *a})
			}
		},
	}, d.Program)
	if err != nil {
		return nil, err
	}
	about := map[string]chain.Server{}
	for _, s := range servers {
		about[s.Name] = d.about(&s)
	}
	gw := &gateway.Gateway{Name: "patchbay", Middleware: r.chain.Around(func(server string) chain.Server { return about[server] })}
	r.views = r.chain.Views(gw, gateway.Name, func(_ string, h mcp.Handler) *mcp.Server {
		r.made = h
		return &mcp.Server{Name: "patchbay", Handler: h}
	})
	if r.front, err = r.chain.Front(); err != nil {
		return nil, err
	}
	names, err := owners(servers)
	if err != nil {
		return nil, err
	}
	for _, s := range servers {
		list := []json.RawMessage{}
		if _, known := d.Lists[s.Name]; !known {
			list = d.changed(names, t, s.Name)
		}
		for _, definition := range d.Lists[s.Name] {
			quoted, _ := jsonx.Lookup(definition, "name")
			own, err := jsonx.Unquote(quoted)
			if err == nil && (s.Offers == nil || s.Offers(own)) && !(s.Name == t.server && own == t.own) {
				list = append(list, definition)
			}
		}
		if s.Name == t.server {
			list = append(list, t.definition)
		}
		raw, err := jsonx.Marshal(map[string]any{"tools": list})
		if err != nil {
			return nil, err
		}
		if err := gw.Set(s.Name, &stage{mcp.RawResult(raw), &r.reached}); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// changed returns the tools of a server that views change, apart from t.
func (d *Deployment) changed(names *gateway.Gateway, t *tool, server string) []json.RawMessage {
	list := []json.RawMessage{}
	done := []string{t.name}
	for _, v := range d.views() {
		for _, c := range v.Changes {
			if of, own := names.Owner(c.Tool); of == server && own != "" && !slices.Contains(done, c.Tool) {
				done = append(done, c.Tool)
				list = append(list, bare(own))
			}
		}
	}
	return list
}

// about returns what the chain knows about a server.
func (d *Deployment) about(s *launch.Offered) chain.Server {
	return chain.Server{Trusted: d.Trusted(s.Server), Config: s.Server}
}

// as returns the context of the caller of a call.
func as(ctx context.Context, c *Call) context.Context { return auth.With(ctx, c.Principal) }

// team returns the team of the caller; empty: none.
func (r *rehearsal) team(ctx context.Context, c *Call) string { return r.chain.Team(as(ctx, c)) }

// send sends a request through the chain, and returns the error that its caller would get; one of a result
// too.
func (r *rehearsal) send(ctx context.Context, c *Call, h mcp.Handler, method string, params json.RawMessage) error {
	r.mu.Lock()
	r.decided, r.asked = nil, nil
	r.mu.Unlock()
	r.reached.Store(false)
	for i := len(r.front) - 1; i >= 0; i-- {
		h = r.front[i](h)
	}
	res, err := h.Handle(note.With(as(ctx, c), r), &mcp.Request{Method: method, Params: params})
	if err == nil && res != nil {
		raw := res.JSON()
		if failed, _ := jsonx.Lookup(raw, "isError"); string(failed) == "true" {
			content, _ := jsonx.Lookup(raw, "content")
			for block := range jsonx.Elements(content) {
				quoted, _ := jsonx.Lookup(block, "text")
				text, _ := jsonx.Unquote(quoted)
				return errors.New(text)
			}
		}
	}
	return err
}

// way sends the call on the path of a view; nil: that of a gateway without views.
func (r *rehearsal) way(ctx context.Context, c *Call, t *tool, v *deploy.View) Way {
	w := Way{Path: listen.Path, Name: t.name}
	h := r.views.All()
	if v != nil {
		w.View, w.Name = v.Name, nameIn(v, t)
		if v.Name != deploy.AllView {
			w.Path += "/v/" + v.Name
			r.views.Below("v/" + v.Name)
			h = r.made
		}
	}
	params := func(name string, arguments json.RawMessage) json.RawMessage {
		raw := jsonx.With(nil, []byte("{}"), "name", jsonx.AppendString(nil, name))
		if arguments != nil {
			raw = jsonx.With(nil, raw, "arguments", arguments)
		}
		return raw
	}
	call := params(w.Name, c.Arguments)
	if err := r.send(ctx, c, h, "server/discover", json.RawMessage("{}")); err != nil && v != nil {
		w.By = fmt.Sprintf("the view %q is not for this caller (%s)", v.Name, r.of.place("views."+v.Name+".for"))
		w.set(filepath.Base(r.of.File.Path), r.of.File.Problem("views."+v.Name+".for", "", "").Line)
		return w
	}
	var err error
	if v != nil && v.Search {
		w.Through = "call_tool"
		if err = r.send(ctx, c, h, "tools/call", params("call_tool", call)); !r.reached.Load() && len(r.decisions()) == 0 {
			// It is not among the tools that call_tool has found. A call without call_tool tells why.
			if inner := r.send(ctx, c, h, "tools/call", call); inner != nil {
				err = inner
			}
			r.reached.Store(false)
		}
	} else {
		err = r.send(ctx, c, h, "tools/call", call)
	}
	w.Allowed = r.reached.Load()
	r.explain(ctx, &w, v, err)
	return w
}
