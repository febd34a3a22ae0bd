package main

import (
	"regexp"
	"slices"
	"testing"
)

// A mistake that cannot be planted any more is looked for by nobody: whoever changes a place that one is
// planted in brings the list up to date.
func TestEveryMistakeFindsItsPlace(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	names := make(map[string]bool)
	for _, b := range slices.Concat(bugs, decisionBugs, attemptBugs) {
		if _, err := b.overlay(root, t.TempDir()); err != nil {
			t.Errorf("%s: %v", b.name, err)
		}
		if names[b.name] {
			t.Errorf("%s: there are two of this name", b.name)
		}
		names[b.name] = true
	}
	for name, words := range says {
		if _, err := regexp.Compile(words); err != nil || !names[name] {
			t.Errorf("what the check says of %q: %v, and there is such a mistake: %v", name, err, names[name])
		}
	}
}
