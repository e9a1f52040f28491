package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/internal/node"
	"github.com/patchbay-dev/patchbay/internal/transport/web"
)

const headerSession = "Mcp-Session-Id"

// sessionOf returns the session of a request or an answer; empty: none.
func sessionOf(h http.Header) string {
	if values := h[headerSession]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// Headers from node to node. Those of clients are removed, and clients get none.
const (
	headerPrefix = "Patchbay-Cluster-"

	headerClient = "Patchbay-Cluster-Client" // the address of the client
	headerHops   = "Patchbay-Cluster-Hops"   // a character for each node: a request is forwarded again if its session has moved
	headerNode   = "Patchbay-Cluster-Node"   // of an answer: where the session is
	headerTake   = "Patchbay-Cluster-Take"   // of a request: it can be sent elsewhere; of an answer: the session has moved, and it shall
	headerPassed = "Patchbay-Cluster-Passed" // of a message for a call that still runs at a node which has given its session up: the key of that
	headerWaited = "Patchbay-Cluster-Waited" // of a request: for how many milliseconds its client waits already; missing: for none
)

// ServeHTTP implements [http.Handler].
func (n *Node) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for _, name := range [...]string{headerClient, headerHops, headerCertificate, headerTake, headerPassed, headerWaited} {
		delete(r.Header, name) // which is canonical
	}
	since := time.Now()
	if !n.joins(r.Context(), since.Add(patience)) {
		refuse(w, http.StatusServiceUnavailable, "this node has not joined the others yet; try again")
		return
	}
	n.route(w, r, "", false, since)
}

// joins waits until Join has returned, and reports whether it has before a time.
func (n *Node) joins(ctx context.Context, until time.Time) bool {
	for !n.joined.Load() {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(until) {
			return n.joined.Load()
		}
	}
	return true
}

// forwarded serves a request that another node has received.
func (n *Node) forwarded(w http.ResponseWriter, r *http.Request) {
	if key := r.Header.Get(headerPassed); key != "" {
		n.passed(w, r, key)
		return
	}
	if client := r.Header.Get(headerClient); client != "" {
		r.RemoteAddr = client
	}
	r.Header.Del(headerClient)
	certificate := r.Header.Get(headerCertificate)
	r.Header.Del(headerCertificate)
	if certificate != "" && strings.HasSuffix(r.Header.Get(headerHops), withCertificate) { // else an older node has passed on what its client says
		var err error
		if r.TLS, err = connectionWith(certificate); err != nil {
			n.Logger.Warn("a request is served without its certificate", "err", err)
		}
	}
	hops := r.Header.Get(headerHops)
	r.Header.Del(headerHops)
	takes := r.Header.Get(headerTake) != ""
	r.Header.Del(headerTake)
	n.route(&closing{w, n}, r, hops, takes, time.Now().Add(-waited(r)))
}

// waited returns for how long the client of a request has waited at the nodes that have forwarded it, and removes the header that says so.
func waited(r *http.Request) time.Duration {
	said := r.Header.Get(headerWaited)
	if said == "" {
		return 0
	}
	ms, _ := strconv.ParseUint(said, 10, 16)
	r.Header.Del(headerWaited)
	return min(time.Duration(ms)*time.Millisecond, answerTime)
}

// closing sees that an answer over a connection between nodes says that it was the last one, if this node ends. See Retire.
type closing struct {
	http.ResponseWriter
	node *Node
}

// Unwrap lets [http.ResponseController] find what w can do.
func (c *closing) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// WriteHeader implements [http.ResponseWriter].
func (c *closing) WriteHeader(status int) {
	if c.node.retired.Load() {
		c.Header().Set("Connection", "close")
	}
	c.ResponseWriter.WriteHeader(status)
}

