package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/tmux"
	"github.com/patchbay-dev/patchbay/host/modeltest"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/servers/everything"
)

// init makes the test binary the server "office" of TestDay, with the file of its ledger as its argument.
func init() {
	if os.Getenv(testRun) == "office" {
		office(os.Args[1]).ServeStdio(context.Background())
		os.Exit(0)
	}
}

// office is a server whose tools cannot be repeated without harm: each writes a line to the ledger first.
func office(ledger string) *mcp.Server {
	s := &mcp.Server{Name: "office", Version: "1", Revisions: []mcp.Revision{mcp.V2025_06_18}}
	write := func(line string) error {
		f, err := os.OpenFile(ledger, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
		if err != nil {
			return err
		}
		_, err = f.WriteString(line + "\n") // one write is one line
		return errors.Join(err, f.Close())
	}
	type note struct {
		Text string `json:"text"`
	}
	mcp.AddTool(s, mcp.Tool{Name: "note", Description: "Writes a note."}, func(_ context.Context, in note) (string, error) {
		return "noted " + in.Text, write("note " + in.Text)
	})
	mcp.AddTool(s, mcp.Tool{Name: "hold", Description: "Holds the line until somebody hangs up."}, func(ctx context.Context, in note) (string, error) {
		if err := write("hold " + in.Text); err != nil {
			return "", err
		}
		<-ctx.Done()
		return "", context.Cause(ctx)
	})
	type bill struct {
		To  string `json:"to" doc:"who gets it"`
		Sum int    `json:"sum" max:"100"`
	}
	mcp.AddTool(s, mcp.Tool{Name: "pay", Description: "Pays a bill.\nAt most 100."}, func(_ context.Context, in bill) (string, error) {
		return "paid " + in.To, write("pay " + in.To)
	})
	type anyBill struct {
		To   string `json:"to" doc:"who gets it"`
		Sum  int    `json:"sum" max:"100000"`
		From string `json:"from,omitempty" doc:"another account"`
	}
	mcp.AddTool(s, mcp.Tool{Name: "raise", Description: "Raises the limit of pay."}, func(context.Context, struct{}) (string, error) {
		mcp.AddTool(s, mcp.Tool{Name: "pay", Description: "Pays a bill.\nAny sum, from any account."}, func(_ context.Context, in anyBill) (string, error) {
			return "paid " + in.To, write("pay " + in.To)
		})
		return "raised", nil
	})
	return s
}

// day is a person's day with chat, at one size of the terminal.
type day struct {
	t       *testing.T
	x       *tmux.Terminal
	columns int
	rows    int
	dir     string
	model   *modeltest.Server
	name    string // of the model

	requests int      // that the steps so far were to make
	spent    float64  // what they cost, without answers that broke off
	broken   int      // answers that broke off, whose tokens the provider did not count
	said     []string // by the person and the model
	percent  string   // how full the window is, a regular expression
	mode     string   // of the last line; empty: the default
	settings []string // likewise
}

// step is what the person does: they say something, answer what they are asked, and read the answer.
type step struct {
	short bool // it is part of the short form

	say    string // a message; empty: the step has no turn
	paste  bool   // it is pasted, and what becomes of it is in the input before it is sent
	gets   string // what the model gets of it, a regular expression; empty: the end is the message
	call   string // a tool that the model calls, and its arguments; empty: none
	result string // what the model gets of the call, a regular expression
	aside  string // what the model answers to a server meanwhile; empty: nothing
	answer string // the last line above the input

	fault *modeltest.Fault // of the model, before it answers; it answers nothing then if that hangs
	cut   bool             // the turn ends with the call
	ends  string           // what is above the input at the end; empty: the answer, or that the turn was cancelled

	do   func(d *day) // what the person does during the turn, or all that the step is
	then func(d *day) // what is checked after it
}

const (
	dayWindow  = 32_000
	dayInput   = 9_000 // tokens of the first request, and 40 more with each
	dayOutput  = 30
	daySummary = "SUMMARY: the reports were read, and milk is missing."
)

// turns returns what the model server is to expect of a step, and to answer.
func (s *step) turns() (list []modeltest.Turn) {
	if s.say == "" {
		return nil
	}
	first := modeltest.Turn{When: modeltest.When{User: s.gets}, Answer: []modeltest.Piece{{Text: s.answer}}}
	if s.gets == "" {
		first.When.User = `(^|\n)` + regexp.QuoteMeta(s.say) + `$`
	}
	if s.fault != nil {
		broken := first
		broken.Fault = s.fault
		if s.fault.Status != 0 {
			broken.Answer = nil
		}
		if list = append(list, broken); s.fault.Hang {
			return list
		}
	}
	tool, args, calls := strings.Cut(s.call, " ")
	if calls {
		first.Answer = []modeltest.Piece{{Call: &modeltest.Call{Name: tool, Arguments: args}}}
	}
	list = append(list, first)
	if s.aside != "" {
		list = append(list, modeltest.Turn{Answer: []modeltest.Piece{{Text: s.aside}}})
	}
	if calls && !s.cut {
		first.When.Results = map[string]string{tool: s.result} // a request for a summary has the results, too, and another text
		list = append(list, modeltest.Turn{When: first.When, Answer: []modeltest.Piece{{Text: s.answer}}})
	}
	return list
}

// newDay starts the servers, the model, which speaks an API, and the program.
func newDay(t *testing.T, columns, rows int, api string, steps []step) *day {
	t.Helper()
	d := &day{t: t, columns: columns, rows: rows, name: api + "/scripted", dir: alone(t)}
	script := &modeltest.Script{Rules: []modeltest.Turn{{
		When: modeltest.When{User: "Write a summary of this conversation"}, Answer: []modeltest.Piece{{Text: daySummary}}, Usage: modeltest.Usage{Input: 20_000, Output: 50},
	}}}
	for _, s := range steps {
		for _, turn := range s.turns() {
			if turn.Fault == nil {
				turn.Usage = modeltest.Usage{Input: int64(dayInput + 40*len(script.Turns)), Output: dayOutput}
			}
			script.Turns = append(script.Turns, turn)
		}
	}
	var url string
	d.model, url = modeltest.Start(t, script)
	d.model.Require("key-of-the-test")
	t.Setenv("PATCHBAY_TEST_KEY", "key-of-the-test")

	for name, text := range map[string]string{
		"work/todo.txt": "buy milk\npay the tax\n", "work/tomorrow.txt": "swim\n", "src/a.go": "package a\n", "src/b.go": "package a\n", "my notes.txt": "the notes\n",
		"work/march.txt": strings.Repeat("March was a month like others. ", 900), "work/april.txt": strings.Repeat("April was a month with rain. ", 900),
		"work/may.txt": strings.Repeat("May was a month with sun. ", 900),
	} {
		file := filepath.Join(d.dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	web := everything.New()
	web.Revisions = []mcp.Revision{mcp.V2025_11_25}
	some := map[string]any{"enabled": []string{"echo", "add", "test_elicitation", "test_elicitation_sep1034_defaults", "test_elicitation_sep1330_enums", "visit_page", "test_sampling"}}
	config, err := json.MarshalIndent(map[string]any{
		"mcpServers": map[string]any{
			"files":  again(t, "serve", "files", filepath.Join(d.dir, "work")),
			"web":    map[string]any{"url": weekWeb(t, web), "patchbay": map[string]any{"tools": some}},
			"office": map[string]any{"command": "env", "args": []string{testRun + "=office", self, d.ledgerFile()}},
		},
		"patchbay": map[string]any{
			"servers": map[string]any{"db": map[string]any{"builtin": "sqlite"}, "shop": map[string]any{"builtin": "shop"}},
			"models": map[string]any{"mine": map[string]any{
				"provider": api, "name": "scripted", "baseUrl": url + "/v1", "key": "${env:PATCHBAY_TEST_KEY}", "window": dayWindow, "price": map[string]any{"input": 1, "output": 2},
			}},
			"model": "mine",
		},
	}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("day.json", config, 0o600); err != nil {
		t.Fatal(err)
	}
	d.start()
	return d
}

// start starts the program.
func (d *day) start(more ...string) {
	d.t.Helper()
	self, err := os.Executable()
	if err != nil {
		d.t.Fatal(err)
	}
	d.x = tmux.Start(d.t, d.columns, d.rows, []string{testRun + "=patchbay", "NO_COLOR="}, append([]string{self, "chat", "--config", "day.json"}, more...)...)
}

func (d *day) ledgerFile() string { return filepath.Join(d.dir, "ledger") }

// ledger returns how many times the office did something.
func (d *day) ledger(line string) (n int) {
	d.t.Helper()
	text, err := os.ReadFile(d.ledgerFile())
	if err != nil && !os.IsNotExist(err) {
		d.t.Fatal(err)
	}
	for _, l := range strings.Split(string(text), "\n") {
		if l == line {
			n++
		}
	}
	return n
}

// last returns the last request that the model got, as text.
func (d *day) last() string {
	all := d.model.Requests()
	return string(all[len(all)-1].Body)
}

// play plays a step, and checks what is on the screen at its end.
func (d *day) play(s step) {
	d.t.Helper()
	switch {
	case s.paste:
		d.x.Paste(strings.TrimSuffix(strings.TrimPrefix(s.say, `@"`), `"`))
		d.shows("❯ " + s.say)
		d.x.Press("Enter")
	case s.say != "":
		d.x.Type(s.say)
		d.x.Press("Enter")
	}
	if s.do != nil {
		s.do(d)
	}
	for _, turn := range s.turns() {
		if turn.Fault != nil {
			d.requests++
			d.broken++
			continue
		}
		in, out := float64(dayInput+40*d.requests), float64(dayOutput)
		d.spent += (in + 2*out) / 1e6
		d.percent = fmt.Sprintf("%d%%", int(in+out)*100/dayWindow)
		d.requests++
	}
	if s.cut || s.fault != nil && s.fault.Hang {
		d.percent, s.ends = `\d+%`, cmp.Or(s.ends, "• cancelled")
	}
	if s.say != "" {
		if d.said = append(d.said, s.say); s.ends == "" || s.ends == "• cancelled" { // else the answer was not complete when the program was killed
			d.said = append(d.said, s.answer)
		}
		d.idle(loose(cmp.Or(s.ends, s.answer)) + `\n\n`)
	}
	if s.then != nil {
		s.then(d)
	}
}

// spins matches the sign of work in progress.
const spins = `[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]`

// idle waits until the person can type, with what is before matching what is above the input. The last line is true, nothing
// is below it, and of dialogs and of work in progress nothing is left.
func (d *day) idle(before string) {
	d.t.Helper()
	const empty = `❯ Type a message, or /help\n`
	d.x.Wait(`(?s)` + before + empty)
	summaries := 0
	for _, r := range d.model.Requests() {
		if strings.Contains(r.User(), "Write a summary of this conversation") {
			summaries++
		}
	}
	spent := d.spent + float64(summaries)*(20_000+2*50)/1e6
	facts := []string{d.name}
	if d.mode != "" {
		facts = append(facts, d.mode)
	}
	facts = append(facts, d.settings...)
	servers := len(facts)
	facts = append(facts, `5 servers`)
	if d.requests > 0 {
		facts = append(facts, d.percent+` of 32k tokens`, `[\d.]+`)
	}
	if sample := strings.NewReplacer(`\d+%`, "99%", `[\d.]+`, "0.1234").Replace(strings.Join(facts, " · ")); len([]rune(sample)) > d.columns {
		facts = slices.Delete(facts, servers, servers+1)
	}
	screen := d.x.Wait(`(?s)` + before + empty + strings.Join(facts, " · ") + `\n+\z`)
	if d.requests > 0 {
		shown := regexp.MustCompile(`([\d.]+)\n+\z`).FindStringSubmatch(screen)[1]
		cost, err := strconv.ParseFloat(shown, 64)
		most := spent + float64(d.broken)*dayWindow/1e6 + 1e-4 // they are estimated, by what was sent
		if err != nil || d.broken == 0 && shown != fmt.Sprintf("%.4g", spent) || cost < spent-1e-4 || cost > most {
			d.t.Errorf("the last line has the cost %s, %v; want from %.4g to %.4g", shown, err, spent, most)
		}
	}
	if all := d.x.All(); strings.Contains(all, "┃") || regexp.MustCompile(spins).MatchString(all) {
		d.t.Fatalf("something of a dialog or of work in progress is left:\n%s", all)
	}
}

// shows waits until the screen has texts, in their order.
func (d *day) shows(texts ...string) {
	d.t.Helper()
	d.x.Wait(inOrder(texts))
}

// asks waits for a dialog that has texts, in their order, above a last line that says so.
func (d *day) asks(texts ...string) {
	d.t.Helper()
	d.x.Wait(inOrder(texts) + `.*\n` + spins + ` waiting for you [^\n]*[^…\n]\n+\z`)
}

// works waits for a last line with what is in progress.
func (d *day) works(on string) {
	d.t.Helper()
	d.x.Wait(`(?s)\n` + spins + ` ` + regexp.QuoteMeta(on) + ` [^\n]*[^…\n]\n+\z`)
}

// loose matches a text however its lines are broken.
func loose(text string) string { return strings.ReplaceAll(regexp.QuoteMeta(text), " ", `\s+`) }

func inOrder(texts []string) string {
	var parts []string
	for _, text := range texts {
		parts = append(parts, regexp.QuoteMeta(text))
	}
	return `(?s)` + strings.Join(parts, `.*`)
}

// press presses keys.
func (d *day) press(keys ...string) {
	d.t.Helper()
	d.x.Press(keys...)
}
