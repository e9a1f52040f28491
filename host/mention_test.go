package host_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/mention"
	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/mcp"
)

// prompter is a server with prompts.
func prompter() *mcp.Server {
	s := &mcp.Server{Name: "prompter", Version: "1"}
	type review struct {
		File  string `json:"file" doc:"what to review"`
		Style string `json:"style,omitempty"`
	}
	mcp.AddPrompt(s, mcp.Prompt{Name: "review", Description: "Reviews a file.", Complete: map[string]mcp.CompleteFunc{
		"style": func(_ context.Context, prefix string, others map[string]string) ([]string, error) {
			return slices.DeleteFunc([]string{"strict", "very kind", others["file"]}, func(s string) bool { return !strings.HasPrefix(s, prefix) }), nil
		},
	}}, func(_ context.Context, in review) (string, error) {
		return fmt.Sprintf("Review %s, %s.", in.File, in.Style), nil
	})
	mcp.AddPrompt(s, mcp.Prompt{Name: "play"}, func(context.Context, struct{}) ([]mcp.PromptMessage, error) {
		return []mcp.PromptMessage{{Role: "assistant", Content: mcp.Text("Who is there?")}, mcp.User("A friend."), {Role: "assistant", Content: mcp.Text("Come in!")}}, nil
	})
	mcp.AddPrompt(s, mcp.Prompt{Name: "two words"}, func(context.Context, struct{}) (string, error) { return "two", nil })
	return s
}

// userText returns the text of the last message, with media described in words.
func userText(req *model.Request) string { return shown(req.Messages[len(req.Messages)-1].Parts) }

func TestMentions(t *testing.T) {
	for _, tt := range []struct {
		said string
		want string // what the model receives
		err  string // part of the error; empty: there is none
	}{
		{said: "hello", want: "hello"},
		{said: "me@lib:x and @nobody:app:notes and @lib: and @", want: "me@lib:x and @nobody:app:notes and @lib: and @"},
		{said: "read @lib:app:notes.", want: "read @lib:app:notes.|[resource \"app:notes\" (text/plain)]\nbuy milk"},
		{said: "read (@lib:app:notes), twice: @lib:app:notes", want: "read (@lib:app:notes), twice: @lib:app:notes|[resource \"app:notes\" (text/plain)]\nbuy milk"},
		{said: `@lib:"app:day/a b/x" `, want: "@lib:\"app:day/a b/x\" |", err: "app:day/a b/x"},
		{said: "is it @lib:app:what?", want: "is it @lib:app:what?|[resource \"app:what?\" (text/plain)]\nodd"},
		{said: "@lib:app:picture", want: "@lib:app:picture|[resource \"app:picture\" (image/png)]|<image/png 18 app:picture>"},
		{said: "@lib:app:empty", want: "@lib:app:empty|[resource \"app:empty\" (text/plain) is empty]"},
		{said: "@my lib:app:notes", want: "@my lib:app:notes|[resource \"app:notes\" (text/plain)]\nbuy milk"},
		{said: "@lib:app:none", err: `resource "app:none" of server "lib"`},
		{said: "@down:x", err: `of server "down"`},
		{said: strings.Repeat("@lib:app:x@y ", 1) + manyMentions(21), err: "at most 20"},
		{said: "/usr/bin is a folder", want: "/usr/bin is a folder"},
		{said: "/p:review main.go", err: "takes file=… [style=…]"},
		{said: "/p:review file=main.go", want: "Review main.go, ."},
		{said: "  /p:review file=\"a \\\"b\" style=very\" kind\"\n", want: "Review a \"b, very kind."},
		{said: "/p:review style=x the main file", want: "Review the main file, x."},
		{said: "/p:review style=x", err: "lacks file"},
		{said: `/p:"two words"`, want: "two"},
		{said: "/p:nothing", err: `no prompt "nothing"; it has: /p:review, /p:play, /p:"two words"`},
		{said: "/down:x", err: `of server "down"`},
		{said: "", err: "the message is empty"},
		{said: "#clock/nothing", err: "no tool"},
		{said: "#now", err: "more than one server has a tool"},
		{said: "issue #12, #hashtag", want: "issue #12, #hashtag"},
	} {
		t.Run(tt.said[:min(len(tt.said), 40)], func(t *testing.T) {
			m := &talker{info: model.Info{Images: true}, answers: []answer{say("ok")}}
			down := host.Server{Name: "down", Open: func(context.Context, *mcp.Client) (mcp.Handler, error) { return nil, errors.New("gone") }}
			h := newHost(t, &host.Host{Model: m}, inMemory("lib", library()), inMemory("my lib", library()), inMemory("p", prompter()), inMemory("clock", clock()), inMemory("clock2", clock()))
			if err := h.Add(down); err != nil {
				t.Fatal(err)
			}
			c := h.NewConversation()
			_, err := c.Send(t.Context(), tt.said)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("Send = %v, want an error about %q", err, tt.err)
				}
				if m.asked() > 0 || len(c.Snapshot()) > 0 {
					t.Errorf("something was said all the same")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := userText(m.request(t, 0)); got != tt.want {
				t.Errorf("the model is given %q, want %q", got, tt.want)
			}
			if said, err := c.Undo(t.Context()); said != tt.said || err != nil {
				t.Errorf("Undo = %q, %v", said, err)
			}
		})
	}
}

