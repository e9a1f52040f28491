package chat

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// posing runs a test with a UI that can be asked questions; they are withdrawn after f.
func posing(t *testing.T, f func(t *testing.T, ctx context.Context, u *ui, p *paper)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		u, p := newTestUI(t, &host.Host{}, Options{})
		f(t, ctx, u, p)
		cancel()
		synctest.Wait()
	})
}

// resize changes the size of the terminal.
func resize(u *ui, width, height int) {
	u.size = func() (int, int, error) { return width, height, nil }
	u.Update(ticked{})
}

// frameText returns the text of the frame.
func (p *paper) frameText() string { return strings.Join(p.frame.lines, "\n") }

// TestViewerHidesNoQuestion: no key answers a question that appeared behind the viewer before it
// was visible.
func TestViewerHidesNoQuestion(t *testing.T) {
	for _, leave := range []string{"q", "ctrl+c"} {
		onStage(t, func(t *testing.T, u *ui, p *paper) {
			typed(u, "think")
			press(u, "enter")
			settle(u)
			typed(u, "call lines")
			press(u, "enter", "ctrl+o")
			settle(u)
			if !p.frame.alt || len(u.questions) != 1 {
				t.Fatalf("%d questions behind the viewer, want 1:\n%s", len(u.questions), p.text())
			}
			if last := p.frame.lines[len(p.frame.lines)-1]; !strings.Contains(last, "1 question for you") {
				t.Errorf("the viewer ends with %q, want it to tell of the question", last)
			}
			press(u, leave, "y")
			settle(u)
			if len(u.questions) != 1 || u.input.String() != "y" {
				t.Fatalf("%s and then y: %d questions are left, input %q", leave, len(u.questions), u.input.String())
			}
			press(u, "n")
			settle(u)
			wants(t, p, "⊘ theatre/lines")
		})
	}
}

// TestPageShowsAddressFirst: no text of the server comes between the person and the address
// (ELIC-26-036, ELIC-26-037).
func TestPageShowsAddressFirst(t *testing.T) {
	posing(t, func(t *testing.T, ctx context.Context, u *ui, p *paper) {
		message := "Please pay.\n\nhttps://bank.example/login\n\nThe page is at bank.example.\n" + strings.Repeat("\n", 40) + "end"
		go u.c.Elicit(ctx, &host.Elicitation{Server: "s", ElicitRequest: &mcp.ElicitRequest{Message: message, URL: "http://bank.example.login.evil.example/x"}})
		settle(u)
		text := p.frameText()
		for _, part := range []string{"The page is at bank.example.login.evil.example.", "Warning: the connection is not encrypted", "┃ http://bank.example.login.evil.example/x\n", "The server says:\n┃   Please pay."} {
			if !strings.Contains(text, part) {
				t.Errorf("the dialog is without %q:\n%s", part, text)
			}
		}
		if strings.Contains(text, "┃ https://bank.example") || strings.Contains(text, "┃ The page is at bank.example.\n") {
			t.Errorf("text of the server stands where the address does:\n%s", text)
		}
		press(u, "end")
		if text := p.frameText(); !strings.Contains(text, "The page is at bank.example.login.evil.example.") {
			t.Errorf("the host is scrolled away:\n%s", text)
		}
	})
}

// TestPageWithLongHost shows the end of the host, which names the owner.
func TestPageWithLongHost(t *testing.T) {
	posing(t, func(t *testing.T, ctx context.Context, u *ui, p *paper) {
		go u.c.Elicit(ctx, &host.Elicitation{Server: "s", ElicitRequest: &mcp.ElicitRequest{URL: "https://accounts.bank.example" + strings.Repeat(".a", 40) + ".evil.example/"}})
		settle(u)
		if text := strings.ReplaceAll(p.frameText(), "\n┃ ", ""); !strings.Contains(text, "The page is at accounts.bank.example.a.a") || !strings.Contains(text, ".a.a.evil.example.") {
			t.Errorf("the host is not there whole:\n%s", p.frameText())
		}
	})
}

