package host

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
)

// The session of a conversation with a server ends when the server is removed.
func TestSessionEndsWithServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &Host{}
		defer h.Close()
		s := Server{Name: "s", Open: func(context.Context, *mcp.Client) (mcp.Handler, error) {
			return &mcp.Server{Name: "s", Version: "1"}, nil
		}}
		if err := h.Add(s); err != nil {
			t.Fatal(err)
		}
		c := h.NewConversation()
		session, err := c.session(h.named("s"))
		if err != nil {
			t.Fatal(err)
		}
		if again, _ := c.session(h.named("s")); again != session {
			t.Error("a conversation has two sessions with a server")
		}
		h.Remove("s")
		time.Sleep(time.Minute)
		select {
		case <-session.Done():
		default:
			t.Error("the session goes on without its server")
		}
	})
}
