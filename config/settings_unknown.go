package config

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// serviceLink matches the suffixes of the variables that Kubernetes injects for each Service of
// the namespace. A Service called leasecron, or leasecron-something, makes them look like settings.
var serviceLink = regexp.MustCompile(
	`^LEASECRON(_[A-Z0-9_]+)?_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$`)

var (
	serviceLinkPort    = regexp.MustCompile(`^LEASECRON(_[A-Z0-9_]+)?_PORT$`)
	serviceLinkAddress = regexp.MustCompile(`^(tcp|udp|sctp)://`)
)

// isServiceLink reports whether Kubernetes, and not a person, wrote the variable.
func isServiceLink(name, value string) bool {
	return serviceLink.MatchString(name) ||
		serviceLinkPort.MatchString(name) && serviceLinkAddress.MatchString(value)
}

// unknownSettings reports the variables that look like settings and are none: a name that is
// mistyped would otherwise leave its default in force without a word.
func unknownSettings(environ map[string]string) []*SettingError {
	var suffixes []string
	for _, field := range settingFields() {
		suffixes = append(suffixes, field.Tag.Get("env"))
	}
	var problems []*SettingError
	for name, value := range environ {
		if !strings.HasPrefix(name, SettingPrefix) || slices.Contains(suffixes, strings.TrimPrefix(name, SettingPrefix)) || isServiceLink(name, value) {
			continue
		}
		err := errors.New("no such setting (see sidecar run --help)")
		if slices.Contains(pendingSettings, name) {
			err = errors.New("is not supported yet")
		} else if near := nearest(strings.TrimPrefix(name, SettingPrefix), suffixes); near != "" {
			err = fmt.Errorf("no such setting (did you mean %s%s?)", SettingPrefix, near)
		}
		problems = append(problems, &SettingError{Name: name, Err: err})
	}
	slices.SortFunc(problems, func(a, b *SettingError) int { return strings.Compare(a.Name, b.Name) })
	return problems
}
