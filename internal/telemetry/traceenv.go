package telemetry

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/leasecron/leasecron/internal/telemetry/otlp"
)

// The bounds of what the environment says about spans. The SDK would take any number, and spin
// without a delay, or end the process on a queue that cannot be made.
const (
	leastDelay     = 10      // milliseconds
	longestDelay   = 600_000 // milliseconds: ten minutes
	largestQueue   = 65_536  // spans
	largestLimit   = 1_000_000
	mostAttributes = 128
	longestName    = 255 // bytes
)

// knownPropagators are those of the OpenTelemetry specification. Only that of W3C trace context is
// spoken here; the others are no mistake in an environment that the app reads too.
var knownPropagators = []string{"tracecontext", "baggage", "b3", "b3multi", "jaeger", "xray", "ottrace", "none"}

// traceEnv is what the environment says about traces, the export apart.
type traceEnv struct {
	disabled  bool
	export    bool
	propagate bool // by W3C trace context
	sampler   sdktrace.Sampler
}

// readTraceEnv reads what matters to a sidecar that exports nothing, too. Its errors name the
// variable, its value and what is allowed.
func readTraceEnv(getenv func(string) string) (traceEnv, error) {
	var e traceEnv
	get := func(name string) string { return strings.TrimSpace(getenv(name)) }
	switch value := get("OTEL_SDK_DISABLED"); strings.ToLower(value) {
	case "true":
		e.disabled = true
		return e, nil
	case "false", "":
	default:
		return e, wrong("OTEL_SDK_DISABLED", value, "want true or false")
	}
	switch value := get("OTEL_TRACES_EXPORTER"); value {
	case "otlp":
		e.export = true
	case "":
		e.export = otlp.Configured(getenv)
	case "none":
	default:
		return e, fmt.Errorf("OTEL_TRACES_EXPORTER=%q is not supported: want otlp or none", value)
	}
	propagators := get("OTEL_PROPAGATORS")
	for p := range strings.SplitSeq(cmp.Or(propagators, "tracecontext"), ",") {
		p = strings.TrimSpace(p)
		if !slices.Contains(knownPropagators, p) {
			return e, wrong("OTEL_PROPAGATORS", propagators, "want a list of %s", strings.Join(knownPropagators, ", "))
		}
		e.propagate = e.propagate || p == "tracecontext"
	}
	var err error
	e.sampler, err = readSampler(get("OTEL_TRACES_SAMPLER"), get("OTEL_TRACES_SAMPLER_ARG"))
	return e, err
}

// readExportEnv reads how spans are kept until they are exported, and looks at what the SDK reads of
// the resource.
func readExportEnv(getenv func(string) string) ([]sdktrace.BatchSpanProcessorOption, sdktrace.SpanLimits, error) {
	n := numbers{get: getenv}
	delay := n.read("OTEL_BSP_SCHEDULE_DELAY", sdktrace.DefaultScheduleDelay, leastDelay, longestDelay, "milliseconds, ")
	timeout := n.read("OTEL_BSP_EXPORT_TIMEOUT", sdktrace.DefaultExportTimeout, 1, longestDelay, "milliseconds, ")
	queue := n.read("OTEL_BSP_MAX_QUEUE_SIZE", sdktrace.DefaultMaxQueueSize, 1, largestQueue, "")
	// A queue that is smaller than a batch by default makes that smaller.
	batch := n.read("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", min(sdktrace.DefaultMaxExportBatchSize, max(queue, 1)), 1, max(queue, 1), "no more than OTEL_BSP_MAX_QUEUE_SIZE, ")
	limits := n.limits()
	if n.err == nil {
		n.err = checkResource(strings.TrimSpace(getenv("OTEL_SERVICE_NAME")), strings.TrimSpace(getenv("OTEL_RESOURCE_ATTRIBUTES")))
	}
	return []sdktrace.BatchSpanProcessorOption{
		sdktrace.WithBatchTimeout(time.Duration(delay) * time.Millisecond),
		sdktrace.WithExportTimeout(time.Duration(timeout) * time.Millisecond),
		sdktrace.WithMaxQueueSize(queue), sdktrace.WithMaxExportBatchSize(batch),
	}, limits, n.err
}

// numbers reads variables that hold a whole number, and keeps the first error.
type numbers struct {
	get func(string) string
	err error
}

func (n *numbers) read(name string, unset, least, most int, unit string) int {
	value := strings.TrimSpace(n.get(name))
	if value == "" {
		return unset
	}
	number, err := strconv.Atoi(value)
	if err != nil || number < least || number > most {
		if n.err == nil {
			n.err = wrong(name, value, "want %s%d to %d", unit, least, most)
		}
		return unset
	}
	return number
}

// limits are those of a span. A special one wins over the one for all attributes; -1 is no limit.
func (n *numbers) limits() sdktrace.SpanLimits {
	limit := func(unset int, name string) int {
		return n.read(name, unset, -1, largestLimit, "a number or -1 for no limit, ")
	}
	l := sdktrace.SpanLimits{
		AttributeValueLengthLimit: limit(limit(sdktrace.DefaultAttributeValueLengthLimit, "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT"),
			"OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT"),
		AttributeValueDepthLimit: sdktrace.DefaultAttributeValueDepthLimit,
		AttributeCountLimit: limit(limit(sdktrace.DefaultAttributeCountLimit, "OTEL_ATTRIBUTE_COUNT_LIMIT"),
			"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT"),
		EventCountLimit:             limit(sdktrace.DefaultEventCountLimit, "OTEL_SPAN_EVENT_COUNT_LIMIT"),
		LinkCountLimit:              limit(sdktrace.DefaultLinkCountLimit, "OTEL_SPAN_LINK_COUNT_LIMIT"),
		AttributePerEventCountLimit: limit(sdktrace.DefaultAttributePerEventCountLimit, "OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT"),
		AttributePerLinkCountLimit:  limit(sdktrace.DefaultAttributePerLinkCountLimit, "OTEL_LINK_ATTRIBUTE_COUNT_LIMIT"),
	}
	return l
}

// checkResource refuses what the SDK would leave out, and what no collector could be sent: the text
// of OTLP is UTF-8.
func checkResource(service, attributes string) error {
	if len(service) > longestName || !utf8.ValidString(service) {
		return wrong("OTEL_SERVICE_NAME", service, "want at most %d bytes of UTF-8", longestName)
	}
	if attributes == "" {
		return nil
	}
	pairs := strings.Split(attributes, ",")
	if len(pairs) > mostAttributes {
		return fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES lists %d attributes: want at most %d", len(pairs), mostAttributes)
	}
	for _, pair := range pairs {
		key, value, ok := strings.Cut(pair, "=")
		text, err := url.PathUnescape(strings.TrimSpace(value))
		if !ok || strings.TrimSpace(key) == "" || err != nil || !utf8.ValidString(key+text) {
			return wrong("OTEL_RESOURCE_ATTRIBUTES", attributes,
				"want key=value pairs separated by commas, with percent-encoded values (%.80q is none)", pair)
		}
	}
	return nil
}

// wrong is the one line about a value.
func wrong(name, value, format string, args ...any) error {
	return fmt.Errorf("%s=%.100q: %w", name, value, fmt.Errorf(format, args...))
}