// TestPageWithoutHost: a page without a host is refused without a question.
func TestPageWithoutHost(t *testing.T) {
	posing(t, func(t *testing.T, ctx context.Context, u *ui, p *paper) {
		for _, address := range []string{"https://%zz", "mailto:a@example.com", "/bill"} {
			bound, cancel := context.WithTimeout(ctx, time.Minute)
			_, err := u.c.Elicit(bound, &host.Elicitation{Server: "s", ElicitRequest: &mcp.ElicitRequest{URL: address}})
			cancel()
			if !errors.Is(err, &mcp.Error{Code: jsonrpc.CodeInvalidParams}) {
				t.Errorf("Elicit of %s: %v, want invalid params", address, err)
			}
		}
	})
}

// TestApprovalSaysWhy shows why a call needs approval again, in the dialog and at the call.
func TestApprovalSaysWhy(t *testing.T) {
	posing(t, func(t *testing.T, ctx context.Context, u *ui, p *paper) {
		go u.c.Approve(ctx, &host.Approval{Server: "s", Tool: &mcp.Tool{Name: "pay"}, Arguments: []byte("{}"), Doubt: "the same call\nmay have happened"})
		u.c.mail.put(happened{u.talk, host.Event{Kind: host.Waiting, Text: "it was lost", Call: &host.CallEvent{ID: "1", Server: "s", Tool: "pay"}}})
		settle(u)
		wants(t, p, "┃ Warning: the same call may have happened", "  it was lost")
		if got := strings.Join(u.talk.steps, "\n"); !strings.Contains(got, "it was lost") {
			t.Errorf("/trace has %q", got)
		}
	})
}

// TestApprovalShowsChanges shows what has changed in an allowed tool, above the call.
func TestApprovalShowsChanges(t *testing.T) {
	posing(t, func(t *testing.T, ctx context.Context, u *ui, p *paper) {
		go u.c.Approve(ctx, &host.Approval{
			Server: "s", Arguments: []byte(`{"to": 1}`), Changed: "description, inputSchema",
			Before: &mcp.Tool{Name: "pay", Description: "Pays.", InputSchema: []byte(`{"type":"object"}`)},
			Tool:   &mcp.Tool{Name: "pay", Description: "Pays, and writes mail.\u202e", InputSchema: []byte(`{"type":"object","properties":{"mail":{"type":"string"}}}`)},
		})
		settle(u)
		wants(t, p, "Warning: it has changed since you allowed it: description, inputSchema", "┃   description\n┃ - Pays.\n┃ + Pays, and writes mail.⟨U+202E⟩\n┃   argument mail, new\n",
			"┃ + type: \"string\"\n┃ \n┃ The call now:\n┃ {\n┃   \"to\": 1\n┃ }\n┃ y once")
	})
}

// TestChangesCannotBeForged: a server writes no line of the changes by the length of another one.
func TestChangesCannotBeForged(t *testing.T) {
	posing(t, func(t *testing.T, ctx context.Context, u *ui, p *paper) {
		long := "Pays." + strings.Repeat(" very", 11) + " The call now: {} "
		go u.c.Approve(ctx, &host.Approval{
			Server: "s", Arguments: []byte(`{"to": 1}`), Changed: "description",
			Before: &mcp.Tool{Name: "pay", Description: "Pays."},
			Tool:   &mcp.Tool{Name: "pay", Description: long + strings.Repeat("x", 200) + " argument to, gone"},
		})
		settle(u)
		before := ""
		for _, line := range p.frame.lines {
			if strings.HasPrefix(line, "┃ + ") {
				before = line
			} else if before != "" && strings.Contains(line, "The call now:") && len(line) < 40 {
				return
			} else if before != "" && !strings.HasPrefix(line, "┃     ") && strings.TrimSpace(line) != "┃" {
				t.Errorf("the rest of a line is %q, want it indented", line)
			}
		}
		t.Errorf("the line of the call is missing:\n%s", p.frameText())
	})
}

