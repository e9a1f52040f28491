package inspector

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/inspector/internal/published"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
	texts "github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/trace"
)

// side is one message of a row, with what carried it: Side of ui/types.ts.
type side struct {
	N        int       `json:"n"`
	Time     string    `json:"time,omitempty"`
	Dir      string    `json:"dir"`
	Conn     string    `json:"conn"`
	Revision string    `json:"revision,omitempty"`
	HTTP     *sideHTTP `json:"http,omitempty"`
	JSON     string    `json:"json,omitempty"`
	Raw      string    `json:"raw,omitempty"`
	Bytes    int       `json:"bytes"`
	Cut      int       `json:"cut,omitempty"`  // bytes that were not recorded
	Left     int       `json:"left,omitempty"` // bytes that were recorded and are not shown
	Faults   []string  `json:"faults,omitempty"`
	Checked  bool      `json:"checked"`
	Fits     bool      `json:"fits,omitempty"` // the structured content fits the output schema of the tool
}

type sideHTTP struct {
	Method  string              `json:"method,omitempty"`
	Path    string              `json:"path,omitempty"`
	Status  int                 `json:"status,omitempty"`
	Headers map[string][]string `json:"headers,omitempty"`
}

// detail is what is known of a row: Detail of ui/types.ts.
type detail struct {
	Row    wireRow `json:"row"`
	Sides  []side  `json:"sides"`
	Other  *other  `json:"other,omitempty"`
	Before int     `json:"before,omitempty"`
	CLI    string  `json:"cli,omitempty"`
	Curl   string  `json:"curl,omitempty"`
	Test   string  `json:"test,omitempty"`
}

// other is the same request on the other hop.
type other struct {
	Row     wireRow  `json:"row"`
	Sides   []side   `json:"sides"`
	Changed []change `json:"changed"`
}

const (
	maxSides  = 100       // messages of a row
	maxShown  = 512 << 10 // bytes of a message
	maxSearch = 20_000    // rows that are looked at for the previous call
)

// detail returns what is known of a row; false: it is not kept.
func (f *Frames) detail(n int, url string, words ...string) (*detail, bool) {
	f.mu.Lock()
	f.init()
	e := f.at(n)
	if e == nil || e.r == nil {
		f.mu.Unlock()
		return nil, false
	}
	s, frames := f.snap(e.r), f.framesOf(e)
	var twin snapshot
	var twinFrames []numbered
	if t := f.twin(e); t != nil {
		twin, twinFrames = f.snap(t.r), f.framesOf(t)
	}
	before := f.previous(e)
	var lists []*trace.Frame
	var call []byte // of a tool, as its server got it
	if at := f.atServer(e); at != nil && s.method == revision.MethodCall {
		lists, call = f.lists(at), at.packed.frame().Msg
	}
	f.mu.Unlock()
	output := outputSchema(lists, target(call))

	d := &detail{Row: f.wireRow(&s), Sides: f.sides(&s, frames), Before: before}
	f.checkOutput(d.Sides, frames, &s, output)
	if twinFrames != nil {
		d.Other = &other{Row: f.wireRow(&twin), Sides: f.sides(&twin, twinFrames), Changed: f.translation(&s, &twin)}
		f.checkOutput(d.Other.Sides, twinFrames, &twin, output)
	}
	f.commands(d, &s, url, words)
	return d, true
}

// numbered is a frame with its number.
type numbered struct {
	n     int
	frame *trace.Frame
}

// framesOf returns the frames of a row, with the notifications about it in between. The caller holds mu.
func (f *Frames) framesOf(e *kept) (list []numbered) {
	own := map[int]bool{}
	for at := e; at != nil && len(own) < maxSides; at = f.at(at.next) {
		own[at.n] = true
	}
	last := e.r.last
	for n := e.n; n <= last && len(list) < maxSides; n++ {
		at := f.at(n)
		if at == nil {
			continue
		}
		head := f.at(at.row)
		if own[n] || e.r.kind == rowRequest && head != nil && head.r != nil && head.r.kind == rowNote && head.r.cause == e.n {
			list = append(list, numbered{n, at.packed.frame()})
		}
	}
	return list
}

