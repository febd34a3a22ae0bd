package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// The command is not exported, so this test is inside the package.
func TestVersion(t *testing.T) {
	run := func(args ...string) (string, error) {
		var out bytes.Buffer
		cmd := newVersionCommand()
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		cmd.SetArgs(args)
		err := cmd.Execute()
		return out.String(), err
	}

	t.Run("text names the program, the Go version and the zone data", func(t *testing.T) {
		out, err := run()
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"leasecron ", "commit ", "go1.", "time zone data 20"} {
			if !strings.Contains(out, want) {
				t.Errorf("no %q in:\n%s", want, out)
			}
		}
	})
	t.Run("json has a field for each", func(t *testing.T) {
		out, err := run("-o", "json")
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]string
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatal(err)
		}
		for _, field := range []string{"version", "commit", "goVersion", "platform", "zoneData"} {
			if got[field] == "" {
				t.Errorf("no %q in %s", field, out)
			}
		}
	})
	t.Run("another form is refused", func(t *testing.T) {
		if _, err := run("-o", "xml"); err == nil || !strings.Contains(err.Error(), "--output") {
			t.Errorf("error = %v, want one that names --output", err)
		}
	})
	t.Run("arguments are refused", func(t *testing.T) {
		if _, err := run("now"); err == nil {
			t.Error("no error")
		}
	})
}
