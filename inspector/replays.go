package inspector

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/internal/feature"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/replay"
	"github.com/patchbay-dev/patchbay/internal/revision"
	texts "github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/trace"
)

const (
	maxReplay     = 100             // rows of a request
	maxReplayBody = 64 << 10        // bytes of the body of /ui/replay
	replayTime    = 2 * time.Minute // of all calls
	maxArguments  = 16 << 10        // bytes of the arguments that a person confirms
	maxCompared   = 500             // rows of an answer
)

// replayable reports whether requests of a method are sent again: those that name no state of a session.
func replayable(method string) bool {
	_, lists := feature.Of(method)
	return lists || method == revision.MethodCall || method == revision.MethodPrompt || method == revision.MethodRead || method == revision.MethodComplete
}

// replayAsk is a call that a person has to confirm before it is sent again.
type replayAsk struct {
	Row       int    `json:"row"`
	Call      string `json:"call"`
	Arguments string `json:"arguments"`
}

// replayed is the answer of /ui/replay: a comparison, or the calls to confirm, and then nothing was sent.
type replayed struct {
	*Answer
	Ask []replayAsk `json:"ask,omitempty"`
}

// chosen is a request to send again.
type chosen struct {
	row    int
	server string // whose name Page.Server knows
	front  bool   // its frames are those of a client, else those of a server
	method string
	tool   string // by its name at the server of owner
	owner  string // the server that got it; empty: none did
	params []byte
	frames []numbered
}

// replay sends recorded requests to their servers again, as the person of the page, and compares the answers. A call that may
// change something is sent only if the person has confirmed it.
func (p *Page) replay(w http.ResponseWriter, r *http.Request) (any, error) {
	var asked struct {
		Rows      []int  `json:"rows"`
		Confirmed *[]int `json:"confirmed"` // nil: the person was not asked yet
		File      string `json:"file"`
	}
	if err := readBody(w, r, maxReplayBody, &asked, "rows", "confirmed", "file"); err != nil {
		return nil, err
	}
	switch {
	case p.Server == nil:
		return nil, fail(http.StatusNotFound, "this page shows a recording and has no servers")
	case len(asked.Rows) == 0 || len(asked.Rows) > maxReplay:
		return nil, fail(http.StatusBadRequest, "%d rows are chosen; 1 to %d can be replayed at a time", len(asked.Rows), maxReplay)
	}
	f, err := p.framesFor(r.Context(), url.Values{"file": {asked.File}})
	if err != nil {
		return nil, err
	}
	out := &Answer{Columns: []string{"Request", "Result", "Recorded", "Now"}, Rows: [][]string{}}
	list := []*chosen{}
	var ask []replayAsk
	for _, n := range asked.Rows {
		c, why := f.choose(n)
		switch {
		case why != "":
			out.Notes = append(out.Notes, fmt.Sprintf("Row %d is left out: %s.", n, why))
			continue
		case slices.ContainsFunc(list, func(d *chosen) bool { return d.row == c.row }):
			continue
		}
		if c.method == revision.MethodCall && !p.harmless(c) {
			if asked.Confirmed == nil {
				ask = append(ask, replayAsk{c.row, shown(strings.TrimPrefix(c.owner+"/"+c.tool, "/")), argumentsOf(c.params)})
			} else if !slices.Contains(*asked.Confirmed, c.row) {
				out.Notes = append(out.Notes, fmt.Sprintf("Row %d is left out: nobody confirmed the call.", c.row))
				continue
			}
		}
		list = append(list, c)
	}
	if ask != nil {
		return &replayed{Answer: &Answer{Summary: "Nothing was sent yet.", Notes: out.Notes, Columns: out.Columns, Rows: out.Rows}, Ask: ask}, nil
	}
	if !p.replaying.TryLock() {
		return nil, fail(http.StatusConflict, "another replay is running")
	}
	defer p.replaying.Unlock()
	ctx, cancel := context.WithTimeoutCause(r.Context(), replayTime, fmt.Errorf("the replay takes longer than %v", replayTime))
	defer cancel()
	p.replayAll(ctx, r, f, list, out)
	return &replayed{Answer: out}, nil
}

// harmless reports whether a call only reads, as a server says that is trusted.
func (p *Page) harmless(c *chosen) bool {
	return c.owner != "" && p.Gateway.Harmless != nil && p.Gateway.Harmless(c.owner, c.tool)
}

// argumentsOf returns the arguments of a call for a person.
func argumentsOf(params []byte) string {
	raw, _ := jsonx.Lookup(params, "arguments")
	if over := len(raw) - maxArguments; over > 0 {
		return visibly(texts.Clip(string(raw), maxArguments)) + fmt.Sprintf(" and %d bytes more", over)
	}
	return visibly(cmp.Or(string(raw), "{}"))
}

// choose returns the request of a row, or why it cannot be sent again.
func (f *Frames) choose(n int) (c *chosen, why string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.init()
	e := f.at(n)
	switch {
	case e == nil || e.r == nil:
		return nil, "it is not kept any more"
	case e.r.kind != rowRequest:
		return nil, "it is not a request"
	case !replayable(e.r.method):
		return nil, shown(e.r.method) + " is not replayed"
	}
	// The request of the client is sent again, because it names its revision. The server that got it is behind it.
	front, back := e, f.twin(e)
	if f.snap(e.r).server != "" {
		if front, back = back, e; front == nil {
			front = e
		}
	}
	c = &chosen{row: front.n, method: front.r.method, front: front != back, server: "*"}
	about := target(front.packed.frame().Msg)
	c.tool = about
	if back != nil {
		c.owner, c.tool = f.snap(back.r).server, target(back.packed.frame().Msg)
		if c.tool == about { // the client has asked the server itself
			c.server = c.owner
		}
	}
	c.params, _ = jsonx.Lookup(f.Redactor.Frame(*front.packed.frame()).Msg, "params")
	if c.frames = f.exchangeOf(front); !c.front {
		if opening := f.openingOf(front); opening != nil {
			c.frames = append(f.exchangeOf(opening), c.frames...)
		}
	}
	return c, ""
}