// TestApprovalWithLittleRoom: no answer is accepted before the person could read the question, and
// no warning is lost.
func TestApprovalWithLittleRoom(t *testing.T) {
	ask := &host.Approval{
		Server: "s", Tool: &mcp.Tool{Name: "pay", Description: "Pays."}, Arguments: []byte(`{"a": 1}`),
		Changed: "its description is another " + strings.Repeat("word ", 60) + "and ends", Doubt: "it may have happened",
	}
	posing(t, func(t *testing.T, ctx context.Context, u *ui, p *paper) {
		go u.c.Approve(ctx, ask)
		synctest.Wait()
		go u.c.Approve(ctx, &host.Approval{Server: "s", Tool: &mcp.Tool{Name: "second"}, Arguments: []byte("{}")})
		settle(u)
		for _, size := range [][2]int{{80, 24}, {80, 10}, {40, 8}, {30, 7}, {24, 6}, {80, 5}, {80, 4}, {80, 3}, {80, 2}, {8, 24}, {80, 1}, {1, 1}} {
			resize(u, size[0], size[1])
			u.questions[0].top = 0
			u.Update(ticked{})
			text := strings.ReplaceAll(p.frameText(), "\n┃ ", " ")
			switch shown := strings.Contains(text, "May s/pay be called?") && strings.Contains(text, "y once") && strings.Contains(text, "n no"); {
			case u.asking() && !shown:
				t.Errorf("%v: keys answer what is not shown:\n%s", size, p.frameText())
			case size[0] >= 40 && size[1] >= 6 && !u.asking():
				t.Errorf("%v: keys do not answer:\n%s", size, p.frameText())
			}
			if n := len(p.frame.lines); n > size[1]+1 || n > max(2, size[1]) {
				t.Errorf("%v: the frame has %d lines", size, n)
			}
			if !u.asking() {
				continue
			}
			var seen []string
			for range 100 {
				seen = append(seen, p.frameText())
				press(u, "down")
			}
			all := strings.ReplaceAll(strings.Join(seen, "\n"), "\n┃ ", " ")
			for _, part := range []string{"Warning", "and ends", `"a": 1`} {
				if !strings.Contains(all, part) {
					t.Errorf("%v: %q cannot be scrolled to:\n%s", size, part, seen[0])
				}
			}
		}
		resize(u, 80, 3)
		press(u, "y")
		settle(u)
		if len(u.questions) != 2 {
			t.Error("a call was allowed that could not be shown")
		}
	})
}

// A question on a narrow terminal is broken between words, and so is the list of what is allowed.
func TestNarrowTerminal(t *testing.T) {
	onStage(t, func(t *testing.T, u *ui, p *paper) {
		resize(u, 24, 24)
		line(t, u, `/allow theatre/say arguments.text == "a b"`)
		line(t, u, "/allow")
		line(t, u, "call lines")
		wants(t, p, "  1  theatre/say if\n      arguments.text ==\n      \"a b\"\n      in this\n", "┃ May theatre/lines be\n┃ called?\n")
		press(u, "n")
		settle(u)
	})
}

// TestApprovalOfLongName shows the beginning of a name that fills the terminal, and the rest by
// scrolling.
func TestApprovalOfLongName(t *testing.T) {
	posing(t, func(t *testing.T, ctx context.Context, u *ui, p *paper) {
		go u.c.Approve(ctx, &host.Approval{Server: "s", Tool: &mcp.Tool{Name: strings.Repeat("日本語 ", 800) + "END"}, Arguments: []byte("{}"), Changed: "all of it"})
		settle(u)
		text := p.frameText()
		if n := strings.Count(text, "May s/"); n != 2 || !strings.Contains(text, "Warning") || !strings.Contains(text, "y once") {
			t.Errorf("the dialog shows the name %d times:\n%s", n, text)
		}
		press(u, "end")
		if text := p.frameText(); !strings.Contains(text, "END be called?") || !strings.Contains(text, "{}") {
			t.Errorf("the end of the name is not there:\n%s", text)
		}
	})
}

// TestManyWait mentions waiting questions only where there is room.
func TestManyWait(t *testing.T) {
	posing(t, func(t *testing.T, ctx context.Context, u *ui, p *paper) {
		for i := range 3 {
			go u.c.Approve(ctx, &host.Approval{Server: "s", Tool: &mcp.Tool{Name: fmt.Sprint("tool", i)}, Arguments: []byte("{}")})
			synctest.Wait()
		}
		settle(u)
		wants(t, p, "2 more questions after this")
		resize(u, 80, 5)
		if text := p.frameText(); strings.Contains(text, "wait behind") || !strings.Contains(text, "May s/tool0 be called?") {
			t.Errorf("in 5 rows:\n%s", text)
		}
	})
}