// twin returns the request on the other hop: what a request of a client caused, or what caused a request to a server. The
// caller holds mu.
func (f *Frames) twin(e *kept) *kept {
	if e.r.kind != rowRequest {
		return nil
	}
	if cause := f.at(e.r.cause); cause != nil && cause.r != nil && cause.r.method == e.r.method && cause.r.conn != e.r.conn {
		return cause
	}
	for n := e.n + 1; n <= max(e.r.last, e.r.answer); n++ {
		at := f.at(n)
		if at != nil && at.r != nil && at.r.cause == e.n && at.r.kind == rowRequest && at.r.method == e.r.method && at.r.conn != e.r.conn {
			return at
		}
	}
	return nil
}

// atServer returns a request at the hop of the server: itself, or what it caused; nil: it caused none. The caller holds mu.
func (f *Frames) atServer(e *kept) *kept {
	if e.r.conn.server != "" {
		return e
	}
	return f.twin(e)
}

// previous returns the number of the last row before one with the same method and target, answered; zero: there is none. The
// caller holds mu.
func (f *Frames) previous(e *kept) int {
	if e.r.kind != rowRequest {
		return 0
	}
	about := target(e.packed.frame().Msg)
	for n, looked := e.n-1, 0; n >= f.first && looked < maxSearch; n, looked = n-1, looked+1 {
		at := f.at(n)
		if at == nil || at.r == nil || at.r.kind != rowRequest || at.r.method != e.r.method || at.r.answer == 0 {
			continue
		}
		if (at.r.conn.server == "") == (e.r.conn.server == "") && target(at.packed.frame().Msg) == about {
			return at.n
		}
	}
	return 0
}

// sides returns the messages of a row, redacted.
func (f *Frames) sides(s *snapshot, frames []numbered) []side {
	list := []side{}
	for _, x := range frames {
		clean := f.Redactor.Frame(*x.frame)
		rev := revisionOf(x.frame, s)
		d := side{N: x.n, Dir: string(clean.Dir), Conn: shown(clean.Conn), Revision: shown(rev), Bytes: bytesOf(x.frame), Cut: clean.Cut}
		if !clean.Time.IsZero() {
			d.Time = clean.Time.UTC().Format("2006-01-02T15:04:05.000000Z07:00")
		}
		if h := clean.HTTP; h != nil {
			d.HTTP = &sideHTTP{Method: shown(h.Method), Path: visibly(h.Path), Status: h.Status, Headers: map[string][]string{}}
			for name, values := range h.Headers {
				for _, v := range values {
					d.HTTP.Headers[shown(name)] = append(d.HTTP.Headers[shown(name)], visibly(v))
				}
			}
		}
		body := clean.Msg
		if len(body) == 0 {
			body = clean.Raw
		}
		if len(body) > maxShown {
			d.Left = len(body) - maxShown
		}
		d.Raw = visibly(texts.Clip(string(body), maxShown))
		if len(clean.Msg) > 0 && len(clean.Msg) <= maxShown {
			var b bytes.Buffer
			if json.Indent(&b, clean.Msg, "", "  ") == nil {
				d.JSON = visibly(b.String())
			}
		}
		if x.frame.Message() && len(x.frame.Msg) <= maxShown {
			of := s.method
			if m := headOf(x.frame.Msg); m.method != "" {
				of = m.method
			}
			faults, checked := published.Check(rev, of, clean.Msg, fromClient(x.frame, s))
			d.Checked = checked
			for _, fault := range faults {
				d.Faults = append(d.Faults, shown(fault))
			}
		}
		list = append(list, d)
	}
	return list
}

// fromClient reports whether the client of a connection has sent a frame.
func fromClient(frame *trace.Frame, s *snapshot) bool {
	return (s.server != "") == (frame.Dir == trace.Out)
}

// visibly makes control characters and changes of direction visible, and keeps line breaks.
func visibly(s string) string { return string(texts.Escape(nil, strings.ToValidUTF8(s, "\uFFFD"))) }

// revisionOf returns the revision that a frame is of: its own, or that of its connection.
func revisionOf(frame *trace.Frame, s *snapshot) string {
	for _, at := range []*trace.Frame{frame, s.first} {
		if at == nil {
			continue
		}
		if v := textAt(at.Msg, "params", "_meta", "io.modelcontextprotocol/protocolVersion"); v != "" {
			return v
		}
		if at.HTTP != nil {
			if v := http.Header(at.HTTP.Headers).Get("Mcp-Protocol-Version"); v != "" {
				return v
			}
		}
	}
	if s.method == revision.MethodInitialize && s.reply != nil {
		if v := textAt(s.reply.Msg, "result", "protocolVersion"); v != "" {
			return v
		}
	}
	return s.revision
}

