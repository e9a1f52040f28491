package inspector

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

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
