package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/mcp"
)

// sampled returns a host with a node whose client answers sampling requests.
func sampled(t *testing.T, h *host.Host) *node {
	t.Helper()
	n := &node{name: "n"}
	added(t, h, n.server(""))
	t.Cleanup(func() { h.Close() })
	if _, err := work(t.Context(), h, "n"); err != nil {
		t.Fatal(err)
	}
	return n
}

func userSays(texts ...string) []mcp.SampleMessage {
	var all []mcp.SampleMessage
	for _, text := range texts {
		all = append(all, mcp.SampleMessage{Role: "user", Content: []mcp.Content{mcp.Text(text)}})
	}
	return all
}

func by(role string, content ...mcp.Content) mcp.SampleMessage {
	return mcp.SampleMessage{Role: role, Content: content}
}

var pngData = []byte("\x89PNG\r\n\x1a\n....")

// Requests and answers are converted between server and model. SAMP-26-017: no more tokens than the
// server requests or the host allows. SAMP-26-014: a tool is not used if tools are not allowed.
func TestSampleRequest(t *testing.T) {
	half := 0.5
	weather := &mcp.Tool{Name: "weather.now/v2", Description: "the weather", InputSchema: json.RawMessage(`{"type":"object"}`)}
	call := model.Part{Call: &model.Call{ID: "u1", Name: "tool_weather-now-v2--", Arguments: json.RawMessage(`{"city":"Oslo"}`)}} // the name is completed below
	answer := func(stop model.Stop, parts ...model.Part) *model.Response {
		return &model.Response{Message: model.Message{Role: model.Assistant, Parts: parts}, Stop: stop}
	}
	tests := []struct {
		name    string
		request mcp.SampleRequest
		model   string // that was asked, as JSON
		answers *model.Response
		want    string // the result, or the error
	}{
		{
			"text", mcp.SampleRequest{Messages: userSays("hi"), SystemPrompt: "s", MaxTokens: 7, Temperature: &half, StopSequences: []string{"END"}},
			`{"System":"s","Messages":[{"role":"user","parts":[{"text":"hi"}]}],"maxTokens":7,"temperature":0.5,"Stop":["END"]}`,
			answer(model.StopEnd, model.Part{Text: "hello END of it"}), `stopSequence: hello `,
		},
		{
			"too many tokens", mcp.SampleRequest{Messages: userSays("hi"), MaxTokens: 1_000_000},
			`{"Messages":[{"role":"user","parts":[{"text":"hi"}]}],"maxTokens":4096}`,
			answer(model.StopLength, model.Part{Text: "long"}), `maxTokens: long`,
		},
		{
			"many texts that end it", mcp.SampleRequest{Messages: userSays("hi"), MaxTokens: 5, StopSequences: []string{"a", "b", "c", "d", "e", ""}},
			`{"Messages":[{"role":"user","parts":[{"text":"hi"}]}],"maxTokens":5,"Stop":["a","b","c","d"]}`,
			answer(model.StopEnd, model.Part{Text: "xxexx"}), `stopSequence: xx`,
		},
		{
			"the assistant first and last", mcp.SampleRequest{Messages: []mcp.SampleMessage{by("assistant", mcp.Text("I")), by("user", mcp.Text("a"), mcp.Text("b")), by("user", mcp.Text("c")), by("assistant", mcp.Text(""))}, MaxTokens: 5},
			`{"Messages":[{"role":"user","parts":[{"text":"[Begin.]"}]},{"role":"assistant","parts":[{"text":"I"}]},{"role":"user","parts":[{"text":"a"},{"text":"b"},{"text":"c"}]},{"role":"assistant","parts":[{"text":"[nothing]"}]},{"role":"user","parts":[{"text":"[Go on.]"}]}],"maxTokens":5}`,
			answer(model.StopRefused), `refusal: `,
		},
		{
			"media", mcp.SampleRequest{Messages: []mcp.SampleMessage{by("user", mcp.ImageContent{Data: pngData, MIMEType: "image/jpg"}, mcp.AudioContent{Data: []byte("s"), MIMEType: "audio/x-wav"})}, MaxTokens: 5},
			`{"Messages":[{"role":"user","parts":[{"media":{"mime":"image/png","data":"iVBORw0KGgouLi4u"}},{"media":{"mime":"audio/wav","data":"cw=="}}]}],"maxTokens":5}`,
			answer(model.StopEnd, model.Part{Media: &model.Media{MIME: "image/png", Data: pngData}}, model.Part{Media: &model.Media{MIME: "audio/wav", Data: []byte("x")}}, model.Part{Opaque: &model.Opaque{Text: "hm"}}), `endTurn: image audio`,
		},
		{
			"tools", mcp.SampleRequest{Messages: userSays("hi"), MaxTokens: 5, Tools: []*mcp.Tool{weather}, ToolChoice: "required"},
			`{"Messages":[{"role":"user","parts":[{"text":"hi"}]}],"Tools":[{"Name":"@","Description":"the weather","Schema":{"type":"object"}}],"Choice":{"Mode":"required"},"maxTokens":5}`,
			answer(model.StopCalls, model.Part{Text: "let me see"}, call), `toolUse: let me see u1=weather.now/v2{"city":"Oslo"}`,
		},
		{
			"results", mcp.SampleRequest{
				Messages: []mcp.SampleMessage{
					by("user", mcp.Text("hi")), by("assistant", mcp.ToolUseContent{ID: "u1", Name: "weather.now/v2", Input: json.RawMessage(`{}`)}, mcp.ToolUseContent{ID: "u2", Name: "sum", Input: json.RawMessage(`{}`)}),
					by("user", mcp.ToolResultContent{ToolUseID: "u1", Result: mcp.ToolResult{Content: []mcp.Content{mcp.Text("sun"), mcp.ResourceLink{Resource: mcp.Resource{URI: "x:y"}}}}}, mcp.ToolResultContent{ToolUseID: "u2", Result: mcp.ToolResult{IsError: true}}),
				}, MaxTokens: 5, Tools: []*mcp.Tool{weather}, ToolChoice: "none",
			},
			`{"Messages":[{"role":"user","parts":[{"text":"hi"}]},{"role":"assistant","parts":[{"call":{"id":"u1","name":"@","arguments":{}}},{"call":{"id":"u2","name":"sum","arguments":{}}}]},{"role":"user","parts":[{"result":{"id":"u1","name":"@","parts":[{"text":"sun\n[link to resource \"x:y\"]"}]}},{"result":{"id":"u2","name":"sum","parts":[{"text":"[nothing]"}],"error":true}}]}],"Tools":[{"Name":"@","Description":"the weather","Schema":{"type":"object"}}],"Choice":{"Mode":"none"},"maxTokens":5}`,
			answer(model.StopCalls, call), `endTurn: `,
		},
		{"a tool of its own", mcp.SampleRequest{Messages: userSays("hi"), MaxTokens: 5}, "", answer(model.StopCalls, model.Part{Call: &model.Call{ID: "1", Name: "rm"}}), `endTurn: `},
		// SAMP-26-013
		{"a required tool that is not used", mcp.SampleRequest{Messages: userSays("hi"), MaxTokens: 5, Tools: []*mcp.Tool{weather}, ToolChoice: "required"}, "", answer(model.StopEnd, model.Part{Text: "no"}), `error -32603: the model has used no tool, but one was required`},
		{"a required tool of none", mcp.SampleRequest{Messages: userSays("hi"), MaxTokens: 5, ToolChoice: "required"}, "", nil, `error -32602: a tool is required, but there is none`},
		{"a strange choice", mcp.SampleRequest{Messages: userSays("hi"), MaxTokens: 5, ToolChoice: "maybe"}, "", nil, `error -32602: unknown tool choice "maybe"; use auto, required or none`},
		{"a strange block", mcp.SampleRequest{Messages: []mcp.SampleMessage{by("user", mcp.RawContent(`{"type":"smell"}`))}, MaxTokens: 5}, "", nil, `error -32602: messages[0]: a kind of content that models do not accept`},
		{"nothing", mcp.SampleRequest{MaxTokens: 5}, "", nil, `error -32602: there are no messages`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got *model.Request
			m := answering{model.Info{Name: "test/m", Images: true, Audio: true}, func(_ context.Context, r *model.Request) (*model.Response, error) {
				got = r
				res := *tt.answers
				if len(r.Tools) > 0 { // in the place of the hash
					res.Message.Parts = slices.Clone(res.Message.Parts)
					for i, p := range res.Message.Parts {
						if p.Call != nil {
							res.Message.Parts[i].Call = &model.Call{ID: p.Call.ID, Name: r.Tools[0].Name, Arguments: p.Call.Arguments}
						}
					}
				}
				return &res, nil
			}}
			n := sampled(t, &host.Host{Model: m, AutoSample: true})
			res, err := n.client.OnSample(t.Context(), &tt.request)
			if diff := cmp.Diff(tt.want, resultLine(res, err)); diff != "" {
				t.Error(diff)
			}
			if tt.model == "" {
				return
			}
			raw, _ := json.Marshal(got)
			var sent, want map[string]any
			line := string(raw)
			if len(got.Tools) > 0 {
				line = strings.ReplaceAll(line, got.Tools[0].Name, "@")
			}
			json.Unmarshal([]byte(line), &sent)
			json.Unmarshal([]byte(tt.model), &want)
			for k, v := range sent { // zero values say nothing
				if v == nil || v == "" || v == float64(0) {
					delete(sent, k)
				}
			}
			if c, ok := sent["Choice"].(map[string]any); ok {
				if delete(c, "Tool"); c["Mode"] == "" {
					delete(sent, "Choice")
				}
			}
			if diff := cmp.Diff(want, sent); diff != "" {
				t.Error("the model was asked (-want +got):", diff)
			}
		})
	}
}

