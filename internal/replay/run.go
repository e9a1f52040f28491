package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcp/level"
	"github.com/patchbay-dev/patchbay/trace"
)

// Options configure [Run]. Open is required.
type Options struct {
	// Open opens a session with the live server. Run does not close it. The client has the name,
	// the capabilities and the answers of the recorded one; Open may change the rest, but must
	// keep the OnFrame function or call it.
	Open func(ctx context.Context, c *mcp.Client) (*mcp.Session, error)

	// Ignore are names of members that may differ.
	Ignore []string

	// Logs reports whether the log messages of a call must be equal too.
	Logs bool

	// Each is called with each outcome as soon as it is known. It may be nil. Differences are set
	// later, because volatile values are recognized only at the end.
	Each func(*Outcome)

	// Redactor is the redactor of the recording. Nil means the default.
	Redactor *trace.Redactor
}

// Report is the result of a replay.
type Report struct {
	Revision string // revision of the live session
	Server   *mcp.ServerInfo
	Outcomes []*Outcome // for the opening, if it can be compared, and for each exchange

	Same, Differ, Skipped int
}

// Outcome is the result of one exchange.
type Outcome struct {
	Line        int // of the request in the trace; zero: the opening
	Label       string
	Skipped     string // reason why it was not played, or "" if it was
	Differences []Difference
	More        int // number of further differences
}

// player is the client of a replay.
type player struct {
	rec      *Recording
	redactor *trace.Redactor

	mu      sync.Mutex
	live    *joiner            // guarded by mu
	frames  int                // guarded by mu
	current *Exchange          // being played; guarded by mu
	used    map[*Question]bool // guarded by mu
}

// Run plays the client's side of a recording against a live server, and compares the answers. The
// error is that of opts.Open, or the cause of ctx.
func Run(ctx context.Context, rec *Recording, opts *Options) (*Report, error) {
	p := &player{rec: rec, redactor: opts.Redactor, live: newJoiner(), used: map[*Question]bool{}}
	if p.redactor == nil {
		p.redactor = trace.NewRedactor(nil)
	}
	s, err := opts.Open(ctx, p.client())
	if err != nil {
		return nil, err
	}
	spoken := revision.Find(revision.All, string(s.Revision()))
	report := &Report{Revision: spoken.Name, Server: s.Server()}

	var recorded, now []*Exchange
	var played []*Outcome
	cursors := map[string]json.RawMessage{} // recorded to live, as raw JSON
	for _, x := range rec.Exchanges {
		o := &Outcome{Line: x.Line, Label: x.Label(), Skipped: p.skip(x, spoken)}
		report.Outcomes = append(report.Outcomes, o)
		if o.Skipped == "" {
			got, err := p.play(ctx, s, x, cursors)
			if ctx.Err() != nil {
				return report, context.Cause(ctx)
			}
			if got != nil {
				recorded, now, played = append(recorded, x), append(now, got), append(played, o)
			} else {
				o.Differences = []Difference{{Path: "answer", Recorded: outline(x), Now: shown(fmt.Sprint("none: ", err))}}
			}
		}
		if opts.Each != nil {
			opts.Each(o)
		}
	}
	p.compare(report, recorded, now, played, spoken, opts)
	return report, nil
}

// outline returns a short form of an answer.
func outline(x *Exchange) string {
	if x.Error != nil {
		return clip(string(errorDocument(x.Error, false)))
	}
	return clip(string(x.Result))
}

// skip returns the reason why an exchange cannot be played, or "" if it can.
func (p *player) skip(x *Exchange, spoken *revision.Table) string {
	switch {
	case !x.Done:
		return "it was not answered in the recording"
	case x.Task || strings.HasPrefix(x.Method, "tasks/"):
		return "tasks are not replayed"
	case !spoken.Has(x.Method):
		return "revision " + spoken.Name + " has no " + x.Method
	}
	for _, q := range x.Questions() {
		if spoken.Lacks&revision.Elicitation != 0 && q.Method == revision.MethodElicit {
			return "it asks the user, and revision " + spoken.Name + " has no elicitation"
		}
		if _, err := spoken.Question(q.Method, q.Params); err != nil {
			return "it asks what " + err.Error()
		}
	}
	if t := revision.Find(revision.All, x.Revision); t == nil {
		return "its revision is not known"
	}
	return ""
}

