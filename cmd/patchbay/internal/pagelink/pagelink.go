// Package pagelink leads a person to the page of this program, or of another one of theirs.
//
// A link has a code that lets one person in, once. All users of a machine can read the command lines of programs, so the
// browser is not started with the link: it gets the path of a file that only its user can read, and that redirects to the
// link. The file is removed when the link is used or does not work any more, and at the end of the program.
package pagelink

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"mime"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/advice"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/steer"
	"github.com/patchbay-dev/patchbay/inspector"
	"github.com/patchbay-dev/patchbay/internal/browser"
	"github.com/patchbay-dev/patchbay/internal/health"
)

// Path is where the socket of a program makes links to its page, and below Feed it says what the page shows.
const (
	Path = "/page/link"
	Feed = "/page/feed"
)

// Add adds the paths of a page to those of the socket of its program; a nil page has none.
func Add(page *inspector.Page, paths map[string]http.Handler) map[string]http.Handler {
	if page != nil {
		paths[Path], paths[Feed+"/"] = Handler(page), http.StripPrefix(Feed, page.Feed())
	}
	return paths
}

const (
	pattern   = "page-*.html"
	leftAfter = time.Hour // that a file is left of a program that was killed
	maxBody   = 4 << 10
	askTime   = 3 * time.Second
)

// Maker makes links: an inspector.Page.
type Maker interface {
	Link(over func()) string
}

// File makes a link, and a file that redirects to it.
func File(page Maker) (path string, err error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("the browser is not opened: %w", err)
	}
	dir = filepath.Join(dir, "patchbay")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	sweep(dir, time.Now())
	f, err := os.CreateTemp(dir, pattern) // 0600
	if err != nil {
		return "", err
	}
	path = f.Name()
	text := redirect(page.Link(func() { os.Remove(path) }))
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(path)
		return "", err
	}
	return path, nil
}

// redirect returns a document that leads to a link.
func redirect(link string) string {
	link = html.EscapeString(link)
	return "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"referrer\" content=\"no-referrer\">\n<title>Patchbay</title>\n" +
		"<meta http-equiv=\"refresh\" content=\"0; url=" + link + "\">\n<p><a href=\"" + link + "\">Open the page</a></p>\n</html>\n"
}

// sweep removes the files of programs that were killed.
func sweep(dir string, now time.Time) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if is, _ := filepath.Match(pattern, e.Name()); !is {
			continue
		}
		if info, err := e.Info(); err == nil && now.Sub(info.ModTime()) > leftAfter {
			os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

// Open opens the page in the browser. The error is browser.ErrNone where there is none.
func Open(ctx context.Context, page Maker) error {
	path, err := File(page)
	if err != nil {
		return err
	}
	err = browser.Open(ctx, path)
	if err != nil {
		os.Remove(path)
	}
	return err
}

// Show opens the browser, if open, and returns lines for a person: where there is no browser, they have a link. The warning
// says why the browser was not opened; nil: it was, or there is none.
func Show(ctx context.Context, page Maker, open bool) (lines []string, warning error) {
	err := browser.ErrNone
	if open {
		err = Open(ctx, page)
	}
	switch {
	case err == nil:
		return []string{"The page opens in the browser. Another link: patchbay page"}, nil
	case ctx.Err() != nil:
		return nil, nil
	case !errors.Is(err, browser.ErrNone):
		warning = err
	}
	return []string{"", "  " + page.Link(nil), "", "The link works once, within 5 minutes. Another one: patchbay page"}, warning
}

// answer is what a program says about a link: the link itself, or the file that redirects to it.
type answer struct {
	Link string `json:"link,omitempty"`
	File string `json:"file,omitempty"`
}

// question is what a program is asked for.
type question struct {
	File bool `json:"file"`
}

// Handler makes links to a page for the user of the socket that it is behind.
func Handler(page Maker) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked question
		kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
		switch {
		case r.Method != http.MethodPost:
			w.Header().Set("Allow", "POST")
			http.Error(w, "a link is made by POST", http.StatusMethodNotAllowed)
			return
		case kind != "application/json" || json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&asked) != nil:
			http.Error(w, `the body is not {"file": true} or {"file": false}`, http.StatusBadRequest)
			return
		}
		var out answer
		if asked.File {
			var err error
			if out.File, err = File(page); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
		} else {
			out.Link = page.Link(nil)
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_ = json.NewEncoder(w).Encode(out) // the program may have ended
	})
}

// Find returns the one running program of this user that has a page, or that with a process id; 0: any.
func Find(ctx context.Context, pid int) (*health.Found, error) {
	all, err := health.Gateways(ctx)
	if err != nil {
		return nil, err
	}
	silent := steer.Silent(all, pid)
	all = slices.DeleteFunc(all, func(u health.Found) bool { return u.Report == nil || u.Page == "" })
	if silent != nil && (len(all) == 0 || pid != 0) {
		return nil, silent
	}
	return steer.Only(all, pid, func() error {
		return &advice.Error{Code: advice.ExitUnreachable, Err: errors.New("no patchbay with a page is running here"), Next: "patchbay up serves one, unless it has --no-page"}
	})
}

// Ask asks a running program for a link to its page, or for the file that redirects to one.
func Ask(ctx context.Context, of *health.Found, file bool) (link string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, askTime, fmt.Errorf("pid %d has not answered in %v", of.PID, askTime))
	defer cancel()
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", of.Path)
	}
	body, err := json.Marshal(question{file})
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost"+Path, bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := (&http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxBody))
	if err != nil {
		return "", err
	}
	var out answer
	if res.StatusCode != http.StatusOK {
		return "", fmt.Errorf("pid %d makes no link: HTTP %d %s", of.PID, res.StatusCode, strings.TrimSpace(string(raw)))
	}
	if err := json.Unmarshal(raw, &out); err != nil || out.Link == "" && out.File == "" {
		return "", fmt.Errorf("pid %d answered without a link", of.PID)
	}
	return out.Link + out.File, nil
}
