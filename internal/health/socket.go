package health

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
	"strconv"
	"strings"
	"sync"
	"time"
)

// The user of a gateway can find it: it answers /healthz and /readyz at a Unix socket in a folder
// that nobody else can open. This also works over stdio, and needs no port. The socket of a killed
// program refuses connections, and a search removes it.

// Folder returns the folder of the sockets of all gateways of this user.
func Folder() (string, error) {
	dir := os.Getenv("XDG_RUNTIME_DIR")
	if !filepath.IsAbs(dir) {
		var err error
		if dir, err = os.UserCacheDir(); err != nil {
			return "", fmt.Errorf("%w; set XDG_RUNTIME_DIR to a folder of your own", err)
		}
	}
	return filepath.Join(dir, "patchbay"), nil
}

const (
	socketPattern = "up-*.sock"
	maxPath       = 103 // bytes of the path of a socket that every system takes; Linux takes 107
)

// Socket is the endpoint by which other programs of the user find a gateway.
type Socket struct{ srv *http.Server }

// OpenSocket serves /healthz and /readyz at a socket of this process, and further paths with a handler
// for each, such as "/admin/". There is one per process.
func OpenSocket(report func() *Report, further map[string]http.Handler) (*Socket, error) {
	dir, err := Folder()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o700); err != nil { // it may have existed with another mode
		return nil, err
	}
	path := filepath.Join(dir, strings.Replace(socketPattern, "*", fmt.Sprint(os.Getpid()), 1))
	// A socket that exists was left by an ended process with this process's number.
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	listener, err := net.Listen("unix", path)
	if err != nil && len(path) > maxPath {
		return nil, fmt.Errorf("the path %s has %d bytes, more than a socket can have; set XDG_RUNTIME_DIR to a shorter folder", path, len(path))
	}
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	Handle(mux, OverSocket, nil, report)
	for path, h := range further {
		mux.Handle(path, h)
	}
	s := &Socket{&http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}}
	go s.srv.Serve(listener) // ends with Close
	return s, nil
}

// Close removes the socket. Close of nil does nothing.
func (s *Socket) Close() {
	if s != nil {
		s.srv.Close()
	}
}

// Found is a gateway and its answer to a request for its report.
type Found struct {
	*Report        // nil if there is an error
	Path    string // of its socket
	Err     error  // why it did not answer
}

// Process returns the process id of a gateway, by the path of its socket; 0: unknown.
func (f *Found) Process() int {
	pid, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(filepath.Base(f.Path), "up-"), ".sock"))
	if err != nil {
		return 0
	}
	return pid
}

// Silent reports whether a gateway runs, but has not answered within 3 seconds.
func (f *Found) Silent() bool {
	return errors.Is(f.Err, context.DeadlineExceeded) || errors.Is(f.Err, errSilent)
}

// errSilent is the cause of the end of a request for a report.
var errSilent = fmt.Errorf("no answer in %v", askTime)

// openTime is longer than a gateway takes to open its socket, because the file exists before the
// gateway listens, and refuses connections meanwhile.
const openTime = time.Minute

// askTime bounds the wait for a report.
const askTime = 3 * time.Second

// Gateways requests the reports of all gateways of this user, the oldest first.
func Gateways(ctx context.Context) ([]Found, error) {
	dir, err := Folder()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var paths []string
	for _, e := range entries {
		if is, _ := filepath.Match(socketPattern, e.Name()); is {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	all := make([]Found, len(paths))
	var wg sync.WaitGroup
	for i, path := range paths {
		wg.Go(func() {
			dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "unix", path)
			}
			all[i] = Found{Path: path}
			all[i].Report, all[i].Err = Ask(ctx, &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}, "http://localhost")
			if info, err := os.Lstat(path); abandoned(all[i].Err) && err == nil && time.Since(info.ModTime()) > openTime {
				os.Remove(path)
			}
		})
	}
	wg.Wait()
	all = slices.DeleteFunc(all, func(f Found) bool {
		return abandoned(f.Err)
	})
	slices.SortStableFunc(all, func(a, b Found) int {
		if a.Report == nil || b.Report == nil {
			return 0
		}
		return a.Since.Compare(b.Since)
	})
	return all, nil
}

// abandoned reports whether no process listens at a socket any more. Systems return different
// errors for that.
func abandoned(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial" && !op.Timeout() && !errors.Is(err, os.ErrPermission) && !errors.Is(err, context.Canceled)
}

// maxReport bounds a report, in bytes.
const maxReport = 4 << 20

// Ask requests the report of a gateway. The argument base is the gateway's URL without a path. Over
// the network most of the report may be empty (see [Handle]). Ask waits for at most 3 seconds, and
// returns ErrOther if something other than a gateway answers.
func Ask(ctx context.Context, client *http.Client, base string) (*Report, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, askTime, errSilent)
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
	r := new(Report)
	if json.Unmarshal(body, &who) != nil || json.Unmarshal(body, r) != nil || who.Program == "" && who.Version == "" || r.State == "" {
		return nil, ErrOther
	}
	return r, nil
}

// ErrOther is the error of [Ask] if something other than a gateway answers.
var ErrOther = errors.New("that is not a patchbay up")