// route serves a request on the node of its session. Hops has a character for each node that has forwarded it, and takes says that
// the last of them can send it elsewhere. Its client waits since a time.
func (n *Node) route(w http.ResponseWriter, r *http.Request, hops string, takes bool, since time.Time) {
	if n.open.begin() {
		defer n.open.done()
	}
	id := sessionOf(r.Header)
	if id == "" || len(id) > 1024 {
		other := ""
		if n.retired.Load() && hops == "" {
			other = n.another()
		}
		n.at(w, r, place{owner: other, hops: hops, inside: hops != "", since: since}, nil)
		return
	}
	key := sessionKey(r.URL.Path, id)
	owner, err := n.find(r.Context(), key, since)
	if err == nil && owner == n.Name && n.retired.Load() {
		owner, err = n.handOver(r.Context(), key)
	}
	if err == nil && owner != n.Name && owner != "" && hops != "" {
		n.owners.unsee(key) // what this node has seen is what the other one has seen
		owner, err = n.find(r.Context(), key, since)
	}
	if err == nil && owner != n.Name && owner != "" && takes { // else a stream would pass this node until its end
		w.Header().Set(headerTake, "1")
		refuse(w, http.StatusServiceUnavailable, moves)
		return
	}
	n.at(w, r, place{key: key, owner: owner, hops: hops, inside: hops != "", since: since}, err)
}

// at serves a request whose session is at a place.
func (n *Node) at(w http.ResponseWriter, r *http.Request, p place, err error) {
	switch {
	case errors.Is(err, errFormat):
		n.Logger.Warn("a request was refused", "err", err)
		refuse(w, http.StatusServiceUnavailable, errFormat.Error())
	case errors.Is(err, errRecord):
		n.Logger.Warn("a request was refused", "err", err)
		refuse(w, http.StatusServiceUnavailable, errRecord.Error())
	case errors.Is(err, errLoss):
		refuse(w, http.StatusServiceUnavailable, errLoss.Error())
	case errors.Is(err, errUnsettled):
		refuse(w, http.StatusServiceUnavailable, errUnsettled.Error())
	case err != nil:
		n.Logger.Warn("the node of a session is not known", "err", err)
		refuse(w, http.StatusServiceUnavailable, "the cluster does not answer; try again")
	case p.owner == "" && p.key == "":
		n.serve(w, r.WithContext(node.With(p.waits(r).Context(), &without{n, p, time.Since(p.since)})), "", false)
	case p.owner == "":
		n.serve(w, p.waits(r), p.key, false)
	case p.owner == n.Name && !n.owns():
		switch long := n.cutOff(); {
		case !long && n.regained(r.Context(), p.since.Add(answerTime)):
			p.owner, err = n.find(r.Context(), p.key, p.since) // another node may have taken it meanwhile
			n.at(w, r, p, err)
		case r.Method == http.MethodPost && !n.owners.unkept(p.key):
			n.serve(w, r.WithContext(node.WithReads(p.waits(r).Context())), p.key, true)
		default:
			refuse(w, http.StatusServiceUnavailable, "this node is cut off from the others, one of which may have the session; try again")
		}
	case p.owner == n.Name:
		if p.inside {
			w.Header().Set(headerNode, n.Name)
		}
		n.serve(w, p.waits(r), p.key, true)
	case len(p.hops) == maxHops:
		refuse(w, http.StatusServiceUnavailable, moves)
	default:
		p.hops += "+"
		if r.Method == http.MethodGet { // a stream that does not end by itself; its client opens another
			ctx, stop := context.WithCancel(r.Context())
			defer stop()
			defer context.AfterFunc(n.leaving, stop)()
			r = r.WithContext(ctx)
		}
		n.forward(w, r, p)
	}
}

const moves = "the session moves from node to node; try again"

// cutOff reports whether this node has not been seen by the others for so long that no request waits for it.
func (n *Node) cutOff() bool {
	s := n.sight.Load()
	return s != nil && !s.seen && time.Since(s.since) > answerTime
}

// regained waits until this node surely has its sessions again, and reports whether it has them before a time.
func (n *Node) regained(ctx context.Context, until time.Time) bool {
	ctx, stop := context.WithDeadline(ctx, until)
	defer stop()
	for !n.owns() {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(20 * time.Millisecond):
		}
	}
	return true
}

// maxHops bounds how often a request is forwarded. A node that retires may send two requests of a session to different nodes, one
// of which has to send it to the other.
const maxHops = 4

// place is where a session is, or what a request without one is about, and how the request gets there.
type place struct {
	key, owner string    // key: of the session; empty: none
	hops       string    // a character for each node that has forwarded it
	inside     bool      // it came from another node, not from its client
	since      time.Time // when the request came to the first node; zero: it is a message between nodes
	last       bool      // what it is about was at a node that has ended
	moved      int       // how often another node has sent it back, because the session had moved
	passed     bool      // it is a message for a call at a node that has given the session up
}

