package web

import (
	"encoding/json"
	"net/http"
)

// HandleState serves /healthz, which answers 200, and /readyz, which answers 200 if the state is
// "ready", and 503 otherwise. Both tell the state, as [HandleHealth] does, and nothing else.
func HandleState(mux *http.ServeMux, guard *Guard, state func(*http.Request) string) {
	type health struct {
		State string `json:"state"`
	}
	mux.Handle("/healthz", HandleHealth(guard, func(*http.Request) (int, any) { return http.StatusOK, health{"alive"} }))
	mux.Handle("/readyz", HandleHealth(guard, func(r *http.Request) (int, any) {
		h := health{state(r)}
		if h.State == "ready" {
			return http.StatusOK, h
		}
		return http.StatusServiceUnavailable, h
	}))
}

// HandleHealth returns a handler for a path such as /readyz, which load balancers and container
// platforms request without credentials. It answers GET and HEAD with the JSON of a value, and
// forbids to cache it. A nil guard admits every host and origin.
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
