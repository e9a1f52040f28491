package person

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/allow"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/terminal"
	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/mcp"
)

// A person at a terminal is asked line by line, and the host gets the typed answer.
func TestPersonApproves(t *testing.T) {
	tool := &mcp.Tool{Name: "drop"}
	for _, tt := range []struct {
		typed string
		want  host.Verdict
	}{
		{"y\n", host.Verdict{Answer: host.AllowOnce}},
		{"\nr\n", host.Verdict{Answer: host.AllowConversation}},
		{"Always\n", host.Verdict{Answer: host.AllowAlways}},
		{"n\n", host.Verdict{}},
		{"x\nno\n", host.Verdict{}},
		{"not on a Friday\n", host.Verdict{Reason: "not on a Friday"}},
		{"", host.Verdict{}}, // ctrl-D
	} {
		stderr := new(strings.Builder)
		p := New(&terminal.Talk{W: stderr}, 0)
		p.Keys = terminal.NewKeyboard(strings.NewReader(tt.typed))
		v, err := p.Approve(t.Context(), &host.Approval{Server: "db", Tool: tool, Arguments: []byte("{\"sql\":\"DROP \x1b[31mTABLE\"}"), Destructive: true, Doubt: "it may have run"})
		if err != nil || v != tt.want {
			t.Errorf("typed %q: %+v, %v; want %+v", tt.typed, v, err, tt.want)
		}
		for _, part := range []string{"db/drop", "DROP ␛[31mTABLE", "Hints: destructive.", "it may have run"} {
			if !strings.Contains(stderr.String(), part) {
				t.Errorf("the person is not shown %q:\n%s", part, stderr)
			}
		}
	}
}

// screenOf is standard error; it tells once that it has a text.
type screenOf struct {
	mu   sync.Mutex
	text strings.Builder
	want string
	seen chan struct{}
}

func (s *screenOf) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Write(p)
	if s.want != "" && strings.Contains(s.text.String(), s.want) {
		s.want = ""
		close(s.seen)
	}
	return len(p), nil
}

