package config

import "time"

// defaultTimeout is that of a job which names none, nor do its defaults.
const defaultTimeout = 30 * time.Second

// asynchronous reads whether the app may answer before the work is done, and how long it may then
// be silent.
func (d *decoder) asynchronous(o *object, job *Job) {
	job.Async, _ = o.boolean("async")
	if job.Async && job.Timeout == defaultTimeout && !o.has("timeout") {
		d.warn(o.placeOf("async"), "and its timeout is the default of %s, which counts until the app says that it is done: name the timeout", shortDuration(defaultTimeout))
	}
	v, ok := o.duration("heartbeatTimeout", time.Second, longestWait)
	switch {
	case !ok:
	case !job.Async:
		d.fail(o.placeOf("heartbeatTimeout"), "has a meaning only with async: true")
	case v >= job.Timeout:
		d.fail(o.placeOf("heartbeatTimeout"), "is %s, and timeout, which ends the run whatever the app says, is %s (want a shorter one)", shortDuration(v), shortDuration(job.Timeout))
	default:
		job.HeartbeatTimeout = v
	}
}
