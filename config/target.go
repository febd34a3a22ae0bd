package config

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/leasecron/leasecron/internal/target"
)

// DefaultTarget is where a sidecar expects its app when nothing else is said.
const DefaultTarget = "http://127.0.0.1:8080"

// checkTarget accepts a URL that paths can be appended to, and returns it in that form: without a
// trailing slash, and that of a Unix socket with the colon before the path.
func checkTarget(raw string, allowed []string) (string, error) {
	if target.IsSocket(raw) {
		socket, path, err := checkSocket(raw)
		if err != nil {
			return "", err
		}
		if strings.ContainsAny(path, "?#") {
			return "", errors.New("has a query (want it in path)")
		}
		return "unix://" + socket + ":" + strings.TrimRight(path, "/"), nil
	}
	u, err := checkURL(raw, allowed)
	if err != nil {
		return "", err
	}
	if u.RawQuery != "" || u.ForceQuery {
		return "", errors.New("has a query (want it in path)")
	}
	return strings.TrimRight(u.String(), "/"), nil
}

// checkHealthURL accepts what can be asked whether the app is healthy.
func checkHealthURL(raw string, allowed []string) error {
	if !target.IsSocket(raw) {
		_, err := checkURL(raw, allowed)
		return err
	}
	_, path, err := checkSocket(raw)
	if err == nil && path == "" {
		return errors.New("names no path (want unix:///run/app.sock:/health)")
	}
	return err
}

// checkSocket accepts the URL of a Unix socket. Only what is mounted into the sidecar can be meant,
// so that no setting has to list it.
func checkSocket(raw string) (socket, path string, err error) {
	if len(raw) > longestURL {
		return "", "", fmt.Errorf("is longer than %d bytes", longestURL)
	}
	if socket, path, err = target.SplitSocket(raw); err != nil {
		return "", "", err
	}
	if _, err := url.ParseRequestURI(cmp.Or(path, "/")); err != nil || strings.Contains(path, "#") {
		return "", "", errors.New("has no valid path after the colon (want unix:///run/app.sock:/path)")
	}
	return socket, path, nil
}

// checkURL accepts an http, https or h2c URL whose host is loopback or in allowed. Link-local
// addresses, where clouds keep their metadata services, are refused even when they are listed.
func checkURL(raw string, allowed []string) (*url.URL, error) {
	const want = "want a URL such as " + DefaultTarget
	if len(raw) > longestURL {
		return nil, fmt.Errorf("is longer than %d bytes", longestURL)
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil, u.Opaque != "", u.Host == "":
		return nil, fmt.Errorf("is no URL (%s)", want)
	case u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "h2c":
		return nil, fmt.Errorf("has the scheme %s (%s; https, h2c and unix exist too)", quote(u.Scheme), want)
	case u.User != nil:
		return nil, errors.New("holds a user name or password (want none; see bearerFile)")
	case u.Fragment != "":
		return nil, errors.New("has a fragment (want none)")
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, fmt.Errorf("has the port %s (want 1 to 65535)", quote(port))
		}
	}
	host := strings.ToLower(u.Hostname())
	switch {
	case isForbidden(host):
		return nil, fmt.Errorf("host %s is a link-local, metadata or unspecified address, which jobs may never call", quote(host))
	case !isHost(host):
		return nil, fmt.Errorf("host %s is neither a host name nor an IP address", quote(host))
	case !isLoopback(host) && !slices.Contains(allowed, host):
		return nil, fmt.Errorf("host %s is not loopback (want 127.0.0.1, ::1 or localhost, or list it in %sALLOWED_HOSTS)", quote(host), SettingPrefix)
	}
	return u, nil
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Zone() == "" && addr.Unmap().IsLoopback()
}

// isForbidden reports whether host is an address that no setting makes callable.
func isForbidden(host string) bool {
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	return addr.Zone() != "" || target.Never(addr)
}

// isHost reports whether host is an IP address or a DNS name. A name whose last label is a number
// is none: resolvers read 0x7f.1 and 2852039166 as addresses.
func isHost(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	if len(host) > 253 || !dnsSubdomain.MatchString(host) {
		return false
	}
	last := host[strings.LastIndexByte(host, '.')+1:]
	_, err := strconv.ParseUint(last, 0, 64)
	return err != nil
}
