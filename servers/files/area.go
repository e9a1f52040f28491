package files

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// area is the set of folders that one call may reach: the roots of the server, narrowed
// by the client's roots.
type area struct {
	places  []place
	folders []folder // of the places, for locating
	opened  []*os.Root
	leave   func() // releases the slot of the call
}

// place is one folder of an area.
type place struct {
	folder
	dir     *os.Root
	secrets bool // secret files are served too
}

// target is a path in a place. It need not exist.
type target struct {
	place *place
	rel   string // local and slashed, "." is the place itself
	shown string // the path as callers write it
}

// name is the path within the place as the system writes it.
func (t target) name() string { return filepath.FromSlash(t.rel) }

// uri is the URI of the target.
func (t target) uri() string { return host.toURI(host.join(t.place.spellings[0], t.rel)) }

// child is an entry of a target that is a folder.
func (t target) child(name string) target {
	shown := t.shown + "/" + name
	if t.shown == "." {
		shown = name
	}
	return target{t.place, path.Join(t.rel, name), shown}
}

// area waits for a free slot and returns the area of the call of ctx. The caller closes
// it.
func (s *server) area(ctx context.Context) (a *area, err error) {
	var roots []mcp.Root
	narrows := s.narrows(ctx)
	if narrows {
		roots, err = mcp.Roots(ctx)
		var rpc *mcp.Error
		switch {
		case errors.As(err, &rpc) && rpc.Code == jsonrpc.CodeMethodNotFound:
			narrows = false // it does not have roots (2025-11-25, client/roots, Error Handling)
		case rpc != nil:
			return nil, fmt.Errorf("the client does not list its roots: %q", text.Short(rpc.Message))
		case err != nil:
			return nil, err
		}
	}
	select {
	case s.room <- struct{}{}:
	default:
		select {
		case s.room <- struct{}{}:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	a = s.whole()
	if narrows {
		a, err = a.narrow(roots)
	}
	if err != nil {
		<-s.room
		return nil, err
	}
	a.leave = func() { <-s.room }
	return a, nil
}

// inArea makes the handler of a tool from a function that works in the area of a call, within the time
// limit of the server.
func inArea[In, Out any](s *server, do func(ctx context.Context, a *area, in In) (Out, error)) func(context.Context, In) (Out, error) {
	return func(ctx context.Context, in In) (out Out, err error) {
		ctx, cancel := s.bound(ctx)
		defer cancel()
		a, err := s.area(ctx)
		if err != nil {
			return out, err
		}
		defer a.close()
		return do(ctx, a, in)
	}
}

// narrows reports whether the caller is asked for its roots. It depends on the revision:
// since 2026-07-28 roots are deprecated and asking costs a round trip.
func (s *server) narrows(ctx context.Context) bool {
	call := mcp.CallFrom(ctx)
	if call == nil || s.options.ClientRoots == NoClientRoots || !call.Capabilities.Has("roots") {
		return false
	}
	return call.Revision.Sessions() || s.options.ClientRoots == AlwaysClientRoots
}

// whole is the area of all roots.
func (s *server) whole() *area {
	a := &area{}
	for _, r := range s.roots {
		f := folder{spellings: []string{host.clean(filepath.ToSlash(r.path))}}
		if r.real != r.path {
			f.spellings = append(f.spellings, host.clean(filepath.ToSlash(r.real)))
		}
		a.places = append(a.places, place{folder: f, dir: r.open(), secrets: s.options.Secrets})
	}
	a.name()
	return a
}

// name names the places.
func (a *area) name() {
	a.folders = make([]folder, len(a.places))
	for i, p := range a.places {
		a.folders[i] = p.folder
	}
	host.nameFolders(a.folders)
	for i := range a.places {
		a.places[i].folder = a.folders[i]
	}
}

// maxClientRoots bounds the roots of a client.
const maxClientRoots = 100

// narrow returns the part of an area within the roots of a client. A root that is a
// file, or does not exist, adds nothing to it.
func (a *area) narrow(roots []mcp.Root) (*area, error) {
	if len(roots) > maxClientRoots {
		return nil, fmt.Errorf("the client lists %d roots; the maximum is %d", len(roots), maxClientRoots)
	}
	out := &area{}
	kept := map[located]bool{}
	for _, r := range roots {
		p, err := host.fromURI(r.URI)
		if err != nil {
			continue
		}
		p = host.clean(p)
		for i, f := range a.folders {
			for _, dir := range f.spellings {
				if _, ok := host.below(p, dir); ok { // the client's root is the wider one
					kept[located{i, "."}] = true
				} else if rel, ok := host.below(dir, p); ok && host.check(rel) == nil {
					kept[located{i, rel}] = true
				}
			}
		}
	}
	var order []located
	for l := range kept {
		// A root below another adds nothing.
		if !slices.ContainsFunc(parents(l.rel), func(up string) bool { return kept[located{l.index, up}] }) {
			order = append(order, l)
		}
	}
	slices.SortFunc(order, func(x, y located) int {
		if x.index != y.index {
			return x.index - y.index
		}
		if x.rel < y.rel {
			return -1
		}
		return 1
	})
	for _, l := range order {
		if err := out.take(&a.places[l.index], l.rel); err != nil {
			out.close()
			return nil, err
		}
	}
	if len(out.places) == 0 {
		return nil, fmt.Errorf("no folder is accessible: the client lists %s, and none is a folder below or above one of the server's; add a folder to the roots of the client, or start the server with it", plural(len(roots), "root", "roots"))
	}
	out.name()
	return out, nil
}

// parents are the folders that a local path is in.
func parents(rel string) []string {
	var up []string
	for rel != "." {
		rel = path.Dir(rel)
		up = append(up, rel)
	}
	return up
}

// take adds the folder rel of the place p to the area, or all of p if rel is ".". It opens the
// folder, so that links in it cannot lead out of it. A folder that is missing or withheld adds
// nothing.
func (a *area) take(p *place, rel string) error {
	if rel == "." {
		a.places = append(a.places, *p)
		return nil
	}
	if t := (target{p, rel, rel}); t.keptBack() != nil {
		return nil
	}
	dir, err := p.dir.OpenRoot(filepath.FromSlash(rel))
	if err != nil {
		return nil // missing, or not a folder
	}
	a.opened = append(a.opened, dir)
	part := place{dir: dir, secrets: p.secrets}
	for _, s := range p.spellings {
		part.spellings = append(part.spellings, host.join(s, rel))
	}
	a.places = append(a.places, part)
	return nil
}

// close closes the folders of the area, and releases the slot of the call.
func (a *area) close() {
	for _, dir := range a.opened {
		dir.Close()
	}
	if a.leave != nil {
		a.leave()
	}
}

// find returns the target of a path, which must not be all of several roots.
func (a *area) find(given string) (target, error) {
	ts, err := a.all(given)
	switch {
	case err != nil:
		return target{}, err
	case len(ts) > 1:
		return target{}, fmt.Errorf("%q means all %d roots; name a path below one", given, len(ts))
	}
	return ts[0], nil
}

// all returns the targets of a path: one, or all roots.
func (a *area) all(given string) ([]target, error) {
	l, err := host.locate(a.folders, given)
	if err != nil {
		return nil, err
	}
	if l.index >= 0 {
		t := a.target(l)
		return []target{t}, t.keptBack()
	}
	var ts []target
	for i := range a.places {
		ts = append(ts, a.target(located{i, "."}))
	}
	return ts, nil
}

func (a *area) target(l located) target {
	p := &a.places[l.index]
	shown := l.rel
	if len(a.places) > 1 {
		shown = path.Join(p.folder.name, l.rel)
	}
	return target{p, l.rel, shown}
}
