// Package timeline prints the frames of a recording for people, one line each: seconds since the
// first frame, connection, direction, content.
//
// # Guarantees
//
//   - Control characters and line breaks of a frame do not reach the terminal.
//   - A frame of a gateway that names its cause begins with it: "for http-4 #7: ".
//   - A line is cut to the width; [View.Full] adds headers and the whole message.
//   - The memory of a View grows with the requests of a recording, because a response shows the
//     method of its request.
package timeline

import (
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/trace"
)

// View shows the frames of one recording, in order. It is for one goroutine.
type View struct {
	// Method and Conn are patterns as in [path.Match], in which "*" also matches "/". They select
	// the frames of these methods, responses included, and of these connections. Empty: all.
	Method, Conn string

	Since time.Time // leave out the frames before, and those without a time; zero: none
	Call  string    // a request as [CallOf] returns it, with all that was done for it; empty: all

	Full  bool                  // show whole headers and messages
	Width int                   // columns of the terminal; 0: lines are not cut
	Faint func(s string) string // paints the part before the content; nil: no colour

	start   time.Time
	wide    int               // columns of the longest connection name
	methods map[string]string // of requests, by connection, direction and id
}

// Lines returns the lines of a frame. It reports false if Method, Conn, Since or Call leave the
// frame out.
func (v *View) Lines(f *trace.Frame) (lines []string, ok bool) {
	if v.methods == nil {
		v.methods, v.wide, v.start = map[string]string{}, len("session-01234567"), f.Time
	}
	if v.start.IsZero() {
		v.start = f.Time
	}
	if v.Conn != "" && !matches(v.Conn, f.Conn) {
		return nil, false
	}
	about, method := v.about(f)
	if cause := f.For.String(); cause != "" {
		about = "for " + cause + ": " + about
	}
	if v.Method != "" && !matches(v.Method, method) || f.Time.Before(v.Since) || v.Call != "" && v.Call != callOf(f) {
		return nil, false
	}
	arrow := "←"
	if f.Dir == trace.Out {
		arrow = "→"
	}
	at := ""
	if !f.Time.IsZero() {
		at = fmt.Sprintf("%8.3f ", f.Time.Sub(v.start).Seconds())
	}
	if f.Lost > 0 {
		lines = append(lines, fmt.Sprintf("         %d frames are missing here", f.Lost))
	}
	conn := screen.OneLine(f.Conn)
	v.wide = min(max(v.wide, screen.Columns(conn)), 40)
	head := at + screen.Pad(conn, v.wide) + " " + arrow + " "
	room := 0
	if v.Width > 0 {
		room = max(20, v.Width-screen.Columns(head))
	}
	if v.Faint != nil {
		head = v.Faint(head)
	}
	lines = append(lines, head+screen.Cut(screen.OneLine(about), room))
	if v.Full {
		lines = append(lines, full(f)...)
	}
	return lines, true
}

// CallOf returns the form of a request that [View] selects by: "http-4 #7", the name of a connection and
// the id of a request on it. White space before the id may be missing.
func CallOf(text string) (string, bool) {
	at := strings.LastIndexByte(text, '#')
	if at < 0 {
		return "", false
	}
	conn, id := strings.TrimSpace(text[:at]), strings.Trim(text[at+1:], `" `)
	return conn + " #" + id, conn != "" && id != ""
}

// callOf returns the request that a frame is about: its cause, or else itself.
func callOf(f *trace.Frame) string {
	if f.For != (trace.Cause{}) {
		return f.For.String()
	}
	id, ok := jsonx.Lookup(f.Msg, "id")
	if !ok {
		return ""
	}
	return trace.Cause{Conn: f.Conn, ID: string(id)}.String()
}

