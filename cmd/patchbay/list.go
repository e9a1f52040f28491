package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/internal/feature"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/launch"
	"github.com/patchbay-dev/patchbay/mcp"
)

// maxPages bounds a list whose pages have no end.
const maxPages = 10_000

// listing is a whole list as the server sent it.
type listing struct {
	items []json.RawMessage
	raw   json.RawMessage // the first page, with the items of all pages
}

// restTime bounds the wait for servers behind a gateway that are starting.
const restTime = 10 * time.Second

// list fetches all pages of a list. Unknown members of the items and of the first page are kept. If
// a gateway reports servers that are still starting, list waits for them, at most restTime.
func (a *app) list(p *launch.Session, of feature.List) (*listing, error) {
	return a.listFor(p, of, "")
}

// listFor is list for the entry of a name: it waits only while the entry is missing and may belong
// to a server that is starting. An empty name stands for any entry.
func (a *app) listFor(p *launch.Session, of feature.List, name string) (*listing, error) {
	defer a.talk.EndProgress()
	for began := time.Now(); ; {
		l, err := a.listOnce(p, of)
		if err != nil {
			return nil, err
		}
		missing, partial := jsonx.LookupPath(l.raw, "_meta", "dev.patchbay/starting")
		if !partial || time.Since(began) > restTime {
			return l, nil
		}
		names := "servers"
		var named []string
		if jsonx.Unmarshal(missing, &named) == nil && len(named) > 0 {
			names = strings.Join(named, ", ")
		}
		if name != "" {
			if entry, _ := pick(l.items, name); entry != nil || !mayBeOf(named, name) {
				return l, nil
			}
		}
		a.talk.Status("starting " + names)
		select {
		case <-time.After(restTime / 50):
		case <-a.ctx.Done():
			return l, nil
		}
	}
}

// mayBeOf reports whether a gateway's name for a feature may belong to one of these servers. If
// servers is empty, it reports true, because the gateway does not say which servers are still
// starting.
func mayBeOf(servers []string, name string) bool {
	return len(servers) == 0 || slices.ContainsFunc(servers, func(s string) bool {
		return strings.HasPrefix(name, strings.TrimSuffix(gateway.Name(s, "x"), "x"))
	})
}

func (a *app) listOnce(p *launch.Session, of feature.List) (*listing, error) {
	l := &listing{}
	left := false // an item is left out
	var params any
	seen := map[string]bool{}
	for {
		raw, err := p.Raw(a.ctx, of.Method, params)
		if err != nil {
			return nil, a.noList(err, plural(of))
		}
		if l.raw == nil {
			l.raw = raw
		}
		items, _ := jsonx.Lookup(raw, of.Member)
		if jsonx.KindOf(items) != '[' {
			return nil, fmt.Errorf("%s: the result of %s has no array %q", of.Method, a.serverName(), of.Member)
		}
		for item := range jsonx.Elements(items) {
			if of == feature.Tools && a.unusable(p, item) {
				left = true
				continue
			}
			l.items = append(l.items, item)
		}
		cursor, ok := jsonx.Lookup(raw, "nextCursor")
		if !ok || string(cursor) == "null" {
			break
		}
		if seen[string(cursor)] || len(seen) >= maxPages {
			return nil, fmt.Errorf("%s: the pages of %s never end: a cursor repeats", of.Method, a.serverName())
		}
		seen[string(cursor)] = true
		params = map[string]json.RawMessage{"cursor": cursor}
	}
	if len(seen) > 0 || left {
		all := []byte{'['}
		for i, item := range l.items {
			if i > 0 {
				all = append(all, ',')
			}
			all = append(all, item...)
		}
		l.raw = jsonx.With(nil, jsonx.Without(nil, l.raw, "nextCursor"), of.Member, append(all, ']'))
	}
	return l, nil
}

// unusable reports whether a tool cannot be used in this session, and prints that once.
func (a *app) unusable(p *launch.Session, tool json.RawMessage) bool {
	quoted, _ := jsonx.Lookup(tool, "name")
	name, err := jsonx.Unquote(quoted)
	if err != nil {
		return false
	}
	input, _ := jsonx.Lookup(tool, "inputSchema")
	why := p.CheckTool(name, input)
	if why != nil && !a.toldUnusable[name] {
		if a.toldUnusable == nil {
			a.toldUnusable = map[string]bool{}
		}
		a.toldUnusable[name] = true
		a.talk.Note("warning: skipped the tool %s of %s, which must not be used over HTTP: %v", name, a.serverName(), why)
	}
	return why != nil
}

// plural names the entries of a list.
func plural(of feature.List) string {
	if of == feature.Templates {
		return "resource templates"
	}
	return of.Member
}

// noList explains that a server does not have what a request was for.
func (a *app) noList(err error, what string) error {
	var rpc *mcp.Error
	if errors.As(err, &rpc) && rpc.Code == jsonrpc.CodeMethodNotFound {
		return &fault{Code: exitAnswer, Err: fmt.Errorf("%s has no %s", a.serverName(), what), Next: a.other("discover")}
	}
	return err
}

// row is one entry of a list for people.
type row = screen.Row

// rowsOf decodes the items of a list. It reports and skips those that cannot be decoded.
func rowsOf[T any](a *app, l *listing, make func(*T) row) []row {
	var out []row
	for i, raw := range l.items {
		v, err := decode[T](raw)
		if err != nil {
			a.talk.Note("warning: invalid entry %d: %v", i, err)
			continue
		}
		out = append(out, make(v))
	}
	return out
}

func decode[T any](raw json.RawMessage) (*T, error) {
	v := new(T)
	if err := jsonx.Unmarshal(raw, v); err != nil {
		return nil, err
	}
	return v, nil
}

// items prints a list.
func items[T any](a *app, of feature.List, make func(*T) row) error {
	p, err := a.open()
	if err != nil {
		return err
	}
	l, err := a.list(p, of)
	if err != nil {
		return err
	}
	if a.JSON {
		a.print(a.shown(string(l.raw)))
		return nil
	}
	a.table(rowsOf(a, l, make), a.serverName()+" has no "+plural(of))
	return nil
}
