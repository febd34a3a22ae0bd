package otlp

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/leasecron/leasecron/internal/regularfile"
)

const (
	protocolHTTP = "http/protobuf"
	protocolGRPC = "grpc"

	defaultTimeout = 10 * time.Second
	longestTimeout = 10 * time.Minute
)

// config is what the environment says about the collector.
type config struct {
	url     *url.URL // of the one method
	grpc    bool
	headers http.Header
	timeout time.Duration // of a batch, its retries included
	gzip    bool
	tls     *tls.Config
}

// Configured reports whether the environment names a collector.
func Configured(getenv func(string) string) bool {
	_, endpoint := lookup(getenv, "ENDPOINT")
	return endpoint != ""
}

// lookup returns the variable for traces, or else the one for all signals, and its value.
func lookup(getenv func(string) string, suffix string) (name, value string) {
	for _, name = range []string{"OTEL_EXPORTER_OTLP_TRACES_" + suffix, "OTEL_EXPORTER_OTLP_" + suffix} {
		if value = strings.TrimSpace(getenv(name)); value != "" {
			return name, value
		}
	}
	return name, ""
}

// parse reads the environment. Its errors name the variable, and no value that may be a secret.
func parse(getenv func(string) string) (config, error) {
	c := config{timeout: defaultTimeout}
	switch name, value := lookup(getenv, "PROTOCOL"); value {
	case protocolHTTP, "":
	case protocolGRPC:
		c.grpc = true
	default:
		return c, fmt.Errorf("%s=%q is not supported: want %s or %s", name, value, protocolHTTP, protocolGRPC)
	}
	var err error
	if c.url, err = endpoint(getenv, c.grpc); err != nil {
		return c, err
	}
	name, value := lookup(getenv, "HEADERS")
	if c.headers, err = parseHeaders(value); err != nil {
		return c, fmt.Errorf("%s: %w", name, err)
	}
	if name, value = lookup(getenv, "TIMEOUT"); value != "" {
		ms, err := strconv.ParseUint(value, 10, 32)
		c.timeout = time.Duration(ms) * time.Millisecond
		if err != nil || ms == 0 || c.timeout > longestTimeout {
			return c, fmt.Errorf("%s=%q: want milliseconds, 1 to %d", name, value, longestTimeout.Milliseconds())
		}
	}
	switch name, value = lookup(getenv, "COMPRESSION"); value {
	case "gzip":
		c.gzip = true
	case "none", "":
	default:
		return c, fmt.Errorf("%s=%q: want gzip or none", name, value)
	}
	if c.tls, err = parseTLS(getenv); err != nil {
		return c, err
	}
	return c, nil
}

// endpoint is the URL of the method that takes spans. The endpoint for all signals is a base, the one
// for traces is used as it is; gRPC knows hosts alone.
func endpoint(getenv func(string) string, grpc bool) (*url.URL, error) {
	name, value := lookup(getenv, "ENDPOINT")
	base := name == "OTEL_EXPORTER_OTLP_ENDPOINT"
	switch {
	case value == "" && grpc:
		value = "http://localhost:4317"
	case value == "":
		value = "http://localhost:4318"
	case grpc && !strings.Contains(value, "://"): // as the gRPC libraries take it
		scheme := "https://"
		switch name, insecure := lookup(getenv, "INSECURE"); strings.ToLower(insecure) {
		case "true":
			scheme = "http://"
		case "false", "":
		default:
			return nil, fmt.Errorf("%s=%q: want true or false", name, insecure)
		}
		value = scheme + value
	}
	u, err := url.Parse(value)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%s: want a URL such as http://collector:4318", name) // the value may hold a password
	}
	switch {
	case grpc:
		u.Path = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
	case base:
		u = u.JoinPath("v1/traces")
	case u.Path == "":
		u.Path = "/"
	}
	u.Fragment = ""
	return u, nil
}

// parseHeaders reads name=value,name=value with percent-encoded values, the form of W3C baggage.
func parseHeaders(list string) (http.Header, error) {
	h := http.Header{}
	for part := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		name, value, ok := strings.Cut(part, "=")
		name = strings.TrimSpace(name)
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if !ok || err != nil || !isToken(name) || strings.ContainsFunc(value, isControl) {
			return nil, errors.New("want name=value pairs separated by commas, with percent-encoded values")
		}
		h.Set(name, value)
	}
	return h, nil
}

// isToken reports whether a name may be that of a header field (RFC 9110, section 5.6.2).
func isToken(name string) bool {
	const other = "!#$%&'*+-.^_`|~"
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(other, r))
	})
}

// isControl reports whether a character may not be in the value of a header field (section 5.5).
func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// maxPEM bounds each file of certificates; the authorities that a system trusts have some 200 KiB.
const maxPEM = 1 << 20

func parseTLS(getenv func(string) string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if name, path := lookup(getenv, "CERTIFICATE"); path != "" {
		pem, err := regularfile.Read(path, maxPEM)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s: %s holds no certificate in PEM form", name, path)
		}
	}
	certName, cert := lookup(getenv, "CLIENT_CERTIFICATE")
	keyName, key := lookup(getenv, "CLIENT_KEY")
	switch {
	case cert == "" && key == "":
	case cert == "" || key == "":
		return nil, fmt.Errorf("%s and %s need each other: set both or none", certName, keyName)
	default:
		certPEM, err := regularfile.Read(cert, maxPEM)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", certName, err)
		}
		keyPEM, err := regularfile.Read(key, maxPEM)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", keyName, err)
		}
		pair, err := tls.X509KeyPair(certPEM, keyPEM)
		if err != nil {
			return nil, fmt.Errorf("%s and %s: %w", certName, keyName, err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}
