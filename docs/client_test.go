package docs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/schema"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "serve" { // a test started this program as a server
		newLibrary().ServeStdio(context.Background())
		return
	}
	m.Run()
}

func dial(ctx context.Context, url string) error {
	client := &mcp.Client{Name: "desk", Version: "1.0.0"}
	s, err := client.Dial(ctx, url)
	if err != nil {
		return err
	}
	defer s.Close()
	res, err := s.CallTool(ctx, "borrow", map[string]any{"book": "Emma", "days": 7})
	if err != nil {
		return err // the call failed: the connection, the protocol, a time limit
	}
	if res.IsError {
		return errors.New(res.Text()) // the tool failed
	}
	fmt.Println(res.Text())
	return nil
}

func start(ctx context.Context, client *mcp.Client, program string) (*mcp.Session, error) {
	cmd := exec.Command(program, "serve")
	cmd.Stderr = os.Stderr
	return client.Start(ctx, cmd)
}

func list(ctx context.Context, w io.Writer, s *mcp.Session) error {
	for tool, err := range s.Tools(ctx) {
		if err != nil {
			return err
		}
		fmt.Fprintln(w, tool.Name, tool.Description)
	}
	return nil
}

func use(ctx context.Context, s *mcp.Session, call Loan) (time.Time, error) {
	receipt, err := mcp.CallAs[Receipt](ctx, s, "borrow", call)
	if failed, ok := errors.AsType[*mcp.ToolError](err); ok {
		return time.Time{}, fmt.Errorf("not lent: %s", failed.Result.Text())
	}
	return receipt.Due, err
}

func read(ctx context.Context, w io.Writer, s *mcp.Session) error {
	hours, err := s.ReadResource(ctx, "library://hours")
	if err != nil {
		return err
	}
	fmt.Fprintln(w, hours.Contents[0].Text)

	prompt, err := s.GetPrompt(ctx, "recommend", map[string]string{"genre": "crime"})
	if err != nil {
		return err
	}
	for _, m := range prompt.Messages {
		if text, ok := m.Content.(mcp.TextContent); ok {
			fmt.Fprintln(w, m.Role+":", text.Text)
		}
	}

	of := mcp.Feature{Kind: mcp.KindResourceTemplate, Name: "library://books/{isbn}"}
	isbns, err := s.Complete(ctx, of, "isbn", "97801414395", nil)
	if err != nil {
		return err
	}
	fmt.Fprintln(w, isbns.Values)
	return nil
}

// ask answers questions of servers from the lines of in.
func ask(in func() string, out io.Writer) *mcp.Client {
	return &mcp.Client{Name: "desk", Version: "1.0.0",
		OnElicit: func(ctx context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			fmt.Fprintln(out, r.Message)
			form, err := schema.FormOf(r.Schema)
			if err != nil {
				return nil, err
			}
			answers := map[string]any{}
			for _, f := range form.Fields {
				fmt.Fprintf(out, "%s: ", f.Name)
				text := in()
				if text == "" {
					continue // the session fills in the default
				}
				value, err := f.Parse(text)
				if err != nil {
					return nil, mcp.ErrDeclined // or show err and ask again
				}
				answers[f.Name] = value
			}
			return &mcp.ElicitResult{Action: "accept", Content: answers}, nil
		},
	}
}

func followIndex(ctx context.Context, w io.Writer, s *mcp.Session) error {
	res, err := s.CallTool(ctx, "index", nil,
		mcp.OnProgress(func(done, total float64, message string) { fmt.Fprintln(w, done, "of", total, message) }),
		mcp.IdleTimeout(5*time.Minute))
	if err != nil {
		return err
	}
	fmt.Fprintln(w, res.Text())
	return nil
}

func watchHours(ctx context.Context, s *mcp.Session, changed func(uri string)) error {
	for e, err := range s.Watch(ctx, "library://hours") {
		if err != nil {
			return err
		}
		switch e.Method {
		case "notifications/subscriptions/acknowledged": // from here on no change is missed
		case "notifications/resources/updated":
			changed(e.URI)
		case "notifications/tools/list_changed":
			changed("tools")
		}
	}
	return nil // ctx has ended
}

