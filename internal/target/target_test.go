package target_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/leasecron/leasecron/internal/target"
)

func TestSplitSocket(t *testing.T) {
	tests := map[string]struct{ socket, request, fault string }{
		"unix:///run/app.sock":                {"/run/app.sock", "", ""},
		"unix:///run/app.sock:":               {"/run/app.sock", "", ""},
		"unix:///run/app.sock:/":              {"/run/app.sock", "/", ""},
		"unix:///run/app.sock:/jobs/a:b?c=d":  {"/run/app.sock", "/jobs/a:b?c=d", ""},
		"unix:///run/my app.sock":             {fault: "a blank"},
		"unix:///run/app.sock?x":              {fault: "one of ?"},
		"unix:///run/%2e%2e/app.sock":         {fault: "one of ?"},
		"unix:///run/app.sock\x00":            {fault: "a blank"},
		"unix:///run/app:1.sock":              {fault: "a colon within"},
		"unix:///run/../etc/app.sock":         {fault: "/../"},
		"unix:///run/app.sock/":               {fault: "a slash at its end"},
		"unix:///":                            {fault: "a slash at its end"},
		"unix://run/app.sock":                 {fault: "no absolute path"},
		"unix:/run/app.sock":                  {fault: "no absolute path"},
		"unix:run/app.sock":                   {fault: "no absolute path"},
		"unix:":                               {fault: "no absolute path"},
		"unix:///" + strings.Repeat("x", 106): {"/" + strings.Repeat("x", 106), "", ""},
		"unix:///" + strings.Repeat("x", 107): {fault: "longer than 107 bytes"},
	}
	for raw, tt := range tests {
		socket, request, err := target.SplitSocket(raw)
		if socket != tt.socket || request != tt.request || (err == nil) != (tt.fault == "") || err != nil && !strings.Contains(err.Error(), tt.fault) {
			t.Errorf("SplitSocket(%q) = %q, %q, %v, want %+v", raw, socket, request, err, tt)
		}
	}
}

func TestNever(t *testing.T) {
	tests := map[string]bool{
		"169.254.169.254": true, "169.254.0.1": true, "169.254.170.23": true, "fe80::1": true, "fe80::1%eth0": true, "febf::1": true,
		"0.0.0.0": true, "0.1.2.3": true, "::": true, "255.255.255.255": true, "224.0.0.1": true, "ff02::1": true,
		"100.100.100.200": true, "168.63.129.16": true, "192.0.0.192": true,
		"fd00:ec2::254": true, "fd00:ec2::23": true, "fd20:ce::254": true, "fec0::1": true,
		"::ffff:169.254.169.254": true, "::ffff:0.0.0.0": true, "::169.254.169.254": true, "64:ff9b::169.254.169.254": true,
		"64:ff9b:1::169.254.169.254": true, "2002:a9fe:a9fe::1": true, "64:ff9b::127.0.0.1": true, "::127.0.0.1": true,

		"127.0.0.1": false, "127.255.255.254": false, "::1": false, "::ffff:127.0.0.1": false, "10.0.0.1": false,
		"100.100.100.201": false, "8.8.8.8": false, "fd00::1": false, "2001:db8::1": false, "64:ff9b::8.8.8.8": false, "2002:808:808::1": false,
	}
	for text, want := range tests {
		if got := target.Never(netip.MustParseAddr(text)); got != want {
			t.Errorf("Never(%s) = %t, want %t", text, got, want)
		}
	}
}