// commands adds what makes a call again: for a terminal, and for a test.
func (f *Frames) commands(d *detail, s *snapshot, url string, words []string) {
	if s.kind != rowRequest || s.method != revision.MethodCall || s.first == nil {
		return
	}
	clean := f.Redactor.Frame(*s.first)
	name := textAt(clean.Msg, "params", "name")
	arguments, _ := jsonx.LookupPath(clean.Msg, "params", "arguments")
	if len(arguments) == 0 {
		arguments = json.RawMessage(`{}`)
	}
	if name == "" || len(arguments) > 16<<10 || arguments[0] != '{' {
		return
	}
	tool := name
	if s.server != "" && s.server != s.conn.name && len(words) == 0 {
		tool = s.server + "/" + name
	}
	line := string(plainJSON(arguments))
	if typable(name) {
		d.CLI = commandLine(tool, json.RawMessage(line), words)
	}
	if url != "" && s.server == "" && typable(name) {
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":` + string(jsonx.AppendString(nil, name)) + `,"arguments":` + line +
			`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"curl","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
		d.Curl = visibly("curl " + shellWord(url) + " -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' -H 'MCP-Protocol-Version: 2026-07-28' -H 'Mcp-Method: tools/call' -H " + shellWord("Mcp-Name: "+name) + " --data-raw " + shellWord(body))
	}
	d.Test = visibly("res, err := session.Call(t.Context(), " + strconv.Quote(name) + ", json.RawMessage(" + goString(line) + "))\nif err != nil {\n\tt.Fatal(err)\n}\n")
}

// details answers with what is known of a row.
func (p *Page) details(r *http.Request) (any, error) {
	n, err := strconv.Atoi(r.PathValue("n"))
	if err != nil {
		return nil, fail(http.StatusBadRequest, "%q is not the number of a row", shown(r.PathValue("n")))
	}
	url := ""
	if p.Report != nil {
		url = p.Report().URL
	}
	f, err := p.framesFor(r.Context(), r.URL.Query())
	if err != nil {
		return nil, err
	}
	d, ok := f.detail(n, url, p.Words...)
	if !ok {
		return nil, fail(http.StatusNotFound, "row %d is not kept any more, or never was a row", n)
	}
	return d, nil
}

// download sends the frames of the rows that fit a filter as a trace, redacted.
func (p *Page) download(w http.ResponseWriter, r *http.Request) {
	q, err := parseFilter(r.URL.Query().Get("q"))
	if err != nil {
		refuse(w, fail(http.StatusBadRequest, "%v", err))
		return
	}
	f, err := p.framesFor(r.Context(), r.URL.Query())
	if err != nil {
		refuse(w, err)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/jsonl; charset=utf-8")
	h.Set("Content-Disposition", `attachment; filename="trace-`+time.Now().Format("2006-01-02-150405")+`.jsonl"`)
	control := http.NewResponseController(w)
	_ = f.write(q, func(line []byte) error {
		_ = control.SetWriteDeadline(time.Now().Add(pace))
		_, err := w.Write(line)
		return err
	})
}

// write writes the frames of the rows that fit a filter in their order, a line each.
func (f *Frames) write(q *filter, to func(line []byte) error) error {
	fits := map[int]bool{} // rows
	f.mu.Lock()
	f.init()
	at, end := f.first, f.next
	f.mu.Unlock()
	for at < end {
		var some []numbered
		var rows []snapshot
		f.mu.Lock()
		at = max(at, f.first)
		for ; at < end && len(some) < stride; at++ {
			e := f.at(at)
			if e.r != nil {
				rows = append(rows, f.snap(e.r))
			}
			some = append(some, numbered{e.row, e.packed.frame()})
		}
		f.mu.Unlock()
		for i := range rows {
			s := &rows[i]
			if !q.early(&s.row) {
				continue
			}
			if w := f.wireRow(s); q.fits(f, s, &w) {
				fits[s.n] = true
			}
		}
		for _, x := range some {
			if q != nil && len(q.terms) > 0 && !fits[x.n] {
				continue
			}
			if err := to(append(f.Redactor.Frame(*x.frame).Append(nil), '\n')); err != nil {
				return err
			}
		}
	}
	return nil
}
