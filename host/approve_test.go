package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/approval"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// kept stores permanent approvals in memory.
type kept struct {
	mu   sync.Mutex
	list []approval.Approval
}

func (k *kept) Find(identity string, t *mcp.Tool) (approval.Found, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return approval.Find(k.list, identity, t)
}

func (k *kept) Allow(more ...approval.Approval) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.list = approval.With(k.list, more...)
	return nil
}

// A call is allowed by a rule for its server and tool, by the read-only annotation of a trusted
// server (TOOL-26-012), or by the person: once, for the conversation or always.
func TestWhoAllows(t *testing.T) {
	tests := []struct {
		name    string
		allow   []string
		trusted bool
		person  host.Person
		tool    string
		by      string
		outcome host.Outcome
	}{
		{"nobody", nil, false, nil, "plain", "nobody", host.Denied},
		{"a rule", []string{"other/*", "s/pl*n"}, false, nil, "plain", "rule", host.Succeeded},
		{"a rule for another", []string{"other/*", "s/plai", "t/plain"}, false, nil, "plain", "nobody", host.Denied},
		{"a server that is not trusted", nil, false, nil, "read", "nobody", host.Denied},
		{"a server that is trusted", nil, true, nil, "read", "read-only", host.Succeeded},
		{"a server that is trusted, and no hint", nil, true, nil, "plain", "nobody", host.Denied},
		{"idempotent is not read-only", nil, true, nil, "again", "nobody", host.Denied},
		{"the person", nil, false, says(host.AllowOnce), "plain", "person", host.Succeeded},
		{"the person denies", nil, false, says(host.Deny), "plain", "person", host.Denied},
		{"an answer that is none", nil, false, says(17), "plain", "person", host.Denied},
		{"a rule before the person", []string{"s/*"}, false, says(host.Deny), "plain", "rule", host.Succeeded},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := inMemory("s", tools())
			s.Trusted = tt.trusted
			var log []host.Decision
			m := calls([]string{"s_" + tt.tool + ` {"x":1}`})
			d := talk(t, newHost(t, &host.Host{Model: m, Allow: tt.allow, Person: tt.person, Audit: func(ctx context.Context, e host.Decision) (context.Context, error) {
				log = append(log, e)
				return ctx, nil
			}}, s))
			end := d.of(host.Resulted)[0].Call
			if end.By != tt.by || end.Outcome != tt.outcome {
				t.Errorf("%s by %q, want %s by %q", end.Outcome, end.By, tt.outcome, tt.by)
			}
			if denied := tt.outcome == host.Denied; denied != (len(d.of(host.Started)) == 0) || denied != (m.result(t, "c1.1") != "ok") {
				t.Errorf("the model is told %q, started %d", m.result(t, "c1.1"), len(d.of(host.Started)))
			}
			want := []string{fmt.Sprintf("s plain true %s  c1.1", tt.by), fmt.Sprintf("s plain true %s done c1.1", tt.by)}
			if tt.outcome == host.Denied {
				want = []string{fmt.Sprintf("s plain false %s denied c1.1", tt.by)}
			}
			var got []string
			for _, e := range log {
				if string(e.Arguments) != `{"x":1}` || e.Identity != "s" || e.Time.IsZero() || e.Conversation == "" {
					t.Errorf("audited: %+v", e)
				}
				got = append(got, fmt.Sprintf("%s plain %v %s %s %s", e.Server, e.Allowed, e.By, e.Outcome, e.Call))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("audit log (-want +got):\n%s", diff)
			}
		})
	}
}

// The person is asked about calls of one tool one at a time, in the order of the model, and an
// answer for the conversation also covers the calls that wait.
func TestOneAnswerForMany(t *testing.T) {
	for _, answer := range []host.Answer{host.AllowConversation, host.AllowAlways} {
		var mu sync.Mutex
		var asked []string
		m := calls([]string{`s_plain {"x":1}`, `s_write {"x":2}`, `s_plain {"x":3}`, `s_plain {"x":4}`}, []string{`s_plain {"x":5}`})
		h := newHost(t, &host.Host{Model: m, Approvals: &kept{}, Person: approver{approve: func(_ context.Context, a *host.Approval) (host.Verdict, error) {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, a.Tool.Name+string(a.Arguments))
			if a.Destructive != true || a.ReadOnly || a.Trusted {
				t.Errorf("%+v", a)
			}
			return host.Verdict{Answer: answer}, nil
		}}}, inMemory("s", tools()))
		d := talk(t, h)
		slices.Sort(asked)
		if diff := cmp.Diff([]string{`plain{"x":1}`, `write{"x":2}`}, asked); diff != "" {
			t.Errorf("asked (-want +got):\n%s", diff)
		}
		by := map[string]string{}
		for _, e := range d.of(host.Resulted) {
			by[e.Call.ID] = e.Call.By
		}
		want := map[string]string{"c1.1": "person", "c1.2": "person", "c1.3": "conversation", "c1.4": "conversation", "c2.1": "conversation"}
		if diff := cmp.Diff(want, by); diff != "" {
			t.Errorf("allowed by (-want +got):\n%s", diff)
		}
	}
}

