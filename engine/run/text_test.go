package run_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/leasecron/leasecron/engine/run"
)

func TestOneLine(t *testing.T) {
	tests := map[string]struct {
		text string
		most int
		want string
	}{
		"text stays":                       {"42 files", 100, "42 files"},
		"lines become one":                 {"a\r\nb\tc\u2028d", 100, "a  b c d"},
		"control characters go":            {"a\x00b\x1b[31mc", 100, "ab[31mc"},
		"so do those that turn text round": {"a\u202eb\u2066c", 100, "abc"},
		"what is no UTF-8 is marked":       {"a\xffb", 100, "a\uFFFDb"},
		"blanks around it go":              {"  a  ", 100, "a"},
		"it is cut":                        {"abcdef", 3, "abc"},
		"between two characters":           {"ab文", 4, "ab"},
		"and not after a blank":            {"ab cd", 3, "ab"},
		"nothing":                          {"", 3, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := run.OneLine(tt.text, tt.most); got != tt.want {
				t.Errorf("OneLine(%q, %d) = %q, want %q", tt.text, tt.most, got, tt.want)
			}
		})
	}
}

func FuzzOneLine(f *testing.F) {
	f.Add("a\nb", 3)
	f.Add("文文文", 4)
	f.Fuzz(func(t *testing.T, text string, most int) {
		if most < 0 {
			return
		}
		got := run.OneLine(text, most)
		if len(got) > most || !utf8.ValidString(got) || strings.ContainsAny(got, "\n\r\x00") {
			t.Errorf("OneLine(%q, %d) = %q", text, most, got)
		}
	})
}
