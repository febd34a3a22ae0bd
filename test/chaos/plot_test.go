package chaos

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPlot(t *testing.T) {
	faults := plot(7, 10*time.Minute, 3)
	if diff := cmp.Diff(faults, plot(7, 10*time.Minute, 3)); diff != "" {
		t.Errorf("the same seed made other faults:\n%s", diff)
	}
	if cmp.Equal(faults, plot(8, 10*time.Minute, 3)) {
		t.Error("another seed made the same faults")
	}
	seen := make(map[kind]bool)
	at := time.Duration(0)
	leader := 0
	for _, f := range faults {
		seen[f.Kind] = true
		if f.At < at || f.At >= 10*time.Minute || f.Target < atLeader || f.Target > 2 || f.For < 0 || f.For > 25*time.Second {
			t.Errorf("out of order or range: %+v", f)
		}
		at = f.At
		if f.Target == atLeader {
			leader++
		}
	}
	for k := range bag {
		if !seen[k] {
			t.Errorf("ten minutes without %q", k)
		}
	}
	if len(faults) < 150 || leader < 50 {
		t.Errorf("%d faults, %d of them at the leader; want 150 and 50", len(faults), leader)
	}
}

func TestDocument(t *testing.T) {
	var d document
	seen := make(map[string]bool)
	for n := range 40 {
		d.edit(n)
		if text := d.text(); seen[text] {
			t.Errorf("edit %d gave a document that was there before:\n%s", n, text)
		} else {
			seen[text] = true
		}
	}
}

func TestIdleFaults(t *testing.T) {
	tests := map[string]struct {
		faults map[kind]tally
		want   []string
	}{
		"all hit":           {faults: map[kind]tally{kill: {8, 8}, drain: {8, 7}}},
		"some miss":         {faults: map[kind]tally{kill: {8, 8}, drain: {8, 1}}},
		"few, by chance":    {faults: map[kind]tally{kill: {8, 8}, drain: {7, 0}}},
		"a kind never hits": {map[kind]tally{kill: {8, 8}, drain: {8, 0}}, []string{`"drain, then SIGTERM" was set 8 times and never hit anything`}},
		"most miss":         {map[kind]tally{kill: {8, 3}, drain: {8, 4}}, []string{"of 16 faults only 7 hit anything"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, idleFaults(tt.faults)); diff != "" {
				t.Errorf("idleFaults(%v) (-want +got):\n%s", tt.faults, diff)
			}
		})
	}
}