// A tool that changes needs a new approval, even a permanently allowed one, and the person sees
// what has changed.
func TestChangedTool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []string
		before, after := tools(), tools()
		mcp.AddTool(after, mcp.Tool{Name: "plain", Description: "New"}, func(context.Context, struct{}) (string, error) { return "ok", nil })
		s, next := inMemory("s", before), inMemory("s", after)
		first := s.Open
		s.Open = func(ctx context.Context, c *mcp.Client) (mcp.Handler, error) {
			open := first
			first = next.Open
			return open(ctx, c)
		}
		s, lose := closing(s)
		h := newHost(t, &host.Host{Model: calls([]string{"s_plain {}"}, []string{"s_plain {}"}), Approvals: &kept{}, Person: approver{approve: func(_ context.Context, a *host.Approval) (host.Verdict, error) {
			asked = append(asked, a.Tool.Description+": "+a.Changed)
			return host.Verdict{Answer: host.AllowAlways}, nil
		}}}, s)
		defer h.Close()
		c := h.NewConversation()
		if _, err := c.Send(t.Context(), "go"); err != nil {
			t.Fatal(err)
		}
		lose()
		time.Sleep(10 * time.Second) // the server reconnects
		c.Model = calls([]string{"s_plain {}"})
		if _, err := c.Send(t.Context(), "go on"); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{": ", "New: description, inputSchema"}, asked); diff != "" {
			t.Errorf("asked (-want +got):\n%s", diff)
		}

		// In another conversation it is allowed without asking.
		h.Model = calls([]string{"s_plain {}"})
		d := talk(t, h)
		if got := d.of(host.Resulted)[0].Call.By; got != "always" {
			t.Errorf("in another conversation it is allowed by %q", got)
		}
	})
}

// A person who ignores a cancelled question does not keep the turn from ending, and a later answer
// has no effect.
func TestCancelledWhileAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, answer := make(chan struct{}), make(chan struct{})
		defer close(answer)
		var log []host.Decision
		m := calls([]string{"s_plain {}", `s_plain {"x":1}`})
		h := newHost(t, &host.Host{Model: m, Audit: func(ctx context.Context, d host.Decision) (context.Context, error) {
			log = append(log, d)
			return ctx, nil
		},
			Person: approver{approve: func(context.Context, *host.Approval) (host.Verdict, error) {
				close(asked)
				<-answer
				return host.Verdict{Answer: host.AllowConversation}, nil
			}}}, inMemory("s", tools()))
		defer h.Close()
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			<-asked
			cancel(errors.New("enough"))
		}()
		d := &diary{}
		c := h.NewConversation()
		c.OnEvent = d.note
		start := time.Now()
		if _, err := c.Send(ctx, "go"); err == nil || err.Error() != "enough" {
			t.Errorf("Send = %v, want the cause of the cancellation", err)
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("took %v", took)
		}
		for _, id := range []string{"c1.1", "c1.2"} {
			if got := d.outcome(t, id); got != host.Cancelled {
				t.Errorf("%s: %s", id, got)
			}
		}
		if len(d.of(host.Started)) > 0 || len(log) != 2 || log[0].Allowed || log[0].Outcome != host.Cancelled {
			t.Errorf("started %d, audited %+v", len(d.of(host.Started)), log)
		}
		if n := len(c.Entries); n != 3 || len(c.Entries[2].Parts) != 2 {
			t.Errorf("%d entries; each call must have its result", n)
		}
	})
}

