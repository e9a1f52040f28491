package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/host/modeltest"
	"github.com/patchbay-dev/patchbay/internal/long"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// wish is a call that an agent wants to make.
type wish struct{ name, args string }

// agent is a model that follows rules: it does a task of some 40 steps, reads the errors that it
// gets, and does what they say.
type agent struct {
	results []string // of the last calls, in their order
	answer  string
	next    func() ([]wish, bool)
	stop    func()
}

// left is the panic value of a step when the agent must stop.
type left struct{}

func newAgent() *agent {
	a := &agent{}
	a.next, a.stop = iter.Pull(func(yield func([]wish) bool) {
		defer func() {
			if r := recover(); r != nil && r != (left{}) {
				panic(r)
			}
		}()
		a.answer = a.task(func(w ...wish) []string {
			if !yield(w) {
				panic(left{})
			}
			return a.results
		})
	})
	return a
}

// step gives the agent the results of its calls, and returns its next calls; none: it has its
// answer.
func (a *agent) step(results []string) []wish {
	a.results = results
	calls, _ := a.next()
	return calls
}

// task posts, orders, looks up and converts, and adds up the results.
func (a *agent) task(ask func(...wish) []string) string {
	var problems []string
	sum := 0

	// sure does an action that must happen exactly once.
	sure := func(server, tool, mark string, amount int) {
		do := wish{server + "_" + tool, fmt.Sprintf(`{"mark":%q,"amount":%d}`, mark, amount)}
		for range 8 {
			told := ask(do)[0]
			switch {
			case strings.HasPrefix(told, tool):
				sum += amount
				return
			case strings.Contains(told, "do not repeat it without checking"):
				seen := ""
				for seen != "yes" && seen != "no" {
					seen = ask(wish{server + "_seen", fmt.Sprintf(`{"mark":%q}`, mark)})[0]
				}
				if seen == "yes" {
					sum += amount
					return
				}
			case strings.Contains(told, "may work later"):
			default:
				problems = append(problems, mark+": "+told)
				return
			}
		}
		problems = append(problems, mark+": given up")
	}

	// number reads a value, with as many attempts as needed.
	number := func(told string, again wish) int {
		for range 8 {
			text := strings.TrimSuffix(strings.TrimPrefix(told, `{"value":`), "}")
			var n int
			if _, err := fmt.Sscan(text, &n); err == nil {
				return n
			}
			told = ask(again)[0]
		}
		problems = append(problems, again.name+again.args+": "+told)
		return 0
	}

	for i := 1; i <= 8; i++ {
		sure("ledger", "post", fmt.Sprintf("m%d", i), i)
	}
	for i := 1; i <= 6; i++ {
		sure("web", "order", fmt.Sprintf("w%d", i), 10*i)
	}
	for i := 1; i <= 3; i++ {
		sure("storm", "stamp", fmt.Sprintf("s%d", i), 100*i)
	}
	for _, turn := range [][]int{{1, 2, 3}, {4, 5}} {
		var many []wish // of several servers at the same time
		for _, n := range turn {
			many = append(many, wish{"slow_lookup", fmt.Sprintf(`{"n":%d}`, n)}, wish{"web_price", fmt.Sprintf(`{"n":%d}`, n)})
		}
		for i, told := range ask(many...) {
			sum += number(told, many[i])
		}
	}
	for i := 1; i <= 5; i++ {
		w := wish{"raw_convert", fmt.Sprintf(`{"n":%d}`, i)}
		sum += number(ask(w)[0], w)
	}
	told := ""
	for tries := 0; tries < 8 && !strings.HasPrefix(told, "begin 0123"); tries++ {
		told = ask(wish{"large_big", `{}`})[0]
	}
	if !strings.HasPrefix(told, "begin 0123") || len(told) > 100<<10 {
		problems = append(problems, fmt.Sprintf("the large result: %d bytes, %.100q", len(told), told))
	}
	for i := range 6 { // mistakes of its own
		told := ask(wish{"ledger_pots", fmt.Sprintf(`{"mark":"m%d"}`, i)}, wish{"ledger_post", fmt.Sprintf(`{"mark":"m%d"}`, i)})
		if !strings.Contains(told[0], "ledger_post") || !strings.Contains(told[1], `missing "amount"`) {
			problems = append(problems, strings.Join(told, "; "))
		}
	}
	if len(problems) > 0 {
		return "Not all went well:\n" + strings.Join(problems, "\n")
	}
	return fmt.Sprintf("The sum is %d.", sum)
}

// inProcess is the agent as a model.
type inProcess struct{ *agent }

func (m inProcess) Info() model.Info { return model.Info{Name: "fake/agent"} }

func (m inProcess) Generate(ctx context.Context, req *model.Request, _ func(model.Delta)) (*model.Response, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	var results []string
	last := req.Messages[len(req.Messages)-1]
	for _, p := range last.Parts {
		if p.Result != nil {
			results = append(results, (&model.Message{Parts: p.Result.Parts}).Text())
		}
	}
	res := &model.Response{Message: model.Message{Role: model.Assistant}, Stop: model.StopCalls}
	for i, w := range m.step(results) {
		res.Message.Parts = append(res.Message.Parts, model.Part{Call: &model.Call{ID: fmt.Sprintf("c%d.%d", len(req.Messages), i), Name: w.name, Arguments: json.RawMessage(w.args)}})
	}
	if len(res.Message.Parts) == 0 {
		res.Message.Parts, res.Stop = []model.Part{{Text: m.answer}}, model.StopEnd
	}
	return res, nil
}

