package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// Fingerprint is the SHA-256 of the job's JSON form, as 64 hex digits: equal for jobs that mean
// the same, whatever order, defaults or comments their documents had.
func (j Job) Fingerprint() string {
	text, err := json.Marshal(j)
	if err != nil { // only a hand-made job can hold data that is no JSON
		panic("config: job " + j.Name + " cannot be written as JSON: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
