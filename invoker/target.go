package invoker

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/leasecron/leasecron/internal/target"
)

// errForbidden: the target rule forbids the address.
var errForbidden = errors.New("address is not allowed")

// targets is the rule of who may be called: loopback, and the hosts that are listed.
type targets struct {
	allowed  map[string]bool // by normalized host
	resolver *net.Resolver
}

func newTargets(allowed []string, resolver *net.Resolver) (targets, error) {
	t := targets{allowed: make(map[string]bool, len(allowed)), resolver: resolver}
	for _, entry := range allowed {
		host := normalHost(strings.TrimSpace(entry))
		if host == "" {
			return targets{}, hostError(entry, "is empty")
		}
		if addr, err := netip.ParseAddr(host); err == nil {
			if target.Never(addr) {
				return targets{}, hostError(entry, "link-local, metadata and multicast addresses are never called")
			}
		} else if strings.ContainsAny(host, "/:@*?# ") {
			return targets{}, hostError(entry, "want a host name or an IP address, without scheme, port or path")
		}
		t.allowed[host] = true
	}
	return t, nil
}

// address is where a request goes.
type address struct {
	url  *url.URL // as a transport takes it: of scheme http or https
	host string   // the Host header
	h2c  bool     // HTTP/2 without TLS, because the target says so
}

// dialed is the host and port to connect to.
func (a address) dialed() string {
	return net.JoinHostPort(a.url.Hostname(), cmp.Or(a.url.Port(), map[string]string{"http": "80", "https": "443"}[a.url.Scheme]))
}

// parse checks a target URL as far as that is possible without resolving its name.
func (t targets) parse(raw string) (address, error) {
	if target.IsSocket(raw) {
		return parseSocket(raw)
	}
	u, err := url.Parse(raw)
	if err != nil {
		// The parser's own text repeats the URL, and with it the query string.
		return address{}, errors.New("target is not a valid URL: correct the job's target and path")
	}
	a := address{url: u, host: u.Host, h2c: u.Scheme == "h2c"}
	host := u.Hostname()
	switch {
	case u.Scheme != "http" && u.Scheme != "https" && !a.h2c:
		return address{}, fmt.Errorf("target has the scheme %q: want http, https, h2c or unix", u.Scheme)
	case host == "":
		return address{}, errors.New("target names no host")
	case u.User != nil:
		return address{}, errors.New("target carries credentials: use bearerFile")
	}
	if a.h2c {
		u.Scheme = "http"
	}
	return a, t.checkHost(host)
}

// socketHost begins a host that stands for a Unix socket. No URL that was parsed has such a host.
const socketHost = "unix@"

// parseSocket makes the address of a Unix socket. The transport keeps connections by host, so that
// the host is the socket's path, in hex.
func parseSocket(raw string) (address, error) {
	socket, path, err := target.SplitSocket(raw)
	if err != nil {
		return address{}, fmt.Errorf("target %w", err)
	}
	u, err := url.ParseRequestURI(cmp.Or(path, "/"))
	if err != nil {
		return address{}, errors.New("target has no valid path after its Unix socket: correct the job's target and path")
	}
	u.Scheme, u.Host = "http", socketHost+hex.EncodeToString([]byte(socket))
	return address{url: u, host: "localhost"}, nil
}

func (t targets) checkHost(host string) error {
	name := normalHost(host)
	addr, err := netip.ParseAddr(name)
	if err == nil && target.Never(addr) {
		return fmt.Errorf("target %s: link-local, metadata and multicast addresses are never called", host)
	}
	loopback := name == "localhost" || err == nil && addr.IsLoopback()
	if !loopback && !t.allowed[name] {
		return fmt.Errorf("target host %s is neither loopback nor listed in LEASECRON_ALLOWED_HOSTS", host)
	}
	return nil
}

// dial connects under the target rule, which is applied again to what the name resolved to: a
// name that is allowed today may point elsewhere tomorrow.
func (t targets) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if hexed, ok := strings.CutPrefix(host, socketHost); ok {
		socket, err := hex.DecodeString(hexed)
		if err != nil {
			return nil, err
		}
		return new(net.Dialer).DialContext(ctx, "unix", string(socket))
	}
	listed := t.allowed[normalHost(host)]
	d := net.Dialer{
		Resolver:  t.resolver,
		KeepAlive: 15 * time.Second, // a run may take hours; a dead peer must not
		Control: func(_, resolved string, _ syscall.RawConn) error {
			ap, err := netip.ParseAddrPort(resolved)
			if err != nil {
				return fmt.Errorf("%w: %s", errForbidden, resolved)
			}
			addr := ap.Addr().Unmap()
			switch {
			case target.Never(addr):
				return fmt.Errorf("%w: %s is a link-local, metadata or multicast address", errForbidden, addr)
			case !addr.IsLoopback() && !listed:
				return fmt.Errorf("%w: %s is not loopback and its host is not listed in LEASECRON_ALLOWED_HOSTS", errForbidden, addr)
			}
			return nil
		},
	}
	return d.DialContext(ctx, network, address)
}

// normalHost makes two spellings of a host equal: case, a final dot, brackets, IPv6 forms.
func normalHost(host string) string {
	host = strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.Unmap().String()
	}
	return host
}

// hostError is a complaint about an entry of AllowedHosts.
func hostError(entry, why string) error {
	return fmt.Errorf("allowed host %q: %s", entry, why)
}
