package inspector

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// TestDirectEmpty: an answer without a body is there although its handler has ended already.
func TestDirectEmpty(t *testing.T) {
	client := &http.Client{Transport: &direct{http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) }), httptest.NewRequest("POST", "http://127.0.0.1/", nil)}}
	var callers sync.WaitGroup
	for range 16 { // of which some go on later than their handlers
		callers.Go(func() {
			for range 2000 {
				res, err := client.Get("http://127.0.0.1/x")
				if err != nil {
					t.Error(err)
					return
				}
				res.Body.Close()
			}
		})
	}
	callers.Wait()
}

// TestDirectPanic: a handler that panics ends its request, and not the program.
func TestDirectPanic(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"before the answer": func(http.ResponseWriter, *http.Request) { panic("no") },
		"within the answer": func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "half"); panic("no") },
	} {
		t.Run(name, func(t *testing.T) {
			like := httptest.NewRequest("POST", "http://127.0.0.1/", nil)
			client := &http.Client{Transport: &direct{handler, like}}
			res, err := client.Get("http://127.0.0.1/x")
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			body, err := io.ReadAll(res.Body)
			if err == nil || !strings.Contains(err.Error(), "panicked") || res.StatusCode == http.StatusOK && string(body) != "half" {
				t.Errorf("HTTP %d, %q, %v", res.StatusCode, body, err)
			}
		})
	}
}
