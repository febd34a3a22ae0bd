package cli

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The manual's console examples print what it says. R034
func TestExamplesOfTheManual(t *testing.T) {
	manual, err := os.ReadFile("../../docs/jobs.md")
	if err != nil {
		t.Fatal(err)
	}
	writeFiles(t, map[string]string{
		"deployed.yaml": `jobs:
  - {name: cleanup, path: /cleanup, schedule: "0 3 * * *"}
  - {name: report, path: /report, schedule: "0 6 * * *"}
`,
		"jobs.yaml": `jobs:
  - {name: cleanup, path: /cleanup, schedule: "0 3,15 * * *"}
  - {name: report, path: /report, timeout: 5m, schedule: "0 6 * * *"}
`,
	})
	examples := regexp.MustCompile("(?s)```console\n\\$ sidecar ([^\n]*)\n(.*?)```").FindAllStringSubmatch(string(manual), -1)
	if len(examples) < 8 {
		t.Fatalf("%d examples found", len(examples))
	}
	for _, example := range examples {
		t.Run(example[1], func(t *testing.T) {
			var out, errs bytes.Buffer
			if code := Main(t.Context(), shellWords(example[1]), nil, Streams{In: strings.NewReader(""), Out: &out, Err: &errs}); code != exitOK {
				t.Errorf("exit code %d", code)
			}
			if diff := cmp.Diff(example[2], out.String()+errs.String()); diff != "" {
				t.Errorf("output (-manual +program):\n%s", diff)
			}
		})
	}
}

// shellWords splits a command line, in which only double quotes are special.
func shellWords(line string) []string {
	var words []string
	for _, word := range regexp.MustCompile(`"[^"]*"|\S+`).FindAllString(line, -1) {
		words = append(words, strings.Trim(word, `"`))
	}
	return words
}
