package otlp

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Exporter sends spans and metrics to a collector. Use it as a span processor of the SDK, with
// trace.WithSpanProcessor. It is a span exporter too, for a processor of the SDK in front of it.
// New makes one.
type Exporter struct {
	o        Options
	base     string
	header   http.Header
	client   *http.Client
	zip      *gzip.Writer // of sendSpans
	room     []byte       // the last body of sendSpans, for its memory
	uploads  atomic.Int32 // bodies that are open
	queue    chan sdktrace.ReadOnlySpan
	full     chan struct{} // the queue has a whole batch
	flushes  chan chan error
	closing  chan struct{} // closed when Shutdown begins
	ctx      context.Context
	abort    context.CancelFunc // ends what Shutdown does not wait for
	workers  sync.WaitGroup
	over     chan struct{} // closed when all workers have ended
	shutdown sync.Once

	sent, dropped, failed, rejected, pushes, failedPushes atomic.Uint64

	mu     sync.Mutex
	faults map[string]error // by path, of the last request if it has failed; guarded by mu
	warned map[string]bool  // texts that were logged once; guarded by mu
}

var (
	_ sdktrace.SpanProcessor = (*Exporter)(nil)
	_ sdktrace.SpanExporter  = (*Exporter)(nil)
)

// Stats counts what an [Exporter] has done so far.
type Stats struct {
	Queued       int    // spans that wait now
	Sent         uint64 // spans that the collector has taken
	Dropped      uint64 // spans that found the queue full, or came after Shutdown
	Failed       uint64 // spans of batches that the collector did not take
	Rejected     uint64 // spans that the collector has refused, of batches it has taken
	Pushes       uint64 // pushes of metrics that the collector has taken
	FailedPushes uint64 // pushes of metrics that it has not taken
}