func manyMentions(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "@lib:app:%d ", i)
	}
	return b.String()
}

// Only the text is searched for mentions, not the parts beside it.
func TestMoreIsNotThePersons(t *testing.T) {
	m := &talker{answers: []answer{say("ok")}}
	h := newHost(t, &host.Host{Model: m}, inMemory("lib", library()))
	if _, err := h.NewConversation().Send(t.Context(), "what is this?", model.Part{Text: "@lib:app:notes #x /lib:y"}); err != nil {
		t.Fatal(err)
	}
	if got := userText(m.request(t, 0)); got != "what is this?|@lib:app:notes #x /lib:y" {
		t.Errorf("the model is given %q", got)
	}
}

// A prompt with messages of both roles: the conversation begins and ends with the user.
func TestPromptOfBothSides(t *testing.T) {
	m := &talker{answers: []answer{say("ok")}}
	h := newHost(t, &host.Host{Model: m}, inMemory("p", prompter()))
	c := h.NewConversation()
	if _, err := c.Send(t.Context(), "/p:play", model.Part{Text: "more"}); err != nil {
		t.Fatal(err)
	}
	messages := m.request(t, 0).Messages
	paired(t, messages)
	var all []string
	for _, msg := range messages {
		all = append(all, string(msg.Role)+": "+msg.Text())
	}
	want := []string{`user: [The person has run the prompt "play" of server "p".]`, "assistant: Who is there?", "user: A friend.", "assistant: Come in!", "user: [Go on from here.]more"}
	if !slices.Equal(all, want) {
		t.Errorf("messages %q, want %q", all, want)
	}
	if got := c.Snapshot()[0].Said(); got != "/p:play" {
		t.Errorf("the person said %q", got)
	}
}

func TestInsistedTool(t *testing.T) {
	for _, tt := range []struct{ said, want string }{
		{"use #tick please", "clock_tick"}, {"#clock/tick", "clock_tick"}, {"(#clock_now)", "clock_now"}, {"#many/t149!", "many_t149"}, {"no#tick", ""},
	} {
		t.Run(tt.said, func(t *testing.T) {
			m := &talker{answers: []answer{want("clock_tick"), say("ok")}}
			h := newHost(t, &host.Host{Model: m, Allow: []string{"*"}}, inMemory("clock", clock()), inMemory("many", many(150)))
			if _, err := h.NewConversation().Send(t.Context(), tt.said); err != nil {
				t.Fatal(err)
			}
			want := model.Choice{}
			if tt.want != "" {
				want = model.Choice{Mode: "tool", Tool: tt.want}
			}
			req := m.request(t, 0)
			if req.Choice != want {
				t.Errorf("choice %+v, want %+v", req.Choice, want)
			}
			if tt.want != "" && !strings.Contains(toolsIn(req), tt.want) {
				t.Errorf("it is not among the tools: %s", toolsIn(req))
			}
			if got := m.request(t, 1).Choice; got != (model.Choice{}) {
				t.Errorf("the second step has the choice %+v", got)
			}
		})
	}
}