// A call that was allowed at one server is not made at another that has replaced it; the model may
// call the new one, which is a new decision.
func TestReplacedWhileAsked(t *testing.T) {
	for _, call := range []string{"s_plain {}", `read_resource {"server":"s","uri":"app:place"}`} {
		t.Run(call, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				place := func(name string) host.Server {
					srv := &mcp.Server{Name: name, Version: "1"}
					mcp.AddTool(srv, mcp.Tool{Name: "plain"}, func(context.Context, struct{}) (string, error) { return "at " + name, nil })
					mcp.AddResource(srv, mcp.Resource{URI: "app:place", Name: "place"}, func(context.Context) (string, error) { return "at " + name, nil })
					s := inMemory("s", srv)
					s.Identity = name
					return s
				}
				var log []string
				var h *host.Host
				m := calls([]string{call}, []string{call})
				h = newHost(t, &host.Host{Model: m, Audit: func(ctx context.Context, d host.Decision) (context.Context, error) {
					log = append(log, fmt.Sprintf("%s %s %s", d.Identity, d.Outcome, d.Reason))
					return ctx, nil
				}, Person: approver{approve: func(ctx context.Context, a *host.Approval) (host.Verdict, error) {
					if a.Call == "c1.1" {
						if err := h.Replace(place("new")); err != nil {
							t.Error(err)
						}
						h.Use(ctx, "s", func(s *mcp.Session) error { _, err := s.Raw(ctx, "server/discover", nil); return err }) // wait until it is ready
					}
					return host.Verdict{Answer: host.AllowOnce}, nil
				}}}, place("old"))
				defer h.Close()
				talk(t, h)
				if got := m.result(t, "c1.1"); !strings.Contains(got, "replaced") || strings.Contains(got, "at new") {
					t.Errorf("what was allowed at the old server: %q", got)
				}
				if got := m.result(t, "c2.1"); !strings.Contains(got, "at new") {
					t.Errorf("the same once more: %q", got)
				}
				outcome := host.Broken
				if call != "s_plain {}" {
					outcome = host.Failed
				}
				want := []string{"old  ", fmt.Sprintf("old %s the server was removed or replaced", outcome), "new  ", "new done "}
				if diff := cmp.Diff(want, log); diff != "" {
					t.Errorf("audit log (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A call is not made if its decision cannot be audited. If only its outcome cannot be audited, the
// call still has its result.
func TestAuditFails(t *testing.T) {
	for _, fail := range []int{1, 2} {
		writes := 0
		m := calls([]string{"s_plain {}"})
		d := talk(t, newHost(t, &host.Host{Model: m, Allow: []string{"s/*"}, Audit: func(ctx context.Context, _ host.Decision) (context.Context, error) {
			if writes++; writes == fail {
				return nil, errors.New("disk full")
			}
			return ctx, nil
		}}, inMemory("s", tools())))
		got := m.result(t, "c1.1")
		if fail == 1 && (len(d.of(host.Started)) > 0 || !strings.Contains(got, "disk full")) {
			t.Errorf("without an audit log: started %d, %q", len(d.of(host.Started)), got)
		}
		if notes := d.of(host.Noted); fail == 2 && (got != "ok" || len(notes) != 1 || !strings.Contains(notes[0].Text, "disk full")) {
			t.Errorf("audit of the outcome fails: %q, notes %+v", got, notes)
		}
	}
}

// Events quote the server, but the audit log does not: a server may repeat the arguments.
func TestAuditOfFailures(t *testing.T) {
	const said = "no customer planted"
	failed := &mcp.ToolResult{IsError: true, Content: []mcp.Content{mcp.Text(said)}}
	misfit := &mcp.ToolResult{Content: []mcp.Content{mcp.Text("ok")}, Structured: json.RawMessage(`{"` + said + `":1}`)}
	for want, answer := range map[string]struct {
		res mcp.Result
		err error
	}{
		"the tool answered with an error":                                  {failed, nil},
		"the server answered with error -32602":                            {nil, mcp.Errorf(jsonrpc.CodeInvalidParams, said)},
		"the server answered with status 400":                              {nil, fmt.Errorf("%s: %w", said, &mcp.HTTPError{Status: 400})},
		"the answer does not fit the output schema":                        {misfit, nil},
		"the server could not be reached, or its answer could not be read": {nil, &mcp.ExitError{Command: "s", State: said}},
		"no answer and no progress in time":                                {nil, fmt.Errorf("%s: %w", said, context.DeadlineExceeded)},
	} {
		var log []host.Decision
		srv := tools()
		if answer.res == misfit {
			mcp.AddTool(srv, mcp.Tool{Name: "plain"}, func(context.Context, struct{}) (struct{}, error) { return struct{}{}, nil })
		}
		s := rig(inMemory("s", srv), func(func() (mcp.Result, error)) (mcp.Result, error) {
			return answer.res, answer.err
		})
		h := &host.Host{Model: calls([]string{"s_plain {}"}), Allow: []string{"*"}, Audit: func(ctx context.Context, d host.Decision) (context.Context, error) {
			log = append(log, d)
			return ctx, nil
		}}
		d := talk(t, newHost(t, h, s))
		if len(log) != 2 || log[1].Reason != want {
			t.Errorf("audited: %+v, want the reason %q", log, want)
		}
		if got := d.of(host.Resulted)[0].Error; !strings.Contains(got, said) {
			t.Errorf("%s: the event says %q, want %q in it", want, got, said)
		}
	}
}

// The reason of a denial reaches the model.
func TestDenialWithReason(t *testing.T) {
	m := calls([]string{"s_plain {}"}, []string{"s_write {}"})
	talk(t, newHost(t, &host.Host{Model: m, Person: approver{approve: func(_ context.Context, a *host.Approval) (host.Verdict, error) {
		if a.Tool.Name == "write" {
			return host.Verdict{}, errors.New("the terminal is gone")
		}
		return host.Verdict{Reason: "use the other one"}, nil
	}}}, inMemory("s", tools())))
	for id, want := range map[string]string{"c1.1": "Reason: use the other one", "c2.1": "the terminal is gone"} {
		if got := m.result(t, id); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q in it", id, got, want)
		}
	}
}

// A pattern of Host.Allow matches only tools of the server that it names: * matches any text,
// including slashes, and no tool name can stand for a tool of another server.
func TestAllowPatterns(t *testing.T) {
	tests := []struct {
		pattern string
		allowed []string
	}{
		{"*", []string{"a plain", "a x/y", "a b/z", "a/b z", "ab plain"}},
		{"*/*", []string{"a plain", "a x/y", "a b/z", "a/b z", "ab plain"}},
		{"a/*", []string{"a plain", "a x/y", "a b/z"}},
		{"a/b/*", []string{"a/b z"}},
		{"a/b/z", []string{"a/b z"}},
		{"a/x/y", []string{"a x/y"}},
		{"a*/plain", []string{"a plain", "ab plain"}},
		{"*/pl*in", []string{"a plain", "ab plain"}},
		{"a/plain", []string{"a plain"}},
		{"a/*plainer", nil},
		{"a", nil},
		{"a/", nil},
		{"/plain", nil},
		{"", nil},
	}
	for _, tt := range tests {
		h := newHost(t, &host.Host{Allow: []string{tt.pattern}}, inMemory("a", tools()), inMemory("a/b", tools()), inMemory("ab", tools()))
		c := h.NewConversation()
		var got []string
		for _, name := range []string{"a plain", "a x/y", "a b/z", "a/b z", "ab plain"} {
			server, tool, _ := strings.Cut(name, " ")
			if c.AllowedBy(host.Tool{Server: server, Tool: &mcp.Tool{Name: tool}}) == "rule" {
				got = append(got, name)
			}
		}
		if diff := cmp.Diff(tt.allowed, got); diff != "" {
			t.Errorf("%q allows (-want +got):\n%s", tt.pattern, diff)
		}
		h.Close()
	}
}

// Permissions of a conversation can be listed and withdrawn.
func TestRevoke(t *testing.T) {
	var asked atomic.Int64
	m := calls([]string{"s_plain {}"}, []string{"s_plain {}"})
	h := newHost(t, &host.Host{Model: m, Person: approver{approve: func(context.Context, *host.Approval) (host.Verdict, error) {
		asked.Add(1)
		return host.Verdict{Answer: host.AllowConversation}, nil
	}}}, inMemory("s", tools()))
	c := h.NewConversation()
	c.OnEvent = func(e host.Event) {
		if e.Kind != host.Resulted {
			return
		}
		for _, tool := range h.Tools(t.Context()) {
			by := c.AllowedBy(tool)
			if want := map[string]string{"s_plain": "conversation"}[tool.Name]; by != want {
				t.Errorf("%s is allowed by %q, want %q", tool.Name, by, want)
			}
			c.Revoke(func(a approval.Approval) bool { return a.Server+"_"+a.Tool == tool.Name })
			if by := c.AllowedBy(tool); by != "" {
				t.Errorf("%s is still allowed by %q", tool.Name, by)
			}
		}
	}
	if _, err := c.Send(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	if asked.Load() != 2 {
		t.Errorf("asked %d times, want 2", asked.Load())
	}
}