// play sends one request and returns its exchange.
func (p *player) play(ctx context.Context, s *mcp.Session, x *Exchange, cursors map[string]json.RawMessage) (*Exchange, error) {
	params := x.Params
	if c, ok := jsonx.Lookup(params, "cursor"); ok {
		if now, ok := cursors[string(c)]; ok {
			params = jsonx.With(nil, params, "cursor", now)
		}
	}
	p.mu.Lock()
	before := len(p.live.rec.Exchanges)
	p.current = x
	p.mu.Unlock()
	var opts []mcp.CallOption
	if x.Progress {
		opts = append(opts, mcp.OnProgress(func(float64, float64, string) {}))
	}
	raw, err := s.Raw(ctx, x.Method, params, opts...)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.current = nil
	var got *Exchange
	for _, y := range p.live.rec.Exchanges[before:] {
		if y.Method == x.Method {
			got = y
		}
	}
	if got == nil || !got.Done {
		if err == nil {
			err = errors.New("the answer is not among the frames")
		}
		return nil, err
	}
	if was, ok := jsonx.Lookup(x.Result, "nextCursor"); ok && err == nil {
		if is, ok := jsonx.Lookup(raw, "nextCursor"); ok {
			cursors[string(was)] = is
		}
	}
	// A copy: late messages must not change it.
	y := *got
	if !x.Progress {
		y.Steps = nil
		for _, step := range got.Steps {
			if step.Note == nil || step.Note.Method != revision.NoteProgress {
				y.Steps = append(y.Steps, step)
			}
		}
	}
	return &y, nil
}

// compare sets the differences and the counts.
func (p *player) compare(report *Report, recorded, now []*Exchange, played []*Outcome, spoken *revision.Table, opts *Options) {
	var was, is [][]byte
	for i, x := range recorded {
		mine := revision.Find(revision.All, x.Revision)
		now[i].Overlaps = x.Overlaps // its notifications are then not compared
		was = append(was, document(x, mine, spoken, opts.Logs))
		is = append(is, document(now[i], spoken, mine, opts.Logs))
	}
	a, b := stable(was), stable(is)
	for i, o := range played {
		d := differ{ignore: opts.Ignore}
		d.compare("", a[i], b[i])
		o.Differences, o.More = d.found, d.more
	}
	p.mu.Lock()
	opening := p.opening(opts.Ignore)
	p.mu.Unlock()
	if opening != nil {
		report.Outcomes = append([]*Outcome{opening}, report.Outcomes...)
	}
	for _, o := range report.Outcomes {
		switch {
		case o.Skipped != "":
			report.Skipped++
		case len(o.Differences) > 0:
			report.Differ++
		default:
			report.Same++
		}
	}
}

// opening compares the server's description, if it was requested in the same way. Name and version
// are not compared, because a replay usually tests another version.
func (p *player) opening(ignore []string) *Outcome {
	was, is := p.rec.Server, p.live.rec.Server
	if was == nil || is == nil || was.Method != is.Method || p.rec.Revision != p.live.rec.Revision {
		return nil
	}
	document := func(s *Server) []byte {
		out := json.RawMessage(`{}`)
		if s.Capabilities != nil {
			out = jsonx.With(nil, out, "capabilities", s.Capabilities)
		}
		if s.Instructions != nil {
			out = jsonx.With(nil, out, "instructions", s.Instructions)
		}
		return out
	}
	d := differ{ignore: ignore}
	d.compare("", stable([][]byte{document(was)})[0], stable([][]byte{document(is)})[0])
	return &Outcome{Label: was.Method, Differences: d.found, More: d.more}
}

