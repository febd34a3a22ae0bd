package kube

import "time"

// SetWatchSilence changes how long c lets a watch be silent before it reopens it.
func (c *Client) SetWatchSilence(d time.Duration) { c.watch.silence = d }
