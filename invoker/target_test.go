package invoker_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/leasecron/leasecron/invoker"
	"github.com/leasecron/leasecron/test/app"
)

func TestForeignTargetsAreRefusedBeforeAnyLookup(t *testing.T) {
	tests := map[string]struct {
		url     string
		allowed []string
		message string
	}{
		"another host":                        {url: "http://10.1.2.3/", message: "target host 10.1.2.3 is neither loopback nor listed in LEASECRON_ALLOWED_HOSTS"},
		"a name":                              {url: "http://example.com/", message: "target host example.com is neither loopback nor listed"},
		"a name that looks like loopback":     {url: "http://localhost.example.com/", message: "neither loopback nor listed"},
		"a number that resolvers read":        {url: "http://2130706433/", message: "neither loopback nor listed"},
		"a subdomain of a listed host":        {url: "http://a.example.com/", allowed: []string{"example.com"}, message: "neither loopback nor listed"},
		"a metadata service":                  {url: "http://169.254.169.254/latest", message: "never called"},
		"a link-local address":                {url: "http://[fe80::1]/", message: "never called"},
		"a link-local address with its zone":  {url: "http://[fe80::1%25lo]/", message: "never called"},
		"a metadata service mapped to IPv6":   {url: "http://[::ffff:169.254.169.254]/", message: "never called"},
		"a metadata service through NAT64":    {url: "http://[64:ff9b::a9fe:a9fe]/", message: "never called"},
		"a metadata service on a ULA":         {url: "http://[fd00:ec2::254]/", message: "never called"},
		"a metadata service in shared space":  {url: "http://100.100.100.200/", message: "never called"},
		"the unspecified address":             {url: "http://0.0.0.0/", message: "never called"},
		"a multicast address":                 {url: "http://224.0.0.1/", message: "never called"},
		"loopback that is not loopback (::2)": {url: "http://[::2]/", message: "neither loopback nor listed"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			resolver, asked := fakeResolver(t, nil)
			client := newClient(t, invoker.Options{AllowedHosts: tt.allowed, Resolver: resolver})
			checkOutcome(t, invoke(client, attempt(tt.url)), forbidden, tt.message)
			if n := len(asked()); n != 0 {
				t.Errorf("the name was looked up %d times", n)
			}
		})
	}
}

func TestTargetRuleHoldsAfterResolution(t *testing.T) {
	target := startApp(t, app.Options{})
	_, port, _ := net.SplitHostPort(target.Address())
	tests := map[string]struct {
		host    string
		address string
		allowed []string
		message string // empty: it is called
	}{
		"a listed name on loopback":                  {host: "app.test", address: "127.0.0.1", allowed: []string{"app.test"}},
		"listed in another spelling":                 {host: "APP.test", address: "127.0.0.1", allowed: []string{"app.TEST."}},
		"a listed name that now points to metadata":  {host: "app.test", address: "169.254.169.254", allowed: []string{"app.test"}, message: "169.254.169.254 is a link-local, metadata or multicast address"},
		"a listed name that points to link-local v6": {host: "app.test", address: "fe80::1", allowed: []string{"app.test"}, message: "fe80::1 is a link-local"},
		"a listed name that points to nowhere":       {host: "app.test", address: "0.0.0.0", allowed: []string{"app.test"}, message: "0.0.0.0 is a link-local, metadata or multicast"},
		"a listed name mapped to metadata":           {host: "app.test", address: "::ffff:169.254.169.254", allowed: []string{"app.test"}, message: "169.254.169.254 is a link-local"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			resolver, _ := fakeResolver(t, map[string]netip.Addr{strings.ToLower(tt.host): netip.MustParseAddr(tt.address)})
			client := newClient(t, invoker.Options{AllowedHosts: tt.allowed, Resolver: resolver})
			got := invoke(client, attempt("http://"+tt.host+":"+port+"/"))
			if tt.message == "" {
				checkOutcome(t, got, succeeded, "")
				return
			}
			checkOutcome(t, got, forbidden, tt.message)
		})
	}
	checkOnceEach(t, target.Calls(), 2)
}

// A name with several addresses reaches the one that is allowed, and none of the others.
func TestNameWithSeveralAddresses(t *testing.T) {
	target := startApp(t, app.Options{})
	_, port, _ := net.SplitHostPort(target.Address())
	good, bad := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("169.254.169.254")
	resolver, _ := fakeResolver(t, map[string]netip.Addr{
		"mixed.test/4": good, "mixed.test/6": netip.MustParseAddr("fe80::1"), "bad.test/4": bad, "bad.test/6": netip.MustParseAddr("fd00:ec2::254"),
	})
	client := newClient(t, invoker.Options{AllowedHosts: []string{"mixed.test", "bad.test"}, Resolver: resolver})
	checkOutcome(t, invoke(client, attempt("http://mixed.test:"+port+"/")), succeeded, "")
	checkOutcome(t, invoke(client, attempt("http://bad.test:"+port+"/")), forbidden, "is a link-local, metadata or multicast address")
	checkOnceEach(t, target.Calls(), 1)
}

