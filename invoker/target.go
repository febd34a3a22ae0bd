package invoker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"
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
			if never(addr) {
				return targets{}, hostError(entry, "link-local, metadata and multicast addresses are never called")
			}
		} else if strings.ContainsAny(host, "/:@*?# ") {
			return targets{}, hostError(entry, "want a host name or an IP address, without scheme, port or path")
		}
		t.allowed[host] = true
	}
	return t, nil
}

// parse checks a target URL as far as that is possible without resolving its name.
func (t targets) parse(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		// The parser's own text repeats the URL, and with it the query string.
		return nil, errors.New("target is not a valid URL: correct the job's target and path")
	}
	host := u.Hostname()
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("target has the scheme %q: want http or https", u.Scheme)
	case host == "":
		return nil, errors.New("target names no host")
	case u.User != nil:
		return nil, errors.New("target carries credentials: use bearerFile")
	}
	return u, t.checkHost(host)
}

func (t targets) checkHost(host string) error {
	name := normalHost(host)
	addr, err := netip.ParseAddr(name)
	if err == nil && never(addr) {
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
			case never(addr):
				return fmt.Errorf("%w: %s is a link-local, metadata or multicast address", errForbidden, addr)
			case !addr.IsLoopback() && !listed:
				return fmt.Errorf("%w: %s is not loopback and its host is not listed in LEASECRON_ALLOWED_HOSTS", errForbidden, addr)
			}
			return nil
		},
	}
	return d.DialContext(ctx, network, address)
}

// metadata are the addresses of cloud metadata services outside the link-local ranges.
var metadata = map[netip.Addr]bool{
	netip.MustParseAddr("fd00:ec2::254"):   true,
	netip.MustParseAddr("100.100.100.200"): true,
	netip.MustParseAddr("192.0.0.192"):     true,
}

var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// never reports whether an address may not be called whatever the settings say.
func never(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	if nat64.Contains(addr) { // an IPv4 address in its last four bytes
		b := addr.As16()
		addr = netip.AddrFrom4([4]byte(b[12:]))
	}
	return addr.IsLinkLocalUnicast() || addr.IsMulticast() || addr.IsUnspecified() || metadata[addr]
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
