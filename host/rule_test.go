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
	"github.com/patchbay-dev/patchbay/mcp"
)

// conditions is a small language of conditions: "small", that the argument x is less than 10, "read-only", what the
// server says of the tool, and "broken", which fails.
func conditions(when string) (host.Condition, error) {
	if !slices.Contains([]string{"small", "read-only", "broken"}, when) {
		return nil, errors.New(when + " is not a condition")
	}
	return func(_ context.Context, a *host.Approval) (bool, error) {
		var in struct{ X int }
		switch {
		case when == "read-only":
			return a.ReadOnly, nil
		case a.Arguments == nil:
			return true, nil
		case when == "broken":
			return true, errors.New("too costly")
		}
		err := json.Unmarshal(a.Arguments, &in)
		return in.X < 10, err
	}, nil
}

// hinted is a server whose tools are "NAME: description", read-only if the description says so.
func hinted(tools ...string) *mcp.Server {
	srv := &mcp.Server{Name: "s", Version: "1"}
	for _, t := range tools {
		name, description, _ := strings.Cut(t, ": ")
		addHinted(srv, name, description)
	}
	return srv
}

func addHinted(srv *mcp.Server, name, description string) {
	mcp.AddTool(srv, mcp.Tool{Name: name, Description: description, Annotations: &mcp.ToolAnnotations{ReadOnly: ptr(strings.Contains(description, "read-only"))}},
		func(context.Context, struct {
			X int `json:"x,omitempty"`
		}) (string, error) {
			return "ok", nil
		})
}

// A rule of Allow may have a condition. One that fails, does not compile or has no compiler allows nothing, and the
// event and the audit log name the rule that allowed a call.
func TestRuleWithCondition(t *testing.T) {
	for _, tt := range []struct {
		allow []string
		args  string
		rule  string // empty: it is denied
		note  string
	}{
		{[]string{"s/plain"}, `{"x":70}`, "s/plain", ""},
		{[]string{"s/plain if small"}, `{"x":7}`, "s/plain if small", ""},
		{[]string{"s/plain if small"}, `{"x":70}`, "", ""},
		{[]string{"s/read if small", "s/* if small"}, `{"x":7}`, "s/* if small", ""},
		{[]string{"* if small"}, `{"x":7}`, "* if small", ""},
		{[]string{"s/plain if small", "s/plain if broken"}, `{"x":70}`, "", "too costly"},
		{[]string{"s/plain if broken", "s/plain if small"}, `{"x":7}`, "s/plain if small", "too costly"},
		{[]string{"s/plain if nonsense"}, `{"x":7}`, "", "nonsense is not a condition"},
		{[]string{"s/plain if "}, `{"x":7}`, "", "its condition is empty"},
		{[]string{"s/plain if   "}, `{"x":7}`, "", "its condition is empty"},
		{[]string{"s/plain  if small"}, `{"x":7}`, "", ""},
	} {
		var log []host.Decision
		h := newHost(t, &host.Host{Model: calls([]string{"s_plain " + tt.args}), Allow: tt.allow, Condition: conditions,
			Audit: func(ctx context.Context, e host.Decision) (context.Context, error) {
				log = append(log, e)
				return ctx, nil
			}}, inMemory("s", tools()))
		d := talk(t, h)
		end := d.of(host.Resulted)[0].Call
		if end.Rule != tt.rule || (end.Outcome == host.Succeeded) != (tt.rule != "") {
			t.Errorf("%q, %s: %s by %q", tt.allow, tt.args, end.Outcome, end.Rule)
		}
		for _, e := range log {
			if e.Rule != tt.rule || tt.rule != "" && e.By != "rule" {
				t.Errorf("%q, %s: the audit log has %+v", tt.allow, tt.args, e)
			}
		}
		var notes []string
		for _, e := range d.of(host.Noted) {
			notes = append(notes, e.Text)
		}
		if said := strings.Join(notes, "; "); (said == "") != (tt.note == "") || !strings.Contains(said, tt.note) {
			t.Errorf("%q, %s: noted %q, want %q", tt.allow, tt.args, said, tt.note)
		}
	}
}

