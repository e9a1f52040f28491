package eval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/schema"
)

// Runner runs suites. Model and Start are required.
type Runner struct {
	// Model opens a model by its name in the suite.
	Model func(name string) (model.Model, error)

	// Start adds the servers to the host of one run. Each run has its own host, which is closed
	// afterwards, so that runs do not see each other's changes.
	Start func(ctx context.Context, h *host.Host) error

	// OnResult is called for each result as soon as it is available, one at a time. If nil, it
	// is not called.
	OnResult func(*Result)
}

// Result is the result of one run of a task.
type Result struct {
	Task   string   `json:"task"`
	Model  string   `json:"model"`
	Run    int      `json:"run"` // from 1
	Passed bool     `json:"passed"`
	Faults []string `json:"faults,omitempty"` // what differed from the expectations
	Error  string   `json:"error,omitempty"`  // why the run, or its judge, did not complete

	Reply             // the last answer, and the rest of all turns
	Turns []Reply     `json:"turns,omitempty"` // of a task with turns, as far as they went
	Took  host.Millis `json:"duration_ms"`

	Judging   model.Usage `json:"judging,omitzero"`    // of all judges
	JudgeCost float64     `json:"judgeCost,omitempty"` // likewise
}

// Reply is what a turn has brought.
type Reply struct {
	Answer string      `json:"answer"`
	Calls  []Made      `json:"calls"`
	Steps  int         `json:"steps"`
	Usage  model.Usage `json:"usage"`
	Cost   float64     `json:"cost,omitempty"` // 0: unknown
}

// Run runs each task of a suite with each model as many times as the suite says. The error is about
// the suite or its models, or the cause of ctx. With the latter, the report holds the results so
// far.
func (r *Runner) Run(ctx context.Context, s *Suite) (*Report, error) {
	models := map[string]model.Model{}
	open := func(name string) error {
		if models[name] != nil {
			return nil
		}
		m, err := r.Model(name)
		if err != nil {
			return err
		}
		models[name] = m
		return nil
	}
	if len(s.Models) == 0 {
		return nil, errors.New("no model is named")
	}
	referee := s.Judge
	if referee == "" {
		referee = s.Models[0]
	}
	for _, name := range append(slices.Clone(s.Models), referee) {
		if err := open(name); err != nil {
			return nil, err
		}
	}
	began := time.Now()
	report := &Report{Suite: s.Name}
	var jobs []*job
	for _, t := range s.Tasks {
		for _, name := range s.Models {
			for i := range s.RunsOf(t) {
				report.Results = append(report.Results, &Result{Task: t.Name, Model: name, Run: i + 1, Reply: Reply{Calls: []Made{}}})
				jobs = append(jobs, &job{r, s, t, models[name], models[referee], report.Results[len(report.Results)-1]})
			}
		}
	}
	parallel := s.Parallel
	if parallel <= 0 {
		parallel = 4
	}
	slots := make(chan struct{}, parallel)
	var wg sync.WaitGroup
	var telling sync.Mutex
	for _, j := range jobs {
		wg.Go(func() {
			select {
			case slots <- struct{}{}:
				defer func() { <-slots }()
				j.run(ctx)
			case <-ctx.Done():
				j.res.Error = context.Cause(ctx).Error()
			}
			telling.Lock()
			defer telling.Unlock()
			if r.OnResult != nil {
				r.OnResult(j.res)
			}
		})
	}
	wg.Wait()
	report.Took = host.Millis(time.Since(began))
	if ctx.Err() != nil {
		return report, context.Cause(ctx)
	}
	return report, nil
}

// job is one run of a task.
type job struct {
	r       *Runner
	s       *Suite
	t       *Task
	m       model.Model
	referee model.Model
	res     *Result
}

func (j *job) run(ctx context.Context) {
	began := time.Now()
	faults, err := j.do(ctx)
	j.res.Took = host.Millis(time.Since(began))
	if err != nil {
		j.res.Error = err.Error()
	}
	j.res.Faults = faults
	j.res.Passed = err == nil && len(faults) == 0
}

