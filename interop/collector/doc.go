// Package collector tests that a real OpenTelemetry collector takes what Patchbay sends: spans and
// metrics of package telemetry/otlp, and the audit log as log records. The collector is its receiver of
// OTLP over HTTP, with a sink of its own behind it.
package collector
