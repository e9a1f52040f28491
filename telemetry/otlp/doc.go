// Package otlp sends spans and metrics to a collector of OpenTelemetry: OTLP over HTTP, as JSON.
//
//	exporter, err := otlp.New(otlp.Options{Endpoint: "http://localhost:4318"})
//	...
//	provider := trace.NewTracerProvider(trace.WithSpanProcessor(exporter)) // of go.opentelemetry.io/otel/sdk/trace
//	otel.SetTracerProvider(provider)
//	defer provider.Shutdown(context.Background())
//
// # Guarantees
//
//   - The end of a span never waits for the collector, whether that is away, slow or broken. Ended
//     spans wait in a queue of [Options.Queue] spans; a span that finds it full is dropped and
//     counted. [Exporter.Stats] has the counts.
//   - A batch that the collector cannot take now is sent again: after 429, 502, 503 and 504, a
//     timeout and a lost connection, with backoff and jitter, at least after Retry-After, and for at
//     most [Options.Retry]. After any other answer the batch is lost and counted as failed.
//   - The logger gets one line when sending begins to fail, one when it works again, and one when
//     the collector first refuses a part of a batch. None has a value of [Options.Headers].
//   - Metrics are cumulative, so that a lost push loses nothing.
//   - Shutdown sends what is queued, with one attempt for each batch, and stops at the first that
//     fails. It ends at the latest when its context does.
//   - An exporter belongs to one provider: Shutdown of the provider ends it. Spans that end after that
//     are dropped, counted, and logged once. It may be behind trace.WithBatcher; the batcher then has a
//     queue of its own and waits for the collector.
//   - A panic of Options.Metrics, or of the transport of Options.Client, is logged once, and what would
//     have been sent counts as failed.
//   - Redirects are not followed, because they would carry the headers to another host.
//
// The package needs neither protobuf nor gRPC, which saves a program some 5 MB.
package otlp
