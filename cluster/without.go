package cluster

import (
	"bytes"
	"io"
	"net/http"
	"time"
)

// without is a request without a session, which may be about something that another node has: a task, a call that waits for
// answers, or an event stream of HTTP+SSE. It implements [node.Node].
type without struct {
	node   *Node
	at     place
	waited time.Duration // for how long its client had waited for nodes when this one began to serve it
}

func (r *without) NodeName() string { return r.node.Name }

// SendTo forwards the request. It always does that, unless a node that has ended had what the request is about, and then the
// request comes back.
func (r *without) SendTo(name string, w http.ResponseWriter, in *http.Request, body []byte) bool {
	if r.at.last || Check("node", name) != nil {
		return false
	}
	in.Body = io.NopCloser(bytes.NewReader(body))
	in.ContentLength = int64(len(body))
	to := r.at
	to.owner = name
	to.since = time.Now().Add(-r.waited) // its client may have needed long for the body
	r.node.at(w, in, to, nil)
	return true
}
