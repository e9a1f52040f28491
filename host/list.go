package host

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// A host asks a server for a list as seldom as it can, and has nobody wait for it in vain:
//
//   - A list is asked for when somebody wants it, and kept: until the server says that it has
//     changed or is connected anew, or for a minute if it does not say such things.
//   - However many want it, it is asked for once.
//   - Who wants it waits for a while, and one attempt is waited for once: a server that is slow
//     delays one step of a conversation. Who does not wait any longer has what was there before.
//   - A server that fails is asked nothing, and one that is idle nothing that is known.
const (
	listTime  = 10 * time.Second // that a list is waited for of which nothing is known
	againTime = 2 * time.Second  // that a newer one is waited for
	restTime  = 8 * time.Second  // that a gateway has for the lists of servers that are starting behind it
	askTime   = 2 * time.Minute  // that one attempt may take, a start of the server included
	quietAge  = time.Minute      // that a list is good of a server that does not tell of changes
	failedAge = 5 * time.Second  // after which is asked again for what could not be listed

	maxListed = 10_000 // entries of a list
)

// edition tells apart the states of a server between which its lists may have changed.
type edition struct {
	runs, restarts, changes int
	shown                   int64 // counts the calls of Host.Changed
}

// offering is what a server offers, as far as it was asked. Its zero value knows nothing.
type offering struct {
	tools     listing[Tool]
	prompts   listing[Prompt]
	resources listing[Resource]
	templates listing[Template]

	said *said // as last listed, nil: it was not; guarded by mu of the host
}

// said is what a server says of itself.
type said struct {
	Capabilities mcp.Capabilities `json:"capabilities"`
	Instructions string           `json:"instructions"`
}

// listing is one list of a server.
type listing[T any] struct {
	mu     sync.Mutex
	items  []T           // not changed once made; guarded by mu
	known  bool          // items were listed; guarded by mu
	of     edition       // of items or err; guarded by mu
	until  time.Time     // that items or err are good, zero: for the edition; guarded by mu
	err    error         // of the last attempt; guarded by mu
	late   bool          // the last attempt was waited for in vain; guarded by mu
	coming chan struct{} // closed at the end of the attempt under way, nil: there is none; guarded by mu
	began  time.Time     // of that; guarded by mu
}

// get returns the list, or why it is not known. Ask asks the server, and tells how long that is
// good; begin begins a goroutine, or tells that nothing can be begun any more.
func (l *listing[T]) get(ctx context.Context, now edition, patience time.Duration, begin func(context.Context, func(context.Context)) bool, ask func(context.Context) ([]T, time.Duration, error)) ([]T, error) {
	l.mu.Lock()
	if l.of == now && (l.known || l.err != nil) && (l.until.IsZero() || time.Now().Before(l.until)) {
		defer l.mu.Unlock()
		return l.items, l.unknown()
	}
	if l.coming == nil {
		done := make(chan struct{})
		l.coming, l.began = done, time.Now()
		if !begin(ctx, func(ctx context.Context) { l.fill(ctx, now, done, ask) }) {
			l.coming = nil
			l.mu.Unlock()
			return nil, ErrClosed
		}
	}
	coming, whole := l.coming, patience >= listTime
	if l.known {
		patience = min(patience, againTime)
	}
	if l.late {
		patience = 0
	}
	wait := time.NewTimer(time.Until(l.began.Add(patience)))
	l.mu.Unlock()
	defer wait.Stop()
	select {
	case <-coming:
	case <-wait.C:
		l.mu.Lock()
		l.late = l.late || whole && l.coming == coming
		l.mu.Unlock()
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.items, l.unknown()
}

// fill is one attempt.
func (l *listing[T]) fill(ctx context.Context, of edition, done chan struct{}, ask func(context.Context) ([]T, time.Duration, error)) {
	ctx, cancel := context.WithTimeoutCause(ctx, askTime, fmt.Errorf("no answer within %v", askTime))
	defer cancel()
	items, good, err := ask(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.of, l.err, l.coming, l.until = of, err, nil, time.Time{}
	if err != nil {
		good = failedAge
	} else {
		l.items, l.known, l.late = items, true, false
	}
	if good > 0 {
		l.until = time.Now().Add(good)
	}
	close(done)
}

// errListing says that a server has not answered yet.
var errListing = errors.New("it has not said yet what it offers")

// unknown tells why there is nothing to return; mu is held.
func (l *listing[T]) unknown() error {
	switch {
	case l.known:
		return nil
	case l.err != nil:
		return l.err
	}
	return errListing
}

// begin runs f on a goroutine that Close ends and waits for, with the values of ctx, unless the host
// is closed.
func (h *Host) begin(ctx context.Context, f func(context.Context)) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	h.wg.Go(func() {
		ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		defer cancel()
		defer context.AfterFunc(h.ctx, cancel)()
		f(ctx)
	})
	return true
}

// standing tells which edition of its lists a server has now, why it cannot be asked for them,
// empty if it can, and whether it is idle. Of a group, one that can be asked is enough.
func (s *server) standing() (e edition, why string, idle bool) {
	if s.members == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		e = edition{s.run, s.last.Restarts, s.last.Changes, s.h.changes.Load()}
		switch {
		case s.silent.reason != "":
			why = fmt.Sprintf("%s: %s", gateway.Failing, s.silent.reason)
		case slices.Contains([]gateway.State{gateway.Failing, gateway.NeedsLogin, gateway.Crashing, gateway.Stopped}, s.last.State):
			why = fmt.Sprintf("%s: %s", s.last.State, s.last.Reason)
		}
		return e, why, s.last.State == gateway.Idle
	}
	idle = true
	there := false
	for _, m := range s.members {
		own, failing, resting := m.standing()
		e.runs += own.runs
		e.restarts += own.restarts
		e.changes += own.changes
		e.shown = own.shown
		if failing == "" {
			there, idle = true, idle && resting
		} else {
			why = m.Name + " is " + failing
		}
	}
	if there {
		return e, "", idle
	}
	return e, why, false
}

