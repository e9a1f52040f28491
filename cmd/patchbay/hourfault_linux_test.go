package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/host/modeltest"
)

// hourFault is what happens to a request. At most one of its functions is set.
type hourFault struct {
	name string

	before  func(k *hourTask, w http.ResponseWriter, r *http.Request)                // in place of an answer
	request func(body []byte) []byte                                                 // changes the request
	turn    func(t *modeltest.Turn)                                                  // spoils what the model says
	after   func(k *hourTask, w http.ResponseWriter, r *http.Request, answer []byte) // what is sent of the answer

	lost bool // after sends too little
	kept bool // turn leaves the calls as they are
}

// refusal answers with a status and an error as the provider writes it.
func refusal(status int, message string, header ...string) func(*hourTask, http.ResponseWriter, *http.Request) {
	return func(k *hourTask, w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprint(w, hourError(k, status, message))
	}
}

func hourError(k *hourTask, status int, message string) string {
	kind := map[int]string{400: "invalid_request_error", 401: "authentication_error", 429: "rate_limit_error", 529: "overloaded_error"}[status]
	if kind == "" {
		kind = "api_error"
	}
	switch k.api {
	case "anthropic":
		return fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":%q}}`, kind, message)
	case "gemini":
		return fmt.Sprintf(`[{"error":{"code":%d,"message":%q,"status":"SOMETHING"}}]`, status, message)
	}
	return fmt.Sprintf(`{"error":{"message":%q,"type":%q,"param":null,"code":null}}`, message, kind)
}

// page answers with a page, as a proxy does.
func page(status int) func(*hourTask, http.ResponseWriter, *http.Request) {
	return func(_ *hourTask, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(status)
		fmt.Fprintf(w, "<html><head><title>%d</title></head><body>nginx</body></html>", status)
	}
}

