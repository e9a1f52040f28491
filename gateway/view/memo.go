package view

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/patchbay-dev/patchbay/internal/feature"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Bounds of what is kept of the last lists, for one view. The newest list is kept in any case.
const (
	maxLists     = 16
	maxListBytes = 32 << 20
)

// memo keeps the lists of a view, each with the list of the handler behind the view that it was made of.
// The handler is asked for each request, so that its answer decides which list a caller gets: the memo
// only saves making the same again. The zero value is ready for use.
type memo struct {
	mu   sync.Mutex
	last []*made // the newest first; guarded by mu
}

// made is a list of the view.
type made struct {
	method string
	of     json.RawMessage // list of the handler behind the view
	list   mcp.Result
}

func (m *made) size() int { return len(m.of) + len(m.list.JSON()) }

// middleware remembers the lists that others make of those of a handler. These must depend on nothing
// else, such as the caller.
func (k *memo) middleware(others mcp.Middleware) mcp.Middleware {
	return func(next mcp.Handler) mcp.Handler {
		form := others(mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if list, ok := ctx.Value(k).(mcp.Result); ok && isList(req.Method) {
				return list, nil
			}
			return next.Handle(ctx, req)
		}))
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if !isList(req.Method) {
				return form.Handle(ctx, req)
			}
			list, err := next.Handle(ctx, req)
			if err != nil {
				return nil, err
			}
			of := list.JSON()
			if known := k.find(req.Method, of); known != nil {
				return known, nil
			}
			if list, err = form.Handle(context.WithValue(ctx, k, list), req); err != nil {
				return nil, err
			}
			list = mcp.RawResult(list.JSON()).Keep()
			k.put(&made{req.Method, of, list})
			return list, nil
		})
	}
}

func isList(method string) bool {
	return method == feature.Tools.Method || method == feature.Prompts.Method || method == feature.Resources.Method || method == feature.Templates.Method
}

// find returns what was made of a list, nil if it is not kept.
func (k *memo) find(method string, of json.RawMessage) mcp.Result {
	k.mu.Lock()
	defer k.mu.Unlock()
	i := slices.IndexFunc(k.last, func(m *made) bool { return m.method == method && bytes.Equal(m.of, of) })
	if i < 0 {
		return nil
	}
	return toFront(k.last, i).list
}

func (k *memo) put(m *made) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last = bounded(slices.Insert(k.last, 0, m), maxLists)
}

// toFront moves an element of a list to its front and returns it.
func toFront[T any](list []T, i int) T {
	e := list[i]
	copy(list[1:i+1], list[:i])
	list[0] = e
	return e
}

// bounded returns the first elements of a list that are within the bounds.
func bounded[T interface{ size() int }](list []T, most int) []T {
	sum := 0
	for i, e := range list {
		if sum += e.size(); i > 0 && (i >= most || sum > maxListBytes) {
			clear(list[i:])
			return list[:i]
		}
	}
	return list
}