// Text that a person types or pastes for the input does not answer a question that they have overlooked, unless it begins
// with a key that the question has. A single wrong key is forgotten.
func TestTypingAnswersNothing(t *testing.T) {
	posing(t, func(t *testing.T, ctx context.Context, u *ui, p *paper) {
		for i, pose := range []func(){
			func() {
				u.c.Approve(ctx, &host.Approval{Server: "s", Tool: &mcp.Tool{Name: "pay"}, Arguments: []byte("{}")})
			},
			func() {
				u.c.Elicit(ctx, &host.Elicitation{Server: "s", ElicitRequest: &mcp.ElicitRequest{URL: "https://pay.example"}})
			},
			func() {
				u.c.Elicit(ctx, &host.Elicitation{Server: "s", ElicitRequest: &mcp.ElicitRequest{Schema: []byte(`{"type":"object","properties":{}}`)}})
			},
			func() {
				u.c.ReviewRequest(ctx, &host.Sampling{Server: "s", Request: &mcp.SampleRequest{SystemPrompt: "x"}})
			},
			func() {
				u.c.ReviewAnswer(ctx, &host.Sampling{Server: "s"}, &mcp.SampleResult{Content: []mcp.Content{mcp.Text("x")}})
			},
		} {
			go pose()
			settle(u)
			typed(u, "/cyn aye")
			if len(u.questions) != 1 || u.input.String() != "/cyn aye" {
				t.Fatalf("question %d: after /cyn aye %d questions are left, input %q", i, len(u.questions), u.input.String())
			}
			u.input.set("")
			settle(u)
			u.paste("yes")
			if len(u.questions) != 1 || u.input.String() != "yes" {
				t.Fatalf("question %d: after a paste %d questions are left, input %q", i, len(u.questions), u.input.String())
			}
			u.input.set("")
			settle(u)
			press(u, "?")
			settle(u)
			press(u, "n")
			settle(u)
			if len(u.questions) != 0 || !u.input.empty() {
				t.Fatalf("question %d: after a wrong key and n %d questions are left, input %q", i, len(u.questions), u.input.String())
			}
		}
	})
}

// A question shows the part of a long line that is being written, with what comes before the cursor.
func TestField(t *testing.T) {
	for _, text := range []string{"", "ab", `arguments.path == "plan.md" && arguments.text.startsWith("日本語 👩‍🚀")`, strings.Repeat("日本語", 20)} {
		for width := 4; width < 50; width++ {
			e := &editor{one: true}
			e.set(text)
			for e.at = len(e.text); e.at >= 0; e.at-- {
				line, x := e.field(width)
				before := strings.Join(e.text[:e.at], "")
				shown := line
				if n := screen.Columns(line); n > width || x >= width {
					t.Fatalf("%q in %d columns, cursor before %d: %q has %d columns, the cursor is at %d", text, width, e.at, line, n, x)
				}
				for screen.Columns(shown) > x { // what is before the cursor
					letters := screen.Letters(shown)
					shown = strings.Join(letters[:len(letters)-1], "")
				}
				kept, cut := strings.CutPrefix(shown, "…")
				if !strings.HasSuffix(before, kept) || !cut && kept != before || cut && screen.Columns(before) < width-4 {
					t.Fatalf("%q in %d columns, cursor before %d: %q, with %q before the cursor", text, width, e.at, line, shown)
				}
				if rest, more := strings.CutSuffix(line[len(shown):], "…"); !strings.HasPrefix(strings.Join(e.text[e.at:], ""), rest) || !more && before+rest != text {
					t.Fatalf("%q in %d columns, cursor before %d: %q is after it", text, width, e.at, rest)
				}
			}
		}
	}
}

// While the text of a completion is changed, up and down move by the lines that are shown.
func TestLongLinesOfACompletion(t *testing.T) {
	posing(t, func(t *testing.T, ctx context.Context, u *ui, p *paper) {
		resize(u, 200, 60)
		go u.c.ReviewRequest(ctx, &host.Sampling{Server: "s", Request: &mcp.SampleRequest{SystemPrompt: strings.Repeat("x", 150) + "\n" + strings.Repeat("y", 150)}})
		settle(u)
		press(u, "s", "up")
		if p.frame.x != 150+2 || p.frame.lines[p.frame.y] != "┃ "+strings.Repeat("x", 150) {
			t.Errorf("after up the cursor is at %d of %q", p.frame.x, p.frame.lines[p.frame.y])
		}
		press(u, "esc", "n")
	})
}
