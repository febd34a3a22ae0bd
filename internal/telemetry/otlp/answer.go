package otlp

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"google.golang.org/protobuf/encoding/protowire"
)

// answerHTTP is the verdict of a collector over HTTP (OTLP 1.x, OTLP/HTTP Response).
func answerHTTP(resp *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	switch {
	case resp.StatusCode >= 200 && resp.StatusCode < 300:
		if err != nil {
			return nil //nolint:nilerr // the status has decided
		}
		return rejected(body)
	case resp.StatusCode == http.StatusTooManyRequests, resp.StatusCode == http.StatusBadGateway,
		resp.StatusCode == http.StatusServiceUnavailable, resp.StatusCode == http.StatusGatewayTimeout:
		seconds, _ := strconv.ParseUint(resp.Header.Get("Retry-After"), 10, 16)
		return &laterError{
			err:   fmt.Errorf("answered %s", resp.Status),
			after: time.Duration(seconds) * time.Second,
		}
	default:
		return fmt.Errorf("answered %s", resp.Status)
	}
}

// frame puts a message into the one frame of a unary call.
func frame(message []byte, compressed bool) []byte {
	out := make([]byte, 5, 5+len(message))
	if compressed {
		out[0] = 1
	}
	binary.BigEndian.PutUint32(out[1:], uint32(len(message))) //nolint:gosec // a batch is far below 4 GiB
	return append(out, message...)
}

// The status codes of gRPC that OTLP calls retryable. RESOURCE_EXHAUSTED is one only with an advice
// that is not read here.
var grpcLater = map[string]bool{"1": true, "4": true, "10": true, "11": true, "14": true, "15": true}

// answerGRPC is the verdict of a collector over gRPC: in the trailers, or in the header where there is
// no message.
func answerGRPC(resp *http.Response) error {
	if resp.StatusCode != http.StatusOK {
		err := fmt.Errorf("answered %s: is it a gRPC endpoint?", resp.Status)
		if resp.StatusCode == http.StatusServiceUnavailable || resp.StatusCode == http.StatusBadGateway {
			return &laterError{err: err}
		}
		return err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return &laterError{err: fmt.Errorf("answer cut off: %w", err)}
	}
	status := cmp.Or(resp.Trailer.Get("Grpc-Status"), resp.Header.Get("Grpc-Status"))
	switch status {
	case "0":
		if len(body) < 5 || body[0] != 0 {
			return nil
		}
		return rejected(body[5:])
	case "":
		return errors.New("answered without a gRPC status: is it a gRPC endpoint?")
	}
	text, err := url.PathUnescape(cmp.Or(resp.Trailer.Get("Grpc-Message"), resp.Header.Get("Grpc-Message")))
	if err != nil {
		text = ""
	}
	err = fmt.Errorf("answered gRPC status %s %s", plain(status), plain(text))
	if grpcLater[status] {
		return &laterError{err: err}
	}
	return err
}

// rejected reads ExportTraceServiceResponse: partial_success (1) with rejected_spans (1) and
// error_message (2). An answer that is not such a message says nothing.
func rejected(body []byte) error {
	var spans uint64
	var text string
	fields(body, 1, func(_ uint64, partial []byte) {
		fields(partial, 1, func(n uint64, _ []byte) { spans = n })
		fields(partial, 2, func(_ uint64, s []byte) { text = plain(string(s)) })
	})
	if spans == 0 {
		return nil
	}
	return fmt.Errorf("rejected %d spans: %s", spans, text)
}

// fields calls found for each field of a message with that number.
func fields(message []byte, number protowire.Number, found func(uint64, []byte)) {
	for len(message) > 0 {
		num, typ, n := protowire.ConsumeTag(message)
		if n < 0 {
			return
		}
		message = message[n:]
		size := protowire.ConsumeFieldValue(num, typ, message)
		if size < 0 {
			return
		}
		if num == number {
			switch typ {
			case protowire.VarintType:
				v, _ := protowire.ConsumeVarint(message)
				found(v, nil)
			case protowire.BytesType:
				v, _ := protowire.ConsumeBytes(message)
				found(0, v)
			default:
			}
		}
		message = message[size:]
	}
}

// plain makes what a collector says fit for one line of log.
func plain(text string) string {
	const longest = 256
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "") + "…"
	}
	return text
}
