package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// pass sends a message about a call to a node that has given up the session of the call. If no call of the session runs there any more, the
// message is dropped.
func (n *Node) pass(ctx context.Context, node, key string, message json.RawMessage) error {
	for {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://patchbay/", bytes.NewReader(message))
		if err != nil {
			return err
		}
		l, used, err := n.lines.get(ctx, node, time.Now().Add(answerTime))
		if err != nil {
			return fmt.Errorf("node %s: %w", node, err)
		}
		stop := context.AfterFunc(ctx, func() { _ = l.Close() })
		res, err := l.ask(r, place{key: key, owner: node, hops: "+", passed: true}, nil)
		if err == nil {
			_, err = io.Copy(io.Discard, res.Body)
		}
		if stop() && err == nil && !res.Close {
			n.lines.put(node, l)
			return nil
		}
		_ = l.Close()
		switch {
		case err == nil:
			return nil
		case used && ctx.Err() == nil: // it may have been closed at that moment, and a message that comes twice is dropped
		default:
			return fmt.Errorf("node %s: %w", node, errors.Join(err, context.Cause(ctx)))
		}
	}
}

// passed handles a message that another node sends with pass.
func (n *Node) passed(w http.ResponseWriter, r *http.Request, key string) {
	if n.retired.Load() {
		w.Header().Set("Connection", "close")
	}
	message, err := io.ReadAll(r.Body)
	if err != nil {
		return // the other node has broken off
	}
	if at, ok := n.owners.had(key); ok {
		at.sessions.passed(at.id, message)
	}
	w.WriteHeader(http.StatusAccepted)
}
