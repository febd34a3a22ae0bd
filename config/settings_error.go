package config

import (
	"errors"
	"fmt"
	"slices"
)

// SettingError says what is wrong with one setting.
type SettingError struct {
	Name  string // the variable, or the flag that was given instead
	Value string // as it was given; empty for a name that is not known, whose value may be a secret
	Err   error  // what was expected
}

// Error returns one line: the name, the value, what was expected.
func (e *SettingError) Error() string {
	if e.Value == "" {
		return fmt.Sprintf("%s: %v", e.Name, e.Err)
	}
	return fmt.Sprintf("%s=%s: %v", e.Name, quote(e.Value), e.Err)
}

// Unwrap returns what was expected.
func (e *SettingError) Unwrap() error { return e.Err }

// joinSettingErrors orders the problems as the settings are declared, unknown names last.
func joinSettingErrors(problems []*SettingError) error {
	order := make(map[string]int)
	for i, doc := range Usage() {
		order[doc.Variable] = i - len(settingFields())
	}
	slices.SortStableFunc(problems, func(a, b *SettingError) int { return order[a.Name] - order[b.Name] })
	errs := make([]error, len(problems))
	for i, p := range problems {
		errs[i] = p
	}
	return errors.Join(errs...)
}

// quote shows a value that someone else wrote: on one line and not longer than a line.
func quote(s string) string {
	const longest = 80
	if len(s) > longest {
		return fmt.Sprintf("%.*q…", longest, s)
	}
	return fmt.Sprintf("%q", s)
}
