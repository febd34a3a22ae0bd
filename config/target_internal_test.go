package config

import (
	"strings"
	"testing"
)

func TestCheckTarget(t *testing.T) {
	tests := map[string]struct{ want, fault string }{
		"http://127.0.0.1:8080/":       {want: "http://127.0.0.1:8080"},
		"http://[::1]:8080":            {want: "http://[::1]:8080"},
		"https://localhost:8443/base/": {want: "https://localhost:8443/base"},
		"h2c://127.0.0.1:8080":         {want: "h2c://127.0.0.1:8080"},
		"unix:///run/app.sock":         {want: "unix:///run/app.sock:"},
		"unix:///run/app.sock:/":       {want: "unix:///run/app.sock:"},
		"unix:///run/app.sock:/base/":  {want: "unix:///run/app.sock:/base"},
		"unix://run/app.sock":          {fault: "no absolute path of a Unix socket"},
		"unix:///run/../app.sock":      {fault: "/../"},
		"unix:///run/app.sock:/a?b=c":  {fault: "has a query (want it in path)"},
		"unix:///run/app.sock:/%zz":    {fault: "has no valid path after the colon"},
		"h2c://10.0.0.1:8080":          {fault: "is not loopback"},
		"ftp://127.0.0.1":              {fault: `has the scheme "ftp" (want a URL such as http://127.0.0.1:8080; https, h2c and unix exist too)`},
		"http://[fd00:ec2::23]/":       {fault: "may never call"},
		"http://168.63.129.16/":        {fault: "may never call"},
		"http://[::ffff:a9fe:a9fe]/":   {fault: "may never call"},
		"http://[64:ff9b::a9fe:a9fe]/": {fault: "may never call"},
		"http://0.0.0.0:8080":          {fault: "may never call"},
	}
	for raw, tt := range tests {
		got, err := checkTarget(raw, []string{"168.63.129.16", "fd00:ec2::23"})
		if got != tt.want || (err == nil) != (tt.fault == "") || err != nil && !strings.Contains(err.Error(), tt.fault) {
			t.Errorf("checkTarget(%q) = %q, %v, want %q, %q", raw, got, err, tt.want, tt.fault)
		}
	}
	for raw, fault := range map[string]string{
		"unix:///run/app.sock:/health?x=1": "",
		"unix:///run/app.sock":             "names no path",
		"unix:///run/app.sock:":            "names no path",
		"http://127.0.0.1/health?x=1":      "",
	} {
		if err := checkHealthURL(raw, nil); (err == nil) != (fault == "") || err != nil && !strings.Contains(err.Error(), fault) {
			t.Errorf("checkHealthURL(%q) = %v, want %q", raw, err, fault)
		}
	}
}
