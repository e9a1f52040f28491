package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/mcp"
)

// refusing is a connection whose requests need a login while refuse is set.
type refusing struct {
	gateway.Upstream
	refuse *atomic.Bool
}

func (r refusing) Handle(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	if r.refuse.Load() {
		return nil, fmt.Errorf("call: %w", &gateway.LoginError{Do: "log in again", Err: errors.New("401")})
	}
	return r.Upstream.Handle(ctx, req)
}

// A server that needs a login has its own state, with instructions, and is tried at once when
// somebody may have logged in. The same holds for a server whose login ends while it is connected.
func TestNeedsLogin(t *testing.T) {
	for _, share := range []gateway.Share{gateway.Shared, gateway.PerClient} {
		t.Run(share.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var locked, over atomic.Bool
				locked.Store(true)
				f := &farm{open: func(context.Context) error {
					if locked.Load() {
						return fmt.Errorf("open: %w", &gateway.LoginError{Do: "log in", Err: errors.New("401")})
					}
					return nil
				}}
				g := &gateway.Gateway{Name: "g"}
				run(t, g, gateway.Source{Name: "a", Share: share, Open: func(ctx context.Context) (gateway.Upstream, error) {
					up, err := f.Open(ctx)
					if err != nil {
						return nil, err
					}
					return refusing{up, &over}, nil
				}})
				want := func(state gateway.State, reason string) {
					t.Helper()
					if s := g.Status()[0]; s.State != state || s.Reason != reason {
						t.Errorf("state %q, %q; want %q, %q", s.State, s.Reason, state, reason)
					}
				}
				want(gateway.NeedsLogin, "log in")
				s := connect(t, g, mcp.V2026_07_28)
				call := func(wanted string) {
					t.Helper()
					_, err := s.CallTool(t.Context(), "a_which", nil)
					if wanted == "" && err != nil || wanted != "" && (err == nil || !strings.Contains(err.Error(), wanted)) {
						t.Errorf("call: %v, want %q", err, wanted)
					}
				}
				call("needs login: log in")
				time.Sleep(time.Hour) // so that the pauses have grown
				locked.Store(false)
				begun := time.Now()
				g.Retry("a")
				synctest.Wait()
				want(gateway.Ready, "")
				if took := time.Since(begun); took != 0 {
					t.Errorf("after the login it took %v", took)
				}
				call("")
				over.Store(true)
				call("needs login: log in again")
				want(gateway.NeedsLogin, "log in again")
				over.Store(false)
				call("")
				want(gateway.Ready, "")
			})
		})
	}
}
