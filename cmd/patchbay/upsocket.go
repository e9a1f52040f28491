package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// A running up can be found by its user: it answers /healthz and /readyz at a Unix
// socket in a folder that nobody else can open. That holds over stdio too, and needs no
// port. A socket whose program was killed refuses connections, and is removed by the
// next who looks.

// socketFolder is where the sockets of all runs of up are.
func socketFolder() (string, error) {
	dir := os.Getenv("XDG_RUNTIME_DIR")
	if !filepath.IsAbs(dir) {
		var err error
		if dir, err = os.UserCacheDir(); err != nil {
			return "", err
		}
	}
	return filepath.Join(dir, "patchbay"), nil
}

const socketPattern = "up-*.sock"

// socket is how the other programs of the user see this run.
type socket struct{ srv *http.Server }

// openSocket serves the health of h at a socket of its own.
func openSocket(h *hub) (*socket, error) {
	dir, err := socketFolder()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o700); err != nil { // it may have been there
		return nil, err
	}
	path := filepath.Join(dir, strings.Replace(socketPattern, "*", fmt.Sprint(os.Getpid()), 1))
	// What is there is left of another process that had this number.
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	h.handleHealth(mux, overSocket)
	s := &socket{&http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}}
	go s.srv.Serve(listener) // ends with close
	return s, nil
}

// close removes the socket. Of nil it does nothing.
func (s *socket) close() {
	if s != nil {
		s.srv.Close()
	}
}

// found is a run of up that was asked how it is.
type found struct {
	*upReport
	path string
	err  error // it did not say
}

// askTime bounds the wait for a run of up.
const askTime = 3 * time.Second

// runningUps asks all runs of up of this user how they are, the oldest first.
func runningUps(ctx context.Context) ([]found, error) {
	dir, err := socketFolder()
	if err != nil {
		return nil, err
	}
	paths, err := filepath.Glob(filepath.Join(dir, socketPattern))
	if err != nil {
		return nil, err
	}
	all := make([]found, len(paths))
	var wg sync.WaitGroup
	for i, path := range paths {
		wg.Go(func() {
			dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "unix", path)
			}
			all[i] = found{path: path}
			all[i].upReport, all[i].err = askUp(ctx, &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}, "http://localhost")
			if abandoned(all[i].err) {
				os.Remove(path)
			}
		})
	}
	wg.Wait()
	all = slices.DeleteFunc(all, func(f found) bool {
		return abandoned(f.err)
	})
	slices.SortStableFunc(all, func(a, b found) int {
		switch {
		case a.upReport == nil || b.upReport == nil:
			return 0
		}
		return a.Since.Compare(b.Since)
	})
	return all, nil
}

// abandoned tells whether nobody is at a socket any more. Systems differ in how they say so.
func abandoned(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial" && !op.Timeout() && !errors.Is(err, os.ErrPermission) && !errors.Is(err, context.Canceled)
}

// maxReport bounds the answer of up.
const maxReport = 4 << 20

// askUp asks a run of up how it is. Base is its address without a path.
func askUp(ctx context.Context, client *http.Client, base string) (*upReport, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, askTime, fmt.Errorf("no answer in %v", askTime))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/readyz", nil)
	if err != nil {
		return nil, err
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxReport))
	if err != nil {
		return nil, err
	}
	var who struct{ Program, Version string }
	r := new(upReport)
	if json.Unmarshal(body, &who) != nil || json.Unmarshal(body, r) != nil || who.Program == "" && who.Version == "" || r.State == "" {
		return nil, errNotUp
	}
	return r, nil
}

var errNotUp = errors.New("that is no patchbay up")

// explainTaken says who has the address that up was to listen at, if that is another up.
func (a *app) explainTaken(address string, err error) error {
	var f *fault
	if !errors.As(err, &f) || f.code != exitLocal {
		return err
	}
	_, port, splitErr := net.SplitHostPort(address)
	if splitErr != nil {
		port = address
	}
	if ups, askErr := runningUps(a.ctx); askErr == nil {
		for _, u := range ups {
			if u.upReport != nil && u.URL != "" && strings.HasSuffix(strings.TrimSuffix(u.URL, endpoint), ":"+port) {
				f.err = fmt.Errorf("%s is served by another patchbay already: pid %d, %s", u.URL, u.PID, u.From)
				return f.hint("patchbay status shows it; --http 127.0.0.1:0 takes any free port")
			}
		}
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // no proxy
	if _, askErr := askUp(a.ctx, client, "http://"+net.JoinHostPort("127.0.0.1", port)); askErr == nil {
		f.err = fmt.Errorf("port %s is taken by a patchbay up that patchbay status does not see: one of another user, in a container, or with another XDG_RUNTIME_DIR", port)
	}
	return f
}
