package schedule

import (
	"archive/zip"
	"fmt"
	"strings"
	"time"
)

// maxZoneName is longer than any IANA name.
const maxZoneName = 64

// windowsZones maps the names that Windows and .NET use most to what the Unicode CLDR
// gives for them.
var windowsZones = map[string]string{
	"AUS Eastern Standard Time":       "Australia/Sydney",
	"Arabian Standard Time":           "Asia/Dubai",
	"Argentina Standard Time":         "America/Buenos_Aires",
	"Atlantic Standard Time":          "America/Halifax",
	"Central Europe Standard Time":    "Europe/Budapest",
	"Central European Standard Time":  "Europe/Warsaw",
	"Central Standard Time":           "America/Chicago",
	"China Standard Time":             "Asia/Shanghai",
	"E. South America Standard Time":  "America/Sao_Paulo",
	"Eastern Standard Time":           "America/New_York",
	"Egypt Standard Time":             "Africa/Cairo",
	"FLE Standard Time":               "Europe/Kiev",
	"GMT Standard Time":               "Europe/London",
	"GTB Standard Time":               "Europe/Bucharest",
	"Greenwich Standard Time":         "Atlantic/Reykjavik",
	"India Standard Time":             "Asia/Calcutta",
	"Israel Standard Time":            "Asia/Jerusalem",
	"Korea Standard Time":             "Asia/Seoul",
	"Mountain Standard Time":          "America/Denver",
	"New Zealand Standard Time":       "Pacific/Auckland",
	"Pacific Standard Time":           "America/Los_Angeles",
	"Romance Standard Time":           "Europe/Paris",
	"Russian Standard Time":           "Europe/Moscow",
	"SE Asia Standard Time":           "Asia/Bangkok",
	"Singapore Standard Time":         "Asia/Singapore",
	"South Africa Standard Time":      "Africa/Johannesburg",
	"Taipei Standard Time":            "Asia/Taipei",
	"Tokyo Standard Time":             "Asia/Tokyo",
	"Turkey Standard Time":            "Europe/Istanbul",
	"US Mountain Standard Time":       "America/Phoenix",
	"W. Australia Standard Time":      "Australia/Perth",
	"W. Central Africa Standard Time": "Africa/Lagos",
	"W. Europe Standard Time":         "Europe/Berlin",
}

// zoneNameError says what is wrong with a name that the snapshot does not have.
func zoneNameError(name string, files map[string]*zip.File) error {
	hint := ""
	switch {
	case name == "":
		hint = "the name is empty"
	case len(name) > maxZoneName:
		hint = "the name is too long"
	case strings.EqualFold(name, "Local"):
		hint = "the host's own zone is never used, write an IANA name such as Europe/Paris"
	case windowsZones[name] != "":
		hint = "this is a Windows name, write " + windowsZones[name]
	case strings.HasSuffix(name, " Standard Time"):
		hint = "this is a Windows name, write an IANA name such as Europe/Paris"
	case strings.HasPrefix(name, "/"), strings.HasPrefix(name, ":"), strings.Contains(name, ".."), strings.Contains(name, `\`):
		hint = "paths are refused, write an IANA name such as Europe/Paris"
	case strings.ContainsAny(name, ",<>0123456789+"):
		hint = "POSIX rules and bare offsets are refused, write an IANA name such as Europe/Paris or Etc/GMT-1"
	default:
		if near := nearestZone(name, files); near != "" {
			hint = "did you mean " + near + "?"
		} else {
			hint = "write an IANA name such as Europe/Paris"
		}
	}
	return fmt.Errorf("%w %s: %s", ErrUnknownZone, clip(name), hint)
}

// nearestZone returns the zone whose name differs by at most two letters.
func nearestZone(name string, files map[string]*zip.File) string {
	best, distance := "", 3
	for candidate := range files {
		if strings.EqualFold(candidate, name) {
			return candidate
		}
		d := editDistance(name, candidate)
		if d < distance || d == distance && best != "" && candidate < best {
			best, distance = candidate, d
		}
	}
	return best
}

// editDistance is the number of letters to insert, delete or replace.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(diagonal+cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// loadICSZone finds the zone of an iCalendar file, in which Windows names are common.
func loadICSZone(name string) (*time.Location, error) {
	if iana, ok := windowsZones[name]; ok {
		name = iana
	}
	return LoadZone(name)
}
