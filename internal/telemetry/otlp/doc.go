// Package otlp sends spans to an OpenTelemetry collector, over HTTP with protobuf or over gRPC, as
// the standard variables OTEL_EXPORTER_OTLP_… say. It is the transport beneath the exporter of
// go.opentelemetry.io/otel, which turns spans into messages.
//
// The transports that come with OpenTelemetry, the one for HTTP too, link in all of grpc-go: 7.4 MB
// that every pod would pay for. One unary call needs no more than net/http, for either protocol.
package otlp
