package inspector

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// beat is the time between two looks at what the page shows.
const beat = time.Second

// pace is the time that a browser may take for an event.
const pace = 30 * time.Second

// events sends what changes, while the browser listens.
func (p *Page) events(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(w)
	send := func(name string, v any) bool {
		body, err := json.Marshal(v)
		if err != nil {
			return true
		}
		_ = control.SetWriteDeadline(time.Now().Add(pace)) // not every writer has one
		_, err = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", name, body)
		return err == nil && control.Flush() == nil
	}
	want := strings.Split(r.URL.Query().Get("want"), ",")
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	last := ""
	for {
		if slices.Contains(want, "state") {
			state := p.state(r.Context())
			if body, err := json.Marshal(state); err == nil && string(body) != last {
				if last = string(body); !send("state", state) {
					return
				}
			}
		}
		select {
		case <-ticker.C:
		case <-r.Context().Done():
			return
		}
	}
}
