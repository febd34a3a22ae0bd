package api_test

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/leasecron/leasecron/api"
)

func TestTheManualNamesEveryRoute(t *testing.T) {
	manual, err := os.ReadFile("../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	w := serve(t, nil)
	var document struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal([]byte(get(t, w.api+"/v1/openapi.json").body), &document); err != nil {
		t.Fatal(err)
	}
	if len(document.Paths) == 0 {
		t.Fatal("no routes")
	}
	for path, methods := range document.Paths {
		for method := range methods {
			if route := "`" + strings.ToUpper(method) + " " + path + "`"; !strings.Contains(string(manual), route) {
				t.Errorf("docs/api.md does not name %s", route)
			}
		}
	}
}

// Each state that the API can show is explained in its manual.
func TestTheManualExplainsEveryState(t *testing.T) {
	manual, err := os.ReadFile("../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	for heading, of := range map[string]any{"of a job": api.Job{}, "of a run": api.Run{}} {
		_, table, found := strings.Cut(string(manual), "| `state` "+heading+" | meaning |\n")
		table, _, _ = strings.Cut(table, "\n\n")
		field, ok := reflect.TypeOf(of).FieldByName("State")
		if !found || !ok {
			t.Fatalf("docs/api.md has a table of states %s: %v; they have a field for it: %v", heading, found, ok)
		}
		states := strings.Split(field.Tag.Get("enum"), ",")
		for _, state := range states {
			if !strings.Contains(table, "\n| `"+state+"` | ") {
				t.Errorf("the table of states %s lacks %s", heading, state)
			}
		}
		if rows := strings.Count(table, "\n| `"); rows != len(states) || rows < 6 {
			t.Errorf("the table of states %s has %d rows for %d states", heading, rows, len(states))
		}
	}
}
