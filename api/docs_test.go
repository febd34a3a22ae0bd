package api_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
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
