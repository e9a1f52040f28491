package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/servers/shop"
)

func TestMain(m *testing.M) {
	if which := os.Getenv(faultyServer); which != "" {
		serveFaulty(which) // does not return
	}
	mcptest.Main(m)
}

// answering is a model that a function answers for.
type answering struct {
	info model.Info
	f    func(ctx context.Context, r *model.Request) (*model.Response, error)
}

func (a answering) Info() model.Info { return a.info }

func (a answering) Generate(ctx context.Context, r *model.Request, _ func(model.Delta)) (*model.Response, error) {
	return a.f(ctx, r)
}

// said is the answer of a model with a text.
func said(text string) *model.Response {
	return &model.Response{
		Message: model.Message{Role: model.Assistant, Parts: []model.Part{{Text: text}}}, Stop: model.StopEnd,
		Usage: model.Usage{Input: 1000, Output: 100}, Model: "m-1",
	}
}

// wants is an answer of the model that calls a tool.
func wants(id, tool string, args any) *model.Response {
	raw, _ := json.Marshal(args)
	return &model.Response{
		Message: model.Message{Role: model.Assistant, Parts: []model.Part{{Call: &model.Call{ID: id, Name: tool, Arguments: raw}}}},
		Stop:    model.StopCalls, Usage: model.Usage{Input: 1000, Output: 100},
	}
}

// script is a model that answers conversations with one response after the other, and sampling
// requests with a function.
func script(sample func(*model.Request) string, turns ...*model.Response) model.Model {
	var mu sync.Mutex
	return answering{model.Info{Name: "test/m", Price: model.Price{Input: 1, Output: 10}}, func(_ context.Context, r *model.Request) (*model.Response, error) {
		mu.Lock()
		defer mu.Unlock()
		if len(r.Tools) == 0 {
			return said(sample(r)), nil
		}
		if len(turns) == 0 {
			return said("done"), nil
		}
		next := turns[0]
		turns = turns[1:]
		return next, nil
	}}
}

// agreeable is a person made of functions; it agrees where it has none.
type agreeable struct {
	elicit  func(context.Context, *host.Elicitation) (*mcp.ElicitResult, error)
	request func(*host.Sampling) (*mcp.SampleRequest, error)
	answer  func(*host.Sampling, *mcp.SampleResult) (*mcp.SampleResult, error)
}

func (p *agreeable) Approve(context.Context, *host.Approval) (host.Verdict, error) {
	return host.Verdict{Answer: host.AllowOnce}, nil
}

func (p *agreeable) Elicit(ctx context.Context, q *host.Elicitation) (*mcp.ElicitResult, error) {
	if p.elicit == nil {
		return nil, mcp.ErrDeclined
	}
	return p.elicit(ctx, q)
}

func (p *agreeable) ReviewRequest(_ context.Context, s *host.Sampling) (*mcp.SampleRequest, error) {
	if p.request == nil {
		return s.Request, nil
	}
	return p.request(s)
}

func (p *agreeable) ReviewAnswer(_ context.Context, s *host.Sampling, r *mcp.SampleResult) (*mcp.SampleResult, error) {
	if p.answer == nil {
		return r, nil
	}
	return p.answer(s, r)
}

// speaking opens sessions of one revision with a server in memory.
func speaking(t testing.TB, rev mcp.Revision, newServer func() *mcp.Server) func(context.Context, *mcp.Client) (mcp.Handler, error) {
	return func(ctx context.Context, c *mcp.Client) (mcp.Handler, error) {
		near, far := jsonrpc.Pipe()
		srv := newServer()
		serving, stop := context.WithCancel(context.Background())
		served := make(chan struct{})
		go func() {
			defer close(served)
			srv.Serve(serving, far)
		}()
		t.Cleanup(func() {
			stop()
			<-served
		})
		c.Revisions = []mcp.Revision{rev}
		return c.Connect(ctx, mcptest.Wire(near))
	}
}

// everywhere runs body with a host of one server, on every revision and every wire. Prepare makes
// the host.
func everywhere(t *testing.T, name string, newServer func() *mcp.Server, prepare func() *host.Host, body func(t *testing.T, h *host.Host)) {
	var prepared *mcp.Client // by the host
	newClient := func() *mcp.Client {
		return &mcp.Client{
			Name: "c",
			OnElicit: func(ctx context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				return prepared.OnElicit(ctx, r)
			},
			OnSample: func(ctx context.Context, r *mcp.SampleRequest) (*mcp.SampleResult, error) {
				return prepared.OnSample(ctx, r)
			},
			Roots: func(ctx context.Context) ([]mcp.Root, error) { return prepared.Roots(ctx) },
		}
	}
	mcptest.Every(t, newServer, newClient, func(t *testing.T, s *mcp.Session) {
		h := prepare()
		t.Cleanup(func() { h.Close() })
		listed, once := make(chan struct{}), sync.Once{}
		h.OnStatus = func(s host.ServerStatus) {
			if s.Tools >= 0 && s.Prompts >= 0 && s.Resources >= 0 {
				once.Do(func() { close(listed) })
			}
		}
		if err := h.Add(host.Server{Name: name, Open: func(_ context.Context, c *mcp.Client) (mcp.Handler, error) {
			prepared = c
			return s, nil
		}}); err != nil {
			t.Fatal(err)
		}
		<-listed // a list that the end of the test cuts off would be an invalid frame
		body(t, h)
	})
}

// revisionOf returns the revision spoken with a server.
func revisionOf(t *testing.T, h *host.Host, name string) mcp.Revision {
	t.Helper()
	return status(t, h, name).Revision
}

