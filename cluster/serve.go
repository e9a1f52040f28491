package cluster

import (
	"net/http"
)

// serve serves a request on this node, and tells the State of sessions that begin and end. Key is that of its session; empty: none. Ours says
// that it was a session of this node when it was looked for.
func (n *Node) serve(w http.ResponseWriter, r *http.Request, key string, ours bool) {
	o := &opening{ResponseWriter: w, node: n, request: r, known: sessionOf(r.Header) != ""}
	if key == "" {
		n.Handler.ServeHTTP(o, r)
		if o.status == 0 && sessionOf(o.Header()) != "" { // an answer without a body
			o.WriteHeader(http.StatusOK)
		}
		return
	}
	if ours {
		o.key = key
	}
	defer func() { // a handler may panic
		n.owners.use(key, -1)
		if r.Method == http.MethodDelete && o.status/100 == 2 && n.owners.unkept(key) { // 404 may be for another principal than that of the session
			if err := n.closed(r.Context(), key); err != nil {
				n.Logger.Warn("the entry of a session that has ended was not removed", "err", err)
			}
		}
	}()
	n.owners.use(key, 1)
	n.Handler.ServeHTTP(o, r)
}

// opening sees that an answer opens a session, of which the State learns before the client.
type opening struct {
	http.ResponseWriter
	node    *Node
	request *http.Request
	known   bool   // the request has a session already
	key     string // of that session, if this node had it when the request came
	status  int
	failed  bool // the answer was replaced
}

// Unwrap lets [http.ResponseController] find what w can do.
func (o *opening) Unwrap() http.ResponseWriter { return o.ResponseWriter }

// Flush implements [http.Flusher], for handlers that ask for it.
func (o *opening) Flush() {
	if o.status == 0 {
		o.WriteHeader(http.StatusOK)
	}
	_ = http.NewResponseController(o.ResponseWriter).Flush() // it cannot, or the next write fails
}

// WriteHeader implements [http.ResponseWriter].
func (o *opening) WriteHeader(status int) {
	if o.status != 0 {
		return
	}
	if status < 200 {
		o.ResponseWriter.WriteHeader(status)
		return
	}
	o.status = status
	if status == http.StatusNotFound && o.key != "" && !o.node.owners.has(o.key) { // another node has taken it since
		o.failed = true
		o.Header().Del("Content-Length")
		refuse(o.ResponseWriter, http.StatusServiceUnavailable, moves)
		return
	}
	if id := sessionOf(o.Header()); id != "" && !o.known && status < 300 {
		if path := o.request.URL.Path; o.node.paths.strange(path) {
			o.node.Logger.Warn("sessions at this path end with this node: Share and Sessions of the node were called for others", "path", path)
		}
		if err := o.node.opened(o.request.Context(), sessionKey(o.request.URL.Path, id)); err != nil {
			o.node.Logger.Warn("a session was not opened, because the other nodes would not find it", "err", err)
			o.failed = true
			o.Header().Del(headerSession)
			o.Header().Del("Content-Length")
			refuse(o.ResponseWriter, http.StatusServiceUnavailable, "the cluster does not answer; try again")
			return
		}
	}
	o.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (o *opening) Write(b []byte) (int, error) {
	if o.status == 0 {
		o.WriteHeader(http.StatusOK)
	}
	if o.failed {
		return len(b), nil
	}
	return o.ResponseWriter.Write(b)
}
