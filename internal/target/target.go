// Package target holds what a target is allowed to look like, for whoever reads one (config) and
// whoever calls it (invoker). It does no I/O.
package target

import (
	"errors"
	"fmt"
	"net/netip"
	"path"
	"strings"
)

// longestSocket is the longest path that Linux takes for a Unix socket, in bytes.
const longestSocket = 107

const socketScheme = "unix:"

// IsSocket reports whether a target is meant to be a Unix socket.
func IsSocket(raw string) bool { return strings.HasPrefix(raw, socketScheme) }

// SplitSocket splits the URL of a Unix socket, unix:///run/app.sock, into the socket's path and the
// path of the request behind it, which a colon divides: unix:///run/app.sock:/jobs/report. The
// latter is "" or starts with a slash, and may have a query.
func SplitSocket(raw string) (socket, request string, err error) {
	rest, ok := strings.CutPrefix(raw, socketScheme+"//")
	if !ok || !strings.HasPrefix(rest, "/") {
		return "", "", errors.New("is no absolute path of a Unix socket (want unix:///run/app.sock)")
	}
	socket, request, _ = strings.Cut(rest, ":")
	switch {
	case request != "" && request[0] != '/':
		return "", "", errors.New("has a colon within the path of its Unix socket, or no slash after it (want unix:///run/app.sock, or unix:///run/app.sock:/path)")
	case strings.ContainsAny(socket, "?#%@\\") || strings.ContainsFunc(socket, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return "", "", errors.New(`has one of ? # % @ \ or a blank in the path of its Unix socket (want none)`)
	case socket == "/" || path.Clean(socket) != socket:
		return "", "", errors.New("has a path of its Unix socket with //, /./, /../ or a slash at its end (want unix:///run/app.sock)")
	case len(socket) > longestSocket:
		return "", "", fmt.Errorf("has a path of its Unix socket that is longer than %d bytes", longestSocket)
	}
	return socket, request, nil
}

// forbidden are addresses that no setting makes callable: cloud metadata services, what belongs to
// them, and ranges that mean no host.
var forbidden = func() []netip.Prefix {
	var all []netip.Prefix
	for _, p := range []string{
		"0.0.0.0/8",          // "this network"; Linux takes 0.0.0.0 for loopback
		"255.255.255.255/32", // broadcast
		"100.100.100.200/32", // Alibaba Cloud
		"168.63.129.16/32",   // Azure
		"192.0.0.192/32",     // Oracle Cloud
		"fd00:ec2::/32",      // AWS
		"fd20:ce::254/128",   // Google Cloud
		"fec0::/10",          // site-local, deprecated
	} {
		all = append(all, netip.MustParsePrefix(p))
	}
	return all
}()

// embedded are the IPv6 ranges that stand for an IPv4 address, and where in them its bytes are.
var embedded = []struct {
	prefix netip.Prefix
	at     int
}{
	{netip.MustParsePrefix("64:ff9b::/96"), 12},   // NAT64
	{netip.MustParsePrefix("64:ff9b:1::/48"), 12}, // NAT64, local use
	{netip.MustParsePrefix("2002::/16"), 2},       // 6to4
	{netip.MustParsePrefix("::/96"), 12},          // IPv4-compatible, deprecated; not ::1
}

// Never reports whether an address may not be called whatever the settings say: link-local,
// metadata, multicast, unspecified, and what leads to such an address in another form.
func Never(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	if addr.IsLoopback() {
		return false
	}
	for _, e := range embedded {
		if e.prefix.Contains(addr) {
			b := addr.As16()
			inner := netip.AddrFrom4([4]byte(b[e.at : e.at+4]))
			if b[e.at] != 0 && (Never(inner) || inner.IsLoopback()) {
				return true
			}
		}
	}
	if addr.IsLinkLocalUnicast() || addr.IsMulticast() || addr.IsUnspecified() {
		return true
	}
	for _, p := range forbidden {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}
