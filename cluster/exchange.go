package cluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/transport/web"
)

// A line is a connection to another node, for one request at a time. The goroutine of the request writes and reads it, which costs
// half of what [http.Transport] and [httputil.ReverseProxy] do with their goroutines.
type line struct {
	net.Conn
	in   *bufio.Reader
	out  *bufio.Writer
	used time.Time // last
}

// lines are those that have no request, by node. Only those of a Bus that tells whether they live are kept.
type lines struct {
	bus Bus

	mu     sync.Mutex
	idle   map[string][]*line // guarded by mu
	sweeps bool               // a sweep is to come; guarded by mu
}

const (
	maxLines = 100 // for a node
	lineIdle = time.Minute
)

// living is a connection that tells whether it lives and nothing has come that was not asked for.
type living interface{ Live() bool }

// get returns a line to a node, and whether it was used before. A new one has to be there by a time.
func (s *lines) get(ctx context.Context, node string, by time.Time) (l *line, used bool, err error) {
	s.mu.Lock()
	for l == nil && len(s.idle[node]) > 0 {
		last := len(s.idle[node]) - 1
		l, s.idle[node] = s.idle[node][last], s.idle[node][:last]
		if !l.Conn.(living).Live() {
			_ = l.Close()
			l = nil
		}
	}
	s.mu.Unlock()
	if l != nil {
		return l, true, nil
	}
	ctx, stop := context.WithDeadline(ctx, by)
	defer stop()
	c, err := s.bus.Dial(ctx, node)
	if err != nil {
		return nil, false, &dialError{err}
	}
	return &line{Conn: c, in: bufio.NewReader(c), out: bufio.NewWriter(c)}, false, nil
}

// put keeps a line for the next request.
func (s *lines) put(node string, l *line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c, ok := l.Conn.(living); !ok || !c.Live() || len(s.idle[node]) == maxLines {
		_ = l.Close()
		return
	}
	if s.idle == nil {
		s.idle = map[string][]*line{}
	}
	l.used = time.Now()
	s.idle[node] = append(s.idle[node], l)
	if !s.sweeps {
		s.sweeps = true
		time.AfterFunc(lineIdle, s.sweep)
	}
}

// sweep closes what has long been idle.
func (s *lines) sweep() {
	s.close(time.Now().Add(-lineIdle))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sweeps = len(s.idle) > 0; s.sweeps {
		time.AfterFunc(lineIdle, s.sweep)
	}
}

// close closes the lines that were last used until a time. Two moments may have one time.
func (s *lines) close(until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for node, list := range s.idle {
		s.idle[node] = slices.DeleteFunc(list, func(l *line) bool {
			old := !l.used.After(until)
			if old {
				_ = l.Close()
			}
			return old
		})
		if len(s.idle[node]) == 0 {
			delete(s.idle, node)
		}
	}
}

// forward sends a request to the node of its place, and its answer to the client.
func (n *Node) forward(w http.ResponseWriter, r *http.Request, at place) {
	for {
		l, used, err := n.lines.get(r.Context(), at.owner, at.since.Add(answerTime))
		if err != nil {
			n.unreached(w, r, at, err)
			return
		}
		stop := context.AfterFunc(r.Context(), func() { _ = l.Close() })
		pace := n.pacer.Begin(w, r)
		res, err := l.ask(r, at, pace)
		pace.End() // before another handler may read the body
		if err != nil {
			stop()
			_ = l.Close()
			if used && r.Method == http.MethodGet && r.ContentLength == 0 && r.Context().Err() == nil {
				continue // it may have been closed at that moment, and the request changes nothing
			}
			n.unreached(w, r, at, err)
			return
		}
		if res.Header.Get(headerTake) != "" && taking(r) && at.moved < maxHops {
			at.moved++
			_ = res.Body.Close()
			stop()
			_ = l.Close()
			n.owners.unsee(at.key)
			at.hops = at.hops[:len(at.hops)-1]
			at.owner, err = n.find(r.Context(), at.key, at.since)
			n.at(w, r, at, err)
			return
		}
		if node := res.Header.Get(headerNode); node != "" && Check("node", node) == nil {
			if node != at.owner && node != n.Name {
				n.owners.see(at.key, node)
			}
			if at.inside {
				w.Header().Set(headerNode, node)
			}
		}
		err = l.answer(w, res)
		if stop() && err == nil && !res.Close {
			n.lines.put(at.owner, l)
			return
		}
		_ = l.Close()
		if err != nil {
			panic(http.ErrAbortHandler) // a part of the answer is sent: only a connection that breaks says that the rest is missing
		}
		return
	}
}

// taking says whether a request can be sent elsewhere when another node has no longer its session.
func taking(r *http.Request) bool { return r.Method == http.MethodGet && r.ContentLength == 0 }

// between are headers of a connection, not of a request.
var between = map[string]bool{
	"Connection": true, "Proxy-Connection": true, "Keep-Alive": true, "Proxy-Authenticate": true, "Proxy-Authorization": true,
	"Te": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
}

// unsent are headers of a client's request that another node does not get as they are.
var unsent = func() map[string]bool {
	all := maps.Clone(between)
	for _, name := range []string{"Host", "Content-Length", "Expect", headerClient, headerHops, headerCertificate, headerTake, headerPassed, headerWaited} {
		all[name] = true
	}
	return all
}()