// resultLine is a result in one line.
func resultLine(res *mcp.SampleResult, err error) string {
	var rpc *mcp.Error
	if errors.As(err, &rpc) {
		return fmt.Sprintf("error %d: %s", rpc.Code, rpc.Message)
	}
	if err != nil {
		return "error: " + err.Error()
	}
	var parts []string
	for _, c := range res.Content {
		switch c := c.(type) {
		case mcp.TextContent:
			parts = append(parts, c.Text)
		case mcp.ImageContent:
			parts = append(parts, "image")
		case mcp.AudioContent:
			parts = append(parts, "audio")
		case mcp.ToolUseContent:
			parts = append(parts, fmt.Sprintf("%s=%s%s", c.ID, c.Name, c.Input))
		}
	}
	return res.StopReason + ": " + strings.Join(parts, " ")
}

// A model without support for images does not get one.
func TestSampleWithoutEyes(t *testing.T) {
	n := sampled(t, &host.Host{Model: answering{model.Info{Name: "test/blind"}, nil}, AutoSample: true})
	_, err := n.client.OnSample(t.Context(), &mcp.SampleRequest{Messages: []mcp.SampleMessage{by("user", mcp.ImageContent{Data: pngData})}, MaxTokens: 5})
	if got := resultLine(nil, err); got != "error -32602: messages[0]: the model test/blind does not accept images" {
		t.Error(got)
	}
}

