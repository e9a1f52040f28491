package middleware

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/patchbay-dev/patchbay/internal/feature"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/step"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// form is how callers see one entry of a list.
type form struct {
	hidden bool
	name   string // that callers use
	texts  []member
	define func(def json.RawMessage) json.RawMessage                     // further changes of the entry; nil: none
	lacks  func(def json.RawMessage, say func(message string, a ...any)) // says what the form changes and the entry does not have; nil: nothing
}

// member is a member of an entry and its value.
type member struct{ name, value string }

// forms is how callers see the features of one kind: the entries of a list, by name.
type forms struct {
	feature.List
	maker string            // the function that made it, for the log
	kind  string            // of one entry, for messages
	by    map[string]*form  // by name in the next Handler
	from  map[string]string // that name, by the name that callers use

	mu     sync.Mutex
	listed map[string]bool // the names in by that a list has had; nil: the whole list was seen. Guarded by mu
	taken  map[string]bool // the names in from that a list has had and that are not in by. Guarded by mu
}

func newForms(list feature.List, maker, kind string) *forms {
	return &forms{List: list, maker: maker, kind: kind, by: map[string]*form{}, from: map[string]string{}, listed: map[string]bool{}, taken: map[string]bool{}}
}

// each calls add for each change, in the order of their names. It panics with the first error.
func each[C any](f *forms, changes map[string]C, add func(from string, c C) error) {
	for _, from := range slices.Sorted(maps.Keys(changes)) {
		if err := add(from, changes[from]); err != nil {
			panic(fmt.Errorf("middleware: %s: %w", f.maker, err))
		}
	}
}

// add adds the form of a feature. An empty name is that of the feature.
func (f *forms) add(from, name, title, description string, hidden bool) (*form, error) {
	one := &form{hidden: hidden, name: name}
	if name == "" {
		one.name = from
	} else if why := unfit(name); why != "" {
		return nil, fmt.Errorf("the %s %q cannot be named %q: %s", f.kind, from, text.Short(name), why)
	}
	one.say("name", name, "title", title, "description", description)
	f.by[from] = one
	if hidden {
		return one, nil
	}
	if other, taken := f.from[one.name]; taken {
		return nil, fmt.Errorf("the %ss %q and %q are both named %q", f.kind, other, from, one.name)
	}
	f.from[one.name] = from
	return one, nil
}

// say sets members of the entry to texts that are not empty.
func (one *form) say(pairs ...string) {
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] != "" {
			one.texts = append(one.texts, member{pair[0], pair[1]})
		}
	}
}

// unfit says why a name is not one that mcp.AddTool accepts.
func unfit(name string) string {
	if len(name) > 128 {
		return fmt.Sprintf("the name has %d characters; use at most 128", len(name))
	}
	for _, r := range name {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./", r)) {
			return fmt.Sprintf("the name has the character %q; use letters, digits, _, - and .", r)
		}
	}
	return ""
}

// change answers a list request with the entries as callers see them.
func (f *forms) change(ctx context.Context, req *mcp.Request, next mcp.Handler) (mcp.Result, error) {
	res, err := next.Handle(ctx, req)
	if err != nil {
		return nil, err
	}
	raw := res.JSON()
	list, _ := jsonx.Lookup(raw, f.Member)
	cursor, _ := jsonx.Lookup(raw, "nextCursor")
	f.census(ctx, list, len(cursor) == 0 || string(cursor) == "null")
	out := []byte{'['}
	for e := range jsonx.Elements(list) {
		name := f.nameOf(e)
		one := f.by[name]
		_, taken := f.from[name]
		switch {
		case one == nil && taken, one != nil && one.hidden:
			continue
		case one != nil:
			e = one.definition(e)
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, e...)
	}
	return mcp.RawResult(jsonx.With(nil, raw, f.Member, append(out, ']'))), nil
}

func (f *forms) nameOf(entry json.RawMessage) string {
	name, _ := jsonx.Lookup(entry, f.Key)
	return stringOf(name)
}

// definition returns an entry as callers see it.
func (one *form) definition(def json.RawMessage) json.RawMessage {
	for _, m := range one.texts {
		def = jsonx.With(nil, def, m.name, jsonx.AppendString(nil, m.value))
	}
	if one.define != nil {
		def = one.define(def)
	}
	return def
}

// census notes the entries in a page of a list. It warns once of each that callers do not have because
// another one has got its name and, after the last page, of changes that change nothing.
func (f *forms) census(ctx context.Context, list json.RawMessage, last bool) {
	if step.IsQuiet(ctx) {
		return
	}
	warn := func(message string, a ...any) { slog.WarnContext(ctx, "middleware."+f.maker+": "+message, a...) }
	f.mu.Lock()
	defer f.mu.Unlock()
	for e := range jsonx.Elements(list) {
		name := f.nameOf(e)
		one := f.by[name]
		if from, taken := f.from[name]; one == nil && taken && !f.taken[name] {
			f.taken[name] = true
			warn("callers do not have the "+f.kind+", because another one is renamed to its name; give that one another name", f.kind, name, "renamed", from)
		}
		if one == nil || f.listed == nil || f.listed[name] {
			continue
		}
		if f.listed[name] = true; one.lacks != nil {
			one.lacks(e, func(message string, a ...any) { warn(message, append([]any{f.kind, name}, a...)...) })
		}
	}
	if !last || f.listed == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(f.by)) {
		if !f.listed[name] {
			warn("no "+f.kind+" of the list has the name of a change; correct the name", f.kind, name)
		}
	}
	f.listed = nil
}

// inner returns the name in the next Handler of a feature, and its form: nil if it is not changed. The
// error says that callers do not have a feature of this name: it is hidden, or renamed.
func (f *forms) inner(name string) (from string, one *form, err error) {
	from, shown := f.from[name]
	switch {
	case shown:
		return from, f.by[from], nil
	case f.by[name] != nil:
		return "", nil, mcp.Errorf(jsonrpc.CodeInvalidParams, "no %s %q; see %s", f.kind, text.Short(name), f.Method)
	}
	return name, nil, nil
}

// told returns an error with the name that callers use in place of that in the next Handler.
func told(err error, from, name string) error {
	var rpc *mcp.Error
	if from == name || !errors.As(err, &rpc) {
		return err
	}
	own := *rpc
	for _, quoted := range []string{strconv.Quote(from), strconv.Quote(text.Short(from))} {
		own.Message = strings.ReplaceAll(own.Message, quoted, strconv.Quote(text.Short(name)))
	}
	if own.Message == rpc.Message {
		return err
	}
	return &reworded{&own, err}
}

// reworded combines the error for the caller with its cause, which may be a refusal.
type reworded struct{ told, cause error }

func (e *reworded) Error() string   { return e.told.Error() }
func (e *reworded) Unwrap() []error { return []error{e.told, e.cause} }
