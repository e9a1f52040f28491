package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strconv"
	"strings"
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
	otlpTries   = 5
	otlpTime    = 10 * time.Second // of a request
	otlpLongest = 30 * time.Second // wait for a retry
)

// Export sends lines, and returns how many the collector has taken. It repeats requests that the
// collector answers with 429, 502, 503 or 504, and those that do not reach it, up to 5 times. A
// line that does not decode is left out; the first such error is returned at the end.
func (o *OTLP) Export(ctx context.Context, lines iter.Seq2[*Entry, error]) (sent int, err error) {
	var batch [][]byte
	var bad error
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		err := o.post(ctx, batch)
		if err == nil {
			sent += len(batch)
		}
		batch = batch[:0]
		return err
	}
	for e, err := range lines {
		var line *LineError
		if errors.As(err, &line) {
			if bad == nil {
				bad = err
			}
			continue
		}
		if err != nil {
			return sent, err
		}
		record, err := otlpRecord(e)
		if err != nil {
			return sent, err
		}
		if batch = append(batch, record); len(batch) == otlpBatch {
			if err := flush(); err != nil {
				return sent, err
			}
		}
	}
	if err := flush(); err != nil {
		return sent, err
	}
	return sent, bad
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
	if e.Kind == Denied || e.Kind == CallEnd && e.Outcome != "ok" && e.Outcome != "done" {
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

// post sends a batch, with retries.
func (o *OTLP) post(ctx context.Context, batch [][]byte) error {
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
		wait, err := o.once(ctx, body.Bytes())
		if err == nil || wait == 0 || try == otlpTries {
			return err
		}
		wait = min(max(wait, time.Duration(1<<try)*100*time.Millisecond), otlpLongest)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return err
		}
	}
}

// direct does not follow redirects, because they would carry the header to another host.
var direct = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// once sends a request. A positive wait says that another may succeed.
func (o *OTLP) once(ctx context.Context, body []byte) (wait time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, otlpTime)
	defer cancel()
	target := strings.TrimSuffix(o.URL, "/")
	if _, rest, _ := strings.Cut(target, "://"); !strings.Contains(rest, "/") {
		target += "/v1/logs"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(body))
	if err != nil {
		return 0, fmt.Errorf("collector: %w", err)
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
		return 1, fmt.Errorf("collector: %w", err)
	}
	defer res.Body.Close()
	answer, _ := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	switch res.StatusCode {
	case http.StatusOK:
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		seconds, _ := strconv.Atoi(res.Header.Get("Retry-After"))
		return max(1, time.Duration(seconds)*time.Second), fmt.Errorf("collector: %s answers %s", target, res.Status)
	default:
		return 0, fmt.Errorf("collector: %s answers %s; is it the address of OTLP over HTTP (usually port 4318)? %.200q", target, res.Status, answer)
	}
	var partial struct {
		Partial struct {
			Rejected json.RawMessage `json:"rejectedLogRecords"`
			Message  string          `json:"errorMessage"`
		} `json:"partialSuccess"`
	}
	if jsonx.Unmarshal(answer, &partial) == nil {
		if n := strings.Trim(string(partial.Partial.Rejected), `"`); n != "" && n != "0" {
			return 0, fmt.Errorf("collector: %s rejects %s records: %.200q", target, n, partial.Partial.Message)
		}
	}
	return 0, nil
}
