package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
)

func TestOperate(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	defer end()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + ln.Addr().String()
	data, ended := new(store), make(chan error, 1)
	web := newEndpoint(data)
	web.Delay = 0
	go func() { ended <- web.Serve(ctx, ln) }()
	get := func(path string) (int, string) {
		res, err := http.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(body)
	}

	s, err := (&mcp.Client{Name: "test"}).Dial(t.Context(), url+"/mcp")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got, err := mcp.CallAs[int](t.Context(), s, "count", nil); err != nil || got != 42 {
		t.Errorf("count = %d, %v", got, err)
	}
	if _, text := get("/metrics"); !strings.Contains(text, `patchbay_call_duration_seconds_count{server="counter",mcp_method_name="tools/call",gen_ai_tool_name="count"} 1`) {
		t.Errorf("the metrics are without the call:\n%s", text)
	}
	data.away.Store(true)
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 503} {
		if status, _ := get(path); status != want {
			t.Errorf("without the database %s = %d, want %d", path, status, want)
		}
	}
	end()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("the endpoint does not end")
	}
}
