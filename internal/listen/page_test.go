package listen

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
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

// A port is taken at both addresses of loopback, and both are served until the end.
func TestLoopback(t *testing.T) {
	ports, err := Loopback()
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	p := NewOwn(ports, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Host) }), func() { close(over) }, slog.New(slog.DiscardHandler))
	served := p.Serve()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, l := range ports {
		if _, port, _ := net.SplitHostPort(l.Addr().String()); !strings.HasSuffix(ports[0].Addr().String(), ":"+port) {
			t.Errorf("the ports are %v and %v", ports[0].Addr(), l.Addr())
		}
		res, err := client.Get("http://" + l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || string(text) != l.Addr().String() {
			t.Errorf("%v answers %q, %v", l.Addr(), text, err)
		}
		if other, err := net.Listen("tcp", l.Addr().String()); err == nil {
			other.Close()
			t.Errorf("%v is free", l.Addr())
		}
	}
	if err := p.End(t.Context(), 0); err != nil {
		t.Error(err)
	}
	<-over
	for range ports {
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	}
}