// exchangeOf returns the frames of a request, with questions about it and their answers. The caller holds mu.
func (f *Frames) exchangeOf(e *kept) []numbered {
	list := f.framesOf(e)
	for n := e.n + 1; n < e.r.last && len(list) < maxSides; n++ {
		if at := f.at(n); at != nil && at.r != nil && at.r.kind == rowRequest && at.r.conn == e.r.conn && at.r.cause == e.n {
			list = append(list, f.framesOf(at)...)
		}
	}
	return list
}

// openingOf returns the request that opened the session of another one; nil: it is not kept. The caller holds mu.
func (f *Frames) openingOf(e *kept) *kept {
	for n, looked := e.n-1, 0; n >= f.first && looked < maxSearch; n, looked = n-1, looked+1 {
		if at := f.at(n); at != nil && at.r != nil && at.r.conn == e.r.conn && at.r.method == revision.MethodInitialize {
			return at
		}
	}
	return nil
}

// replayAll sends requests, those of each server in a session of their own, and adds the comparison to an answer.
func (p *Page) replayAll(ctx context.Context, r *http.Request, f *Frames, list []*chosen, out *Answer) {
	type group struct {
		server string
		front  bool
	}
	var groups []group
	of := map[group][]*chosen{}
	for _, c := range list {
		g := group{c.server, c.front}
		if of[g] == nil {
			groups = append(groups, g)
		}
		of[g] = append(of[g], c)
	}
	same, differ, skipped := 0, 0, 0
	for _, g := range groups {
		report, lines, err := p.replayGroup(ctx, r, f, g.server, of[g], out)
		if err != nil {
			out.Notes = append(out.Notes, shown(strings.TrimPrefix(g.server+": ", "*: ")+err.Error()))
		}
		if report == nil {
			continue
		}
		same, differ, skipped = same+report.Same, differ+report.Differ, skipped+report.Skipped
		for _, o := range report.Outcomes {
			row := ""
			if o.Line > 0 {
				row = strconv.Itoa(lines[o.Line-1])
			}
			line := func(result, was, is string) {
				out.Rows = append(out.Rows, []string{strings.TrimSpace(row + " " + shown(o.Label)), shown(result), visibly(was), visibly(is)})
			}
			switch {
			case o.Skipped != "":
				line("skipped: "+o.Skipped, "", "")
			case len(o.Differences) == 0:
				line("same", "", "")
			}
			for _, d := range o.Differences {
				line("! differs in "+d.Path, cmp.Or(d.Recorded, "(nothing)"), cmp.Or(d.Now, "(nothing)"))
			}
			if o.More > 0 {
				line(fmt.Sprintf("! differs in %d more places", o.More), "", "")
			}
		}
	}
	if over := len(out.Rows) - maxCompared; over > 0 {
		out.Rows = out.Rows[:maxCompared]
		out.Notes = append(out.Notes, fmt.Sprintf("%d more lines are not shown.", over))
	}
	out.Summary = fmt.Sprintf("%d same, %d differ, %d skipped", same, differ, skipped)
}

// replayGroup sends requests to one server. The result lines has the row of each line of the recording that they make.
func (p *Page) replayGroup(ctx context.Context, r *http.Request, f *Frames, server string, list []*chosen, out *Answer) (report *replay.Report, lines []int, err error) {
	srv := p.Server(server)
	if srv == nil && server == "*" {
		return nil, nil, fmt.Errorf("rows that no server got cannot be sent again, because it is not known which one they were for")
	} else if srv == nil {
		return nil, nil, fmt.Errorf("no server has this name any more")
	}
	var frames []numbered
	row := map[int]int{}
	for _, c := range list {
		for _, x := range c.frames {
			if _, has := row[x.n]; !has {
				row[x.n] = c.row
				frames = append(frames, x)
			}
		}
	}
	slices.SortFunc(frames, func(a, b numbered) int { return a.n - b.n })
	var text bytes.Buffer
	for _, x := range frames {
		lines = append(lines, row[x.n])
		text.Write(append(f.Redactor.Frame(*x.frame).Append(nil), '\n'))
	}
	rec, err := replay.Read(&text, "")
	if err != nil {
		return nil, nil, err
	}
	if rec.Redacted > 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("Requests that were recorded without their secrets, and are sent with %s instead: %d.", trace.Redacted, rec.Redacted))
	}
	var session *mcp.Session
	defer func() {
		if session != nil {
			session.Close()
		}
	}()
	report, err = replay.Run(ctx, rec, &replay.Options{Redactor: f.Redactor, Open: func(ctx context.Context, c *mcp.Client) (_ *mcp.Session, err error) {
		c.Name, c.Title, c.Version, c.Revisions = "patchbay-page", "", p.Version, []mcp.Revision{mcp.Revision(revision.Newest.Name)}
		c.HTTPClient = &http.Client{Transport: &direct{srv, r}}
		session, err = c.Dial(ctx, strings.TrimSuffix(p.URL, "/")+"/ui/mcp/"+url.PathEscape(server))
		return session, err
	}})
	return report, lines, err
}