// andNamed returns the names, and those that a header of the connection names.
func andNamed(names map[string]bool, header http.Header) map[string]bool {
	cloned := false
	for _, value := range header["Connection"] {
		for name := range strings.SplitSeq(value, ",") {
			if name = http.CanonicalHeaderKey(strings.TrimSpace(name)); name == "" || names[name] || name == "Close" {
				continue
			}
			if !cloned {
				names, cloned = maps.Clone(names), true
			}
			names[name] = true
		}
	}
	return names
}

// ask sends a request, and returns the answer as soon as its header is here.
func (l *line) ask(r *http.Request, at place, pace *web.Pace) (*http.Response, error) {
	sent := l.send(r, at, pace)
	if large := (*http.MaxBytesError)(nil); errors.As(sent, &large) || errors.Is(sent, errBody) {
		return nil, sent
	}
	for { // a node that refuses a request need not have read it
		res, err := http.ReadResponse(l.in, r)
		switch {
		case err != nil && sent != nil:
			return nil, sent
		case err != nil:
			return nil, err
		case res.StatusCode == http.StatusSwitchingProtocols:
			return nil, errors.New("the other node changes the protocol")
		case res.StatusCode >= 200:
			res.Close = res.Close || sent != nil
			return res, nil
		}
	}
}

// errBody says that the client's body broke off.
var errBody = errors.New("the body of the request broke off")

// send sends a request. Its body has the time that it would have at the other node.
func (l *line) send(r *http.Request, at place, pace *web.Pace) error {
	o, hops, certificate := l.out, at.hops, certificateOf(r.TLS)
	if certificate != "" {
		hops = hops[:len(hops)-1] + withCertificate
	}
	for _, part := range []string{r.Method, " ", r.URL.RequestURI(), " HTTP/1.1\r\nHost: ", r.Host,
		"\r\n" + headerClient + ": ", r.RemoteAddr, "\r\n" + headerHops + ": ", hops, "\r\n"} {
		_, _ = o.WriteString(part) // Flush has the error, as with all that follow
	}
	if certificate != "" {
		_, _ = o.WriteString(headerCertificate + ": " + certificate + "\r\n")
	}
	if at.passed {
		_, _ = o.WriteString(headerPassed + ": " + at.key + "\r\n")
	}
	if ms := time.Since(at.since).Milliseconds(); ms > 0 && !at.since.IsZero() {
		_, _ = o.WriteString(headerWaited + ": " + strconv.FormatInt(ms, 10) + "\r\n")
	}
	if taking(r) {
		_, _ = o.WriteString(headerTake + ": 1\r\n")
	}
	_ = r.Header.WriteSubset(o, andNamed(unsent, r.Header))
	body := reading{http.NoBody}
	if r.Body != nil {
		body.Reader = pace.Body(r.Body)
	}
	var err error
	switch {
	case r.ContentLength < 0:
		_, _ = o.WriteString("Transfer-Encoding: chunked\r\n\r\n")
		chunks := httputil.NewChunkedWriter(o)
		if _, err = io.Copy(chunks, body); err == nil {
			_ = chunks.Close()
			_, _ = o.WriteString("\r\n")
		}
	case r.ContentLength > 0 || r.Method == http.MethodPost:
		_, _ = o.WriteString("Content-Length: " + strconv.FormatInt(r.ContentLength, 10) + "\r\n\r\n")
		var n int64
		if n, err = io.Copy(o, body); err == nil && n != r.ContentLength {
			err = fmt.Errorf("%w after %d of %d bytes", errBody, n, r.ContentLength)
		}
	default:
		_, _ = o.WriteString("\r\n")
	}
	if err != nil {
		return err
	}
	return o.Flush()
}

// reading tells the errors of a body from those of the copy.
type reading struct{ io.Reader }

func (b reading) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil && err != io.EOF {
		err = fmt.Errorf("%w: %w", errBody, err)
	}
	return n, err
}

// answer sends an answer to the client, each part of a stream as soon as it has come. A client that does not read has the time that it would
// have at the other node.
func (l *line) answer(w http.ResponseWriter, res *http.Response) error {
	skip := andNamed(between, res.Header)
	for name, values := range res.Header {
		if !skip[name] && !strings.HasPrefix(name, headerPrefix) {
			if own := w.Header()[name]; own != nil {
				values = append(own, values...)
			}
			w.Header()[name] = values
		}
	}
	w.WriteHeader(res.StatusCode)
	out := web.NewOutlet(w)
	flush := func() error { return nil }
	if res.ContentLength < 0 { // it may be a stream
		flush = out.Flush
	}
	if l.in.Buffered() == 0 {
		if err := flush(); err != nil {
			return err
		}
	}
	part := parts.Get().(*[32 << 10]byte)
	defer parts.Put(part)
	for {
		n, err := res.Body.Read(part[:])
		if n > 0 {
			if _, err := out.Write(part[:n]); err != nil {
				return err
			}
		}
		switch {
		case err == io.EOF:
			return out.End()
		case err != nil:
			return err
		}
		if err := flush(); err != nil { // a short answer comes with its end
			return err
		}
	}
}

var parts = sync.Pool{New: func() any { return new([32 << 10]byte) }}
