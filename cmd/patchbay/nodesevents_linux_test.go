package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/internal/long"
	"github.com/patchbay-dev/patchbay/mcp"
)

// countTo is the last number that the tool count of the ledger sends, one every 0.2 s.
const countTo = 20

// counter is a client of a revision with sessions. It calls a tool that sends numbers, and comes back to the stream of the call with
// Last-Event-ID when its connection breaks.
type counter struct {
	watcher
	name    string
	traced  *traced
	counted int // calls that were answered, with all numbers
	resumed int // times that it came back to a stream
	failed  []failure
}

func newCounter(i int, r mcp.Revision, f *front) *counter {
	wire := &traced{front: f, RoundTripper: &http.Transport{DisableKeepAlives: true}}
	return &counter{watcher: watcher{url: f.url(), revision: r, wire: wire}, name: fmt.Sprint("e", i), traced: wire}
}

// call makes calls until calling ends.
func (c *counter) call(t *testing.T, calling context.Context) {
	c.send(t, calling, "initialize", fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"counter","version":"1"}}`, c.revision))
	for n := 0; calling.Err() == nil; n++ {
		id, began := fmt.Sprintf("%s-%d", c.name, n), time.Now()
		c.traced.take()
		if text := c.count(t, id); text != "" {
			c.failed = append(c.failed, newFailure(id, text, c.traced.take(), began))
			time.Sleep(100 * time.Millisecond)
		}
	}
}

// count makes one call, and returns the error that ended it. Each number comes once and in its turn. Only if the call ends with an error,
// the last ones may be missing.
func (c *counter) count(t *testing.T, id string) (failed string) {
	c.n++
	s := &counting{t: t, id: id, call: c.n}
	method, body := http.MethodPost, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"ledger_count","arguments":{"id":%q,"wait":200},"_meta":{"progressToken":"p"}}}`, c.n, id)
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			return fmt.Sprintf("no answer within a minute, after number %d; it came back to event %s and got %q", s.number, s.last, s.refused)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		res, err := c.request(ctx, method, body, s.last)
		if err == nil {
			err = s.read(res)
			res.Body.Close()
		}
		stop()
		switch {
		case s.answered && s.failed == "":
			c.counted++
			return ""
		case s.answered:
			return s.failed
		case s.last == "" && err == nil:
			return "EOF" // there is nothing to come back to
		case s.last == "":
			return err.Error()
		}
		c.resumed++
		method, body = http.MethodGet, ""
	}
}

// counting is what has come of a call.
type counting struct {
	t        *testing.T
	id       string
	call     int    // id of the request
	last     string // id of an event
	number   int
	answered bool
	failed   string // with these words
	refused  string // the last words when it came back
}

// read reads an answer to the POST of the call, or to a GET that goes on with it.
func (s *counting) read(res *http.Response) error {
	if res.StatusCode != http.StatusOK {
		data, err := io.ReadAll(io.LimitReader(res.Body, 1<<16))
		if res.StatusCode == http.StatusNotFound {
			s.t.Errorf("%s: the session is gone: %s", s.id, data)
		}
		if s.last == "" || res.StatusCode != http.StatusServiceUnavailable { // or the client comes again
			s.answered, s.failed = true, fmt.Sprintf("%s: %s", res.Status, data)
		}
		s.refused = string(data)
		return err
	}
	if strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") {
		data, err := io.ReadAll(res.Body)
		if err == nil {
			s.message(data)
		}
		return err
	}
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		if id, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			s.last = id
		}
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && data != "" {
			s.message([]byte(data))
		}
	}
	return lines.Err()
}

func (s *counting) message(data []byte) {
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct{ Progress int }
		Result json.RawMessage
		Error  *struct{ Message string }
	}
	if err := json.Unmarshal(data, &m); err != nil {
		s.t.Errorf("%s: %q: %v", s.id, data, err)
		return
	}
	switch {
	case s.answered:
		s.t.Errorf("%s: after the answer comes %s", s.id, data)
	case m.Method == "notifications/progress":
		if m.Params.Progress != s.number+1 {
			s.t.Errorf("%s: after number %d comes %d, with event %s", s.id, s.number, m.Params.Progress, s.last)
		}
		s.number = max(s.number, m.Params.Progress)
	case m.Method != "":
		s.t.Errorf("%s: on its stream comes %s", s.id, data)
	case m.Error != nil:
		s.answered, s.failed = true, m.Error.Message
	default:
		s.answered = true
		if string(m.ID) != fmt.Sprint(s.call) || !strings.Contains(string(m.Result), "did "+s.id) {
			s.t.Errorf("%s: the answer to %d is %s", s.id, s.call, data)
		}
		if s.number != countTo {
			s.t.Errorf("%s: it is answered after number %d, with event %s", s.id, s.number, s.last)
		}
	}
}

// counted sees that what counters have seen may happen.
func (c *chaos) counted(t *testing.T, counters []*counter, runs map[string]int, logs map[string][]begun) {
	counted, resumed, failures := 0, 0, map[string]int{}
	for _, counter := range counters {
		counted += counter.counted
		resumed += counter.resumed
		for _, f := range counter.failed {
			failures[f.words]++
			c.explained(t, f, runs, logs)
		}
	}
	t.Logf("%d calls with %d numbers each, streams came back %d times; failures: %v", counted, countTo, resumed, failures)
	if counted < len(counters) || long.On() && resumed == 0 {
		t.Errorf("%d calls of %d counters were answered, and streams came back %d times", counted, len(counters), resumed)
	}
}
