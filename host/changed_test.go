package host_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/mcp"
)

// thinker is a caller that takes time to answer and runs a function meanwhile.
type thinker struct {
	*caller
	meanwhile []func() // in each turn; nil: nothing
}

func (m *thinker) Generate(ctx context.Context, req *model.Request, emit func(model.Delta)) (*model.Response, error) {
	if len(m.meanwhile) > 0 {
		if m.meanwhile[0] != nil {
			m.meanwhile[0]()
			time.Sleep(8 * time.Second) // real models think for as long
		}
		m.meanwhile = m.meanwhile[1:]
	}
	return m.caller.Generate(ctx, req, emit)
}

// Trap 10: an approval covers only the definition that was shown. A tool that changes while the
// model thinks, or while the person is asked, is not called without a new decision.
func TestChangedWhileThinking(t *testing.T) {
	const readOnly, always, run, rule, once = "read-only", "always", "conversation", "rule", "person"
	for _, tt := range []struct {
		by     string
		away   bool // the tool has been removed
		dialog bool // it changes while the person is asked
	}{
		{by: readOnly}, {by: always}, {by: run}, {by: rule}, {by: once}, {by: once, dialog: true}, {by: always, away: true},
	} {
		t.Run(tt.by+map[bool]string{true: " dialog"}[tt.dialog]+map[bool]string{true: " away"}[tt.away], func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var called []string
				srv := tools()
				set := func(description string) {
					mcp.AddTool(srv, mcp.Tool{Name: "read", Description: description, Annotations: &mcp.ToolAnnotations{ReadOnly: ptr(true)}},
						func(context.Context, struct{}) (string, error) {
							called = append(called, description)
							return "ok", nil
						})
				}
				set("Old")
				change := func() { set("New") }
				if tt.away {
					change = func() { srv.Remove(mcp.Feature{Kind: mcp.KindTool, Name: "read"}) }
				}
				s := inMemory("s", srv)
				s.Trusted = tt.by == readOnly
				var asked []string
				h := &host.Host{Approvals: &kept{}, Person: approver{approve: func(_ context.Context, a *host.Approval) (host.Verdict, error) {
					asked = append(asked, a.Tool.Description)
					if tt.dialog && len(asked) == 2 {
						change()
						time.Sleep(8 * time.Second)
					}
					return host.Verdict{Answer: map[string]host.Answer{always: host.AllowAlways, run: host.AllowConversation}[tt.by]}, nil
				}}}
				if tt.by == rule {
					h.Allow = []string{"s/read"}
				}
				answers := h.Person.(approver).approve
				h.Person = approver{approve: func(ctx context.Context, a *host.Approval) (host.Verdict, error) {
					v, err := answers(ctx, a)
					if v.Answer == 0 {
						v.Answer = host.AllowOnce
					}
					return v, err
				}}
				m := &thinker{caller: calls([]string{"s_read {}"}, []string{"s_read {}"}, []string{"s_read {}"}), meanwhile: []func(){nil, change}}
				if tt.dialog {
					m.meanwhile = nil
				}
				h.Model = m
				newHost(t, h, s)
				defer h.Close()
				time.Sleep(time.Second) // the host listens to the server
				d := talk(t, h)
				if got := m.result(t, "c1.1"); got != "ok" {
					t.Fatalf("the first call: %q", got)
				}
				if got := m.result(t, "c2.1"); !strings.Contains(got, "has not run") || !strings.Contains(got, "changed") {
					t.Errorf("the call after the change: %q, want that the tool has changed", got)
				}
				if got := d.outcome(t, "c2.1"); got != host.Broken {
					t.Errorf("the call after the change: %s, want %s", got, host.Broken)
				}
				want := []string{"Old", "New"}
				if tt.away {
					want = want[:1]
				}
				if !slices.Equal(called, want) {
					t.Errorf("called %q, want %q", called, want)
				}
				if tt.by == always && !tt.away || tt.by == run || tt.by == once {
					if len(asked) == 0 || asked[len(asked)-1] != "New" {
						t.Errorf("asked about %q, want the new definition last", asked)
					}
				}
			})
		})
	}
}

// Trap 10: a server that reconnects while a call waits may be another version of itself: the
// decision does not apply to it.
func TestChangedByRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		called := ""
		version := func(description string) host.Server {
			srv := &mcp.Server{Name: "s", Version: "1"}
			mcp.AddTool(srv, mcp.Tool{Name: "plain", Description: description}, func(context.Context, struct{}) (string, error) { called += description; return "ok", nil })
			return inMemory("s", srv)
		}
		s, next := version("Old"), version("New")
		first := s.Open
		s.Open = func(ctx context.Context, c *mcp.Client) (mcp.Handler, error) {
			open := first
			first = next.Open
			return open(ctx, c)
		}
		var h *host.Host
		m := calls([]string{"s_plain {}"}, []string{"s_plain {}"})
		h = newHost(t, &host.Host{Model: m, Person: approver{approve: func(ctx context.Context, a *host.Approval) (host.Verdict, error) {
			if a.Call == "c1.1" {
				h.Restart("s")
			}
			return host.Verdict{Answer: host.AllowOnce}, nil
		}}}, s)
		defer h.Close()
		talk(t, h)
		if got := m.result(t, "c1.1"); !strings.Contains(got, "changed") {
			t.Errorf("what was allowed of the old version: %q", got)
		}
		if got := m.result(t, "c2.1"); got != "ok" || called != "New" {
			t.Errorf("the same once more: %q, called %q", got, called)
		}
	})
}
