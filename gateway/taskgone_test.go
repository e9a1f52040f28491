package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// A task that its server has lost, such as by a restart, is told with the id that the caller knows, and with the loss of the
// connection if there was one.
func TestTaskThatItsServerHasLost(t *testing.T) {
	for _, restarts := range []bool{true, false} {
		t.Run(fmt.Sprint("restart ", restarts), func(t *testing.T) {
			opened := make(chan *mcp.Session, 10)
			ready := make(chan struct{}, 10)
			g := &gateway.Gateway{Name: "gw", OnStatus: func(s gateway.Status) {
				if s.State == gateway.Ready {
					ready <- struct{}{}
				}
			}}
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan struct{})
			go func() {
				defer close(done)
				g.Run(ctx, gateway.Source{Name: "jobs", Share: gateway.Shared, Open: func(ctx context.Context) (gateway.Upstream, error) {
					srv := jobServer()
					srv.Tasks.TTL = 50 * time.Millisecond
					if restarts {
						srv.Tasks.TTL = time.Hour
					}
					c := &mcp.Client{Name: "gw", Version: "1"}
					gateway.Relay(ctx, c)
					s, err := c.Open(ctx, srv)
					if err != nil {
						return nil, err
					}
					opened <- s
					return s, nil
				}})
			}()
			t.Cleanup(func() { cancel(); <-done })
			<-ready
			s, err := (&mcp.Client{Name: "desk", Version: "1"}).Open(t.Context(), g)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			task, err := s.StartTask(t.Context(), "jobs_work", nil)
			if err != nil || task.ID == "" {
				t.Fatalf("a task %+v, %v", task, err)
			}
			if restarts {
				(<-opened).Close()
				<-ready
			}
			var rpc *mcp.Error
			for end := time.Now().Add(30 * time.Second); rpc == nil && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
				_, err = task.Info(t.Context())
				errors.As(err, &rpc)
			}
			if rpc == nil || rpc.Code != jsonrpc.CodeInvalidParams || !strings.Contains(rpc.Message, fmt.Sprintf("task %q does not exist or has expired", task.ID)) {
				t.Fatalf("the task %q: %v", task.ID, err)
			}
			if lost := strings.Contains(rpc.Message, "; a connection to its server was lost "); lost != restarts {
				t.Errorf("the error is %q", rpc.Message)
			}
		})
	}
}