func TestRuleWithoutCompiler(t *testing.T) {
	h := newHost(t, &host.Host{Model: calls([]string{"s_plain {}"}), Allow: []string{"s/plain if small"}}, inMemory("s", tools()))
	if d := talk(t, h); d.outcome(t, "c1.1") != host.Denied || len(d.of(host.Noted)) != 1 {
		t.Errorf("without Host.Condition: %s, %d notes", d.outcome(t, "c1.1"), len(d.of(host.Noted)))
	}
}

// Trap 10, for classes: all tools of a server, its read-only tools, and calls under a condition are allowed for the
// tools that the server had when the person said so, as they were defined. A tool that is new, that has changed, or
// that gained or lost a hint since is asked about, in the conversation and in later ones.
func TestClassesHoldForTheToolsOfThen(t *testing.T) {
	const everything, readOnly, small = "everything", "read-only", "small"
	verdicts := map[string]host.Verdict{everything: {Tools: "*"}, readOnly: {Tools: "*", When: "read-only"}, small: {When: "small"}}
	for _, answer := range []host.Answer{host.AllowConversation, host.AllowAlways} {
		for _, tt := range []struct {
			class  string
			covers string // the tools that Covers names
			before string // tools that the model may call without a question before the server changes
			after  string
		}{
			{everything, "a b c w", "a b c w", "b w"},
			{readOnly, "a b c", "a b c", "b"},
			{small, "a", "a", ""},
		} {
			t.Run(fmt.Sprint(tt.class, answer), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := hinted("a: read-only A", "b: read-only B", "c: read-only C", "w: W")
					var mu sync.Mutex
					var asked, covers []string
					first := "" // conversation
					h := &host.Host{Approvals: &kept{}, Condition: conditions}
					h.Person = approver{approve: func(ctx context.Context, a *host.Approval) (host.Verdict, error) {
						mu.Lock()
						defer mu.Unlock()
						if covers == nil {
							first = a.Conversation
							v := verdicts[tt.class]
							v.Answer = answer
							list, err := a.Covers(ctx, v)
							if err != nil {
								t.Error(err)
							}
							for _, tool := range list {
								covers = append(covers, tool.Name)
							}
							return v, nil
						}
						asked = append(asked, a.Tool.Name)
						if a.Tool.Name == "a" && (answer == host.AllowAlways || a.Conversation == first) && (a.Changed != "description" || a.Before == nil || a.Before.Description != "read-only A") {
							t.Errorf("a has changed in %q, and was %+v", a.Changed, a.Before)
						}
						if a.Tool.Name == "n" && a.Changed != "" {
							t.Errorf("a new tool has changed: %q", a.Changed)
						}
						return host.Verdict{Answer: host.AllowOnce}, nil
					}}
					newHost(t, h, inMemory("s", srv))
					defer h.Close()
					time.Sleep(time.Second) // the host listens to the server
					c := h.NewConversation()
					send := func(c *host.Conversation, tools ...string) string {
						t.Helper()
						asked = nil
						var list []string
						for _, name := range tools {
							list = append(list, "s_"+name+` {"x":1}`)
						}
						c.Model = calls(list)
						if _, err := c.Send(t.Context(), "go"); err != nil {
							t.Fatal(err)
						}
						return strings.Join(slices.DeleteFunc(tools, func(name string) bool { return slices.Contains(asked, name) }), " ")
					}
					send(c, "a")
					if got := strings.Join(covers, " "); got != tt.covers {
						t.Errorf("the person is told that %q are allowed, want %q", got, tt.covers)
					}
					if got := send(c, "a", "b", "c", "w"); got != tt.before {
						t.Errorf("without a question: %q, want %q", got, tt.before)
					}
					addHinted(srv, "a", "read-only A, and it sends mail") // changed
					addHinted(srv, "c", "C")                              // has lost the hint
					addHinted(srv, "n", "read-only N")                    // new
					if tt.class == readOnly {
						addHinted(srv, "w", "read-only W") // has gained the hint
					}
					time.Sleep(10 * time.Second)
					if got := send(c, "a", "b", "c", "w", "n"); got != tt.after {
						t.Errorf("without a question after the server has changed: %q, want %q", got, tt.after)
					}
					if answer == host.AllowConversation {
						tt.after = ""
					}
					if got := send(h.NewConversation(), "a", "b", "c", "w", "n"); got != tt.after {
						t.Errorf("without a question in another conversation: %q, want %q", got, tt.after)
					}
				})
			})
		}
	}
}

