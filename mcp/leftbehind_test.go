package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/internal/long"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// A goroutine that a handler left behind goes on sending and asking after its call is answered and
// its memory is reused. None of that reaches anybody.
func TestLeftBehind(t *testing.T) {
	var left sync.WaitGroup
	pause := long.OrRaced(100*time.Microsecond, time.Millisecond)
	var answered, stop chan struct{}
	server := func() *mcp.Server {
		s := &mcp.Server{Name: "s", Version: "1"}
		mcp.AddTool(s, mcp.Tool{Name: "leave"}, func(ctx context.Context, _ struct{}) (string, error) {
			left.Go(func() {
				select {
				case <-answered:
				case <-stop:
				}
				for n := 1.0; ; n++ {
					select {
					case <-stop:
						return
					case <-time.After(pause):
					}
					mcp.Progress(ctx, n, 0, "late")
					mcp.Log(ctx).Error("late")
					if name := mcp.CallFrom(ctx).Client.Name; name != "" && name != "c" {
						t.Errorf("the caller was %q", name)
					}
					if _, err := mcp.Elicit[struct{ A string }](ctx, "late?"); err == nil {
						t.Error("a question behind the answer was answered")
					}
				}
			})
			return "left", nil
		})
		mcp.AddTool(s, mcp.Tool{Name: "echo"}, func(ctx context.Context, in struct{ Text string }) (string, error) {
			mcp.Progress(ctx, 1, 1, in.Text)
			return in.Text, nil
		})
		return s
	}
	client := func() *mcp.Client {
		return &mcp.Client{Name: "c", Version: "1", OnElicit: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return nil, errors.New("asked " + r.Message)
		}}
	}
	mcptest.Every(t, server, client, func(t *testing.T, s *mcp.Session) {
		answered, stop = make(chan struct{}), make(chan struct{})
		defer left.Wait()
		defer close(stop)
		for range 4 {
			if _, err := s.CallTool(t.Context(), "leave", nil, mcp.OnProgress(func(done, total float64, message string) {
				t.Errorf("a call that was answered had progress: %v of %v, %q", done, total, message)
			})); err != nil {
				t.Fatal(err)
			}
		}
		close(answered)
		for i := range long.OrRaced(100, 30) {
			want := fmt.Sprint(i, strings.Repeat("x", i))
			r, err := s.CallTool(t.Context(), "echo", map[string]any{"Text": want}, mcp.OnProgress(func(_, _ float64, message string) {
				if message != want && s.Revision() != mcp.V2024_11_05 || message == "late" { // 2024-11-05 lacks messages
					t.Errorf("the call of %q heard %q", want, message)
				}
			}))
			if err != nil || r.Text() != want {
				t.Fatalf("echoed %v, %v; want %q", r, err, want)
			}
		}
	})
}
