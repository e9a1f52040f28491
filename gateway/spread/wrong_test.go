package spread_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/breaker"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/gateway/spread"
	"github.com/patchbay-dev/patchbay/mcp"
)

// wrongs are ways to answer a request that are of no use, given its id.
var wrongs = map[string]func(w http.ResponseWriter, id json.RawMessage){
	"a web page": func(w http.ResponseWriter, _ json.RawMessage) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		io.WriteString(w, "<html>down for maintenance</html>")
	},
	"no response": func(w http.ResponseWriter, _ json.RawMessage) { w.WriteHeader(http.StatusAccepted) },
	"another type": func(w http.ResponseWriter, _ json.RawMessage) {
		w.Header().Set("Content-Type", "text/plain")
		io.WriteString(w, "hello")
	},
	"no JSON":       answer(func(json.RawMessage) string { return `{"oops` }),
	"another id":    answer(func(json.RawMessage) string { return `{"jsonrpc":"2.0","id":"other","result":{}}` }),
	"a list":        answer(func(id json.RawMessage) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":[]}`, id) }),
	"another event": stream(func(json.RawMessage) string { return `{"jsonrpc":"2.0","id":"other","result":{}}` }),
	"an event that is not JSON": stream(func(json.RawMessage) string {
		return `oops`
	}),
	"an unknown kind of result": answer(func(id json.RawMessage) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"resultType":"surprise"}}`, id)
	}),
	"a question without a method": answer(func(id json.RawMessage) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"resultType":"input_required","inputRequests":{"q":{}}}}`, id)
	}),
}

func answer(body func(id json.RawMessage) string) func(http.ResponseWriter, json.RawMessage) {
	return func(w http.ResponseWriter, id json.RawMessage) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, body(id))
	}
}

func stream(data func(id json.RawMessage) string) func(http.ResponseWriter, json.RawMessage) {
	return func(w http.ResponseWriter, id json.RawMessage) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: %s\n\n", data(id))
	}
}

// answersWrongly lets the box answer requests with the methods that way; no methods: all requests. Nil: as it should.
func (b *box) answersWrongly(wrong func(http.ResponseWriter, json.RawMessage), methods ...string) {
	if wrong == nil {
		b.wrong.Store(nil)
		return
	}
	h := func(w http.ResponseWriter, r *http.Request) bool {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if r.Method != http.MethodPost || json.Unmarshal(body, &m) != nil || m.ID == nil {
			return false
		}
		fits := len(methods) == 0
		for _, method := range methods {
			fits = fits || m.Method == method
		}
		if fits {
			wrong(w, m.ID)
		}
		return fits
	}
	b.wrong.Store(&h)
}

// pair returns a caller of a group of two boxes, when both have answered.
func pair(t *testing.T, rev mcp.Revision, rule breaker.Rule) (a, b *box, group *spread.Group, session func() *mcp.Session) {
	t.Helper()
	a, b = newBox(t, "a"), newBox(t, "b")
	a.kinds()
	b.kinds()
	group = &spread.Group{Name: "work", Logger: quiet(), Rule: rule, Replicas: []spread.Replica{a.patient(rev), b.patient(rev)}}
	_, session = through(t, group, gateway.Shared)
	connected(t, group)
	compared(t, session(), a, b)
	return a, b, group, session
}