func TestNameThatDoesNotExistIsTriedForAWhile(t *testing.T) {
	t.Parallel()
	resolver, asked := fakeResolver(t, nil)
	client := newClient(t, invoker.Options{AllowedHosts: []string{"app.test"}, Resolver: resolver})
	a := attempt("http://app.test:8080/?key=hunter2")
	a.Timeout = 2 * time.Second
	checkOutcome(t, invoke(client, a), unreached, "no such host app.test: check the job's target")
	if n := len(asked()); n < 2 {
		t.Errorf("the name was looked up %d times, want more than once", n)
	}
}

func TestLoopbackOverIPv6AndByName(t *testing.T) {
	client := newClient(t, invoker.Options{})
	six := startApp(t, app.Options{Address: "[::1]:0"})
	checkOutcome(t, invoke(client, attempt(six.URL()+"/")), succeeded, "")

	four := startApp(t, app.Options{})
	_, port, _ := net.SplitHostPort(four.Address())
	for _, host := range []string{"localhost", "LOCALHOST", "[::ffff:127.0.0.1]", "127.0.0.1"} {
		checkOutcome(t, invoke(client, attempt("http://"+host+":"+port+"/")), succeeded, "")
	}
}

func TestTLSTarget(t *testing.T) {
	calls := 0
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls++
		if r.ProtoMajor != 1 {
			t.Errorf("request came over %s", r.Proto)
		}
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // the stranger below is a handshake error
	server.StartTLS()
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())

	client := newClient(t, invoker.Options{TLS: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}})
	for range 3 { // on a new connection and on a used one
		var q ask
		checkOutcome(t, invoke(client, q.on(attempt(server.URL+"/"))), succeeded, "")
		if asked, started := q.counts(); asked != 1 || started != 1 {
			t.Errorf("MayStart asked %d times, Started told %d times, want 1 and 1", asked, started)
		}
	}
	q := ask{answers: []error{errLeaseOver}}
	checkOutcome(t, invoke(client, q.on(attempt(server.URL+"/"))), refused, "lease is over")

	stranger := newClient(t, invoker.Options{})
	checkOutcome(t, invoke(stranger, attempt(server.URL+"/")), unreached, "certificate is not accepted: x509: certificate signed by unknown authority: mount the certificate of its authority and name the file in SSL_CERT_FILE")
	// By another name than the certificate's, which is what SNI asks for too.
	named := strings.Replace(server.URL, "127.0.0.1", "localhost", 1)
	checkOutcome(t, invoke(client, attempt(named+"/")), unreached, "certificate is not accepted: x509: certificate is valid for")
	plain := startApp(t, app.Options{})
	checkOutcome(t, invoke(client, attempt(strings.Replace(plain.URL(), "http:", "https:", 1)+"/")), unreached, "the app does not speak TLS")
	if calls != 3 {
		t.Errorf("%d requests arrived, want 3", calls)
	}
}

func TestAllowedHostsAreChecked(t *testing.T) {
	for _, entry := range []string{"", " ", "http://a", "a:80", "a/b", "*.example.com", "169.254.169.254", "[fe80::1]", "0.0.0.0"} {
		if _, err := invoker.New(invoker.Options{AllowedHosts: []string{"ok.example", entry}}); err == nil {
			t.Errorf("allowed host %q was accepted", entry)
		}
	}
	for _, entry := range []string{"a", "a.b.", "10.0.0.1", "[fd00::1]", "fd00::1"} {
		if _, err := invoker.New(invoker.Options{AllowedHosts: []string{entry}}); err != nil {
			t.Errorf("allowed host %q: %v", entry, err)
		}
	}
}

// fakeResolver resolves through a name server on loopback that knows the given names only.
func fakeResolver(t *testing.T, names map[string]netip.Addr) (resolver *net.Resolver, asked func() []string) {
	t.Helper()
	var lc net.ListenConfig
	pc, err := lc.ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	seen := make(chan string, 1000)
	go func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := pc.ReadFrom(buf)
			if err != nil {
				return
			}
			reply, name := answerDNS(buf[:n], names)
			seen <- name
			_, _ = pc.WriteTo(reply, from)
		}
	}()
	t.Cleanup(func() { _ = pc.Close() })
	address := pc.LocalAddr().String()
	resolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", address)
	}}
	asked = func() []string {
		var all []string
		for len(seen) > 0 {
			all = append(all, <-seen)
		}
		return all
	}
	return resolver, asked
}

// answerDNS answers a query (RFC 1035, one question) with the address of its name, if any.
func answerDNS(query []byte, names map[string]netip.Addr) (reply []byte, name string) {
	end := 12
	var labels []string
	for query[end] != 0 {
		size := int(query[end])
		labels = append(labels, string(query[end+1:end+1+size]))
		end += 1 + size
	}
	end += 5 // the root label, type and class
	name = strings.ToLower(strings.Join(labels, "."))
	kind := binary.BigEndian.Uint16(query[end-4:])
	reply = append([]byte{query[0], query[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, query[12:end]...)
	addr, known := names[name]
	if !known { // one for each family
		addr, known = names[name+map[uint16]string{1: "/4", 28: "/6"}[kind]]
	}
	if !known {
		reply[3] |= 3 // no such name
		return reply, name
	}
	if want := map[bool]uint16{true: 1, false: 28}[addr.Is4()]; kind == want {
		reply[7] = 1
		reply = append(reply, 0xc0, 12, byte(kind>>8), byte(kind), 0, 1, 0, 0, 0, 0, 0, byte(addr.BitLen()/8))
		reply = append(reply, addr.AsSlice()...)
	}
	return reply, name
}
