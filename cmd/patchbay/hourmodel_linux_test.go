package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/host/modeltest"
)

// Prices of the models of TestUnattended, for a token.
const (
	hourInput  = 0.001
	hourOutput = 0.002
)

// hourTokens bounds the tokens of a run.
const hourTokens = 9000

// hourModel is a provider of language models that fails. Each run has a model of its own.
type hourModel struct {
	wire *modeltest.Server

	mu   sync.Mutex
	runs map[string]*hourTask // by the name of the model; guarded by mu
}

func newHourModel() *hourModel {
	m := &hourModel{runs: map[string]*hourTask{}}
	m.wire = modeltest.Handler(&modeltest.Script{Answer: func(req *modeltest.Request) modeltest.Turn { return m.task(req.Model).turn(req) }})
	return m
}

func (m *hourModel) put(k *hourTask) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.runs[k.name] = k
}

func (m *hourModel) drop(k *hourTask) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.runs, k.name)
}

func (m *hourModel) task(name string) *hourTask {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.runs[name]
}

// hourTask is the task of one run, as the provider sees it.
type hourTask struct {
	name    string                             // of the model
	api     string                             // the provider
	agent   *hourAgent                         // what the model wants to do
	fault   func(n int, aside bool) *hourFault // what happens to the nth request, from 0; nil: nothing
	think   time.Duration                      // before an answer
	window  int                                // tokens; 0: unbounded
	program chan *os.Process                   // holds the program, once it has started

	serving sync.Mutex // one request at a time
	body    []byte     // of the request; guarded by serving

	mu       sync.Mutex
	requests int               // guarded by mu, like all that follows
	now      *hourFault        // of the request that is served
	digest   [sha256.Size]byte // of its messages
	next     *modeltest.Turn   // what the agent says
	served   bool              // it has arrived
	last     [sha256.Size]byte // digest of the messages that it answered
	usage    [2]int64          // tokens that are billed
	happened map[string]int    // faults
	wrong    []string          // requests that must not come
}

// The marks of requests that are no steps of the task.
const (
	hourSummary = "Write a summary of this conversation"
	hourSample  = "Please complete:"
)

func (m *hourModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var of struct {
		Model           string
		Messages, Input json.RawMessage
	}
	if r.Method != http.MethodPost || json.Unmarshal(body, &of) != nil || m.task(of.Model) == nil {
		http.NotFound(w, r)
		return
	}
	k := m.task(of.Model)
	k.serving.Lock()
	defer k.serving.Unlock()
	k.body = body
	k.mu.Lock()
	n := k.requests
	k.requests++
	f := k.fault(n, bytes.Contains(body, []byte(hourSummary)) || bytes.Contains(body, []byte(hourSample)))
	switch {
	case k.window > 0 && len(body)/4 > k.window:
		f = tooLong
	case f == nil:
		f = &hourFault{}
	}
	k.happened[f.name]++
	k.now, k.digest = f, sha256.Sum256(append(of.Messages, of.Input...))
	k.mu.Unlock()
	if f.before != nil {
		f.before(k, w, r)
		return
	}
	if f.request != nil {
		body = f.request(body)
	}
	again := r.Clone(r.Context())
	again.Body = io.NopCloser(bytes.NewReader(body))
	answer := httptest.NewRecorder()
	m.wire.ServeHTTP(answer, again)
	if k.think > 0 {
		select {
		case <-time.After(k.think):
		case <-r.Context().Done():
			return
		}
	}
	for name, values := range answer.Header() {
		w.Header()[name] = values
	}
	if f.after != nil {
		f.after(k, w, r, answer.Body.Bytes())
		return
	}
	w.WriteHeader(answer.Code)
	w.Write(answer.Body.Bytes())
}

// turn returns the answer to a request. The agent takes its next step if its last one has arrived.
func (k *hourTask) turn(req *modeltest.Request) (t modeltest.Turn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f := k.now
	says := func(text string) bool { return bytes.Contains(req.Body, []byte(text)) }
	switch {
	case says(hourSummary):
		t.Answer = []modeltest.Piece{{Text: "Some of it is done."}}
	case says(hourSample):
		t.Answer = []modeltest.Piece{{Text: "yes"}}
	case says("Call no more tools"):
		t.Answer = []modeltest.Piece{{Text: k.agent.report()}}
	default:
		if k.next == nil || k.served && k.digest != k.last {
			var results []string
			for _, r := range req.Results() {
				results = append(results, r.Text)
			}
			if k.next != nil && len(results) != len(k.next.Answer) {
				k.wrong = append(k.wrong, fmt.Sprintf("%d results of %d calls", len(results), len(k.next.Answer)))
			}
			next := k.agent.step(results)
			k.next = &next
		}
		t, k.last, k.served = *k.next, k.digest, (f.turn == nil || f.kept) && !f.lost
		t.Answer = append([]modeltest.Piece(nil), t.Answer...)
		if f.turn != nil {
			f.turn(&t)
		}
	}
	t.Usage.Input = int64(len(req.Body)) / 4
	for _, p := range t.Answer {
		t.Usage.Output += int64(len(p.Text))/4 + 1
		if p.Call != nil {
			t.Usage.Output += int64(len(fmt.Sprint(p.Call.Arguments)))/4 + 5
		}
	}
	k.usage[0] += t.Usage.Input
	k.usage[1] += t.Usage.Output
	return t
}

