package listen

import (
	"log/slog"
	"net"
	"net/http"
	"testing"
)

// A page of another site cannot make a page of this program work, but a person may follow a link to it.
func TestPageRefusesOtherSites(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := 0
	p := NewPage(l, "/metrics", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served++ }), slog.New(slog.DiscardHandler))
	defer p.Close()
	p.Serve()
	for _, tt := range []struct {
		site, dest string
		status     int
	}{{"", "", 200}, {"none", "document", 200}, {"cross-site", "image", 403}, {"cross-site", "", 403}, {"cross-site", "document", 200}, {"same-origin", "empty", 200}} {
		before := served
		r, err := http.NewRequestWithContext(t.Context(), "GET", p.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{"Sec-Fetch-Site": tt.site, "Sec-Fetch-Dest": tt.dest} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != tt.status || (served > before) != (tt.status == 200) {
			t.Errorf("a request of the site %q for %q has the status %d and is served: %v", tt.site, tt.dest, res.StatusCode, served > before)
		}
	}
}
