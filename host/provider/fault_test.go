package provider_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/host/modeltest"
	"github.com/patchbay-dev/patchbay/host/provider"
)

var hello = &model.Request{Messages: []model.Message{model.UserText("hello")}, Tools: tools}

// Failures have the right kind on every API.
func TestFaults(t *testing.T) {
	for _, tt := range []struct {
		fault string
		kind  model.Kind
		after time.Duration
		text  string // what is returned beside the error
	}{
		{fault: "{status: 400}", kind: model.Rejected},
		{fault: "{status: 401}", kind: model.NoKey},
		{fault: "{status: 403}", kind: model.NoKey},
		{fault: "{status: 402}", kind: model.NoMoney},
		{fault: "{status: 429, code: insufficient_quota}", kind: model.NoMoney},
		{fault: "{status: 404}", kind: model.NoModel},
		{fault: "{status: 413}", kind: model.TooLong},
		{fault: "{status: 400, code: context_length_exceeded}", kind: model.TooLong},
		{fault: "{status: 400, message: 'prompt is too long: 300000 tokens > 200000 maximum'}", kind: model.TooLong},
		{fault: "{status: 400, message: 'Invalid schema for function github__get_rate_limit'}", kind: model.Rejected},
		{fault: "{status: 400, message: 'unknown tools: overloaded, authentication_error, not_found_error, insufficient_quota'}", kind: model.Rejected},
		{fault: "{status: 429, message: 'the tool model_not_found is called too often'}", kind: model.Limited},
		{fault: "{event: true, code: odd, message: 'rate_limit reached'}", kind: model.Limited, text: "Some text."},
		{fault: "{status: 429, after: 1500ms}", kind: model.Limited, after: 1500 * time.Millisecond},
		{fault: "{status: 500}", kind: model.Unavailable},
		{fault: "{status: 503}", kind: model.Overloaded},
		{fault: "{status: 529}", kind: model.Overloaded},
		{fault: "{html: true}", kind: model.Malformed},
		{fault: "{event: true}", kind: model.Overloaded, text: "Some text."},
		{fault: "{event: true, code: api_error}", kind: model.Unavailable, text: "Some text."},
		{fault: "{garbage: true}", kind: model.Unavailable, text: "Some text."},
		{fault: "{cut: true}", kind: model.Unavailable, text: "Some text."},
	} {
		for _, api := range apis {
			t.Run(tt.fault+"/"+api, func(t *testing.T) {
				m := modeltest.Open(t, api, modeltest.MustParse("turns: [{answer: [text: Some text.], fault: "+tt.fault+"}]"))
				resp, err := m.Generate(t.Context(), hello, nil)
				var e *model.Error
				if !errors.As(err, &e) || e.Kind != tt.kind || e.After != tt.after {
					t.Fatalf("Generate = %v, want an error of kind %q that says to wait %v", err, tt.kind, tt.after)
				}
				got := ""
				if resp != nil {
					got = resp.Message.Text()
				}
				if got != tt.text {
					t.Errorf("beside the error %v came %q, want %q", err, got, tt.text)
				}
				if strings.Contains(fmt.Sprintf("%v %+v", err, err), "key-of-the-test") {
					t.Errorf("the error has the key in it: %v", err)
				}
			})
		}
	}
}

// Errors say what to do, in the words of the program.
func TestFaultsSayWhatToDo(t *testing.T) {
	for _, tt := range []struct {
		name   string
		status int
		body   string
		kind   model.Kind
		says   string
	}{
		{"Ollama without tools", 400, `{"error":{"message":"registry.ollama.ai/library/gemma:2b does not support tools","type":"invalid_request_error","param":null,"code":null}}`, model.Rejected, "text/gemma:2b "},
		{"vLLM without tools", 400, `{"object":"error","message":"\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set","type":"BadRequestError","code":400}`, model.Rejected, "text/gemma:2b "},
		{"Gemini", 400, `[{"error":{"code":400,"message":"Function call is missing a thought_signature.","status":"INVALID_ARGUMENT"}}]`, model.Rejected, `: "Function call is missing a thought_signature."`},
		{"Gemini with a wrong key", 400, `[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}]`, model.NoKey, `: "API key not valid.`},
		{"a long pause", 429, `{"error":{"message":"Too many tokens today."}}`, model.Limited, "it can be retried after 20m0s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if tt.status == 429 {
					w.Header().Set("Retry-After", "1200")
				}
				w.WriteHeader(tt.status)
				fmt.Fprint(w, tt.body)
			}))
			defer s.Close()
			m, err := provider.Open("openai/gemma:2b", provider.Options{BaseURL: s.URL, Env: noEnv, Retry: once, Info: withWindow})
			if err != nil {
				t.Fatal(err)
			}
			var e *model.Error
			if _, err := model.Retry(m, nil).Generate(t.Context(), hello, nil); !errors.As(err, &e) || e.Kind != tt.kind || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("Generate = %v, want an error of kind %q with %q", err, tt.kind, tt.says)
			}
		})
	}
}