// hourAgent is the model: it does a task, reads the errors that it gets, and does what they say.
type hourAgent struct {
	next func() ([]hourWish, bool)
	stop func()

	results []string
	answer  string

	n       int             // ids so far
	sum     int             // of what it was told
	done    map[string]bool // deeds that have happened, as far as it knows
	open    []string        // deeds that it does not know
	strange []string        // results that it does not understand
}

// hourWish is a call that it wants to make.
type hourWish struct {
	tool string
	args object
}

type object = map[string]any

// newHourAgent returns an agent with a task: a function that makes calls with ask.
func newHourAgent(task func(a *hourAgent, ask func(...hourWish) []string)) *hourAgent {
	a := &hourAgent{done: map[string]bool{}}
	type left struct{} // the panic of a task that is not continued
	a.next, a.stop = iter.Pull(func(yield func([]hourWish) bool) {
		defer func() {
			if r := recover(); r != nil && r != (left{}) {
				panic(r)
			}
		}()
		task(a, func(w ...hourWish) []string {
			if !yield(w) {
				panic(left{})
			}
			return a.results
		})
		a.answer = a.report()
	})
	return a
}

func (a *hourAgent) report() string {
	text := fmt.Sprintf("The sum is %d.", a.sum)
	if len(a.open) > 0 {
		text += " Not sure about " + strings.Join(a.open, ", ") + "."
	}
	return text
}

// step gives the agent the results of its calls, and returns what it says next.
func (a *hourAgent) step(results []string) (t modeltest.Turn) {
	a.results = results
	wishes, _ := a.next()
	for _, w := range wishes {
		t.Answer = append(t.Answer, modeltest.Piece{Call: &modeltest.Call{Name: w.tool, Arguments: w.args}})
	}
	if wishes == nil {
		t.Answer = []modeltest.Piece{{Text: a.answer}}
	}
	return t
}

// await waits for the tools of a server that starts, half a minute at most. The program goes on without a server that
// has not started within its --timeout.
func (a *hourAgent) await(ask func(...hourWish) []string, server string) {
	for try := range 30 {
		told := ask(hourWish{server + "_seen", object{"id": "none", "try": try}})[0]
		if unknown := strings.Contains(told, "does not exist"); !unknown {
			return
		}
		time.Sleep(time.Second) // it is a model that thinks
	}
	a.strange = append(a.strange, server+" has no tools")
}

// deed does something that must happen once at most. A model is stubborn: it tries again even what it
// must not try again.
func (a *hourAgent) deed(ask func(...hourWish) []string, tool string, amount int, how string) {
	a.n++
	id := fmt.Sprintf("d%d", a.n)
	server, _, _ := strings.Cut(tool, "_")
	do := hourWish{tool, object{"id": id, "amount": amount, "how": how}}
	for range 4 {
		told := ask(do)[0]
		switch {
		case strings.HasPrefix(told, "did "+id):
			a.done[id] = true
			a.sum += amount
			return
		case strings.Contains(told, "do not repeat it without checking"):
			if again := ask(do)[0]; !strings.Contains(again, "It was not called") {
				a.strange = append(a.strange, id+" again: "+again)
			}
			for try := range 5 {
				switch seen := ask(hourWish{server + "_seen", object{"id": id, "try": try}})[0]; seen {
				case "yes":
					a.done[id] = true
					a.sum += amount
					return
				case "no":
					return
				}
			}
			a.open = append(a.open, id)
			return
		case strings.Contains(told, "may work later"):
		default:
			a.strange = append(a.strange, id+": "+told)
			return
		}
	}
	a.open = append(a.open, id)
}

// number understands the result of a tool that looks something up, or looks again.
func (a *hourAgent) number(ask func(...hourWish) []string, w hourWish, told string) {
	for try := range 5 {
		var n int
		if _, err := fmt.Sscan(told, &n); err == nil {
			a.sum += n
			return
		}
		w.args["try"] = try
		told = ask(w)[0]
	}
	a.strange = append(a.strange, fmt.Sprint(w, ": ", told))
}
