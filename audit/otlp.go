package audit

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

// OTLP sends lines to an OpenTelemetry collector as log records, over HTTP in JSON.
//
// A record has the line as its body; the time, trace id and severity of the line; and attributes
// such as "audit.kind", "mcp.server" and "gen_ai.tool.name". Denied calls and errors have the
// severity WARN, all others INFO.
//
// Specification: OTLP 1.11, logs; OTLP/HTTP, JSON Protobuf encoding.
type OTLP struct {
	URL     string       // of the collector, such as http://localhost:4318; /v1/logs is added if the URL has no path
	Header  http.Header  // sent with each request; may be nil
	Client  *http.Client // nil: one that follows no redirects
	Service string       // attribute service.name; empty means "patchbay"
}

const (
	otlpBatch   = 512
	otlpWait    = time.Second     // for a full batch
	otlpLast    = 3 * time.Second // to send the rest when the context has ended
	otlpTries   = 5
	otlpTime    = 10 * time.Second // of a request
	otlpLongest = 30 * time.Second // wait for a retry
)

// Export sends lines, and returns how many the collector has taken. A line waits at most a second for
// others, so that lines of [Follow] arrive while it goes on. It repeats requests that the collector
// answers with 429, 502, 503 or 504, and those that do not reach it, up to 5 times. A line that does not
// decode or that the collector rejects is left out; the first such error is returned at the end. When
// ctx ends, the lines that wait are sent within 3 seconds, some of them perhaps for the second time, and
// the error is its cause.
func (o *OTLP) Export(ctx context.Context, lines iter.Seq2[*Entry, error]) (sent int, err error) {
	if err := o.check(); err != nil {
		return 0, err
	}
	x := &export{OTLP: o, ctx: ctx}
	x.timer = time.AfterFunc(time.Hour, x.flush)
	for e, err := range lines {
		var line *LineError
		if errors.As(err, &line) {
			x.leaveOut(err)
			continue
		}
		var record []byte
		if err == nil {
			record, err = otlpRecord(e)
		}
		if err != nil {
			x.end()
			return x.sent, errors.Join(err, x.err)
		}
		if !x.add(record) {
			break
		}
	}
	x.end()
	return x.sent, cmp.Or(x.err, context.Cause(ctx), x.bad)
}

// export is a run of [OTLP.Export].
type export struct {
	*OTLP
	ctx   context.Context
	timer *time.Timer // sends the batch when its first line has waited for otlpWait

	mu    sync.Mutex
	batch [][]byte // guarded by mu
	sent  int      // guarded by mu
	err   error    // ends the export; guarded by mu
	bad   error    // about the first lines that are left out; guarded by mu
}

// add adds a record to the batch. It reports whether to go on.
func (x *export) add(record []byte) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.err != nil {
		return false
	}
	switch x.batch = append(x.batch, record); len(x.batch) {
	case 1:
		x.timer.Reset(otlpWait)
	case otlpBatch:
		x.send(x.ctx)
	}
	return x.err == nil && x.ctx.Err() == nil
}

// flush sends the batch.
func (x *export) flush() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.send(x.ctx)
}

// end sends the rest.
func (x *export) end() {
	x.timer.Stop()
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ctx.Err() == nil {
		x.send(x.ctx)
	}
	if x.ctx.Err() != nil {
		own, cancel := context.WithTimeout(context.WithoutCancel(x.ctx), otlpLast)
		defer cancel()
		x.send(own)
	}
}

// send sends the batch. The caller holds mu. If x.ctx ends meanwhile, end sends it again.
func (x *export) send(ctx context.Context) {
	if len(x.batch) == 0 || x.err != nil {
		return
	}
	rejected, err := x.post(ctx, x.batch)
	if err != nil && rejected == 0 {
		if ctx != x.ctx || ctx.Err() == nil {
			x.err = err
		}
		return
	}
	if x.bad == nil {
		x.bad = err
	}
	x.sent += len(x.batch) - rejected
	x.batch = nil
	x.timer.Stop()
}

// leaveOut notes the error of a line that is left out.
func (x *export) leaveOut(err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.bad == nil {
		x.bad = err
	}
}

// check returns why the fields cannot be used.
func (o *OTLP) check() error {
	u, err := url.Parse(o.URL)
	switch {
	case o.URL == "":
		return errors.New("collector: the URL is empty; give one such as http://localhost:4318")
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return errors.New("collector: the URL is not one of HTTP; write one such as http://localhost:4318") // it may have a password
	}
	return nil
}

type otlpValue struct {
	String string `json:"stringValue"`
}

type otlpAttribute struct {
	Key   string    `json:"key"`
	Value otlpValue `json:"value"`
}

