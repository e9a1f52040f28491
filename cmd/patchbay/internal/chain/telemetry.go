package chain

import (
	"context"
	"log/slog"
	"net/url"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/config/deploy"
	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/internal/hop"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/metrics"
	"github.com/patchbay-dev/patchbay/telemetry"
	"github.com/patchbay-dev/patchbay/telemetry/otlp"
	"github.com/patchbay-dev/patchbay/telemetry/push"
	"github.com/patchbay-dev/patchbay/trace"
)

// lastTime bounds the time that the last spans have at the end of the program.
var lastTime = time.Second // tests change it

// sender sends the spans and the counters of a chain to a collector.
type sender struct {
	endpoint string
	exporter *otlp.Exporter
	provider *sdktrace.TracerProvider
	content  *trace.Redactor                  // nil: arguments and results are not sent
	counters atomic.Pointer[metrics.Counters] // nil: none
}

// newSender returns the sender that gateway.yaml describes, or else the variables of OpenTelemetry. It
// is nil if neither names a collector, or the variables are wrong: they may be meant for another
// program, and do not stop this one.
func newSender(file *deploy.File, p *Program) (*sender, error) {
	var o otlp.Options
	s := new(sender)
	if file != nil && file.Telemetry != nil {
		o.Endpoint, o.Headers = file.Telemetry.OTLP, file.Telemetry.Headers
		if file.Telemetry.Content == "redacted" {
			s.content = p.Redactor
		}
	} else {
		var ok bool
		var err error
		if o, ok, err = otlp.FromEnvironment(); err == nil && ok {
			err = o.Check()
		}
		if err != nil {
			p.Talk.Always("patchbay: warning: no telemetry is sent: " + screen.Visible(err.Error()))
		}
		if err != nil || !ok {
			return nil, nil
		}
	}
	s.endpoint, o.Logger, o.Resource = o.Endpoint, p.Logger, p.resource()
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { p.Logger.Warn("telemetry", "err", err) })) // such as an unknown sampler
	if os.Getenv("OTEL_METRICS_EXPORTER") != "none" {
		o.Metrics = func() []otlp.Metric { return push.Metrics(s.counters.Load()) }
	}
	var err error
	if s.exporter, err = otlp.New(o); err != nil {
		return nil, err
	}
	s.provider = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(s.exporter), sdktrace.WithResource(o.Resource))
	return s, nil
}

// resource describes this process to a collector. OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES change
// that.
func (p *Program) resource() *resource.Resource {
	host, _ := os.Hostname()
	own := resource.NewSchemaless(
		attribute.String("service.name", "patchbay"),
		attribute.String("service.version", p.Version),
		attribute.String("service.instance.id", hop.Self),
		attribute.String("host.name", host),
	)
	said, err := resource.New(context.Background(), resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		p.Logger.Warn("OTEL_RESOURCE_ATTRIBUTES is not understood", slog.Any("err", err))
	}
	if all, err := resource.Merge(own, said); err == nil {
		return all
	}
	return own
}

// front returns the middleware in front.
func (s *sender) front(overHTTP bool) mcp.Middleware {
	o := s.options()
	if !overHTTP {
		o.Transport = "pipe"
	}
	return telemetry.Server(o)
}

// around returns the middleware around a server.
func (s *sender) around(name string, at Server) mcp.Middleware {
	o := s.options()
	o.Server, o.Revision = name, at.Revision
	switch u, err := url.Parse(at.Config.URL); {
	case at.Config.Command != "":
		o.Transport = "pipe"
	case at.Config.URL != "" && err == nil:
		o.Transport, o.Address = "tcp", u.Hostname()
		if o.Port, err = strconv.Atoi(u.Port()); err != nil {
			o.Port = map[string]int{"http": 80, "ws": 80, "https": 443, "wss": 443}[u.Scheme]
		}
	}
	return telemetry.Client(o)
}

func (s *sender) options() *telemetry.Options {
	return &telemetry.Options{Provider: s.provider, Content: s.content}
}

// close sends what is left, for at most lastTime.
func (s *sender) close() {
	ctx, cancel := context.WithTimeout(context.Background(), lastTime)
	defer cancel()
	_ = s.provider.Shutdown(ctx) // the logger has the fault
}

// Telemetry says how much telemetry the chain has sent; nil: it sends none.
func (c *Chain) Telemetry() *health.Telemetry {
	if c.sender == nil {
		return nil
	}
	s := c.sender.exporter.Stats()
	out := &health.Telemetry{Endpoint: c.sender.endpoint, Sent: s.Sent, Dropped: s.Dropped, Lost: s.Failed + s.Rejected}
	if err := c.sender.exporter.Fault(); err != nil {
		out.Fault = err.Error()
	}
	return out
}