func texts(items []mention.Completion) string {
	var all []string
	for _, i := range items {
		all = append(all, i.Text)
	}
	return strings.Join(all, " ")
}

func TestComplete(t *testing.T) {
	synctest.Test(t, testComplete)
}

func testComplete(t *testing.T) {
	h := newHost(t, &host.Host{}, inMemory("lib", library()), inMemory("p", prompter()), inMemory("clock", clock()))
	defer settle(h)
	for _, tt := range []struct {
		text string // the cursor stands at its end, or at "|"
		from int
		want string
	}{
		{"hello", 5, ""},
		{"", 0, ""},
		{"see @", 4, "@lib:"},
		{"see @l", 4, "@lib:"},
		{"see @x", 4, ""},
		{"see @not", 4, "@lib:app:notes"},
		{"see @lib:", 4, "@lib:app:notes @lib:app:empty @lib:app:picture @lib:app:what? @lib:app:day/"},
		{"see @lib:app:n|, or not", 4, "@lib:app:notes"},
		{"see @lib:MILK", 4, ""},
		{"see @lib:my", 4, "@lib:app:notes"},
		{"see @lib:app:d", 4, "@lib:app:day/"},
		{"see @lib:app:day/mon", 4, "@lib:app:day/monday/ @lib:app:day/a%20b/"},
		{"see @lib:app:day/a%20b/", 4, "@lib:app:day/a%20b/a%20b%21"},
		{"see @lib:app:notes ", 4, ""},
		{"me@lib:", 7, ""},
		{"/", 0, "/p:"},
		{"  /p", 2, "/p: /p:play"},
		{"/p:", 0, "/p:review /p:play /p:\"two words\""},
		{"/p:re", 0, "/p:review"},
		{"/rev", 0, "/p:review"},
		{"/p:review ", 10, "file= style="},
		{"/p:review file=x s", 17, "style="},
		{"/p:review file=x style=", 17, "style=strict style=\"very kind\" style=x"},
		{"/p:review file=x style=v", 17, "style=\"very kind\""},
		{"/p:nothing x", 12, ""},
		{"use #", 4, "#clock/now #clock/tick"},
		{"use #ti", 4, "#clock/tick"},
		{"use #clock_t", 4, "#clock/tick"},
		{"use #tick now", 13, ""},
		{"@lib:app:notes #no", 15, "#clock/now"},
	} {
		text, cursor := tt.text, len(tt.text)
		if i := strings.IndexByte(text, '|'); i >= 0 {
			text, cursor = text[:i]+text[i+1:], i
		}
		got := h.Complete(t.Context(), text, cursor)
		if texts(got.Items) != tt.want || tt.want != "" && got.From != tt.from {
			t.Errorf("Complete(%q) = %d %s, want %d %s", tt.text, got.From, texts(got.Items), tt.from, tt.want)
		}
	}
	if items := h.Complete(t.Context(), "@lib:app:n", 10).Items; len(items) != 1 || items[0].About != "My notes" {
		t.Errorf("items %+v", items)
	}
	for _, cursor := range []int{-1, 100} {
		h.Complete(t.Context(), "@lib", cursor)
	}
}

// A server that does not answer delays a completion by 2 seconds; the others are in it.
func TestCompleteIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung := library()
		hung.Use(func(next mcp.Handler) mcp.Handler {
			return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
				if strings.HasSuffix(req.Method, "/list") || req.Method == "completion/complete" {
					<-ctx.Done()
					return nil, context.Cause(ctx)
				}
				return next.Handle(ctx, req)
			})
		})
		h := newHost(t, &host.Host{}, inMemory("hung", hung), inMemory("lib", library()))
		defer settle(h)
		began := time.Now()
		got := h.Complete(t.Context(), "@", 1)
		if d := time.Since(began); d > 2*time.Second || texts(got.Items) != "@lib:" {
			t.Errorf("Complete = %s after %v, want @lib: after 2s", texts(got.Items), d)
		}
	})
}
