package run

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"github.com/google/uuid"
)

// OccurrenceID derives the identifier of an occurrence: 32 lower-case hex digits, the same
// whoever fires it, however often it is retried, across restarts and new versions.
//
// Request is empty for a scheduled occurrence; a manual run, a backfill or a rerun adds the
// identifier of its request; an occurrence of scope instance adds its node.
func OccurrenceID(namespace, app string, key Key, scheduledAt time.Time, request string) string {
	h := sha256.New()
	for _, part := range []string{
		"leasecron occurrence v1", namespace, app, key.Job, key.Trigger,
		scheduledAt.UTC().Format("2006-01-02T15:04:05.000000Z"), request,
	} {
		// No part can hold a zero byte, so the parts cannot run into each other.
		h.Write([]byte(strings.ReplaceAll(part, "\x00", "")))
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// NewID returns a new run identifier: a UUIDv7 (RFC 9562) as 32 lower-case hex digits.
func NewID() string {
	id, err := uuid.NewV7()
	if err != nil { // the system's random source is broken: nothing safe can be done
		panic("run: no random source: " + err.Error())
	}
	return hex.EncodeToString(id[:])
}