// otlpRecord returns a line as a log record.
func otlpRecord(e *Entry) ([]byte, error) {
	line := e.Line()
	if line == nil {
		var err error
		if line, err = jsonx.Marshal(e); err != nil {
			return nil, err
		}
	}
	var r struct {
		Time       string          `json:"timeUnixNano"` // 64-bit numbers are strings
		Severity   int             `json:"severityNumber"`
		Text       string          `json:"severityText"`
		Event      string          `json:"eventName"`
		Body       otlpValue       `json:"body"`
		Attributes []otlpAttribute `json:"attributes"`
		Trace      string          `json:"traceId,omitempty"`
	}
	r.Time = strconv.FormatInt(e.Time.UnixNano(), 10)
	r.Severity, r.Text = 9, "INFO"
	if e.Kind == Denied || (e.Kind == CallEnd || e.Kind == TaskEnd) && e.Outcome != "ok" && e.Outcome != "done" {
		r.Severity, r.Text = 13, "WARN"
	}
	r.Event, r.Body.String, r.Trace = "audit."+string(e.Kind), string(line), e.Trace
	add := func(key, value string) {
		if value != "" {
			r.Attributes = append(r.Attributes, otlpAttribute{key, otlpValue{value}})
		}
	}
	add("audit.kind", string(e.Kind))
	add("audit.call", e.Call)
	add("audit.node", e.Node)
	add("audit.hash", e.Hash)
	add("audit.outcome", e.Outcome)
	add("audit.team", e.Team)
	add("gen_ai.tool.name", e.Tool)
	add("mcp.method.name", e.Method)
	if e.Server != nil {
		add("mcp.server", e.Server.Name)
	}
	if e.Principal != nil {
		add("enduser.id", e.Principal.ID)
	}
	if e.Decision != nil {
		add("audit.rule", e.Decision.Rule)
	}
	return jsonx.Marshal(&r)
}

// post sends a batch, with retries. The collector may reject some of its records with an error.
func (o *OTLP) post(ctx context.Context, batch [][]byte) (rejected int, err error) {
	service := o.Service
	if service == "" {
		service = "patchbay"
	}
	var body bytes.Buffer
	body.WriteString(`{"resourceLogs":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":`)
	body.Write(jsonx.AppendString(nil, service))
	body.WriteString(`}}]},"scopeLogs":[{"scope":{"name":"patchbay/audit"},"logRecords":[`)
	body.Write(bytes.Join(batch, []byte(",")))
	body.WriteString(`]}]}]}`)
	for try := 1; ; try++ {
		rejected, wait, err := o.once(ctx, body.Bytes())
		if err == nil || wait == 0 || try == otlpTries {
			return min(rejected, len(batch)), err
		}
		wait = min(max(wait, time.Duration(1<<try)*100*time.Millisecond), otlpLongest)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return 0, err
		}
	}
}

// direct does not follow redirects, because they would carry the header to another host.
var direct = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// once sends a request. A positive wait says that another may succeed.
func (o *OTLP) once(ctx context.Context, body []byte) (rejected int, wait time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, otlpTime)
	defer cancel()
	target := strings.TrimSuffix(o.URL, "/")
	if _, rest, _ := strings.Cut(target, "://"); !strings.Contains(rest, "/") {
		target += "/v1/logs"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(body))
	if err != nil {
		return 0, 0, fmt.Errorf("collector: %w", err)
	}
	for name, values := range o.Header {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", "application/json")
	client := o.Client
	if client == nil {
		client = direct
	}
	res, err := client.Do(req)
	if err != nil {
		return 0, 1, fmt.Errorf("collector: %w", err)
	}
	defer res.Body.Close()
	answer, _ := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	switch res.StatusCode {
	case http.StatusOK:
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		seconds, _ := strconv.Atoi(res.Header.Get("Retry-After"))
		return 0, max(1, time.Duration(seconds)*time.Second), fmt.Errorf("collector: %s answers %s", target, res.Status)
	default:
		return 0, 0, fmt.Errorf("collector: %s answers %s; is it the address of OTLP over HTTP (usually port 4318)? %.200q", target, res.Status, answer)
	}
	var partial struct {
		Partial struct {
			Rejected json.RawMessage `json:"rejectedLogRecords"`
			Message  string          `json:"errorMessage"`
		} `json:"partialSuccess"`
	}
	if jsonx.Unmarshal(answer, &partial) == nil {
		if n, _ := strconv.Atoi(strings.Trim(string(partial.Partial.Rejected), `"`)); n > 0 {
			return n, 0, fmt.Errorf("collector: %s rejects %d records: %.200q", target, n, partial.Partial.Message)
		}
	}
	return 0, 0, nil
}
