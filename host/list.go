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
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// The host lists the features of a server as rarely as possible and bounds every wait:
//
//   - A list is requested when it is needed and cached until the server reports a change or
//     reconnects, or for a minute if the server does not report changes.
//   - Concurrent callers share one request.
//   - Callers wait for a bounded time, and only once for each attempt: a slow server delays one
//     step of a conversation. After that, they get the previous list.
//   - A failing server is not asked, and an idle one is not asked again for a list that is known.
const (
	listTime  = 10 * time.Second // wait for a list that is not known yet
	againTime = 2 * time.Second  // wait for a newer version of a list
	restTime  = 8 * time.Second  // wait for servers that are still starting behind a gateway
	askTime   = 2 * time.Minute  // bound of one attempt, including the start of the server
	quietAge  = time.Minute      // age of a list of a server that does not report changes
	failedAge = 5 * time.Second  // age of a failure

	maxListed = 10_000 // entries of a list
)

// edition identifies a state of a server's lists. Equal editions mean equal lists.
type edition struct {
	runs, restarts, changes int
	shown                   int64 // counts the calls of Host.Changed
}

// offering holds the known lists of a server. The zero value knows none.
type offering struct {
	tools     listing[Tool]
	prompts   listing[Prompt]
	resources listing[Resource]
	templates listing[Template]

	said *said // as last received, nil before; guarded by mu of the host
}

// said is the part of a server's discover result that the host uses.
type said struct {
	Capabilities mcp.Capabilities `json:"capabilities"`
	Instructions string           `json:"instructions"`
}

// listing is one cached list of a server.
type listing[T any] struct {
	mu     sync.Mutex
	items  []T           // never modified; guarded by mu
	known  bool          // items were listed; guarded by mu
	of     edition       // of items or err; guarded by mu
	until  time.Time     // expiry of items or err; zero: none within the edition; guarded by mu
	err    error         // of the last attempt; guarded by mu
	late   bool          // a caller has already waited for the attempt and gave up; guarded by mu
	coming chan struct{} // closed when the attempt in progress ends; nil: none; guarded by mu
	began  time.Time     // start of that attempt; guarded by mu
}

// get returns the list, or why it is unknown. The function ask requests the list from the server
// and returns how long it stays valid; begin starts a goroutine, or returns false if the host is
// closed.
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

// fill makes one attempt.
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

// unknown returns why there is no list; mu is held.
func (l *listing[T]) unknown() error {
	switch {
	case l.known:
		return nil
	case l.err != nil:
		return l.err
	}
	return errListing
}

// begin runs f on a goroutine that Close ends and waits for, with the values of ctx. It returns
// false if the host is closed.
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

// standing returns the current edition of a server's lists, why the server cannot be asked for
// them, or "" if it can, and whether it is idle. For a group, one member that can be asked is
// enough.
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

// listOf returns a list of a server. It is empty if the server does not declare the capability.
// With an error, listOf returns the last known list.
func listOf[T any](ctx context.Context, h *Host, s *server, l *listing[T], capability string, patience time.Duration, list func(context.Context, *mcp.Session) ([]T, error)) ([]T, error) {
	now, why, idle := s.standing()
	if why != "" || idle {
		l.mu.Lock()
		if why != "" || l.known { // an idle server is not started for a known list
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
					return fmt.Errorf("server info: %w", err)
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

// Changed tells the host that lists may have changed although no server reported it, for instance
// because Middleware now filters them differently.
func (h *Host) Changed() { h.changes.Add(1) }

// snapshot returns the current servers, in their order.
func (h *Host) snapshot() []*server {
	h.start()
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.servers)
}

// metaStarting is a member of _meta in lists of a Patchbay gateway while servers behind it are
// starting.
const metaStarting = "dev.patchbay/starting"

// gather collects the entries of a list. While a gateway returns a list without servers that are
// starting, gather requests it again, until it is complete or restTime has passed.
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

// bounded puts text from a peer on one line and cuts it, for use in a sentence.
func bounded(s string, most int) string {
	return text.Clip(strings.Join(strings.Fields(s), " "), most)
}