// limit returns the time limit of a run.
func (j *job) limit() time.Duration {
	if j.t.Expect.Time > 0 {
		return j.t.Expect.Time
	}
	return DefaultTime * time.Duration(len(j.t.conversation()))
}

var errTime = errors.New("the time limit of the run has passed")

func (j *job) do(whole context.Context) (faults []string, err error) {
	ctx, cancel := context.WithTimeoutCause(whole, j.limit(), errTime)
	defer cancel()
	h := &host.Host{Model: j.m, Person: &person{j.t}, Allow: slices.Concat(j.s.Allow, j.t.Allow), Distrust: true}
	turns := j.t.conversation()
	for _, e := range append([]Turn{{Expect: j.t.Expect}}, turns...) {
		for _, c := range e.Expect.Calls {
			h.Allow = append(h.Allow, c.Tool)
		}
	}
	if n := j.t.Expect.Steps; n > 0 {
		h.Limits.Steps = n + 5 // the task has failed by then
	}
	news := make(chan struct{}, 1)
	h.OnStatus = func(host.ServerStatus) {
		select {
		case news <- struct{}{}:
		default:
		}
	}
	defer h.Close()
	if err := j.r.Start(ctx, h); err != nil {
		return nil, err
	}
	if err := ready(ctx, h, news); err != nil {
		return nil, err
	}
	talk := h.NewConversation()
	if talk.System = j.s.System; j.t.System != "" {
		talk.System = j.t.System
	}
	w := &witness{at: map[string]int{}}
	talk.OnEvent = w.event
	for i, turn := range turns {
		over, err := j.turn(ctx, talk, w, &turn)
		for _, f := range over {
			if len(j.t.Turns) > 0 {
				f = fmt.Sprintf("turn %d: %s", i+1, f)
			}
			faults = append(faults, f)
		}
		if err != nil {
			if errors.Is(err, errFailed) {
				err = nil
			}
			return faults, err
		}
	}
	faults = append(faults, j.t.Expect.faults(&j.res.Reply, j.m.Info())...)
	rejected, err := j.judge(whole, turns)
	return append(faults, rejected...), err
}

// errFailed ends a run whose faults say why.
var errFailed = errors.New("the run has failed")

// turn says what a person says in a turn, and returns what differs from the expectations.
func (j *job) turn(ctx context.Context, talk *host.Conversation, w *witness, turn *Turn) (faults []string, err error) {
	whole, limit := ctx, j.limit()
	if turn.Expect.Time > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, turn.Expect.Time, errTime)
		defer cancel()
	}
	w.calls = []Made{}
	said, err := talk.Send(ctx, turn.Prompt)
	reply := Reply{Calls: w.calls}
	if said != nil {
		reply.Answer, reply.Steps, reply.Usage, reply.Cost = said.Text, said.Steps, said.Usage, said.Cost
	}
	r := j.res
	r.Answer, r.Calls, r.Steps, r.Cost = reply.Answer, append(r.Calls, reply.Calls...), r.Steps+reply.Steps, r.Cost+reply.Cost
	r.Usage.Add(reply.Usage)
	if len(j.t.Turns) > 0 {
		r.Turns = append(r.Turns, reply)
	}
	switch {
	case errors.Is(err, errTime):
		if whole.Err() == nil {
			limit = turn.Expect.Time
		}
		return []string{fmt.Sprintf("it took longer than %v", limit)}, errFailed
	case errors.Is(err, host.ErrSteps):
		return []string{err.Error()}, errFailed
	case err != nil:
		return nil, err
	}
	if said.Stop == model.StopLength {
		faults = append(faults, "the answer was cut off")
	}
	if said.Early != "" {
		faults = append(faults, fmt.Sprintf("it was ended early (%s)", said.Early))
	}
	return append(faults, turn.Expect.faults(&reply, j.m.Info())...), nil
}