// SAMP-26-003, SAMP-26-021: the person refuses the request, or the answer; without a person, nobody
// answers.
func TestSampleRefused(t *testing.T) {
	asked := 0
	m := answering{model.Info{Name: "m"}, func(context.Context, *model.Request) (*model.Response, error) {
		asked++
		return said("yes"), nil
	}}
	no := func(err error) *agreeable {
		return &agreeable{request: func(*host.Sampling) (*mcp.SampleRequest, error) { return nil, err }}
	}
	for _, p := range []*agreeable{no(mcp.ErrDeclined), no(mcp.ErrDismissed), no(errors.New("the terminal is gone")), no(nil)} {
		n := sampled(t, &host.Host{Model: m, Person: p})
		if _, err := n.client.OnSample(t.Context(), &mcp.SampleRequest{Messages: userSays("hi"), MaxTokens: 5}); !errors.Is(err, mcp.ErrDeclined) || asked != 0 {
			t.Errorf("OnSample = %v after %d answers of the model", err, asked)
		}
	}
	n := sampled(t, &host.Host{Model: m, Person: &agreeable{answer: func(*host.Sampling, *mcp.SampleResult) (*mcp.SampleResult, error) { return nil, mcp.ErrDeclined }}})
	if _, err := n.client.OnSample(t.Context(), &mcp.SampleRequest{Messages: userSays("hi"), MaxTokens: 5}); !errors.Is(err, mcp.ErrDeclined) || asked != 1 {
		t.Errorf("OnSample = %v after %d answers of the model", err, asked)
	}
	for _, h := range []*host.Host{{Model: m}, {AutoSample: true}, {Person: &agreeable{}}} {
		if n := sampled(t, h); n.client.OnSample != nil {
			t.Errorf("%+v declares sampling", h)
		}
	}
}