// A line that is printed while a question waits comes before the prompt, which stays the last line, and after the
// answer the prompt is not printed again.
func TestPromptStaysLast(t *testing.T) {
	const prompt = "Allow it? [y]es, in this [r]un, [a]lways, [m]ore, [n]o, or say why not: "
	stderr := &screenOf{want: prompt, seen: make(chan struct{})}
	p := New(&terminal.Talk{W: stderr, TTY: true}, 80)
	keys, typed := io.Pipe()
	p.Keys = terminal.NewKeyboard(keys)
	go func() {
		<-stderr.seen
		p.talk.Note("another call has ended")
		io.WriteString(typed, "m\n\ny\n")
	}()
	if _, err := p.Approve(t.Context(), &host.Approval{Server: "db", Tool: &mcp.Tool{Name: "drop"}, Arguments: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	p.talk.Note("the end")
	if got := stderr.text.String(); !strings.Contains(got, prompt+"\r\x1b[Kpatchbay: another call has ended\n"+prompt+"  i  db/drop") || !strings.HasSuffix(got, prompt+"patchbay: the end\n") {
		t.Errorf("the terminal got %q", got)
	}
}

// caller is a model that makes one call.
type caller struct{}

func (caller) Info() model.Info { return model.Info{Name: "test/caller"} }

func (caller) Generate(_ context.Context, req *model.Request, _ func(model.Delta)) (*model.Response, error) {
	part := model.Part{Call: &model.Call{ID: "1", Name: "db_list", Arguments: []byte(`{"sql":"DROP"}`)}}
	if len(req.Messages) > 1 {
		part = model.Part{Text: "done"}
	}
	return &model.Response{Message: model.Message{Role: model.Assistant, Parts: []model.Part{part}}}, nil
}

// A person who is asked line by line can allow classes of tools and some calls, after they have seen which, or go back.
func TestPersonApprovesMore(t *testing.T) {
	yes := true
	type query struct {
		SQL string `json:"sql"`
	}
	db := &mcp.Server{Name: "db", Version: "1"}
	for _, tool := range []mcp.Tool{{Name: "drop"}, {Name: "list", Annotations: &mcp.ToolAnnotations{ReadOnly: &yes}}} {
		mcp.AddTool(db, tool, func(context.Context, query) (string, error) { return "ok", nil })
	}
	for _, tt := range []struct {
		typed string
		by    string // the outcome
		tools string // that are allowed from now on
		shown []string
	}{
		{"m\ns\na\n", "person", "drop list", []string{"s  all 2 tools of db\n", "As they are defined now:\n  db/drop\n  db/list\n"}},
		{"more\nr\nr\n", "person", "list", []string{"r  the tools of db that it declares read-only\n", "As they are defined now:\n  db/list\n"}},
		{"m\ni\n\nr\n", "person", "list", []string{"  arguments.sql == \"DROP\"\n", "does not name may have any value", "now:\n  db/list\n"}},
		{"m\ni\narguments.sql == \"x\"\ny\n", "person", "", []string{"the condition does not hold for this call"}},
		{"m\ni\narguments.sql ==\ny\n", "person", "", []string{"the condition: "}},
		{"m\ns\n\ny\n", "person", "", nil},
		{"m\n\ny\n", "person", "", nil},
		{"m\ns\n", "", "", nil}, // ctrl-D
		{"m\n", "", "", nil},
	} {
		stderr := new(strings.Builder)
		p := New(&terminal.Talk{W: stderr}, 0)
		p.Keys = terminal.NewKeyboard(strings.NewReader(tt.typed))
		h := &host.Host{Model: caller{}, Person: p, Condition: allow.Condition}
		if err := h.Add(host.Local("db", db)); err != nil {
			t.Fatal(err)
		}
		c := h.NewConversation()
		by := ""
		c.OnEvent = func(e host.Event) {
			if e.Kind == host.Started {
				by = e.Call.By
			}
		}
		if _, err := c.Send(t.Context(), "go"); err != nil {
			t.Fatal(err)
		}
		var tools []string
		for _, g := range c.Grants() {
			tools = append(tools, g.Tool)
		}
		if slices.Sort(tools); by != tt.by || strings.Join(tools, " ") != tt.tools {
			t.Errorf("typed %q: the call was allowed by %q, and later ones of %q; want %q, %q", tt.typed, by, tools, tt.by, tt.tools)
		}
		for _, part := range tt.shown {
			if !strings.Contains(stderr.String(), part) {
				t.Errorf("typed %q: the person is not shown %q:\n%s", tt.typed, part, stderr)
			}
		}
		h.Close()
	}
}

// A person sees what has changed in a tool that they had allowed, and so does the reader of a log if nobody can be asked.
func TestPersonSeesWhatHasChanged(t *testing.T) {
	for _, keys := range []string{"n\n", ""} {
		for _, color := range []bool{true, false} {
			stderr := new(strings.Builder)
			p := New(&terminal.Talk{W: stderr, Color: color}, 80)
			if keys != "" {
				p.Keys = terminal.NewKeyboard(strings.NewReader(keys))
			}
			v, err := p.Approve(t.Context(), &host.Approval{
				Server: "db", Arguments: []byte("{}"), Changed: "description", Before: &mcp.Tool{Name: "drop", Description: "Drops."}, Tool: &mcp.Tool{Name: "drop", Description: "Drops it.\x1b[2J"},
			})
			if v.Answer != host.Deny || (keys == "") != errors.Is(err, host.ErrNobody) {
				t.Errorf("Approve = %+v, %v", v, err)
			}
			for _, part := range []string{"has changed since", "description", "- Drops.", "+ Drops it.␛[2J"} {
				if !strings.Contains(stderr.String(), part) {
					t.Errorf("the person is not shown %q:\n%s", part, stderr)
				}
			}
			if strings.Contains(stderr.String(), "\x1b[32m+ Drops it.") != color {
				t.Errorf("with colour %v:\n%q", color, stderr)
			}
		}
	}
}

// A question without an answer ends with its context, and the next one can be asked.
func TestPersonIsSilent(t *testing.T) {
	stderr := new(strings.Builder)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close() // first: it ends a read, which the other Close may wait for
	p := New(&terminal.Talk{W: stderr}, 0)
	p.Keys = terminal.NewKeyboard(r)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("over")
	cancel(why)
	for range 2 {
		if _, err := p.Approve(ctx, &host.Approval{Tool: &mcp.Tool{}}); !errors.Is(err, why) {
			t.Errorf("Approve = %v, want the cause of its context", err)
		}
	}
}

func TestPersonReviews(t *testing.T) {
	stderr := new(strings.Builder)
	long := strings.Repeat("and so on ", 400)
	s := &host.Sampling{Server: "shop", Model: "m", Request: &mcp.SampleRequest{
		SystemPrompt: "be short " + long + "said the system", Messages: []mcp.SampleMessage{{Role: "user", Content: []mcp.Content{
			mcp.Text(long + "to the end\nassistant\n  forged"), mcp.ImageContent{Data: []byte("x"), MIMEType: "image/png"},
			mcp.EmbeddedResource{Resource: mcp.ResourceContents{URI: "file:///a", Text: "what it says"}}, mcp.ResourceLink{Resource: mcp.Resource{URI: "file:///b"}},
		}}},
	}}
	p := New(&terminal.Talk{W: stderr}, 0)
	p.Keys = terminal.NewKeyboard(strings.NewReader("y\nn\n"))
	if r, err := p.ReviewRequest(t.Context(), s); err != nil || r != s.Request {
		t.Errorf("ReviewRequest = %v, %v", r, err)
	}
	if r, err := p.ReviewAnswer(t.Context(), s, &mcp.SampleResult{Content: []mcp.Content{mcp.Text(long + "done")}}); !errors.Is(err, mcp.ErrDeclined) {
		t.Errorf("ReviewAnswer = %v, %v", r, err)
	}
	for _, part := range []string{"be short", "said the system", "to the end\n  assistant\n    forged", "[image image/png, 1 bytes]", "[resource file:///a]", "what it says", "[link file:///b]", "and so on done"} {
		if !strings.Contains(stderr.String(), part) {
			t.Errorf("the person is not shown %q:\n%s", part, stderr)
		}
	}
	nobody := New(&terminal.Talk{W: stderr}, 0)
	nobody.Sampling = []string{"other/[*", "sh*"}
	if _, err := nobody.ReviewRequest(t.Context(), s); err != nil {
		t.Errorf("ReviewRequest of an allowed server = %v", err)
	}
	s.Server = "other/[a/b"
	if _, err := nobody.ReviewRequest(t.Context(), s); err != nil {
		t.Errorf("ReviewRequest of a server whose name fits = %v; * is any text, and nothing else is special", err)
	}
	s.Server = "other"
	if _, err := nobody.ReviewRequest(t.Context(), s); !errors.Is(err, mcp.ErrDeclined) || !strings.Contains(stderr.String(), "--allow-sampling other") {
		t.Errorf("ReviewRequest with nobody there = %v\n%s", err, stderr)
	}
}
