package invoker

import (
	"net/http"
	"time"
)

// letter is what one try sends. The next try gets a new one: it is fired at another time, which the
// signature covers, and the transport may still be reading that of the try before.
type letter struct {
	runID  string
	signer *Signer // nil: not signed

	header http.Header
	body   []byte
}

// refire makes the letter of the next try.
func (l *letter) refire(at time.Time) {
	l.body = refire(l.body, at)
	l.header = l.header.Clone()
	l.sign(at)
}

func (l *letter) sign(at time.Time) {
	if l.signer != nil {
		sign(l.header, l.signer.keys(), l.runID, at, l.body)
	}
}
