// Package node lets a server that runs in several processes, the nodes, send a request to the one of them that has what the
// request is about: a task, a call that waits for answers, or an event stream of HTTP+SSE.
package node

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/internal/text"
)

// A Node is this process.
type Node interface {
	// NodeName returns the name of this process.
	NodeName() string

	// SendTo lets another process serve a request, whose body was read. It returns false, and has written nothing, if that process
	// has ended.
	SendTo(name string, w http.ResponseWriter, r *http.Request, body []byte) bool
}

type key struct{}

// With returns a context of a request that may be sent to another process.
func With(ctx context.Context, n Node) context.Context { return context.WithValue(ctx, key{}, n) }

// From returns the process of a request that may be sent to another one, or nil.
func From(ctx context.Context) Node {
	n, _ := ctx.Value(key{}).(Node)
	return n
}

type readsKey struct{}

// WithReads returns a context of a request of a session that another process may have taken: it is answered only if it reads.
func WithReads(ctx context.Context) context.Context { return context.WithValue(ctx, readsKey{}, true) }

// ReadsOnly reports whether a request is one of WithReads.
func ReadsOnly(ctx context.Context) bool { return ctx.Value(readsKey{}) != nil }

type untilKey struct{}

// WithUntil returns a context of a request that has waited for other processes, and may do so until a time.
func WithUntil(ctx context.Context, t time.Time) context.Context {
	return context.WithValue(ctx, untilKey{}, t)
}

// Wait returns for how long a request may still wait for other processes: most, unless it has just waited for them already. Then it is a tenth of a second
// at least, in which those answer that can be reached: the body of a request may be slow, too.
func Wait(ctx context.Context, most time.Duration) time.Duration {
	t, ok := ctx.Value(untilKey{}).(time.Time)
	if left := time.Until(t); ok && left > -forgotten {
		return min(most, max(left, time.Second/10))
	}
	return most
}

// forgotten is how long after its time it does not matter any more that a request has waited: it is at work.
const forgotten = 5 * time.Second

// Name returns the name of the process of a request that may be sent to another one, or "".
func Name(ctx context.Context) string {
	if n := From(ctx); n != nil {
		return n.NodeName()
	}
	return ""
}

// Task returns the id of a task for the caller of ctx, with the name of this process if there are others.
func Task(ctx context.Context, id string) string {
	if name := Name(ctx); name != "" {
		return name + separator + id
	}
	return id
}

const separator = ";"

// OfTask returns the process that has a task, "" if its id names none, and the rest of the id. A gateway has a server's own id
// behind a slash, which is not part of the name of a process.
func OfTask(id string) (name, rest string) {
	if name, rest, ok := strings.Cut(id, separator); ok && !strings.Contains(name, "/") {
		return name, rest
	}
	return "", id
}

// Stream returns the id of an event stream for the caller of ctx, with the name of this process if there are others. The id that
// is given has no full stop.
func Stream(ctx context.Context, id string) string {
	if name := Name(ctx); name != "" {
		return name + "." + id
	}
	return id
}

// OfStream returns the process that has an event stream, "" if its id names none.
func OfStream(id string) string { return id[:max(0, strings.LastIndexByte(id, '.'))] }

// UnknownTask says that nobody knows a task of the caller with this id.
func UnknownTask(id string) string {
	words := fmt.Sprintf("task %q does not exist or has expired", text.Short(id))
	if name, _ := OfTask(id); name != "" {
		words += ", or has ended with the node that had it"
	}
	return words
}
