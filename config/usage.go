package config

import (
	"log/slog"
	"maps"
	"reflect"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// SettingDoc describes one setting for people.
type SettingDoc struct {
	Variable string // LEASECRON_LEASE_DURATION
	Flag     string // lease-duration
	Type     string // duration, integer, or what a text has to be
	Default  string // empty: none
	Meaning  string
}

const (
	kindDuration = "duration"
	kindInteger  = "integer"
	kindBoolean  = "true | false"
)

// Usage describes every setting, in the order in which they should be read.
func Usage() []SettingDoc {
	var docs []SettingDoc
	for _, field := range settingFields() {
		name := field.Tag.Get("env")
		def := field.Tag.Get("envDefault")
		if def == "" {
			def = field.Tag.Get("default")
		}
		docs = append(docs, SettingDoc{
			Variable: SettingPrefix + name,
			Flag:     strings.ReplaceAll(strings.ToLower(name), "_", "-"),
			Type:     settingKind(field),
			Default:  def,
			Meaning:  field.Tag.Get("doc"),
		})
	}
	return docs
}

// settingFields are the fields of [Settings] that a variable fills.
func settingFields() []reflect.StructField {
	var fields []reflect.StructField
	for field := range reflect.TypeFor[Settings]().Fields() {
		if field.Tag.Get("env") != "-" {
			fields = append(fields, field)
		}
	}
	return fields
}

func settingKind(field reflect.StructField) string {
	switch {
	case field.Type == reflect.TypeFor[time.Duration]():
		return kindDuration
	case field.Type == reflect.TypeFor[slog.Level](), field.Tag.Get("kind") != "":
		return field.Tag.Get("kind")
	case field.Type.Kind() == reflect.Int:
		return kindInteger
	case field.Type.Kind() == reflect.Bool:
		return kindBoolean
	default:
		return "text"
	}
}

// Flags are the command line's form of the settings: --lease-duration for
// LEASECRON_LEASE_DURATION. A flag wins over its variable.
type Flags struct {
	set *pflag.FlagSet
}

// BindFlags adds a flag for each setting to set.
func BindFlags(set *pflag.FlagSet) *Flags {
	for _, doc := range Usage() {
		meaning := doc.Meaning
		if doc.Default != "" {
			meaning += " (default " + doc.Default + ")"
		}
		set.String(doc.Flag, "", meaning)
		// The type, not "string", and no default of the flag's own: unset means the variable's.
		set.Lookup(doc.Flag).NoOptDefVal = ""
	}
	return &Flags{set: set}
}

// Load is [LoadSettings] with the flags that were given laid over environ.
func (f *Flags) Load(environ map[string]string) (Settings, error) {
	merged := make(map[string]string, len(environ))
	maps.Copy(merged, environ)
	given := make(map[string]string) // variable to flag
	for _, doc := range Usage() {
		if flag := f.set.Lookup(doc.Flag); flag != nil && flag.Changed {
			merged[doc.Variable] = flag.Value.String()
			given[doc.Variable] = "--" + doc.Flag
		}
	}
	s, err := LoadSettings(merged)
	for _, problem := range unjoin(err) {
		if p, ok := problem.(*SettingError); ok && given[p.Name] != "" { //nolint:errorlint // the elements of a join, not wrapped
			p.Name = given[p.Name]
		}
	}
	return s, err
}

// unjoin returns the parts of a joined error.
func unjoin(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}