// about describes a frame, and returns the method that it belongs to.
func (v *View) about(f *trace.Frame) (about, method string) {
	var parts []string
	if h := f.HTTP; h != nil {
		if h.Method != "" {
			parts = append(parts, h.Method, h.Path)
		}
		if h.Status != 0 {
			parts = append(parts, fmt.Sprintf("%d %s", h.Status, http.StatusText(h.Status)))
		}
	}
	switch f.Kind {
	case trace.KindMessage:
	case trace.KindStderr:
		return "stderr: " + string(f.Raw), ""
	default:
		parts = append(parts, string(f.Kind)+":", f.Note, screen.Shell(f.Args), string(f.Raw)+string(f.Msg))
		return strings.Join(strings.Fields(strings.Join(parts, " ")), " "), ""
	}
	size := ""
	if f.Size > 0 {
		size = fmt.Sprintf("(%d bytes)", f.Size)
	}
	if f.Cut > 0 {
		size += fmt.Sprintf(", %d cut", f.Cut)
	}
	switch {
	case len(f.Msg) > 0 && jsonx.KindOf(f.Msg) == '{':
		var text string
		text, method = v.message(f)
		parts = append(parts, text)
	case len(f.Msg) > 0 && jsonx.KindOf(f.Msg) == '[':
		n := 0
		for range jsonx.Elements(f.Msg) {
			n++
		}
		parts = append(parts, fmt.Sprintf("batch of %d", n))
	case len(f.Msg)+len(f.Raw) > 0:
		parts = append(parts, "not a message: "+screen.Clip(string(f.Msg)+string(f.Raw)))
	}
	return strings.TrimSpace(strings.Join(parts, " ") + " " + size), method
}

// message describes one message.
func (v *View) message(f *trace.Frame) (text, method string) {
	get := func(at ...string) string {
		raw, ok := jsonx.LookupPath(f.Msg, at...)
		if !ok {
			return ""
		}
		if s, err := jsonx.Unquote(raw); err == nil {
			return s
		}
		return string(jsonx.Compact(nil, raw))
	}
	id := get("id")
	method = get("method")
	if method != "" {
		words := []string{method}
		if id != "" {
			words = []string{"#" + id, method}
			v.methods[f.Conn+" "+string(f.Dir)+" "+id] = method
		}
		for _, at := range [][]string{{"params", "name"}, {"params", "uri"}, {"params", "message"}, {"params", "data"}} {
			if s := get(at...); s != "" {
				words = append(words, screen.Clip(s))
				break
			}
		}
		if s := get("params", "arguments"); s != "" {
			words = append(words, brief(s))
		}
		return strings.Join(words, " "), method
	}
	back := trace.In
	if f.Dir == trace.In {
		back = trace.Out
	}
	method = v.methods[f.Conn+" "+string(back)+" "+id]
	words := []string{"#" + id, method}
	if code := get("error", "code"); code != "" {
		words = append(words, "error "+code+": "+screen.Clip(get("error", "message")))
	} else {
		words = append(words, "answered")
		if kind := get("result", "resultType"); kind != "" && kind != "complete" {
			words = append(words, kind)
		}
		if get("result", "isError") == "true" {
			words = append(words, "with a tool error")
		}
		for _, at := range [][]string{{"result", "structuredContent"}, {"result", "content"}, {"result", "contents"}} {
			if s := get(at...); s != "" {
				words = append(words, brief(s))
				break
			}
		}
	}
	return strings.Join(words, " "), method
}

// brief returns the beginning of JSON, for a line; --full shows all of it.
func brief(s string) string { return screen.Cut(screen.OneLine(s), 200) }

// full returns the parts that a line leaves out: headers and the whole message.
func full(f *trace.Frame) (lines []string) {
	if f.HTTP != nil {
		for _, name := range slices.Sorted(maps.Keys(f.HTTP.Headers)) {
			lines = append(lines, "    "+screen.Visible(name+": "+strings.Join(f.HTTP.Headers[name], ", ")))
		}
	}
	text := string(f.Raw)
	if len(f.Msg) > 0 {
		text = screen.Indented(f.Msg)
	}
	for _, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		if line != "" {
			lines = append(lines, "    "+screen.Visible(line))
		}
	}
	return lines
}

// matches matches a name in which "/" is like any other character.
func matches(pattern, name string) bool {
	flat := strings.NewReplacer("/", "\x00")
	ok, _ := path.Match(flat.Replace(pattern), flat.Replace(name))
	return ok
}
