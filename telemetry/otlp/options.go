package otlp

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/sdk/resource"
	"golang.org/x/net/http/httpguts"

	"github.com/patchbay-dev/patchbay/internal/text"
)

// Options configure an [Exporter].
type Options struct {
	// Endpoint is the base URL of the collector, such as http://localhost:4318; the paths
	// /v1/traces and /v1/metrics are added. Required.
	Endpoint string

	Headers map[string]string // of every request, such as an API key

	Timeout      time.Duration // of one attempt; 0: 10 seconds
	Retry        time.Duration // of all attempts for one batch, with the waits between them; 0: 1 minute
	Queue        int           // the maximum number of spans that wait; 0: 4096
	Batch        int           // the maximum number of spans in a request; 0: 512
	Delay        time.Duration // how long a span waits for others at most; 0: OTEL_BSP_SCHEDULE_DELAY in milliseconds, else 5 seconds
	Uncompressed bool          // requests are not compressed with gzip; those to localhost or a loopback address never are

	// Client sends the requests, for instance with a TLS configuration of its own. Nil: one with the
	// defaults of net/http.
	Client *http.Client

	// Logger gets faults of the collector. Nil: they are only counted.
	Logger *slog.Logger

	// Metrics returns the state of all metrics, with cumulative sums. It is called each Interval, and
	// by Shutdown; nothing is sent if there are none, or if it panics. Nil: no metrics are sent.
	Metrics  func() []Metric
	Interval time.Duration // between two pushes of metrics; 0: OTEL_METRIC_EXPORT_INTERVAL in milliseconds, else 1 minute

	// Resource describes the program in metrics; that of spans comes from their provider. Nil:
	// resource.Default(), which reads OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES.
	Resource *resource.Resource
}

// Check returns what is wrong with the options; nil: [New] accepts them.
func (o *Options) Check() error {
	if _, err := base(o.Endpoint); err != nil {
		return err
	}
	if o.Timeout < 0 || o.Retry < 0 || o.Queue < 0 || o.Batch < 0 || o.Delay < 0 || o.Interval < 0 {
		return errors.New("a limit is negative; use 0 for the default")
	}
	for name, value := range o.Headers {
		if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return fmt.Errorf("the header %q is not valid in HTTP; check its name and value", name)
		}
	}
	return nil
}

// FromEnvironment returns the options that the variables of OpenTelemetry describe:
// OTEL_EXPORTER_OTLP_ENDPOINT, _HEADERS, _TIMEOUT (in milliseconds), _COMPRESSION (gzip or none) and
// _PROTOCOL (http/json or http/protobuf, which a collector serves at the same address). It returns
// false if there is no endpoint, or OTEL_SDK_DISABLED is true. Variables for a single signal are
// not read.
func FromEnvironment() (o Options, ok bool, err error) {
	const prefix = "OTEL_EXPORTER_OTLP_"
	if o.Endpoint = strings.TrimSpace(os.Getenv(prefix + "ENDPOINT")); o.Endpoint == "" || strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return Options{}, false, nil
	}
	if _, err := base(o.Endpoint); err != nil {
		return Options{}, false, fmt.Errorf("%sENDPOINT: %w", prefix, err)
	}
	switch v := os.Getenv(prefix + "PROTOCOL"); v {
	case "", "http/json", "http/protobuf":
	default:
		return Options{}, false, fmt.Errorf("%sPROTOCOL: %q is not supported; use http/json, with the HTTP port of the collector (4318)", prefix, text.Short(v))
	}
	switch v := os.Getenv(prefix + "COMPRESSION"); v {
	case "", "gzip":
	case "none":
		o.Uncompressed = true
	default:
		return Options{}, false, fmt.Errorf("%sCOMPRESSION: %q is not supported; use gzip or none", prefix, text.Short(v))
	}
	if v := os.Getenv(prefix + "TIMEOUT"); v != "" {
		if o.Timeout, ok = milliseconds(v); !ok {
			return Options{}, false, fmt.Errorf("%sTIMEOUT: %q is not a number of milliseconds, such as 10000", prefix, text.Short(v))
		}
	}
	for member := range strings.SplitSeq(os.Getenv(prefix+"HEADERS"), ",") {
		if strings.TrimSpace(member) == "" {
			continue
		}
		name, value, found := strings.Cut(member, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if name = strings.TrimSpace(name); !found || name == "" || err != nil { // the value is perhaps a secret
			return Options{}, false, fmt.Errorf("%sHEADERS: a member is not name=value with %%-escapes; separate members with commas", prefix)
		}
		if o.Headers == nil {
			o.Headers = map[string]string{}
		}
		o.Headers[name] = value
	}
	return o, true, nil
}

// milliseconds reads a number of milliseconds from 1 to 1e9.
func milliseconds(v string) (time.Duration, bool) {
	ms, err := strconv.Atoi(v)
	return time.Duration(ms) * time.Millisecond, err == nil && ms > 0 && ms <= 1e9
}

// period returns the time that a variable has, otherwise if it is not set. A value that is not valid is
// logged: the variable may be meant for another program.
func (o *Options) period(variable string, otherwise time.Duration) time.Duration {
	v := os.Getenv(variable)
	if v == "" {
		return otherwise
	}
	d, ok := milliseconds(v)
	if !ok {
		o.Logger.Warn(variable+" is not a number of milliseconds, such as 5000", "value", text.Short(v), "used", otherwise)
		return otherwise
	}
	return d
}

// local reports whether an endpoint that base has checked is on this machine, by its spelling. To compress what goes there
// takes longer than to copy it.
func local(endpoint string) bool {
	u, err := url.Parse(endpoint)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return err == nil && ip.Unmap().IsLoopback() || strings.EqualFold(u.Hostname(), "localhost")
}

// base checks an endpoint, and returns it without a slash at the end.
func base(endpoint string) (string, error) {
	u, err := url.Parse(endpoint)
	switch {
	case endpoint == "":
		return "", errors.New("the endpoint is empty; give the URL of a collector, such as http://localhost:4318")
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return "", errors.New("the endpoint is not a URL of HTTP; write one such as http://localhost:4318") // it may have a password
	case u.User != nil:
		return "", errors.New("the endpoint has a user name; put credentials into a header such as Authorization")
	case u.RawQuery != "" || u.Fragment != "":
		return "", errors.New("the endpoint has a query or a fragment; give only the base URL, such as http://localhost:4318")
	}
	endpoint = strings.TrimRight(endpoint, "/")
	for _, signal := range []string{spansPath, metricsPath, "/v1/logs"} {
		if root, ok := strings.CutSuffix(endpoint, signal); ok {
			return "", fmt.Errorf("the endpoint ends in %s, which is added to it; give only the base URL: %s", signal, root)
		}
	}
	return endpoint, nil
}