// judge asks the judge about each criterion of the turns and of the task.
func (j *job) judge(ctx context.Context, turns []Turn) (faults []string, err error) {
	replies := j.res.Turns
	if len(j.t.Turns) == 0 {
		replies = []Reply{j.res.Reply}
	}
	ask := func(e *Expect, about string, last int) error {
		for _, criterion := range e.Answer.Judge {
			fault, err := judge(ctx, j.referee, judged(turns[:last], replies, about, criterion), criterion, j.res)
			if err != nil {
				return err
			}
			if fault != "" {
				faults = append(faults, fault)
			}
		}
		return nil
	}
	for i := range j.t.Turns {
		before := len(faults)
		err := ask(&turns[i].Expect, fmt.Sprintf("the answer of turn %d", i+1), i+1)
		for at := before; at < len(faults); at++ {
			faults[at] = fmt.Sprintf("turn %d: %s", i+1, faults[at])
		}
		if err != nil {
			return faults, err
		}
	}
	return faults, ask(&j.t.Expect, "the whole conversation", len(turns))
}

// startTime bounds the wait for servers to start.
const startTime = time.Minute

// ready waits until no server is starting. It fails if any server is not ready.
func ready(ctx context.Context, h *host.Host, news <-chan struct{}) error {
	late := time.NewTimer(startTime)
	defer late.Stop()
	for {
		var starting, lost []string
		for _, s := range h.Servers() {
			switch s.State {
			case gateway.Starting:
				starting = append(starting, s.Name)
			case gateway.Ready, gateway.Idle:
			default:
				lost = append(lost, fmt.Sprintf("%s: %s: %s", s.Name, s.State, text.Clip(s.Reason, 500)))
			}
		}
		if len(lost) > 0 {
			return errors.New(strings.Join(lost, "; "))
		}
		if len(starting) == 0 {
			return nil
		}
		select {
		case <-news:
		case <-late.C:
			return fmt.Errorf("not ready after %v: %s", startTime, strings.Join(starting, ", "))
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// witness records calls.
type witness struct {
	calls []Made
	at    map[string]int // index in calls, by call id
}

func (w *witness) event(e host.Event) {
	switch e.Kind {
	case host.Called:
		w.at[e.Call.ID] = len(w.calls)
		w.calls = append(w.calls, Made{Server: e.Call.Server, Tool: e.Call.Tool, Arguments: e.Call.Arguments})
	case host.Resulted:
		i, ok := w.at[e.Call.ID]
		if !ok { // the event of the call is missing
			i = len(w.calls)
			w.calls = append(w.calls, Made{Server: e.Call.Server, Tool: e.Call.Tool, Arguments: e.Call.Arguments})
		}
		w.calls[i].Outcome = e.Call.Outcome
		delete(w.at, e.Call.ID)
	}
}

// person is the person that a task describes.
type person struct{ t *Task }

var _ host.Person = (*person)(nil)

// Approve denies the call, because a call that the task allows does not need approval.
func (*person) Approve(context.Context, *host.Approval) (host.Verdict, error) {
	return host.Verdict{Reason: "this test does not allow it"}, nil
}

// Elicit answers a form with the answers of the task.
func (p *person) Elicit(_ context.Context, q *host.Elicitation) (*mcp.ElicitResult, error) {
	no := &mcp.ElicitResult{Action: "decline"}
	if q.URL != "" || p.t.Answers == nil {
		return no, nil
	}
	form, err := schema.FormOf(q.Schema)
	if err != nil {
		return no, nil
	}
	values := form.Defaults()
	for i := range form.Fields {
		if v, ok := p.t.Answers[form.Fields[i].Name]; ok {
			values[form.Fields[i].Name] = v
		}
	}
	if form.Check(values) != nil {
		return no, nil
	}
	content := make(map[string]any, len(values))
	for name, v := range values {
		content[name] = json.RawMessage(v)
	}
	return &mcp.ElicitResult{Action: "accept", Content: content}, nil
}

// ReviewRequest accepts sampling requests if the task allows sampling.
func (p *person) ReviewRequest(_ context.Context, s *host.Sampling) (*mcp.SampleRequest, error) {
	if !p.t.Sampling {
		return nil, mcp.ErrDeclined
	}
	return s.Request, nil
}

// ReviewAnswer accepts every answer.
func (*person) ReviewAnswer(_ context.Context, _ *host.Sampling, r *mcp.SampleResult) (*mcp.SampleResult, error) {
	return r, nil
}