// overAPI is the agent behind the API of a provider, or behind a model that only writes text.
func overAPI(t testing.TB, api string, a *agent) model.Model {
	return modeltest.Open(t, api, &modeltest.Script{Answer: func(req *modeltest.Request) (turn modeltest.Turn) {
		var results []string
		for _, r := range req.Results() {
			results = append(results, r.Text)
		}
		for _, w := range a.step(results) {
			turn.Answer = append(turn.Answer, modeltest.Piece{Call: &modeltest.Call{Name: w.name, Arguments: w.args}})
		}
		if turn.Answer == nil {
			turn.Answer = []modeltest.Piece{{Text: a.answer}}
		}
		return turn
	}})
}

// A long run over five servers that crash, hang, fail, send invalid data, lose connections, start
// slowly and keep changing ends with the right answer. Actions that must happen once do not happen
// twice, and neither a process nor a goroutine is left.
func TestRunWithFaults(t *testing.T) {
	agentsWithFaults(t, "", "chat")
}

func TestRunWithFaultsOverOtherAPIs(t *testing.T) {
	long.WithoutRace(t)
	agentsWithFaults(t, "responses", "messages", "text")
}

// agentsWithFaults runs an agent over each of some wires; the empty one is a model in this process.
func agentsWithFaults(t *testing.T, apis ...string) {
	mcptest.LeakCheck(t)
	var wg sync.WaitGroup
	for _, api := range apis {
		// The agents run in parallel, regardless of the number of processors, because they mostly
		// wait.
		wg.Go(func() {
			t.Run("model "+api, func(t *testing.T) {
				a := newAgent()
				t.Cleanup(a.stop)
				if api == "" {
					runWithFaults(t, inProcess{a})
				} else {
					runWithFaults(t, overAPI(t, api, a))
				}
			})
		})
	}
	wg.Wait()
}

func runWithFaults(t *testing.T, m model.Model) {
	f := fixture{t.TempDir()}
	var asked atomic.Int64
	h := newHost(t, &host.Host{
		Model: m, Allow: []string{"*"},
		Limits: host.Limits{CallTimeout: 2 * time.Second, Steps: 200, Repeats: 20},
		Person: approver{approve: func(_ context.Context, p *host.Approval) (host.Verdict, error) {
			asked.Add(1)
			if p.Doubt == "" {
				t.Errorf("asked about %s %s, which is allowed and was not in doubt", p.Tool.Name, p.Arguments)
			}
			return host.Verdict{Answer: host.AllowOnce}, nil
		}},
	}, f.servers(t)...)
	c, d := h.NewConversation(), &diary{}
	c.OnEvent = d.note
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	reply, err := c.Send(ctx, "Do what is to be done, and tell me the sum.")
	if err != nil {
		t.Fatalf("Send = %v", err)
	}

	// 1…8, 10…60, 100…300, squares and prices of 1…5, doubles of 1…5.
	if want := fmt.Sprintf("The sum is %d.", 36+210+600+55+515+30); reply.Text != want {
		t.Errorf("the answer is %q, want %q", reply.Text, want)
	}
	if reply.Steps < 30 {
		t.Errorf("%d steps, want 30 and more", reply.Steps)
	}
	for server, n := range map[string]int{"m": 8, "w": 6, "s": 3} {
		for i := 1; i <= n; i++ {
			if got := f.seen(fmt.Sprintf("%s%d", server, i)); got != 1 {
				t.Errorf("%s%d happened %d times", server, i, got)
			}
		}
	}
	for _, fault := range []string{"crash-before", "crash-after", "hang-after", "hang", "crash", "raw-2", "raw-4", "raw-6", "raw-8",
		"500-after", "503-before", "lost-after", "lost-before", "429-before", "502", "lost-read"} {
		if f.once(fault) {
			t.Errorf("the fault %q did not happen", fault)
		}
	}
	if asked.Load() < 2 { // of m3 and w4, which had not happened
		t.Errorf("asked %d times", asked.Load())
	}
	outcomes := map[host.Outcome]int{}
	for _, e := range d.of(host.Resulted) {
		outcomes[e.Call.Outcome]++
	}
	for _, o := range []host.Outcome{host.Succeeded, host.Unknown, host.Broken, host.Invalid} {
		if outcomes[o] == 0 {
			t.Errorf("no call was %s: %v", o, outcomes)
		}
	}
	t.Logf("%d steps, outcomes %v, %d retries, asked %d times", reply.Steps, outcomes, len(d.of(host.Retried)), asked.Load())

	h.Close()
	pids := f.lines("pids")
	if len(pids) < 6 {
		t.Errorf("%d processes were started, want 3 and 3 more", len(pids))
	}
	if runtime.GOOS == "linux" {
		for _, pid := range slices.Compact(pids) {
			if _, err := os.Stat("/proc/" + pid); err == nil {
				t.Errorf("process %s is left", pid)
			}
		}
	}
}