// reset ends the connection so that the other side gets an error at once.
func reset(w http.ResponseWriter) {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil { // HTTP/2
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	c.Close()
}

// sends writes what a function returns of the events of an answer, and then does the rest.
func sends(part func(k *hourTask, events [][]byte) [][]byte, rest func(w http.ResponseWriter, r *http.Request)) func(*hourTask, http.ResponseWriter, *http.Request, []byte) {
	return func(k *hourTask, w http.ResponseWriter, r *http.Request, answer []byte) {
		for _, e := range part(k, bytes.SplitAfter(answer, []byte("\n\n"))) {
			w.Write(e)
		}
		http.NewResponseController(w).Flush()
		if rest != nil {
			rest(w, r)
		}
	}
}

func half(_ *hourTask, events [][]byte) [][]byte { return events[:len(events)/2] }

// hourEnd matches the events that end an answer.
var hourEnd = regexp.MustCompile(`"finish_reason":"|"type":"message_delta"|"type":"response.(completed|incomplete)"`)

// unended returns an answer without its end.
func unended(_ *hourTask, events [][]byte) [][]byte {
	for i, e := range events {
		if hourEnd.Match(e) {
			return events[:i]
		}
	}
	return events
}

// broken returns the beginning of an answer, then an event.
func broken(event func(k *hourTask) string) func(*hourTask, [][]byte) [][]byte {
	return func(k *hourTask, events [][]byte) [][]byte {
		return append(half(k, events), []byte(event(k)))
	}
}

func never(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

func aborts(w http.ResponseWriter, _ *http.Request) { reset(w) }

// unstreamed asks for a whole answer in place of a stream.
func unstreamed(body []byte) []byte {
	var o object
	if json.Unmarshal(body, &o) != nil {
		return body
	}
	delete(o, "stream")
	delete(o, "stream_options")
	out, _ := json.Marshal(o)
	return out
}

// signals sends the program a signal in place of an answer.
func signals(s os.Signal) func(*hourTask, http.ResponseWriter, *http.Request) {
	return func(k *hourTask, w http.ResponseWriter, r *http.Request) {
		(<-k.program).Signal(s)
		never(w, r)
	}
}

// cutShort cuts the last call of an answer.
func cutShort(t *modeltest.Turn) {
	last := &t.Answer[len(t.Answer)-1]
	if last.Call == nil {
		return
	}
	t.Stop = "length"
	args, _ := json.Marshal(last.Call.Arguments)
	last.Call = &modeltest.Call{Name: last.Call.Name, Arguments: string(args[:len(args)/2])}
}

// otherCalls changes the calls of an answer.
func otherCalls(change func(*modeltest.Call)) func(*modeltest.Turn) {
	return func(t *modeltest.Turn) {
		for i, p := range t.Answer {
			if p.Call != nil {
				c := *p.Call
				change(&c)
				t.Answer[i].Call = &c
			}
		}
	}
}

func raw(text string) func(*hourTask, http.ResponseWriter, *http.Request) {
	return func(_ *hourTask, w http.ResponseWriter, _ *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		c.Write([]byte(text))
		c.Close()
	}
}

// passing are faults after which a run goes on to the right answer.
var passing = []*hourFault{
	{name: "429, later", before: refusal(429, "Slow down.", "Retry-After-Ms", "30")},
	{name: "429, in a second", before: refusal(429, "Slow down.", "Retry-After", "1")},
	{name: "429", before: refusal(429, "Slow down.")},
	{name: "408", before: refusal(408, "Too slow.")},
	{name: "500", before: refusal(500, "Something failed.", "Retry-After-Ms", "20")},
	{name: "502 page", before: page(502)},
	{name: "503", before: refusal(503, "Overloaded.", "Retry-After-Ms", "20")},
	{name: "504 page", before: page(504)},
	{name: "529", before: refusal(529, "Overloaded.", "Retry-After-Ms", "20")},
	{name: "refused parameter", before: func(k *hourTask, w http.ResponseWriter, r *http.Request) {
		if !bytes.Contains(k.body, []byte("stream_options")) { // no longer, or not in this API
			refusal(503, "Overloaded.", "Retry-After-Ms", "20")(k, w, r)
			return
		}
		refusal(400, "Unsupported parameter: 'stream_options' is not supported with this model.")(k, w, r)
	}},
	{name: "reset", before: func(_ *hourTask, w http.ResponseWriter, _ *http.Request) { reset(w) }},
	{name: "not HTTP", before: raw("SSH-2.0-OpenSSH_9.6\r\n")},
	{name: "bad chunks", before: raw("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")},
	{name: "no body", before: raw("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 0\r\n\r\n")},
	{name: "reset in the middle", lost: true, after: sends(half, aborts)},
	{name: "reset at the end", lost: true, after: sends(unended, aborts)},
	{name: "end in the middle", lost: true, after: sends(half, nil)},
	{name: "no end", after: sends(unended, nil)}, // the program may take it for a whole one
	{name: "end in an event", lost: true, after: sends(broken(func(*hourTask) string { return `data: {"id":"x","choi` }), aborts)},
	{name: "garbage in the middle", lost: true, after: sends(broken(func(*hourTask) string { return "data: {\"garbage\n\n" }), nil)},
	{name: "error in the middle", lost: true, after: sends(broken(func(k *hourTask) string {
		if k.api == "openai-responses" || k.api == "anthropic" {
			return "event: error\ndata: " + strings.Replace(hourError(k, 529, "Overloaded"), `{"error":`, `{"type":"error","error":`, 1) + "\n\n"
		}
		return "data: " + hourError(k, 529, "The server is overloaded") + "\n\n"
	}), nil)},
	{name: "too short", lost: true, after: func(k *hourTask, w http.ResponseWriter, r *http.Request, answer []byte) {
		w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
		w.Write(answer[:len(answer)*2/3])
	}},
	{name: "drip", after: func(_ *hourTask, w http.ResponseWriter, _ *http.Request, answer []byte) {
		for len(answer) > 0 {
			n := min(len(answer), 1+rand.IntN(90))
			w.Write(answer[:n])
			http.NewResponseController(w).Flush()
			answer = answer[n:]
		}
	}},
	{name: "slow", after: func(_ *hourTask, w http.ResponseWriter, r *http.Request, answer []byte) {
		events := bytes.SplitAfter(answer, []byte("\n\n"))
		for _, e := range events {
			w.Write(e)
			http.NewResponseController(w).Flush()
			select {
			case <-time.After(300 * time.Millisecond / time.Duration(len(events))):
			case <-r.Context().Done():
				return
			}
		}
	}},
	{name: "CRLF, comments", after: func(_ *hourTask, w http.ResponseWriter, _ *http.Request, answer []byte) {
		w.Write([]byte(": OPENROUTER PROCESSING\r\n\r\n"))
		w.Write(bytes.ReplaceAll(answer, []byte("\n"), []byte("\r\n")))
	}},
	{name: "plain text", after: func(_ *hourTask, w http.ResponseWriter, _ *http.Request, answer []byte) {
		w.Header().Set("Content-Type", "text/plain")
		w.Write(answer)
	}},
	{name: "no stream", request: unstreamed},
	{name: "empty", turn: func(t *modeltest.Turn) { t.Answer = nil }},
	{name: "no arguments", turn: otherCalls(func(c *modeltest.Call) { c.Arguments = `{"id": "d1", "am` })},
	{name: "other arguments", turn: otherCalls(func(c *modeltest.Call) { c.Arguments = []any{"d1", 5} })},
	{name: "other tool", turn: otherCalls(func(c *modeltest.Call) { c.Name += "s" })},
	{name: "cut", turn: cutShort},
	{name: "large text", kept: true, turn: func(t *modeltest.Turn) {
		if t.Answer[0].Call == nil {
			return
		}
		t.Answer = append([]modeltest.Piece{{Text: strings.Repeat("I think so. ", 2_000)}}, t.Answer...)
	}},
}

// tooLong is the refusal of a request that is larger than the window of the model.
var tooLong = &hourFault{name: "too long", before: refusal(400, "Input is too long for requested model.")}

// minutes are faults that the program waits out, for minutes.
var minutes = []*hourFault{
	{name: "silence", before: func(_ *hourTask, w http.ResponseWriter, r *http.Request) { never(w, r) }},
	{name: "stall", lost: true, after: sends(half, never)},
}

// huge is an answer that is too large.
var huge = &hourFault{name: "huge", lost: true, after: func(_ *hourTask, w http.ResponseWriter, _ *http.Request, _ []byte) {
	comment := bytes.Repeat([]byte(": nothing to say yet\n\n"), 1000)
	for range 80 << 20 / len(comment) {
		w.Write(comment)
	}
}}

// lasting are faults that end a run, if they last, with the exit code and words on standard error.
var lasting = []struct {
	hourFault
	flags []string
	code  int
	words string
}{
	{hourFault{name: "401", before: refusal(401, "Invalid key.")}, nil, exitModel, "not authorized (HTTP 401): \"Invalid key.\""},
	{hourFault{name: "402", before: refusal(402, "Pay.")}, nil, exitModel, "no credit left (HTTP 402)"},
	{hourFault{name: "404", before: refusal(404, "Which model?")}, nil, exitModel, "no such model (HTTP 404)"},
	{hourFault{name: "422", before: refusal(422, "I do not understand.")}, nil, exitModel, "rejected (HTTP 422)"},
	{hourFault{name: "too long", before: refusal(400, "This model's maximum context length is 10 tokens.")}, nil, exitModel, "too long (HTTP 400)"},
	{hourFault{name: "20 minutes", before: refusal(429, "Limit.", "Retry-After", "1200")}, nil, exitModel, "it can be retried after 20m0s"},
	{hourFault{name: "overloaded", before: refusal(529, "Overloaded.", "Retry-After-Ms", "1")}, nil, exitModel, "overloaded (HTTP 529)"},
	{hourFault{name: "redirect", before: func(_ *hourTask, w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://login.example.com/", http.StatusFound)
	}}, nil, exitModel, "the address redirects to"},
	{hourFault{name: "page", before: page(200)}, nil, exitModel, "the answer is text/html and not a stream"},
	{hourFault{name: "another API", before: raw("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: hello\n\n")}, nil, exitModel, "not understood"},
	{hourFault{name: "silence", before: func(_ *hourTask, w http.ResponseWriter, r *http.Request) { never(w, r) }}, []string{"--max-time", "2s"}, exitBound, "not done in 2s"},
	{hourFault{name: "stall", lost: true, after: sends(half, never)}, []string{"--max-time", "2s"}, exitBound, "not done in 2s"},
	{hourFault{name: "resets", before: func(_ *hourTask, w http.ResponseWriter, _ *http.Request) { reset(w) }}, []string{"--max-time", "2s"}, exitBound, "not done in 2s"},
	{hourFault{name: "empty", turn: func(t *modeltest.Turn) { t.Answer = nil }}, nil, exitModel, "the model gave no answer"},
	{hourFault{name: "filtered", turn: func(t *modeltest.Turn) {
		t.Answer, t.Stop = []modeltest.Piece{{Text: "I"}}, "refused"
	}}, nil, exitModel, "refused to answer"},
	{hourFault{name: "cut", turn: func(t *modeltest.Turn) {
		t.Answer, t.Stop = []modeltest.Piece{{Text: "The sum"}}, "length"
	}}, nil, exitBound, "the answer was cut off"},
	{hourFault{name: "the same call", turn: otherCalls(func(c *modeltest.Call) { c.Name, c.Arguments = "web_price", object{"n": 1} })}, nil, exitBound, "the model repeated the same call"},
	{hourFault{name: "prose", turn: func(t *modeltest.Turn) { t.Answer = []modeltest.Piece{{Text: "Well."}} }}, []string{"--output-schema", `{"type":"object"}`}, exitFormat, "does not fit"},
	{hourFault{name: "no end of steps", turn: otherCalls(func(c *modeltest.Call) { c.Name, c.Arguments = "web_price", object{"n": rand.IntN(1e9)} })}, []string{"--max-steps", "4"}, exitBound, "not done in 4 steps"},
	{hourFault{name: "no end of tokens", turn: otherCalls(func(c *modeltest.Call) { c.Name, c.Arguments = "web_price", object{"n": rand.IntN(1e9)} })}, []string{"--max-tokens", fmt.Sprint(hourTokens)}, exitBound, "not done within --max-tokens"},
	{hourFault{name: "interrupted", before: signals(os.Interrupt)}, nil, exitInterrupted, "interrupted"},
	{hourFault{name: "killed", before: signals(os.Kill)}, nil, -1, ""},
}

// lostAnswers are the faults that lose an answer.
var lostAnswers = slices.DeleteFunc(slices.Clone(passing), func(f *hourFault) bool { return !f.lost })
