package steer

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

var yes = json.RawMessage(`{"action":"accept","content":{"sure":true}}`)

// asking opens a session of 2025-11-25 with a server that asks, whose client answers with answer, and returns a call of it.
func asking(t *testing.T, q *Questions, answer func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error)) func() (string, error) {
	t.Helper()
	srv := &mcp.Server{Name: "s", Version: "1", OnSession: q.Watch}
	mcp.AddTool(srv, mcp.Tool{Name: "db_drop"}, func(ctx context.Context, _ struct{}) (string, error) {
		in, err := mcp.Elicit[struct {
			Sure bool `json:"sure"`
		}](ctx, "Drop it?")
		if err != nil {
			return "", err
		}
		return map[bool]string{true: "dropped", false: "kept"}[in.Sure], nil
	})
	s := mcptest.Connect(t, srv, &mcp.Client{Name: "host", Version: "1", OnElicit: answer}, "2025-11-25")
	return func() (string, error) {
		res, err := s.CallTool(t.Context(), "db_drop", nil)
		if err != nil {
			return "", err
		}
		return res.Text(), nil
	}
}

// A person beside the client answers its question, which is over for the client then.
func TestAnswerBesideTheClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var by string
		q := &Questions{Owner: func(name string) (string, string) { server, own, _ := strings.Cut(name, "_"); return server, own }, Answered: func(who, action string, one *Question) { by = who + " " + action + " " + one.About }}
		canceled := make(chan error, 1)
		call := asking(t, q, func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			<-ctx.Done()
			canceled <- context.Cause(ctx)
			return nil, ctx.Err()
		})
		done := make(chan string, 1)
		go func() {
			text, err := call()
			done <- text + errorText(err)
		}()
		synctest.Wait()
		list := q.List("", true)
		if len(list) != 1 || list[0].About != "db_drop" || list[0].Server != "db" || list[0].Client != "host" || !strings.Contains(string(list[0].Params), "Drop it?") {
			t.Fatalf("open questions: %+v", list)
		}
		if got := q.List("as#bob", false); len(got) != 0 {
			t.Errorf("bob sees %+v", got)
		}
		id := list[0].ID
		for _, tt := range []struct{ id, by, answer, want string }{
			{id, "as#bob", `{"action":"accept"}`, "not open any more"},
			{"99", "as#ada", `{"action":"accept"}`, "not open any more"},
			{"x", "as#ada", `{"action":"accept"}`, "not open any more"},
		} {
			if err := q.Answer(tt.id, tt.by, false, json.RawMessage(tt.answer)); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s by %s: %v", tt.id, tt.by, err)
			}
		}
		for answer, want := range map[string]string{`{"action":"maybe"}`: "not accept, decline or cancel", `[]`: "not an object"} {
			if err := q.Answer(id, "as#ada", true, json.RawMessage(answer)); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", answer, err)
			}
		}
		if err := q.Answer(id, "as#ada", true, yes); err != nil {
			t.Fatal(err)
		}
		if got := <-done; got != "dropped" || by != "as#ada accept db_drop" {
			t.Errorf("the call returns %q; answered: %s", got, by)
		}
		if err := <-canceled; err == nil {
			t.Error("the client is still asked")
		}
		if err := q.Answer(id, "as#ada", true, yes); !errors.Is(err, ErrGone) {
			t.Errorf("a second answer: %v", err)
		}
	})
}

// The client answers first, and the question is not open any more.
func TestClientAnswersFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := new(Questions)
		call := asking(t, q, func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "decline"}, nil
		})
		if text, err := call(); err == nil && text == "dropped" {
			t.Errorf("the call returns %q, %v", text, err)
		}
		if list := q.List("", true); len(list) != 0 {
			t.Errorf("still open: %+v", list)
		}
	})
}

// Somebody else than the caller cannot accept to have visited a page, and roots are left to the client.
func TestOnlyTheCaller(t *testing.T) {
	one := &Question{Method: "elicitation/create", Params: json.RawMessage(`{"mode":"url","url":"https://a.example"}`), Principal: "as#bob"}
	if _, err := checked(one, "as#ada", json.RawMessage(`{"action":"accept"}`)); err == nil || !strings.Contains(err.Error(), "only the caller as#bob") {
		t.Errorf("a page of bob: %v", err)
	}
	for by, answer := range map[string]string{"as#bob": `{"action":"accept"}`, "as#ada": `{"action":"decline"}`} {
		if _, err := checked(one, by, json.RawMessage(answer)); err != nil {
			t.Errorf("%s %s: %v", by, answer, err)
		}
	}
	sample := &Question{Method: "sampling/createMessage"}
	if _, err := checked(sample, "as#ada", json.RawMessage(`{}`)); err == nil {
		t.Error("a sampling answer without content")
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return " " + err.Error()
}