// A replica that answers calls with something that is not an answer gets no more calls after ten: its breaker
// opens, although it answers fast and answers pings. Each of these calls fails with words. A read never
// fails.
func TestReplicaAnswersWrongly(t *testing.T) {
	for _, rev := range []mcp.Revision{mcp.V2026_07_28, mcp.V2025_06_18} {
		for name, wrong := range wrongs {
			if !rev.Sessions() || name == "a web page" || name == "a list" || name == "another event" {
				t.Run(string(rev)+" "+name, func(t *testing.T) {
					t.Parallel()
					a, _, group, session := pair(t, rev, breaker.Rule{For: time.Hour})
					s, mark := session(), load(t, session, "work_which")
					a.answersWrongly(wrong, "tools/call", "resources/read")
					for end := time.Now().Add(30 * time.Second); !statusOf(group, "a").Breaker.Open; {
						if _, err := s.ReadResource(within(t), "x://1", mcp.WithoutCache()); err != nil {
							t.Fatalf("a read was not repeated: %v", err)
						}
						if time.Now().After(end) {
							t.Fatal("the breaker is closed")
						}
					}
					open := statusOf(group, "a").Breaker
					if open.Failures[breaker.Unusable] < 10 || open.Kind != breaker.Unusable {
						t.Errorf("%+v", open)
					}
					for range 20 {
						if got, err := call(t, s, "work_which"); err != nil || got != "b" {
							t.Fatalf("while the breaker is open: %q, %v", got, err)
						}
					}
					_, errs := mark()
					if len(errs) > 10+16 { // those that were in flight
						t.Errorf("%d calls failed", len(errs))
					}
					for _, err := range errs {
						if !strings.Contains(err.Error(), "replica a of server") || !strings.Contains(err.Error(), "the tool may or may not have run") {
							t.Fatalf("the error of a call: %v", err)
						}
					}
				})
			}
		}
	}
}

// A replica that has become a web page loses its requests after the first wrong answer, because its ping fails too.
func TestReplicaBecomesPage(t *testing.T) {
	t.Parallel()
	a, _, group, session := pair(t, mcp.V2026_07_28, breaker.Rule{For: 50 * time.Millisecond})
	s := session()
	a.answersWrongly(wrongs["a web page"])
	failed := 0
	eventually(t, "the breaker opens", func() bool {
		if _, err := call(t, s, "work_which"); err != nil {
			failed++
		}
		return statusOf(group, "a").Breaker.Opened > 0
	})
	if failed > 3 { // those that came while it was pinged
		t.Errorf("%d calls failed", failed)
	}
	a.answersWrongly(nil)
	eventually(t, "it gets calls again", func() bool {
		got, _ := call(t, s, "work_which")
		return got == "a"
	})
}

// A replica that refuses what another one answers loses no call: the other one gets it. Its breaker opens, and
// those of replicas that all refuse the same do not.
func TestReplicaRefuses(t *testing.T) {
	for _, rev := range []mcp.Revision{mcp.V2026_07_28, mcp.V2025_06_18} {
		for _, status := range []int{401, 403, 404, 405, 429} {
			for _, body := range []string{"no", `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no"}}`} {
				switch {
				case status == 404 && (body != "no" || rev.Sessions()): // an answer, or the end of a session
					continue
				case rev.Sessions() && status != 401:
					continue
				}
				t.Run(fmt.Sprint(rev, " ", status, " ", len(body)), func(t *testing.T) {
					t.Parallel()
					a, b, group, session := pair(t, rev, breaker.Rule{For: time.Hour})
					s, mark := session(), load(t, session, "work_which")
					refuse := func(w http.ResponseWriter, _ json.RawMessage) {
						w.Header().Set("Content-Type", "application/json")
						w.WriteHeader(status)
						io.WriteString(w, body)
					}
					a.answersWrongly(refuse, "tools/call")
					eventually(t, "the breaker opens", func() bool { return statusOf(group, "a").Breaker.Open })
					if n, errs := mark(); len(errs) > 0 {
						t.Fatalf("%d of %d calls failed: %v", len(errs), n, errs[0])
					}
					if open := statusOf(group, "a").Breaker; open.Failures[breaker.Refused] < 10 || !strings.Contains(open.Cause, "no") {
						t.Errorf("%+v", open)
					}
					b.answersWrongly(refuse, "tools/call")
					for range 30 {
						if _, err := call(t, s, "work_which"); err == nil || !strings.Contains(err.Error(), "no") {
							t.Fatalf("all refuse: %v", err)
						}
					}
					if open := statusOf(group, "b").Breaker; open.Open {
						t.Errorf("the last replica is taken out, although no other one answers what it refuses: %+v", open)
					}
				})
			}
		}
	}
}