// client returns a client like the recorded one.
func (p *player) client() *mcp.Client {
	c := &mcp.Client{OnFrame: p.frame, Limits: mcp.Limits{Cache: -1}} // repeated requests must go over the wire
	var info struct{ Name, Title, Version string }
	if p.rec.Client != nil && json.Unmarshal(p.rec.Client, &info) == nil {
		c.Name, c.Title, c.Version = info.Name, info.Title, info.Version
	}
	declared := func(name string) bool {
		_, ok := jsonx.Lookup(orObject(p.rec.Capabilities), name)
		return ok
	}
	if declared("elicitation") {
		c.OnElicit = p.elicit
	}
	if declared("sampling") {
		c.OnSample = p.sample
	}
	if declared("roots") {
		c.Roots = p.roots
	}
	if l, ok := level.Parse(p.rec.LogLevel); ok {
		c.LogLevel = l
	}
	return c
}

// frame adds a frame of the live wire, redacted like a recorded one.
func (p *player) frame(f trace.Frame) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frames++
	p.live.add(numbered{p.frames, p.redactor.Frame(f)}, trace.Out)
}

// answer finds the recorded answer to a question of the live server. It looks at the questions of
// this method that were not used yet, first in the exchange being played and then outside of
// exchanges, and in each takes the first one with the same text, or else the first one. If there
// are none and the question asks for roots, it takes the last recorded answer, used or not.
func (p *player) answer(method, message string) (json.RawMessage, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var pick, last *Question
	consider := func(q *Question) {
		if q.Method != method || q.Answer == nil && q.Error == nil {
			return
		}
		last = q
		if p.used[q] {
			return
		}
		if pick == nil || textOf(pick) != message && textOf(q) == message {
			pick = q
		}
	}
	if p.current != nil {
		for _, q := range p.current.Questions() {
			consider(q)
		}
	}
	if pick == nil {
		for _, q := range p.rec.answers {
			consider(q)
		}
	}
	if pick == nil && method == revision.MethodRoots { // may be asked at any time, repeatedly
		for _, x := range p.rec.Exchanges {
			for _, q := range x.Questions() {
				consider(q)
			}
		}
		pick = last
	}
	if pick == nil {
		return nil, mcp.Errorf(-1, "the recording has no answer to this question")
	}
	p.used[pick] = true
	if pick.Error != nil {
		return nil, &mcp.Error{Code: pick.Error.Code, Message: pick.Error.Message, Data: pick.Error.Data}
	}
	return pick.Answer, nil
}

// textOf returns the text of a question for a person.
func textOf(q *Question) string {
	raw, _ := jsonx.Lookup(q.Params, "message")
	s, err := jsonx.Unquote(raw)
	if err != nil {
		return ""
	}
	return s
}

func (p *player) elicit(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	raw, err := p.answer(revision.MethodElicit, r.Message)
	if err != nil {
		return nil, err
	}
	var w struct {
		Action  string                     `json:"action"`
		Content map[string]json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(raw, &w); err != nil {
		return nil, fmt.Errorf("the recorded answer: %w", err)
	}
	res := &mcp.ElicitResult{Action: w.Action}
	if w.Content != nil {
		res.Content = map[string]any{}
		for name, v := range w.Content {
			res.Content[name] = v
		}
	}
	return res, nil
}

func (p *player) sample(context.Context, *mcp.SampleRequest) (*mcp.SampleResult, error) {
	raw, err := p.answer(revision.MethodSample, "")
	if err != nil {
		return nil, err
	}
	var w struct {
		Role       string          `json:"role"`
		Model      string          `json:"model"`
		StopReason string          `json:"stopReason"`
		Content    json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(raw, &w); err != nil {
		return nil, fmt.Errorf("the recorded answer: %w", err)
	}
	res := &mcp.SampleResult{Role: w.Role, Model: w.Model, StopReason: w.StopReason}
	switch jsonx.KindOf(w.Content) {
	case '{':
		res.Content = []mcp.Content{mcp.RawContent(w.Content)}
	case '[':
		for b := range jsonx.Elements(w.Content) {
			res.Content = append(res.Content, mcp.RawContent(b))
		}
	}
	return res, nil
}

func (p *player) roots(context.Context) ([]mcp.Root, error) {
	raw, err := p.answer(revision.MethodRoots, "")
	if err != nil {
		return nil, err
	}
	var w struct{ Roots []mcp.Root }
	if err := json.Unmarshal(raw, &w); err != nil {
		return nil, fmt.Errorf("the recorded answer: %w", err)
	}
	return w.Roots, nil
}