// Trap 10, for Allow: a rule with a condition holds for tools as their server first listed them. A rule about names
// alone allows a tool however it is defined.
func TestAllowWithConditionHoldsForTheFirstTools(t *testing.T) {
	for rule, want := range map[string]string{"s/* if read-only": "b", "s/* if small": "b", "s/*": "a b n"} {
		synctest.Test(t, func(t *testing.T) {
			srv := hinted("a: A", "b: read-only B")
			h := newHost(t, &host.Host{Allow: []string{rule}, Condition: conditions, Model: calls([]string{`s_b {"x":1}`})}, inMemory("s", srv))
			defer h.Close()
			time.Sleep(time.Second)
			if d := talk(t, h); d.outcome(t, "c1.1") != host.Succeeded {
				t.Fatalf("%q: %s", rule, d.outcome(t, "c1.1"))
			}
			addHinted(srv, "a", "read-only A")
			addHinted(srv, "n", "read-only N")
			time.Sleep(10 * time.Second)
			h.Model = calls([]string{`s_a {"x":1}`, `s_b {"x":1}`, `s_n {"x":1}`})
			d := talk(t, h)
			var got []string
			for i, name := range []string{"a", "b", "n"} {
				if d.outcome(t, fmt.Sprintf("c1.%d", i+1)) == host.Succeeded {
					got = append(got, name)
				}
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%q allows %q after the server has changed, want %q", rule, got, want)
			}
		})
	}
}

// A verdict with a rule that is not for this call, or whose condition fails, allows this call and nothing else.
func TestVerdictForAnotherCall(t *testing.T) {
	for _, v := range []host.Verdict{{Tools: "other*"}, {When: "small"}, {When: "broken"}, {When: "nonsense"}, {Tools: "*", When: "read-only"}} {
		v.Answer = host.AllowAlways
		store := &kept{}
		h := newHost(t, &host.Host{Model: calls([]string{`s_plain {"x":70}`}), Approvals: store, Condition: conditions,
			Person: approver{approve: func(context.Context, *host.Approval) (host.Verdict, error) { return v, nil }}}, inMemory("s", tools()))
		c := h.NewConversation()
		d := &diary{}
		c.OnEvent = d.note
		if _, err := c.Send(t.Context(), "go"); err != nil {
			t.Fatal(err)
		}
		if d.outcome(t, "c1.1") != host.Succeeded || len(c.Grants())+len(store.list) > 0 || len(d.of(host.Noted)) != 1 {
			t.Errorf("%+v: %s, granted %v, stored %v, %d notes", v, d.outcome(t, "c1.1"), c.Grants(), store.list, len(d.of(host.Noted)))
		}
	}
}

