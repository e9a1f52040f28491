package web

import (
	"encoding/json"
	"net/http"
)

// Health is an answer about the health of a program.
type Health struct {
	State string `json:"state"`
}

// HandleHealth returns a handler for a path such as /readyz, which load balancers and container
// platforms request without credentials. It answers GET and HEAD with the JSON of a value, such as
// a [Health], and forbids to cache it. A nil guard admits every host and origin.
func HandleHealth(guard *Guard, answer func(r *http.Request) (status int, v any)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if guard != nil && !guard.Admit(w, r, "GET") {
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, r.URL.Path+" is read with GET", http.StatusMethodNotAllowed)
			return
		}
		status, v := answer(r)
		body, err := json.Marshal(v)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(status)
		_, _ = w.Write(append(body, '\n')) // the client may have disconnected
	})
}
