package mcp_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// askingServer has tools that ask the user and the model.
func askingServer() *mcp.Server {
	srv := &mcp.Server{Name: "s", Version: "1"}
	mcp.AddTool(srv, mcp.Tool{Name: "ask"}, func(ctx context.Context, _ struct{}) (string, error) {
		_, err := mcp.Confirm(ctx, "Sure?")
		return refusal(err)
	})
	mcp.AddTool(srv, mcp.Tool{Name: "sample"}, func(ctx context.Context, _ struct{}) (string, error) {
		_, err := mcp.Sample(ctx, &mcp.SampleRequest{Messages: []mcp.SampleMessage{{Role: "user", Content: []mcp.Content{mcp.Text("hi")}}}, MaxTokens: 5})
		return refusal(err)
	})
	return srv
}

// refusal returns the outcome of a question as a text, if it is an outcome and not a failure.
func refusal(err error) (string, error) {
	switch {
	case err == nil:
		return "accepted", nil
	case errors.Is(err, mcp.ErrDeclined):
		return "declined", nil
	case errors.Is(err, mcp.ErrDismissed):
		return "dismissed", nil
	}
	return "", err
}

// A call ends with its context, and with its session, even if a function of the client that answers
// a question does not return. Close returns within its time.
func TestStuckAnswer(t *testing.T) {
	srv := askingServer()
	hs := httptest.NewServer(srv)
	t.Cleanup(hs.Close)
	for _, tool := range []string{"ask", "sample"} {
		for name, open := range map[string]func(c *mcp.Client) (*mcp.Session, error){
			"Open":       func(c *mcp.Client) (*mcp.Session, error) { return c.Open(t.Context(), srv) },
			"2026-07-28": func(c *mcp.Client) (*mcp.Session, error) { return c.Dial(t.Context(), hs.URL) },
			"2025-11-25": func(c *mcp.Client) (*mcp.Session, error) {
				c.Revisions = []mcp.Revision{mcp.V2025_11_25}
				return c.Dial(t.Context(), hs.URL)
			},
		} {
			for _, end := range []string{"context", "Close"} {
				t.Run(tool+" "+name+" "+end, func(t *testing.T) {
					t.Parallel()
					hang := make(chan struct{})
					defer close(hang)
					asked := make(chan struct{}, 1)
					s, err := open(&mcp.Client{
						OnElicit: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
							asked <- struct{}{}
							<-hang
							return nil, mcp.ErrDeclined
						},
						OnSample: func(context.Context, *mcp.SampleRequest) (*mcp.SampleResult, error) {
							asked <- struct{}{}
							<-hang
							return nil, mcp.ErrDeclined
						},
					})
					if err != nil {
						t.Fatal(err)
					}
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					called := make(chan error, 1)
					go func() {
						res, err := s.CallTool(ctx, tool, nil)
						if err == nil && res.IsError {
							err = mcp.ErrClosed // the server's answer, that the question failed, came before the end
						}
						called <- err
					}()
					<-asked
					want := context.Canceled
					if end == "context" {
						cancel()
						if err := within(t, called, time.Minute); !errors.Is(err, want) {
							t.Errorf("CallTool = %v, want %v", err, want)
						}
					}
					start := time.Now()
					s.Close()
					if took := time.Since(start); took > 20*time.Second {
						t.Errorf("Close took %v, want at most 20s", took)
					}
					if end == "Close" {
						if err := within(t, called, time.Minute); !errors.Is(err, mcp.ErrClosed) {
							t.Errorf("CallTool = %v, want %v", err, mcp.ErrClosed)
						}
					}
				})
			}
		}
	}
}

func within(t *testing.T, c <-chan error, d time.Duration) error {
	t.Helper()
	select {
	case err := <-c:
		return err
	case <-time.After(d):
		t.Fatalf("nothing came within %v", d)
		return nil
	}
}

// A function of the client refuses with an answer or with an error, and the server sees the same,
// whatever revision the two speak.
func TestRefusalsOfClient(t *testing.T) {
	for _, refused := range []struct {
		res  *mcp.ElicitResult
		err  error
		want string
	}{
		{&mcp.ElicitResult{Action: "decline"}, nil, "declined"},
		{&mcp.ElicitResult{Action: "cancel"}, nil, "dismissed"},
		{nil, mcp.ErrDeclined, "declined"},
		{nil, mcp.ErrDismissed, "dismissed"},
	} {
		client := func() *mcp.Client {
			return &mcp.Client{
				OnElicit: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) { return refused.res, refused.err },
				OnSample: func(context.Context, *mcp.SampleRequest) (*mcp.SampleResult, error) { return nil, refused.err },
			}
		}
		body := func(t *testing.T, s *mcp.Session) {
			if s.Revision() != mcp.V2024_11_05 && s.Revision() != mcp.V2025_03_26 {
				if got, err := mcp.CallAs[string](t.Context(), s, "ask", nil); err != nil || got != refused.want {
					t.Errorf("elicitation with %v, %v: the tool saw %q, error %v; want %s", refused.res, refused.err, got, err, refused.want)
				}
			}
			if refused.err == nil {
				return
			}
			got, err := mcp.CallAs[string](t.Context(), s, "sample", nil)
			if s.Negotiation() == "a Handler of this process" || s.Revision() != mcp.V2026_07_28 {
				if err != nil || got != "declined" {
					t.Errorf("sampling with %v: the tool saw %q, error %v; want declined", refused.err, got, err)
				}
			} else if !errors.Is(err, mcp.ErrDeclined) {
				t.Errorf("sampling with %v: the call = %v, want ErrDeclined", refused.err, err)
			}
		}
		mcptest.Every(t, askingServer, client, body)
		s, err := client().Open(t.Context(), askingServer())
		if err != nil {
			t.Fatal(err)
		}
		body(t, s)
		s.Close()
	}
}

// A Task without an ID that StartTask did not return has nothing to wait for.
func TestEmptyTask(t *testing.T) {
	mcptest.Every(t, askingServer, func() *mcp.Client { return &mcp.Client{} }, func(t *testing.T, s *mcp.Session) {
		for _, task := range []*mcp.Task{s.Task(""), {}} {
			_, waited := task.Wait(t.Context())
			_, told := task.Info(t.Context())
			for what, err := range map[string]error{"Wait": waited, "Info": told, "Cancel": task.Cancel(t.Context())} {
				if err == nil || !strings.Contains(err.Error(), "the id is empty") {
					t.Errorf("%s of a task without an ID = %v, want an error that says so", what, err)
				}
			}
		}
		task, err := s.StartTask(t.Context(), "nope", nil)
		if err == nil {
			_, err = task.Wait(t.Context())
		}
		if err == nil || !strings.HasPrefix(err.Error(), `call "nope": `) {
			t.Errorf("a task of an unknown tool = %v, want an error of the call", err)
		}
	})
}