// The server learns the kind of the failure, not the provider's message.
func TestSampleFails(t *testing.T) {
	for want, err := range map[string]error{
		"error -32603: no answer from m: rate limited":      &model.Error{Kind: model.Limited, Message: "organisation org-secret"},
		"error -32603: no answer from m: it did not answer": errors.New("key sk-secret"),
	} {
		n := sampled(t, &host.Host{AutoSample: true, Model: answering{model.Info{Name: "m"}, func(context.Context, *model.Request) (*model.Response, error) { return nil, err }}})
		_, got := n.client.OnSample(t.Context(), &mcp.SampleRequest{Messages: userSays("hi"), MaxTokens: 5})
		if resultLine(nil, got) != want {
			t.Errorf("OnSample = %v, want %s", got, want)
		}
	}
	none := sampled(t, &host.Host{AutoSample: true, Sampler: func(*mcp.ModelPreferences) model.Model { return nil }})
	if _, err := none.client.OnSample(t.Context(), &mcp.SampleRequest{Messages: userSays("hi"), MaxTokens: 5}); err == nil {
		t.Error("a model that is none has answered")
	}
}

// SAMP-26-024, SAMP-26-027: sampling requests are bounded: per call, per minute outside of calls,
// four at a time, and in nesting. SAMP-26-016: one request does not see the content of another.
func TestSampleBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		now, most, deep := 0, 0, 0
		var n *node
		req := &mcp.SampleRequest{Messages: userSays("hi"), MaxTokens: 5}
		m := answering{model.Info{Name: "m"}, func(ctx context.Context, r *model.Request) (*model.Response, error) {
			if len(r.Tools) > 0 {
				if r.Messages[len(r.Messages)-1].Parts[0].Result != nil {
					return said("done"), nil
				}
				return wants("c1", "n_work", map[string]any{}), nil
			}
			if len(r.Messages) != 1 {
				t.Errorf("the model is told %+v", r.Messages)
			}
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			now--
			nest := deep > 0
			mu.Unlock()
			if nest {
				if _, err := n.client.OnSample(ctx, req); err != nil {
					return nil, err
				}
			}
			return said("x"), nil
		}}
		h := &host.Host{Model: m, AutoSample: true, Allow: []string{"n/*"}, Limits: host.Limits{Samples: 5}}
		n = sampled(t, h)
		defer h.Close()
		var wg sync.WaitGroup
		ok := 0
		for range 30 {
			wg.Go(func() {
				_, err := n.client.OnSample(t.Context(), req)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					ok++
				}
			})
		}
		wg.Wait()
		if ok != 20 || most != 4 {
			t.Errorf("%d of 30 completions, at most %d at the same time; want 20 and 4", ok, most)
		}
		time.Sleep(time.Minute)
		if _, err := n.client.OnSample(t.Context(), req); err != nil {
			t.Errorf("a minute later: %v", err)
		}

		ok = 0
		n.set(func() {
			n.at = func(ctx context.Context) error {
				for range 8 {
					_, err := n.client.OnSample(ctx, req)
					if err == nil {
						ok++
					}
				}
				return nil
			}
		})
		for turn := 1; turn <= 2; turn++ {
			d := talk(t, h)
			if notes := d.of(host.Noted); ok != 5*turn || len(notes) != 1 || !strings.Contains(notes[0].Text, "more than 5 completions in one call") {
				t.Errorf("%d completions in %d calls, notes %+v; want 5 each and one note", ok, turn, notes)
			}
		}

		time.Sleep(time.Minute)
		n.set(func() { n.at = nil })
		deep = 1
		_, err := n.client.OnSample(t.Context(), req)
		if err == nil {
			t.Error("completions inside of each other have no end")
		}
	})
}

