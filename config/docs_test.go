package config_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leasecron/leasecron/config"
)

func readManual(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../docs/jobs.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestManualKnowsEveryKey(t *testing.T) {
	manual := readManual(t)
	text, err := config.Schema()
	if err != nil {
		t.Fatal(err)
	}
	var schema any
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	keys := make(map[string]bool)
	collectKeys(schema, keys)
	if len(keys) < 50 {
		t.Fatalf("the schema has %d keys: %v", len(keys), keys)
	}
	for key := range keys {
		if !strings.Contains(manual, "`"+key+"`") && !strings.Contains(manual, "\n"+key+":") && !strings.Contains(manual, "{"+key+":") {
			t.Errorf("docs/jobs.md does not mention the key %s", key)
		}
	}
}

// collectKeys finds the names of all properties of a schema.
func collectKeys(schema any, keys map[string]bool) {
	switch schema := schema.(type) {
	case map[string]any:
		if properties, ok := schema["properties"].(map[string]any); ok {
			for key := range properties {
				keys[key] = true
			}
		}
		for _, child := range schema {
			collectKeys(child, keys)
		}
	case []any:
		for _, child := range schema {
			collectKeys(child, keys)
		}
	}
}

func TestExamplesOfTheManualAreGood(t *testing.T) {
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(readManual(t), -1)
	if len(blocks) < 4 {
		t.Fatalf("%d examples found", len(blocks))
	}
	for _, block := range blocks {
		if _, _, err := config.Parse("docs/jobs.md", []byte(block[1]), config.Options{}); err != nil {
			t.Errorf("%v in\n%s", err, block[1])
		}
	}
}

// What the manual shows in its tables is read as it says.
func TestSchedulesOfTheManualAreGood(t *testing.T) {
	manual := readManual(t)
	_, section, _ := strings.Cut(manual, "## Cron expressions")
	section, _, _ = strings.Cut(section, "## Retry")
	expressions := regexp.MustCompile("(?m)^\\| [^|]+ \\| `([^`]+)`").FindAllStringSubmatch(section, -1)
	if len(expressions) < 9 {
		t.Fatalf("%d expressions found", len(expressions))
	}
	for _, e := range expressions {
		parse(t, job("schedule: '"+e[1]+"'"))
	}
	for _, text := range []string{"rate 60s", "every 10m x5", "once 2026-11-01T00:00:00Z", "{every: 10m, count: 5}"} {
		if !strings.Contains(manual, text) {
			t.Errorf("the manual does not show %q", text)
		}
		parse(t, job("schedule: "+text))
	}
}

// The text form and the mapping that the manual shows side by side say the same.
func TestTextFormsOfTheManual(t *testing.T) {
	_, section, _ := strings.Cut(readManual(t), "| text | mapping |\n|---|---|\n")
	section, _, _ = strings.Cut(section, "\n\n")
	rows := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| `([^`]+)` \\|$").FindAllStringSubmatch(section, -1)
	if len(rows) < 6 {
		t.Fatalf("%d rows found", len(rows))
	}
	const closed = "calendars: {closed: {weekdays: [SUN]}}\n"
	for _, row := range rows {
		text, mapping := parse(t, closed+job("schedule: '"+row[1]+"'")), parse(t, closed+job("schedule: "+row[2]))
		if diff := cmp.Diff(mapping, text); diff != "" {
			t.Errorf("%s and %s differ (-mapping +text):\n%s", row[1], row[2], diff)
		}
	}
}