func TestClientPage(t *testing.T) {
	var answers []string
	var asked bytes.Buffer
	client := func() *mcp.Client {
		answers = []string{"2026-12-01", ""}
		asked.Reset()
		return ask(func() (a string) { a, answers = answers[0], answers[1:]; return a }, &asked)
	}
	mcptest.Every(t, newLibrary, client, func(t *testing.T, s *mcp.Session) {
		var out bytes.Buffer
		if err := errors.Join(list(t.Context(), &out, s), read(t.Context(), &out, s), followIndex(t.Context(), &out, s)); err != nil {
			t.Error(err)
		}
		for _, want := range []string{"borrow Lend a book", "Monday", "user: Recommend", "[9780141439587]", "3 of 3", "done"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%q is not in %s", want, &out)
			}
		}
		if due, err := use(t.Context(), s, Loan{Book: "Emma", Days: 2}); err != nil || time.Until(due) < 0 {
			t.Errorf("borrow = %v, %v", due, err)
		}
		if _, err := use(t.Context(), s, Loan{Book: "Nemo", Days: 2}); err == nil {
			t.Error("borrow of an unknown book succeeded")
		}
		if s.Revision() >= mcp.V2025_06_18 {
			got, err := mcp.CallAs[string](t.Context(), s, "reserve", Loan{Book: "Emma", Days: 1})
			if err != nil || got != "Emma, number 7, 2026-12-01, north" || asked.String() != "When will you fetch Emma?\nday: branch: " {
				t.Errorf("reserve = %q, %v, after %q", got, err, &asked)
			}
		}
	})
}

// Dial, Start and Open lead to the same server.
func TestWaysToOpen(t *testing.T) {
	web := httptest.NewServer(newLibrary())
	defer web.Close()
	if err := dial(t.Context(), web.URL); err != nil {
		t.Errorf("Dial: %v", err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child, err := start(t.Context(), &mcp.Client{}, self)
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	defer child.Close()
	local, err := new(mcp.Client).Open(t.Context(), newLibrary())
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	defer local.Close()
	for _, s := range []*mcp.Session{child, local} {
		if due, err := use(t.Context(), s, Loan{Book: "Emma", Days: 1}); err != nil || due.IsZero() {
			t.Errorf("borrow = %v, %v", due, err)
		}
	}
}

func TestWatchPage(t *testing.T) {
	for _, rev := range mcp.Revisions() {
		srv := newLibrary()
		s := mcptest.Connect(t, srv, &mcp.Client{}, rev)
		ctx, stop := context.WithCancel(t.Context())
		changes := make(chan string, 10)
		ended := make(chan error, 1)
		go func() { ended <- watchHours(ctx, s, func(what string) { changes <- what }) }()
		var got []string
		for len(got) < 2 { // the watch may begin late, so the day is closed until it is seen
			closeForToday(srv)
			mcp.AddTool(srv, mcp.Tool{Name: "borrow"}, borrow)
			select {
			case what := <-changes:
				if !slices.Contains(got, what) {
					got = append(got, what)
				}
			case <-time.After(5 * time.Millisecond):
			}
		}
		stop()
		if err := <-ended; err != nil {
			t.Errorf("%s: %v", rev, err)
		}
	}
}

// Omitzero leaves out a zero, and omitempty sends it.
func TestZeroArguments(t *testing.T) {
	srv := &mcp.Server{Name: "echo"}
	if err := srv.HandleTool(mcp.Tool{Name: "echo"}, func(_ context.Context, args json.RawMessage) (*mcp.ToolResult, error) {
		return &mcp.ToolResult{Content: []mcp.Content{mcp.Text(string(args))}}, nil
	}); err != nil {
		t.Fatal(err)
	}
	s := mcptest.Connect(t, srv, &mcp.Client{}, mcp.V2026_07_28)
	got, err := mcp.CallAs[string](t.Context(), s, "echo", struct {
		A int           `json:"a,omitzero"`
		B time.Duration `json:"b,omitzero"`
		C int           `json:"c,omitempty"`
		D string        `json:"d,omitempty"`
		E []int         `json:"e,omitempty"`
	}{})
	if err != nil || got != `{"c":0}` {
		t.Errorf("the arguments are %s, %v", got, err)
	}
}