// The usage of an answer that broke off is estimated where the provider has not reported it, as it is billed.
// Refusals, and pages, cost nothing.
func TestUsageOfAnswersThatBrokeOff(t *testing.T) {
	long := &model.Request{Messages: []model.Message{{Role: model.User, Parts: []model.Part{
		{Text: strings.Repeat("A word. ", 500)},
		{Media: &model.Media{MIME: "image/png", Data: make([]byte, 100_000)}}, // in bytes it would be 33,000 tokens
	}}}}
	for _, tt := range []struct {
		turn   string
		billed bool
	}{
		{"{answer: [text: " + strings.Repeat("Some text. ", 20) + "], fault: {cut: true}}", true},
		{"{answer: [text: " + strings.Repeat("Some text. ", 20) + "], fault: {garbage: true}}", true},
		{"{answer: [call: {name: add, arguments: {text: " + strings.Repeat("a", 200) + "}}], fault: {cut: true}}", true},
		{"{answer: [text: Hi.], fault: {status: 500}}", false},
		{"{answer: [text: Hi.], fault: {html: true}}", false},
	} {
		for _, api := range apis {
			m := modeltest.Open(t, api, modeltest.MustParse("turns: ["+tt.turn+"]"))
			resp, err := m.Generate(t.Context(), long, nil)
			if err == nil || resp == nil {
				t.Fatalf("%s over %s: Generate = %+v, %v; want an error beside what there is", tt.turn, api, resp, err)
			}
			u := resp.Usage
			if tt.billed && (u.Input < 1000 || u.Input > 2000 || u.Output < 40 || u.Output > 100) || !tt.billed && u != (model.Usage{}) {
				t.Errorf("%s over %s: the usage is %+v", tt.turn, api, u)
			}
		}
	}
}

// An answer that broke off has no incomplete call.
func TestCutInACall(t *testing.T) {
	for _, api := range apis {
		t.Run(api, func(t *testing.T) {
			m := modeltest.Open(t, api, modeltest.MustParse("turns: [{answer: [call: {name: add, arguments: {a: 1}}], fault: {cut: true}}]"))
			resp, err := m.Generate(t.Context(), hello, nil)
			if err == nil || api != "text" && len(resp.Message.Calls()) != 0 {
				t.Errorf("Generate = %+v, %v; want an error and no call", resp, err)
			}
		})
	}
}

// An answer that was too long has no incomplete call either, wherever it was cut.
func TestCutByLength(t *testing.T) {
	for _, tt := range []struct {
		written string
		calls   int
	}{{"", 0}, {"{", 0}, {`{"a": 1`, 0}, {`{"a": 1}`, 1}, {"{}", 1}} {
		for _, api := range []string{"chat", "responses", "messages"} {
			t.Run(tt.written+"/"+api, func(t *testing.T) {
				m := modeltest.Open(t, api, &modeltest.Script{Turns: []modeltest.Turn{{
					Answer: []modeltest.Piece{{Text: "Well."}, {Call: &modeltest.Call{Name: "add", Arguments: tt.written}}}, Stop: "length",
				}}})
				resp, err := m.Generate(t.Context(), hello, nil)
				if err != nil || resp.Stop != model.StopLength || resp.Message.Text() != "Well." || len(resp.Message.Calls()) != tt.calls {
					t.Errorf("Generate = %+v, %v; want %d calls", resp, err, tt.calls)
				}
			})
		}
	}
}

// A call without arguments counts if its answer is complete.
func TestNoArguments(t *testing.T) {
	for _, api := range []string{"chat", "responses", "messages"} {
		m := modeltest.Open(t, api, modeltest.MustParse("turns: [{answer: [call: {name: picture, arguments: ''}]}]"))
		resp, err := m.Generate(t.Context(), hello, nil)
		if err != nil || len(resp.Message.Calls()) != 1 || string(resp.Message.Calls()[0].Arguments) != "{}" {
			t.Errorf("%s: Generate = %+v, %v; want one call with {}", api, resp, err)
		}
	}
}