// lastResult is the text of the result of the last call.
func lastResult(t *testing.T, d *diary) string {
	t.Helper()
	results := d.of(host.Resulted)
	if len(results) == 0 {
		t.Fatal("no call has a result")
	}
	var b strings.Builder
	for _, p := range results[len(results)-1].Call.Parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

// newShop makes a shop that is closed at the end of a test.
func newShop(t *testing.T) func() *mcp.Server {
	return func() *mcp.Server {
		srv := shop.New(shop.Options{})
		t.Cleanup(func() { srv.Shutdown(context.Background()) })
		return srv
	}
}

// SAMP-26-003, SAMP-26-004, SAMP-26-021: the person reviews and may change the request of the shop
// for a description, and then the answer. Its cost is part of the bill.
func TestCreateProduct(t *testing.T) {
	everywhere(t, "shop", newShop(t), func() *host.Host {
		return &host.Host{
			Model: script(func(r *model.Request) string { return r.System + " - " + r.Messages[0].Text() },
				wants("c1", "shop_create-product", map[string]any{"name": "Kettle", "category": "kitchen", "price": "39.50"})),
			Person: &agreeable{
				request: func(s *host.Sampling) (*mcp.SampleRequest, error) {
					r := *s.Request
					if !strings.Contains(r.Messages[0].Content[0].(mcp.TextContent).Text, "Kettle") {
						return nil, fmt.Errorf("what is it about: %+v", r)
					}
					r.SystemPrompt = "Whistles"
					r.Messages = []mcp.SampleMessage{{Role: "user", Content: []mcp.Content{mcp.Text("loudly")}}}
					return &r, nil
				},
				answer: func(s *host.Sampling, r *mcp.SampleResult) (*mcp.SampleResult, error) {
					out := *r
					out.Content = []mcp.Content{mcp.Text(fmt.Sprintf("%s, said %s of %s in %s", r.Text(), s.Model, s.Server, s.Call))}
					return &out, nil
				},
			},
		}
	}, func(t *testing.T, h *host.Host) {
		c, events := h.NewConversation(), &diary{}
		c.OnEvent = events.note
		c.Usage, c.Cost = model.Usage{Input: 7}, 1 // before it was resumed
		var kept model.Usage
		c.Keep = func(context.Context, int, *host.Entry) error {
			kept, _ = c.Used()
			return nil
		}
		reply, err := c.Send(t.Context(), "A kettle, please.")
		if err != nil {
			t.Fatal(err)
		}
		if used, cost := c.Used(); used.Input != 3007 || used != kept || cost < 1.0059 || cost > 1.0061 {
			t.Errorf("used are %+v for %v, kept %+v; want the bill and what was used before", used, cost, kept)
		}
		if want := "Whistles - loudly, said test/m of shop in c1"; !strings.Contains(lastResult(t, events), want) {
			t.Errorf("create-product = %s, want %q in it", lastResult(t, events), want)
		}
		if sampled := events.of(host.Sampled); len(sampled) != 1 || sampled[0].Call.ID != "c1" || sampled[0].Usage.Input != 1000 {
			t.Errorf("events of the completion: %+v", sampled)
		}
		if reply.Usage.Input != 3000 || reply.Usage.Output != 300 || reply.Cost < 0.0059 || reply.Cost > 0.0061 {
			t.Errorf("the bill is %+v, %v; want that of three answers", reply.Usage, reply.Cost)
		}
	})
}

// ELIC-26-003, ELIC-26-029: the person is asked for another date, sees the server and the call, and
// is asked again if the answer does not fit the form (ELIC-26-046).
func TestBookTrip(t *testing.T) {
	day := func(n int) string { return time.Now().UTC().AddDate(0, 0, n).Format(time.DateOnly) }
	trip := map[string]any{"customer": "cus-1001", "destination": "tatra", "date": day(0)}
	var mu sync.Mutex
	var questions []host.Elicitation
	everywhere(t, "shop", newShop(t), func() *host.Host {
		questions = nil
		return &host.Host{
			Model: script(nil, wants("c1", "shop_book-trip", trip)),
			Person: &agreeable{elicit: func(_ context.Context, q *host.Elicitation) (*mcp.ElicitResult, error) {
				mu.Lock()
				defer mu.Unlock()
				questions = append(questions, *q)
				switch {
				case !strings.Contains(q.Message, "Which other day?"):
					return nil, mcp.ErrDeclined
				case q.Problem == "":
					return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"date": "soon"}}, nil
				}
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"date": day(300)}}, nil
			}},
		}
	}, func(t *testing.T, h *host.Host) {
		c, events := h.NewConversation(), &diary{}
		c.OnEvent = events.note
		if _, err := c.Send(t.Context(), "To the Tatras, now!"); err != nil {
			t.Fatal(err)
		}
		if revisionOf(t, h, "shop") < mcp.V2025_06_18 { // older revisions have no elicitation
			if got := lastResult(t, events); !strings.Contains(got, "call again with another date") {
				t.Errorf("book-trip = %s, want the model told to find another date", got)
			}
			return
		}
		if got := lastResult(t, events); !strings.Contains(got, day(300)) || !strings.Contains(got, "Booked") {
			t.Errorf("book-trip = %s, want it booked on %s", got, day(300))
		}
		mu.Lock()
		defer mu.Unlock()
		if len(questions) < 2 || questions[0].Server != "shop" || questions[0].Call != "c1" || questions[0].Conversation != c.ID || !strings.Contains(questions[1].Problem, "date") {
			t.Errorf("the person was asked %+v", questions)
		}
		if told := events.of(host.Asked); len(told) == 0 || told[0].Call.Tool != "book-trip" || !strings.Contains(told[0].Text, "Which other day?") {
			t.Errorf("events of the question: %+v", told)
		}
	})
}
