package schedule

// CalendarSpec defines a calendar: the instants at which triggers that name it do not
// fire. Exactly one of Dates, Weekdays, From with To, Cron, ICS and Any is set.
type CalendarSpec struct {
	Dates    []string `json:"dates,omitempty"`    // whole days, as 2026-12-25
	Weekdays []string `json:"weekdays,omitzero"`  // whole days, as SAT; empty but not nil: SAT and SUN
	From     string   `json:"from,omitempty"`     // daily span, as 22:00 or 22:00:30, inclusive
	To       string   `json:"to,omitempty"`       // exclusive; before From: the span crosses midnight
	Cron     string   `json:"cron,omitempty"`     // the seconds that match
	ICS      string   `json:"ics,omitempty"`      // the text of an iCalendar file: its events
	Any      []string `json:"any,omitempty"`      // names of other calendars
	TimeZone string   `json:"timeZone,omitempty"` // IANA name, empty: the trigger's
}

// calendar is a set of excluded seconds.
type calendar interface {
	// at reports whether the second is excluded and until when that surely stays so.
	at(utc int64) (excluded bool, until int64)
}
