package config

import "slices"

// foreignKeys are names that people bring along from Kubernetes' CronJob and from other schedulers.
var foreignKeys = []struct {
	keys []string
	here string // the hint holds where this key may stand
	want string
}{
	{[]string{"url", "uri", "endpoint"}, "path", "want target, the base URL, and path"},
	{[]string{"url", "uri", "endpoint", "baseUrl", "baseURL"}, "target", "want target, the base URL"},
	{[]string{"retries", "backoffLimit", "maxRetry", "retryLimit", "retryCount"}, "maxRetries", "did you mean maxRetries?"},
	{[]string{"retries", "backoffLimit", "maxRetry", "retryLimit", "retryCount"}, "retry", "want retry: {maxRetries: …}"},
	{[]string{"tz", "timezone", "time_zone", "zone"}, "timeZone", "did you mean timeZone?"},
	{[]string{"concurrencyPolicy"}, "overlap", "want overlap: serial, skip, parallel or replace"},
	{[]string{"startingDeadlineSeconds"}, "misfire", "want misfire, whose window says how late a run may start"},
	{[]string{"startingDeadlineSeconds"}, "triggers", "want misfire of a trigger, in jobs[].triggers[], whose window says how late a run may start"},
	{[]string{"activeDeadlineSeconds"}, "deadline", "want timeout for one attempt, deadline for all of them"},
	{[]string{"suspend", "suspended", "disabled", "enabled"}, "paused", "want paused: true or false"},
	{[]string{"suspend", "suspended", "disabled", "enabled"}, "priority", "want paused of the job"},
	{[]string{"successfulJobsHistoryLimit", "failedJobsHistoryLimit"}, "historyLimit", "did you mean historyLimit?"},
}

// foreignHint says what a key from elsewhere is called here; empty: it is none, or has no counterpart among
// the known ones.
func foreignHint(key string, known []string) string {
	for _, f := range foreignKeys {
		if slices.Contains(f.keys, key) && slices.Contains(known, f.here) {
			return " (" + f.want + ")"
		}
	}
	return ""
}