// listOf returns a list of a server. What it asks it asks with a session that has the capability.
func listOf[T any](ctx context.Context, h *Host, s *server, l *listing[T], capability string, patience time.Duration, list func(context.Context, *mcp.Session) ([]T, error)) ([]T, error) {
	now, why, idle := s.standing()
	if why != "" || idle {
		l.mu.Lock()
		if why != "" || l.known { // one that is idle is not started for what is known
			defer l.mu.Unlock()
			return l.items, errorOf(why)
		}
		l.mu.Unlock()
	}
	return l.get(ctx, now, patience, h.begin, func(ctx context.Context) (items []T, good time.Duration, err error) {
		err = s.use(ctx, func(session *mcp.Session) error {
			good = quietAge
			raw, err := session.Raw(ctx, "server/discover", nil)
			var rpc *mcp.Error
			switch {
			case err == nil:
				var is said
				if err := jsonx.Unmarshal(raw, &is); err != nil {
					return fmt.Errorf("what the server says of itself: %w", err)
				}
				h.mu.Lock()
				s.said = &is
				h.mu.Unlock()
				if is.Capabilities.Has(capability, "listChanged") {
					good = 0
				}
				if !is.Capabilities.Has(capability) {
					return nil
				}
			case !errors.As(err, &rpc) || rpc.Code != jsonrpc.CodeMethodNotFound:
				return err
			}
			items, err = list(ctx, session)
			return err
		})
		return items, good, err
	})
}

func errorOf(why string) error {
	if why == "" {
		return nil
	}
	return errors.New(why)
}

// Changed tells the host that lists may have changed though no server says so, for instance because
// Middleware leaves something else of them.
func (h *Host) Changed() { h.changes.Add(1) }

// snapshot returns the servers there are now, in their order.
func (h *Host) snapshot() []*server {
	h.start()
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.servers)
}

// metaStarting is in _meta of the lists of a Patchbay gateway behind which servers are starting.
const metaStarting = "dev.patchbay/starting"

// gather takes the entries of a list. That of a gateway without those of servers that are starting
// is asked for again, until they are there or restTime is over.
func gather[T any](ctx context.Context, list func(context.Context, ...mcp.CallOption) iter.Seq2[T, error]) ([]T, error) {
	for began := time.Now(); ; {
		var out []T
		partial := false
		for item, err := range list(ctx, mcp.OnPage(func(m mcp.Meta) { partial = partial || m[metaStarting] != nil })) {
			if err != nil {
				return nil, err
			}
			if out = append(out, item); len(out) == maxListed {
				break
			}
		}
		if !partial || time.Since(began) >= restTime {
			return out, nil
		}
		select {
		case <-time.After(restTime / 40):
		case <-ctx.Done():
			return out, nil
		}
	}
}

// bounded cuts text of a peer for use in a sentence, and makes one line of it.
func bounded(s string, most int) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
