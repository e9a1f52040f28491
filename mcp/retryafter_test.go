package mcp_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// refuser is an HTTP server that refuses requests of some methods so many times, in memory.
type refuser struct {
	t       *testing.T
	refuse  map[string]int // by method
	header  string         // Retry-After
	body    string         // of a refusal; ID stands for the id of the request
	status  int
	methods []string // that came
}

func (r *refuser) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	m, err := jsonrpc.Decode(body, jsonrpc.Limits{})
	if err != nil {
		r.t.Errorf("%s: %v", body, err)
	}
	id := string(m.ID.AppendJSON(nil))
	r.methods = append(r.methods, m.Method)
	answer := func(status int, body string) (*http.Response, error) {
		return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: req}, nil
	}
	if r.refuse[m.Method] > 0 {
		r.refuse[m.Method]--
		res, err := answer(r.status, strings.ReplaceAll(r.body, "ID", id))
		if r.header != "" {
			res.Header.Set("Retry-After", r.header)
		}
		return res, err
	}
	switch m.Method {
	case "server/discover":
		return answer(200, `{"jsonrpc":"2.0","id":`+id+`,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}}`)
	case "tools/list":
		return answer(200, `{"jsonrpc":"2.0","id":`+id+`,"result":{"resultType":"complete","tools":[]}}`)
	}
	return answer(200, `{"jsonrpc":"2.0","id":`+id+`,"result":{"resultType":"complete","content":[]}}`)
}

func tooManyBody(data string) string {
	return `{"jsonrpc":"2.0","id":ID,"error":{"code":-32603,"message":"slow down"` + data + `}}`
}

// A list that a server refuses for now is asked for again when the server says, if that is
// soon; a call is not, and its error names the time.
func TestRefusedForNow(t *testing.T) {
	date := time.Date(2000, 1, 1, 0, 0, 4, 0, time.UTC).Format(http.TimeFormat) // a bubble begins at midnight
	for _, tt := range []struct {
		name, header, body string
		status, times      int
		took               time.Duration // of the list
		fails              bool
		says               string // in the error
	}{
		{"seconds", "3", "", 429, 1, 3 * time.Second, false, "try again in 3 s"},
		{"a date", date, "", 429, 1, 4 * time.Second, false, "try again in 4 s"},
		{"not available", "2", "overloaded", 503, 1, 2 * time.Second, false, "try again in 2 s"},
		{"with an error", "2", tooManyBody(""), 429, 1, 2 * time.Second, false, "slow down; try again in 2 s"},
		{"data of an error", "", tooManyBody(`,"data":{"retryAfter":1.5}`), 200, 1, 1500 * time.Millisecond, false, "slow down"},
		{"twice", "2", "", 429, 2, 4 * time.Second, false, "try again in 2 s"},
		{"three times", "2", "", 429, 3, 4 * time.Second, true, "try again in 2 s"},
		{"at once, for ever", "0", "", 429, 99, 0, true, "try again in 0 s"},
		{"not soon", "6", "", 429, 1, 0, true, "try again in 6 s"},
		{"never", "2147483648", "", 429, 1, 0, true, "HTTP 429"},
		{"negative", "-1", "", 429, 1, 0, true, "HTTP 429"},
		{"no time", "", "", 429, 1, 0, true, "HTTP 429"},
		{"another failure", "1", "", 500, 1, 0, true, "HTTP 500"},
		{"another error", "", tooManyBody(`,"data":{"retryAfter":-1}`), 200, 1, 0, true, "slow down"},
		{"data that is none", "", tooManyBody(`,"data":"retryAfter"`), 200, 1, 0, true, "slow down"},
		{"numbers beyond sense", "", tooManyBody(`,"data":{"retryAfter":1e300}`), 200, 1, 0, true, "slow down"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &refuser{t: t, header: tt.header, body: tt.body, status: tt.status}
				c := &mcp.Client{Name: "c", HTTPClient: &http.Client{Transport: r}}
				s, err := c.Dial(t.Context(), "http://server.example/mcp")
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				list := func() error {
					for _, err := range s.Tools(t.Context()) {
						return err
					}
					return nil
				}
				begin := time.Now()
				r.refuse = map[string]int{"tools/list": tt.times}
				err = list()
				if took := time.Since(begin); took != tt.took || (err != nil) != tt.fails {
					t.Errorf("the list = %v after %v, want it after %v", err, took, tt.took)
				}
				if err != nil && !strings.Contains(err.Error(), tt.says) {
					t.Errorf("the list: %v, want %q", err, tt.says)
				}
				if n := len(r.methods); n > 5 {
					t.Errorf("%d requests: %v", n, r.methods)
				}
				r.refuse, begin = map[string]int{"tools/call": 1}, time.Now()
				if tt.header == date {
					r.header = time.Now().Add(4 * time.Second).Format(http.TimeFormat)
				}
				_, err = s.CallTool(t.Context(), "x", nil)
				if err == nil || !strings.Contains(err.Error(), tt.says) || time.Since(begin) != 0 {
					t.Errorf("a call = %v after %v, want %q at once", err, time.Since(begin), tt.says)
				}
			})
		})
	}
}

// A server that refuses server/discover for now is not taken for an old one.
func TestRefusedDiscovery(t *testing.T) {
	for _, body := range []string{"", tooManyBody(""), tooManyBody(`,"data":{"retryAfter":2}`)} {
		for times, header := range map[int]string{1: "2", 9: "60"} {
			synctest.Test(t, func(t *testing.T) {
				r := &refuser{t: t, header: header, body: body, status: 429, refuse: map[string]int{"server/discover": times}}
				if strings.Contains(body, "retryAfter") {
					r.header = ""
				}
				s, err := (&mcp.Client{Name: "c", HTTPClient: &http.Client{Transport: r}}).Dial(t.Context(), "http://server.example/mcp")
				if err == nil {
					defer s.Close()
				}
				if times == 1 && (err != nil || s.Revision() != mcp.V2026_07_28) || times > 1 && err == nil {
					t.Errorf("%d refusals with %q: %v", times, body, err)
				}
				if r.methods[len(r.methods)-1] != "server/discover" {
					t.Errorf("requests %v", r.methods)
				}
			})
		}
	}
}

// A time to wait that is named on a pipe counts too, and a caller who leaves does not wait.
func TestRefusedOnAPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := 0
		s := foreign(t, &mcp.Client{Name: "c"}, func(m *jsonrpc.Message, id string, send func(string, ...any)) {
			if m.Method == "notifications/cancelled" {
				return
			}
			if refused++; refused%2 == 1 {
				send(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"slow down","data":{"retryAfter":4}}}`, id)
				return
			}
			send(`{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","tools":[]}}`, id)
		})
		begin := time.Now()
		for _, err := range s.Tools(t.Context()) {
			t.Error(err)
		}
		if took := time.Since(begin); took != 4*time.Second {
			t.Errorf("the list took %v", took)
		}
		gone := errors.New("the caller has left")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, gone)
		defer cancel()
		begin = time.Now()
		for _, err := range s.Tools(ctx) {
			if !errors.Is(err, gone) {
				t.Errorf("the list = %v", err)
			}
		}
		if took := time.Since(begin); took != time.Second {
			t.Errorf("a caller who left was kept for %v", took)
		}
	})
}