// When the person allows all tools of a server, questions about other calls of the same answer are void.
func TestClassAnswersOtherQuestions(t *testing.T) {
	var asked atomic.Int64
	void := make(chan struct{}, 2)
	all := make(chan struct{})
	h := newHost(t, &host.Host{Model: calls([]string{"s_plain {}", "s_read {}", "s_again {}"}), Person: approver{approve: func(ctx context.Context, a *host.Approval) (host.Verdict, error) {
		if asked.Add(1) == 3 {
			close(all)
		}
		if a.Tool.Name != "read" {
			<-ctx.Done()
			void <- struct{}{}
			return host.Verdict{}, context.Cause(ctx)
		}
		<-all
		return host.Verdict{Answer: host.AllowConversation, Tools: "*"}, nil
	}}}, inMemory("s", tools()))
	d := talk(t, h)
	<-void
	<-void
	rules := map[string]string{}
	for _, e := range d.of(host.Resulted) {
		rules[e.Call.Tool] = string(e.Call.Outcome) + " by " + e.Call.By + ": " + e.Call.Rule
	}
	if diff := cmp.Diff(map[string]string{"plain": "done by conversation: s/*", "read": "done by person: s/*", "again": "done by conversation: s/*"}, rules); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// An approval of a server does not allow anything of another with its name, or with its tools.
func TestClassIsOfOneServer(t *testing.T) {
	store := &kept{}
	server := func(name, identity string) host.Server {
		s := inMemory(name, hinted("a: read-only A", "b: B"))
		s.Identity = identity
		return s
	}
	var asked []string
	h := newHost(t, &host.Host{Approvals: store, Person: approver{approve: func(_ context.Context, a *host.Approval) (host.Verdict, error) {
		asked = append(asked, a.Server+"/"+a.Tool.Name)
		return host.Verdict{Answer: host.AllowAlways, Tools: "*"}, nil
	}}}, server("s", "one"), server("t", "two"))
	c := h.NewConversation()
	for _, step := range []struct {
		call string
		want []string
		do   func() error
	}{
		{"s_a {}", []string{"s/a"}, nil},
		{"s_b {}", nil, nil},
		{"t_a {}", []string{"t/a"}, nil},
		{"s_a {}", []string{"s/a"}, func() error { return h.Replace(server("s", "three")) }},
		{"s_a {}", nil, func() error { return h.Replace(server("s", "one")) }},
	} {
		asked = nil
		if step.do != nil {
			if err := step.do(); err != nil {
				t.Fatal(err)
			}
		}
		c.Model = calls([]string{step.call})
		if _, err := c.Send(t.Context(), "go"); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(asked, step.want) {
			t.Errorf("%s: asked about %q, want %q", step.call, asked, step.want)
		}
	}
}

// Permit is what a person allows by hand: the tools that match now, as they are now.
func TestPermit(t *testing.T) {
	for _, tt := range []struct {
		tools, when string
		want        string
		fails       string
	}{
		{"s/*", "", "again plain read write", ""},
		{"*", "read-only", "read", ""},
		{"s/re*", "small", "read", ""},
		{"s/none", "", "", `no tool that is available now matches "s/none"`},
		{"s/plain", "read-only", "", "allows no call: the condition does not hold"},
		{"s/plain", "nonsense", "", "nonsense is not a condition"},
	} {
		store := &kept{}
		h := newHost(t, &host.Host{Approvals: store, Condition: conditions}, inMemory("s", tools()))
		c := h.NewConversation()
		list, err := c.Permit(t.Context(), tt.tools, tt.when, host.AllowAlways)
		var names []string
		for _, tool := range list {
			names = append(names, tool.Tool.Name)
		}
		if got := strings.Join(names, " "); got != tt.want || (err == nil) != (tt.fails == "") || err != nil && !strings.Contains(err.Error(), tt.fails) {
			t.Errorf("Permit(%q, %q) = %q, %v, want %q, %q", tt.tools, tt.when, got, err, tt.want, tt.fails)
		}
		if len(c.Grants()) != len(list) || len(store.list) != len(list) {
			t.Errorf("Permit(%q, %q): %d are granted, %d stored, want %d", tt.tools, tt.when, len(c.Grants()), len(store.list), len(list))
		}
		c.Revoke(func(approval.Approval) bool { return true })
		if got := len(c.Grants()); got != 0 {
			t.Errorf("%d are left after Revoke", got)
		}
	}
}

// A function that approves by rules of its own says which, and the audit log has it.
func TestVerdictOfARule(t *testing.T) {
	var log []host.Decision
	h := newHost(t, &host.Host{Model: calls([]string{`s_plain {"x":1}`, `s_read {"x":1}`}),
		Audit: func(ctx context.Context, d host.Decision) (context.Context, error) {
			log = append(log, d)
			return ctx, nil
		},
		Person: approver{approve: func(_ context.Context, a *host.Approval) (host.Verdict, error) {
			if a.Tool.Name == "plain" {
				return host.Verdict{Answer: host.AllowOnce, Rule: "plain ones"}, nil
			}
			return host.Verdict{Rule: "the others"}, nil
		}}}, inMemory("s", tools()))
	talk(t, h)
	got := map[string]bool{}
	for _, d := range log {
		got[fmt.Sprint(d.Tool, " ", d.Allowed, " ", d.By, ": ", d.Rule)] = true
	}
	if diff := cmp.Diff(map[string]bool{"plain true rule: plain ones": true, "read false rule: the others": true}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