// answerTime bounds how long a client waits for the words that the node of its session cannot be reached, at all nodes that its request comes to.
const answerTime = 4 * time.Second

// waitedTime is how long a request has waited that does not wait as usual for what comes next.
const waitedTime = 500 * time.Millisecond

// waits returns a request of which what comes next waits for other nodes only as long as is left of its time, if it has waited.
func (p *place) waits(r *http.Request) *http.Request {
	if time.Since(p.since) <= waitedTime {
		return r
	}
	return r.WithContext(node.WithUntil(r.Context(), p.since.Add(answerTime+waitedTime/2)))
}

// dialError says that nothing of a request was sent.
type dialError struct{ error }

func (e *dialError) Unwrap() error { return e.error }

// unreached serves a request whose session is on a node that cannot be reached: if that node has ended, this one continues the
// session.
func (n *Node) unreached(w http.ResponseWriter, r *http.Request, at place, err error) {
	n.owners.unsee(at.key)
	if errors.Is(err, web.ErrSlow) { // net/http ends the context then
		refuse(w, http.StatusRequestTimeout, web.TooSlow)
		return
	}
	if r.Context().Err() != nil {
		return // its client has left
	}
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		refuse(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is larger than %d bytes", large.Limit))
		return
	}
	if errors.Is(err, errBody) {
		refuse(w, http.StatusBadRequest, errBody.Error())
		return
	}
	if unsent := (*dialError)(nil); !errors.As(err, &unsent) {
		n.Logger.Warn("a request was forwarded in vain", "node", at.owner, "err", err)
		refuse(w, http.StatusBadGateway, "the node of the session did not answer; whether it has done what was asked is not known")
		return
	}
	ctx, stop := context.WithDeadline(r.Context(), at.since.Add(answerTime))
	defer stop()
	owner, failed := n.instead(ctx, at)
	switch {
	case failed != nil && ctx.Err() != nil:
		n.Logger.Warn("a request was not forwarded", "node", at.owner, "err", err)
		refuse(w, http.StatusServiceUnavailable, "the node of the session cannot be reached; try again")
		return
	case failed == nil && owner == "" && at.key != "":
		refuse(w, http.StatusNotFound, "the session was lost with the node that had it; call initialize again, without Mcp-Session-Id")
		return
	}
	at.owner, at.last = owner, at.key == ""
	n.at(w, r, at, failed)
}

// instead returns the node of a request in place of one that cannot be reached, when that one has ended. This node continues its
// session then; empty: nobody has it.
func (n *Node) instead(ctx context.Context, at place) (owner string, err error) {
	if at.key == "" { // this node alone is left, or what the request is about has ended with its node
		return "", n.dead(ctx, at.owner, "")
	}
	e, err := n.State.Get(ctx, at.key)
	if errors.Is(err, ErrNotFound) {
		if err = n.sure(ctx); err == nil {
			n.Logger.Warn("a session was lost: the State has no entry of it", "key", at.key, "node", at.owner)
		}
		return "", err
	}
	var r record
	if err == nil {
		r, err = readRecord(e)
	}
	newer := n.newer(r, err)
	switch {
	case err != nil && !newer:
		return "", err
	case r.Node == at.owner:
		// The entry is read before: if the node comes back while this one waits, its entry has changed.
		if failed := n.dead(ctx, r.Node, r.Process); failed != nil {
			return "", failed
		}
		if newer { // another node of that version takes the session
			return "", err
		}
	case r.Node != "":
		return r.Node, nil
	}
	return n.take(ctx, e, r)
}

// dead waits until a process, or the one that has the name of a node now, has lost that name. A lease that this node sees no longer
// renewed is deleted: the clock of the State may be behind, and JetStream looks again after two seconds if an entry expires while it has
// no leader. The error is that of ctx.
func (n *Node) dead(ctx context.Context, node, of string) error {
	key := leaseKey(nodeLease(node))
	for {
		e, err := n.State.Get(ctx, key)
		switch {
		case err != nil:
		case of == "":
			of = process(e)
		case process(e) != of:
			return nil
		}
		if err == nil && time.Since(n.renewals.at(key, e.Version)) > missing {
			if err = n.State.Delete(ctx, key, e.Version); err == nil {
				return nil
			} // else it was renewed, or is gone
		}
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