// SAMP-26-018, SAMP-26-019, SAMP-26-023: the first hint that matches a model wins over the
// priorities; the priorities choose among the models that it matches, or among all.
func TestChoices(t *testing.T) {
	one := func(name string, cheap, fast, clever float64) host.Choice {
		return host.Choice{Model: answering{model.Info{Name: name}, nil}, Cost: cheap, Speed: fast, Intelligence: clever, Hints: []string{"as-" + name[:3]}}
	}
	choices := host.Choices{one("openai/gpt-mini", 0.9, 0.8, 0.4), one("anthropic/claude-sonnet", 0.4, 0.5, 0.8), one("anthropic/claude-haiku", 0.8, 0.9, 0.5), one("openai/gpt-max", 0, 0.1, 1)}
	p := func(f float64) *float64 { return &f }
	tests := []struct {
		name string
		p    *mcp.ModelPreferences
		want string
	}{
		{"nothing", nil, "openai/gpt-mini"},
		{"no preference", &mcp.ModelPreferences{}, "openai/gpt-mini"},
		{"a hint", &mcp.ModelPreferences{Hints: []string{"claude"}}, "anthropic/claude-sonnet"},
		{"the first that fits", &mcp.ModelPreferences{Hints: []string{"gemini", "", "Haiku", "gpt"}}, "anthropic/claude-haiku"},
		{"a hint and a priority", &mcp.ModelPreferences{Hints: []string{"claude"}, SpeedPriority: p(1)}, "anthropic/claude-haiku"},
		{"a hint outranks", &mcp.ModelPreferences{Hints: []string{"sonnet"}, CostPriority: p(1)}, "anthropic/claude-sonnet"},
		{"another name", &mcp.ModelPreferences{Hints: []string{"as-ant"}}, "anthropic/claude-sonnet"},
		{"no hint fits", &mcp.ModelPreferences{Hints: []string{"llama"}, IntelligencePriority: p(1)}, "openai/gpt-max"},
		{"several priorities", &mcp.ModelPreferences{IntelligencePriority: p(0.9), SpeedPriority: p(0.5), CostPriority: p(0.3)}, "anthropic/claude-haiku"},
		{"out of bounds", &mcp.ModelPreferences{IntelligencePriority: p(1e9), CostPriority: p(1)}, "openai/gpt-mini"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := choices.Choose(tt.p).Info().Name; got != tt.want {
				t.Errorf("Choose = %s, want %s", got, tt.want)
			}
		})
	}
	if m := (host.Choices{}).Choose(nil); m != nil {
		t.Errorf("none of none is %v", m)
	}
}
