package config_test

import (
	"strings"
	"testing"

	"github.com/leasecron/leasecron/config"
)

func TestAnAsynchronousJobNamesItsTimeout(t *testing.T) {
	tests := map[string]struct {
		doc  string
		want int // warnings
	}{
		"none is named":                 {"jobs:\n  - {name: a, path: /x, async: true}\n", 1},
		"the job names one":             {"jobs:\n  - {name: a, path: /x, async: true, timeout: 10m}\n", 0},
		"it names that of the default":  {"jobs:\n  - {name: a, path: /x, async: true, timeout: 30s}\n", 0},
		"the defaults name one":         {"defaults: {timeout: 10m}\njobs:\n  - {name: a, path: /x, async: true}\n", 0},
		"the job is not async":          {"jobs:\n  - {name: a, path: /x}\n", 0},
		"the job says that it is not":   {"jobs:\n  - {name: a, path: /x, async: false}\n", 0},
		"the silence alone has a limit": {"jobs:\n  - {name: a, path: /x, async: true, heartbeatTimeout: 10s}\n", 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, warnings, err := config.Parse("f", []byte(tt.doc), config.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if len(warnings) != tt.want {
				t.Errorf("%d warnings, want %d: %v", len(warnings), tt.want, warnings)
			}
			for _, w := range warnings {
				if text := w.String(); !strings.Contains(text, "jobs[0].async (job a)") || !strings.Contains(text, "the default of 30s") {
					t.Errorf("warning %q", text)
				}
			}
		})
	}
}
