package host

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/mcp"
)

// A group chooses among its servers as follows:
//
//   - Each server has the weight 1 / (latency x (1 + error rate)), but at least a twentieth of the
//     highest weight, so that a server that was slow once can prove to be fast again. A server
//     without history has the highest weight.
//   - The server that has waited longest for its share is next, so that shares are exact even over
//     few calls.
//   - A server that fails twice in a row is set aside for 5 seconds, and then for twice as long
//     each time, at most 2 minutes. Then it gets one call; the outcome decides.
//   - A server that is unavailable or does not answer is left out until it is back. The group waits
//     for a server that is starting only if no other is ready.
const (
	leastShare = 1.0 / 20
	asideAfter = 2
	asideFirst = 5 * time.Second
	asideMost  = 2 * time.Minute
)

// join derives the properties of the group from its members.
func (s *server) join() {
	first := s.members[0].Server
	s.Trusted, s.Cache, s.CallTimeout = true, first.Cache, first.CallTimeout
	ids := make([]string, len(s.members))
	for i, m := range s.members {
		ids[i] = m.Identity
		s.Trusted = s.Trusted && m.Trusted
		s.Cache = min(s.Cache, m.Cache)
	}
	members := s.members
	s.Offers = func(tool string) bool { // all of them must offer it
		return !slices.ContainsFunc(members, func(m *server) bool { return m.Offers != nil && !m.Offers(tool) })
	}
	// A permanent approval applies to the current members. A change of members changes the
	// identity, so that a new member does not inherit the approval of the others.
	slices.Sort(ids)
	s.Identity = fmt.Sprintf("group:%s:%x", s.Name, sha256.Sum256([]byte(strings.Join(slices.Compact(ids), "\x00"))))
}

// all returns the members of a group, or the server itself.
func (s *server) all() []*server {
	if s.members == nil {
		return []*server{s}
	}
	return s.members
}

// spread handles a request to a group. Lists come from the first member that is ready, and requests
// about a task go to the member that has the task. If no member takes the request, spread returns
// the error of a member that was reached, if there is one.
func (s *server) spread(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	pick := next
	switch {
	case strings.HasPrefix(req.Method, "tasks/"):
		if m := s.memberOf(req.Param("taskId")); m != nil {
			return m.Handle(ctx, req)
		}
	case strings.HasSuffix(req.Method, "/list"), req.Method == "server/discover":
		pick = func(fit []*server) *server { return fit[0] }
	}
	a := attemptOf(ctx)
	if a == nil {
		a = &attempt{}
		ctx = a.in(ctx)
	}
	var last error
	reached := false
	for tried := map[*server]bool{}; ; {
		m := s.choose(tried, pick)
		if m == nil {
			return nil, last
		}
		tried[m] = true
		a.choose()
		res, err := m.Handle(ctx, req)
		here, why := a.reached()
		switch {
		case err == nil:
			s.noteTask(res, m)
			return res, nil
		case !here && !notThere(err): // Host.Middleware refuses it
			return nil, err
		case !here && ctx.Err() == nil:
			m.stats.missed()
		}
		if ctx.Err() != nil || here && !m.untouched(ctx, why) {
			return nil, err
		}
		s.h.log().DebugContext(ctx, "trying the next server of a group", "server", m.Name, "err", err)
		if here || !reached {
			reached, last = here, err
		}
	}
}

// maxTasks bounds the tasks that a group remembers the member of.
const maxTasks = 1000

// noteTask records which member made a task of a call.
func (s *server) noteTask(res mcp.Result, m *server) {
	made, ok := res.(*mcp.CreateTaskResult)
	if !ok {
		return
	}
	id, _ := jsonx.Lookup(made.Task, "taskId")
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.tasks) >= maxTasks {
		for other := range s.tasks { // drop any one
			delete(s.tasks, other)
			break
		}
	}
	s.tasks[string(id)] = m
}

// memberOf returns the member that has a task, or nil if it is unknown.
func (s *server) memberOf(id json.RawMessage) *server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tasks[string(id)]
}

// notThere reports whether a request did not reach a server because it is unavailable.
func notThere(err error) bool {
	var unavailable *gateway.UnavailableError
	return errors.As(err, &unavailable) || errors.Is(err, errGone) || errors.Is(err, ErrClosed)
}

// choose returns the member for the next call, or nil if all were tried.
func (s *server) choose(tried map[*server]bool, pick func(fit []*server) *server) *server {
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	var fit []*server
	var starting, wanting *server
	for _, m := range s.members {
		if tried[m] {
			continue
		}
		switch state := m.state(); {
		case (state == gateway.Ready || state == gateway.Idle) && m.stats.open():
			fit = append(fit, m)
		case state == gateway.Starting && m.stats.open():
			if starting == nil {
				starting = m
			}
		case wanting == nil || m.stats.due().Before(wanting.stats.due()):
			wanting = m
		}
	}
	var chosen *server
	switch {
	case len(fit) > 0:
		chosen = pick(fit)
	case starting != nil:
		chosen = starting
	default:
		chosen = wanting
	}
	return chosen
}

// next returns the member whose turn it is; mu of the host is held.
func next(fit []*server) *server {
	weights, sum := make([]float64, len(fit)), 0.0
	for i, m := range fit {
		weights[i] = m.stats.weight()
	}
	best := slices.Max(weights)
	if best == 0 {
		best = 1
	}
	for i, w := range weights {
		if w == 0 {
			w = best
		}
		weights[i] = max(w, best*leastShare)
		sum += weights[i]
	}
	var chosen *server
	for i, m := range fit {
		m.credit = min(m.credit+weights[i]/sum, 1)
		if chosen == nil || m.credit > chosen.credit {
			chosen = m
		}
	}
	chosen.credit--
	return chosen
}

// state returns the last known state of a server, without asking the gateway.
func (s *server) state() gateway.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.silent.reason != "":
		return gateway.Failing
	case s.last.State == "":
		return gateway.Starting
	}
	return s.last.State
}

// weight returns the share of calls that a server deserves; 0: unknown.
func (s *stats) weight() float64 {
	d := s.expected()
	s.mu.Lock()
	defer s.mu.Unlock()
	if d == 0 {
		return 0
	}
	return 1 / (d.Seconds() * (1 + s.rate))
}

// open reports whether calls may go to the server: it was not set aside, or it is due for a trial
// call.
func (s *stats) open() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.aside.IsZero() || time.Until(s.aside) <= 0 && !s.trial
}

// due returns when the server is tried again.
func (s *stats) due() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.aside
}

// setAside sets a server aside if it has failed too often; mu is held.
func (s *stats) setAside() {
	if s.streak < asideAfter && s.aside.IsZero() {
		return
	}
	s.pause = min(max(2*s.pause, asideFirst), asideMost)
	s.aside, s.trial = time.Now().Add(s.pause), false
}

// missed records that a call did not reach the server.
func (s *stats) missed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streak++
	s.setAside()
}

// reset forgets the failures of a server. If the server was set aside, it gets calls again.
func (s *stats) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streak, s.aside, s.pause, s.trial = 0, time.Time{}, 0, false
}

// untouched reports whether an error means that the server has not accepted a request.
func (s *server) untouched(ctx context.Context, err error) bool {
	var network *net.OpError
	if errors.As(err, &network) && network.Op == "dial" && !hasBegun(err) {
		return true
	}
	f := s.faultOf(ctx, true, false, err)
	return f.ran == never && f.kind != permanent
}