// A retry is never immediate, however long the provider's retry time is.
func TestRetryAfter(t *testing.T) {
	const most = 1e6 * time.Second
	for header, want := range map[string]time.Duration{
		"Retry-After: 3": 3 * time.Second, "Retry-After: 2000000": most, "Retry-After: 1e999": most, "Retry-After: Inf": most,
		"Retry-After: NaN": 0, "Retry-After: -1": 0, "Retry-After: soon": 0, "Retry-After-Ms: 1e10": most, "Retry-After-Ms: 20": 20 * time.Millisecond,
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			name, value, _ := strings.Cut(header, ": ")
			w.Header().Set(name, value)
			w.WriteHeader(http.StatusTooManyRequests)
		}))
		m, err := provider.Open("openai/x", provider.Options{BaseURL: s.URL, Env: noEnv, Retry: once, Info: withWindow})
		if err != nil {
			t.Fatal(err)
		}
		var e *model.Error
		if _, err := m.Generate(t.Context(), hello, nil); !errors.As(err, &e) || e.After != want {
			t.Errorf("%s: Generate = %v, to wait %v, want %v", header, err, e.After, want)
		}
		s.Close()
	}
}

func TestCancelled(t *testing.T) {
	why := errors.New("enough")
	for _, api := range apis {
		t.Run(api, func(t *testing.T) {
			m := modeltest.Open(t, api, modeltest.MustParse("turns: [{answer: [text: Some text.], fault: {hang: true}}]"))
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			_, err := m.Generate(ctx, hello, func(d model.Delta) {
				if d.Text != "" {
					cancel(why)
				}
			})
			if err != why {
				t.Errorf("Generate = %v, want %v", err, why)
			}
		})
	}
}

// A request to a silent provider times out and is retried.
func TestRetryOfAHang(t *testing.T) {
	for _, api := range apis {
		t.Run(api, func(t *testing.T) {
			m := modeltest.Open(t, api, modeltest.MustParse("{turns: [{answer: [text: Some], fault: {hang: true}}], rules: [{answer: [text: Some text.]}]}"))
			var s seen
			resp, err := model.Retry(m, &model.RetryOptions{Attempts: 1000, Wait: 1, Idle: 50 * time.Millisecond, First: time.Minute}).Generate(t.Context(), hello, func(d model.Delta) {
				if d.Again != "" {
					s = seen{}
				}
				s.emit(d)
			})
			if err != nil || resp.Message.Text() != "Some text." || s.text.String() != "Some text." {
				t.Errorf("Generate = %+v, %v; emitted %q", resp, err, &s.text)
			}
		})
	}
}

func TestStops(t *testing.T) {
	for stop, want := range map[string]model.Stop{"length": model.StopLength, "refused": model.StopRefused} {
		for _, api := range apis {
			t.Run(stop+"/"+api, func(t *testing.T) {
				m := modeltest.Open(t, api, modeltest.MustParse("turns: [{answer: [text: Some], stop: "+stop+"}]"))
				if resp, err := m.Generate(t.Context(), hello, nil); err != nil || resp.Stop != want {
					t.Errorf("Generate = %+v, %v; want it to stop with %q", resp, err, want)
				}
			})
		}
	}
}

func TestTimeout(t *testing.T) {
	_, url := modeltest.Start(t, modeltest.MustParse("rules: [{answer: [text: Some text.], fault: {hang: true}}]"))
	m, err := provider.Open("openai/x", provider.Options{BaseURL: url + "/v1", Timeout: 50 * time.Millisecond, Env: noEnv, Retry: once})
	if err != nil {
		t.Fatal(err)
	}
	var e *model.Error
	if _, err := m.Generate(t.Context(), hello, nil); !errors.As(err, &e) || e.Kind != model.Unavailable {
		t.Errorf("Generate = %v, want an error of kind %q", err, model.Unavailable)
	}
}

// Keys are sent only to their host.
func TestRedirect(t *testing.T) {
	for _, api := range apis {
		t.Run(api, func(t *testing.T) {
			other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("a request came with the headers %v", r.Header) }))
			defer other.Close()
			s := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
			defer s.Close()
			m, err := modeltest.OpenAt(s.URL, api, "key-of-the-test")
			if err != nil {
				t.Fatal(err)
			}
			var e *model.Error
			if _, err := m.Generate(t.Context(), hello, nil); !errors.As(err, &e) || e.Kind != model.NoModel || !strings.Contains(err.Error(), other.URL) {
				t.Errorf("Generate = %v, want an error of kind %q that names %s", err, model.NoModel, other.URL)
			}
		})
	}
}

// A key that a server repeats in its error is not shown.
func TestKeyInAnError(t *testing.T) {
	for _, api := range apis {
		m := modeltest.Open(t, api, modeltest.MustParse("turns: [{fault: {status: 401, message: 'key-of-the-test is wrong'}}]"))
		if _, err := m.Generate(t.Context(), hello, nil); err == nil || strings.Contains(fmt.Sprintf("%+v", err), "key-of") || !strings.Contains(err.Error(), "is wrong") {
			t.Errorf("%s: Generate = %v, want the message without the key", api, err)
		}
	}
}

func noEnv(string) string { return "" }
