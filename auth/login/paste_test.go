package login_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/auth/login"
)

// A user without a browser on this machine pastes the address, with another try or two.
func TestPaste(t *testing.T) {
	const page = "https://login.example.com/?state=xyz"
	for _, tt := range []struct{ name, in, want, err string }{
		{"at once", "http://127.0.0.1:9/callback?code=c&state=xyz\n", "http://127.0.0.1:9/callback?code=c&state=xyz", ""},
		{"spaces, and no end of line", "  http://127.0.0.1:9/callback?state=xyz ", "http://127.0.0.1:9/callback?state=xyz", ""},
		{"another try", "what?\nhttp://127.0.0.1:9/callback?state=old\n\nhttp://h/?state=xyz\n", "http://h/?state=xyz", ""},
		{"too many", strings.Repeat("no\n", 9), "", "none of the pasted addresses"},
		{"nothing", "", "", "EOF"},
		{"long", strings.Repeat("x", 20000) + "\n", "", "more than"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			p := &login.Paste{In: strings.NewReader(tt.in), Out: &out}
			back, err := p.Visit(t.Context(), page)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("error %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil || back.String() != tt.want {
				t.Errorf("Visit = %v, %v; want %q", back, err, tt.want)
			}
			if !strings.Contains(out.String(), "\n  "+page+"\n") {
				t.Errorf("shown: %q", out.String())
			}
		})
	}
	var out strings.Builder
	if _, err := (&login.Paste{In: strings.NewReader(""), Out: &out}).Visit(t.Context(), "javascript:alert(1)"); err == nil || out.Len() > 0 {
		t.Errorf("shown %q, error %v", out.String(), err)
	}
}

// A visit ends with its context, and the line that it was reading is for the next visit.
func TestPasteIsGivenUp(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	p := &login.Paste{In: r, Out: io.Discard}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := p.Visit(ctx, "https://h/?state=a"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	go func() { _, _ = io.WriteString(w, "http://h/?state=b\n") }()
	if back, err := p.Visit(t.Context(), "https://h/?state=b"); err != nil || back.Query().Get("state") != "b" {
		t.Errorf("Visit = %v, %v", back, err)
	}
}

// A login by pasted address ends like any other.
func TestLoginByPaste(t *testing.T) {
	w := newWorld(t)
	r, in := io.Pipe()
	defer in.Close()
	shown, out := io.Pipe()
	go func() { // the user, with a browser elsewhere
		buf := make([]byte, 4096)
		for {
			n, err := shown.Read(buf)
			if err != nil {
				return
			}
			for line := range strings.Lines(string(buf[:n])) {
				if page := strings.TrimSpace(line); strings.HasPrefix(page, "http") {
					back, err := visit(context.Background(), page)
					if err != nil {
						t.Error(err)
						return
					}
					go func() { _, _ = io.WriteString(in, back.String()+"\n") }()
				}
			}
		}
	}()
	defer out.Close()
	tr := w.transport()
	tr.Visit = (&login.Paste{In: r, Out: out}).Visit
	mustSend(t, tr, w.url())
}
