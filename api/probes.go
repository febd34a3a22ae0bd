package api

import (
	"fmt"
	"io"
	"net/http"
	"strings"
)

// probe answers "ok" while no check fails, else 503 and every check on a line of its own, as
// ?verbose asks for in any case:
//
//	[+]loop ok: last turn 120ms ago
//	[-]loop failed: no turn for 45s
//	[!]jobs: ConfigMap default/demo-jobs not found
//
// A line with [!] is worth reading, but fails nothing.
func probe(name string, checks []Check) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var lines strings.Builder
		failed := false
		for _, c := range checks {
			detail, err := c.Probe()
			switch {
			case err == nil && detail == "":
				fmt.Fprintf(&lines, "[+]%s ok\n", c.Name)
			case err == nil:
				fmt.Fprintf(&lines, "[+]%s ok: %s\n", c.Name, oneLine(detail))
			case c.Informational:
				fmt.Fprintf(&lines, "[!]%s: %s\n", c.Name, oneLine(err.Error()))
			default:
				failed = true
				fmt.Fprintf(&lines, "[-]%s failed: %s\n", c.Name, oneLine(err.Error()))
			}
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		switch {
		case failed:
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, lines.String()+name+" check failed\n")
		case r.URL.Query().Has("verbose"):
			_, _ = io.WriteString(w, lines.String()+name+" check passed\n")
		default:
			_, _ = io.WriteString(w, "ok")
		}
	}
}

// oneLine keeps a check on its line, whatever an error quotes.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}
