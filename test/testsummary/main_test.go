package main

import (
	"strings"
	"testing"
)

func TestSummary(t *testing.T) {
	tests := map[string]struct {
		events string
		want   string
	}{
		"a package that passes is one line": {
			`{"Action":"run","Package":"p","Test":"TestA"}
			 {"Action":"output","Package":"p","Test":"TestA","Output":"noise\n"}
			 {"Action":"pass","Package":"p","Test":"TestA","Elapsed":0.1}
			 {"Action":"skip","Package":"p","Test":"TestB","Elapsed":0}
			 {"Action":"output","Package":"p","Output":"ok p\n"}
			 {"Action":"pass","Package":"p","Elapsed":0.25}`,
			"ok   p (2 tests, 0.2s)\n1 passed, 0 failed, 1 skipped\n",
		},
		"a failed test is shown with its output": {
			`{"Action":"output","Package":"p","Test":"TestA","Output":"a_test.go:1: no\n"}
			 {"Action":"fail","Package":"p","Test":"TestA","Elapsed":0}
			 {"Action":"fail","Package":"p","Elapsed":1}`,
			"a_test.go:1: no\nFAIL p (1.0s)\n0 passed, 1 failed, 0 skipped\n",
		},
		"a package that does not build counts as a failure": {
			`{"ImportPath":"p [p.test]","Action":"build-output","Output":"p.go:1:1: syntax error\n"}
			 {"ImportPath":"p [p.test]","Action":"build-fail"}
			 {"Action":"start","Package":"p"}
			 {"Action":"fail","Package":"p","Elapsed":0,"FailedBuild":"p [p.test]"}`,
			"p.go:1:1: syntax error\nFAIL p (0.0s)\n0 passed, 1 failed, 0 skipped\n",
		},
		"a panic is shown with the output of the test that never ended": {
			`{"Action":"run","Package":"p","Test":"TestA"}
			 {"Action":"output","Package":"p","Test":"TestA","Output":"panic: boom\n"}
			 {"Action":"output","Package":"p","Output":"exit status 2\n"}
			 {"Action":"fail","Package":"p","Elapsed":0}`,
			"panic: boom\nexit status 2\nFAIL p (0.0s)\n0 passed, 1 failed, 0 skipped\n",
		},
		"a package without tests is silent": {
			`{"Action":"skip","Package":"p","Elapsed":0}`,
			"0 passed, 0 failed, 0 skipped\n",
		},
		"a line that is no event is passed on": {
			"hello",
			"hello0 passed, 0 failed, 0 skipped\n",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			s := newSummary(&out)
			if err := s.read(strings.NewReader(strings.ReplaceAll(tt.events, "\t", ""))); err != nil {
				t.Fatal(err)
			}
			s.print()
			if got := out.String(); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

func TestExit(t *testing.T) {
	tests := map[string]struct {
		script string
		want   bool
	}{
		"tests that pass":          {`echo '{"Action":"pass","Package":"p","Test":"T"}'`, true},
		"a test that fails":        {`echo '{"Action":"fail","Package":"p","Test":"T"}'; exit 1`, false},
		"no test at all":           {`true`, false},
		"a command that fails":     {`echo '{"Action":"pass","Package":"p","Test":"T"}'; exit 2`, false},
		"a command killed at work": {`echo '{"Action":"pass","Package":"p","Test":"T"}'; kill -9 $$`, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			got, err := run([]string{"sh", "-c", tt.script}, &out)
			if err != nil || got != tt.want {
				t.Errorf("run(%s) = %v, %v, want %v\n%s", tt.script, got, err, tt.want, out.String())
			}
		})
	}
}