// New starts an exporter. Its Shutdown, or that of the provider, must follow.
func New(o Options) (*Exporter, error) {
	if err := o.Check(); err != nil {
		return nil, fmt.Errorf("otlp: %w", err)
	}
	url, _ := base(o.Endpoint) // checked
	header := http.Header{}
	for name, value := range o.Headers {
		header.Set(name, value)
	}
	setDefault(&o.Timeout, 10*time.Second)
	setDefault(&o.Retry, time.Minute)
	setDefault(&o.Queue, 4096)
	setDefault(&o.Batch, 512)
	o.Batch = min(o.Batch, o.Queue)
	o.Uncompressed = o.Uncompressed || local(url)
	if o.Resource == nil {
		o.Resource = resource.Default()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Delay == 0 {
		o.Delay = o.period("OTEL_BSP_SCHEDULE_DELAY", 5*time.Second)
	}
	if o.Interval == 0 {
		o.Interval = o.period("OTEL_METRIC_EXPORT_INTERVAL", time.Minute)
	}
	client := http.Client{}
	if o.Client != nil {
		client = *o.Client
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	e := &Exporter{
		o: o, base: url, header: header, client: &client,
		queue: make(chan sdktrace.ReadOnlySpan, o.Queue), full: make(chan struct{}, 1), flushes: make(chan chan error), closing: make(chan struct{}), over: make(chan struct{}),
		faults: map[string]error{}, warned: map[string]bool{},
	}
	e.o.Headers = maps.Clone(o.Headers)
	e.zip = e.newZip()
	e.ctx, e.abort = context.WithCancel(context.Background())
	e.workers.Go(e.sendSpans)
	if o.Metrics != nil {
		e.workers.Go(e.pushMetrics)
	}
	return e, nil
}

func setDefault[T ~int | ~int64](v *T, to T) {
	if *v == 0 {
		*v = to
	}
}

// Stats returns the counts so far.
func (e *Exporter) Stats() Stats {
	return Stats{
		Queued: len(e.queue), Sent: e.sent.Load(), Dropped: e.dropped.Load(), Failed: e.failed.Load(), Rejected: e.rejected.Load(),
		Pushes: e.pushes.Load(), FailedPushes: e.failedPushes.Load(),
	}
}

// Fault returns the error of the last request if the collector did not take it; nil: it did, or
// there was none. The fault of spans comes before that of metrics.
func (e *Exporter) Fault() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.faults[metricsPath]; err != nil && e.faults[spansPath] == nil {
		return fmt.Errorf("metrics: %w", err)
	}
	return e.faults[spansPath]
}

// OnStart does nothing.
func (e *Exporter) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd queues a sampled span.
func (e *Exporter) OnEnd(s sdktrace.ReadOnlySpan) {
	if s.SpanContext().IsSampled() {
		e.add(s)
	}
}

// ExportSpans queues spans. If ctx has a deadline, as in trace.WithBatcher, it is ForceFlush then, so
// that ForceFlush of the provider sends the spans. Otherwise, as in trace.WithSyncer, where the end of
// a span would wait, it does not wait for the collector, and returns nil.
func (e *Exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	for _, s := range spans {
		e.add(s)
	}
	if _, bounded := ctx.Deadline(); bounded {
		return e.ForceFlush(ctx)
	}
	return nil
}

func (e *Exporter) add(s sdktrace.ReadOnlySpan) {
	select {
	case <-e.closing:
		e.once("spans that end after Shutdown are dropped", slog.String("next", "give each provider an exporter of its own"))
	default:
		select {
		case e.queue <- s:
			if len(e.queue) >= e.o.Batch {
				select {
				case e.full <- struct{}{}:
				default: // the sender knows
				}
			}
			return
		default:
		}
	}
	e.dropped.Add(1)
}

// ForceFlush sends the spans that are queued, and returns the last error, or that of ctx.
func (e *Exporter) ForceFlush(ctx context.Context) error {
	reply := make(chan error, 1)
	select {
	case e.flushes <- reply:
	case <-e.over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-reply:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Shutdown sends what is queued and ends the exporter. If the context ends before, the rest is
// counted as failed, and Shutdown returns the error of the context.
func (e *Exporter) Shutdown(ctx context.Context) error {
	e.shutdown.Do(func() {
		close(e.closing)
		go func() {
			e.workers.Wait()
			e.abort()
			for { // spans that ended meanwhile
				select {
				case <-e.queue:
					e.dropped.Add(1)
					continue
				default:
				}
				break
			}
			close(e.over)
		}()
	})
	select {
	case <-e.over:
		return nil
	case <-ctx.Done():
		e.abort()
		<-e.over
		return ctx.Err()
	}
}

// sendSpans sends the spans of the queue until Shutdown. It wakes for whole batches and each Delay, not
// for each span.
func (e *Exporter) sendSpans() {
	late := time.NewTicker(e.o.Delay)
	defer late.Stop()
	for {
		select {
		case <-e.full:
			_ = e.drain(e.o.Batch, false)
		case <-late.C:
			_ = e.drain(1, false)
		case reply := <-e.flushes:
			reply <- e.drain(1, false)
		case <-e.closing:
			_ = e.drain(1, true)
			return
		}
	}
}

// drain sends what the queue has now, until it has fewer than least. After a failure the rest stays in
// the queue, or is lost if the exporter ends.
func (e *Exporter) drain(least int, last bool) error {
	for left := len(e.queue); left >= least; {
		batch := make([]sdktrace.ReadOnlySpan, min(left, e.o.Batch))
		for i := range batch {
			batch[i] = <-e.queue
		}
		left -= len(batch)
		if err := e.sendBatch(batch); err != nil {
			for ; last && left > 0; left-- {
				<-e.queue
				e.failed.Add(1)
			}
			return err
		}
	}
	return nil
}

func (e *Exporter) sendBatch(batch []sdktrace.ReadOnlySpan) error {
	if e.uploads.Load() > 0 { // a transport still reads a former body
		e.room = nil
	}
	raw, err := body(e.room, e.zip, func(w io.Writer) error { return writeSpans(w, batch) })
	e.room = raw
	var rejected uint64
	if err == nil {
		rejected, err = e.send(spansPath, raw)
	}
	if err != nil {
		e.failed.Add(uint64(len(batch)))
		return err
	}
	rejected = min(rejected, uint64(len(batch)))
	e.rejected.Add(rejected)
	e.sent.Add(uint64(len(batch)) - rejected)
	return nil
}

// metrics calls Options.Metrics, which has none after a panic.
func (e *Exporter) metrics() (list []Metric, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
			e.once("a function panics", slog.String("in", "Options.Metrics"), slog.Any("err", v), slog.String("stack", string(debug.Stack())))
		}
	}()
	return e.o.Metrics(), nil
}

// pushMetrics sends the metrics each interval, and at Shutdown.
func (e *Exporter) pushMetrics() {
	ticker := time.NewTicker(e.o.Interval)
	defer ticker.Stop()
	for last := false; !last; {
		select {
		case <-ticker.C:
		case <-e.closing:
			last = true
		}
		list, err := e.metrics()
		if list = e.valid(list); err == nil && len(list) == 0 {
			continue
		}
		var raw []byte
		if err == nil {
			raw, err = body(nil, e.newZip(), func(w io.Writer) error { return writeMetrics(w, e.o.Resource, list, time.Now()) })
		}
		if err == nil {
			_, err = e.send(metricsPath, raw)
		}
		if err != nil {
			e.failedPushes.Add(1)
		} else {
			e.pushes.Add(1)
		}
	}
}

// valid returns the metrics that can be sent, and logs each of the others once.
func (e *Exporter) valid(metrics []Metric) []Metric {
	out := make([]Metric, 0, len(metrics))
	for _, m := range metrics {
		if err := m.check(); err != nil {
			e.once("a metric is not sent", slog.String("metric", m.Name), slog.Any("err", err))
			continue
		}
		out = append(out, m)
	}
	return out
}
