package ledger

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
)

// Format is the major version of the stored form. A program writes no document whose format is
// higher than its own; members that a newer minor version adds do not raise it.
const Format = 1

// keptWrites is how many write IDs before the last a document remembers, so that a writer whose
// answer was lost still finds its write under those that came after it.
const keptWrites = 8

// The members of the envelope. They come first, and a document's own type must not use them.
const (
	memberFormat  = "format"
	memberWriteID = "writeId"
	memberEarlier = "earlierWrites"
)

// envelope is what every stored document carries beside its own members.
type envelope struct {
	Format  int      `json:"format"`
	WriteID string   `json:"writeId"`
	Earlier []string `json:"earlierWrites,omitempty"` // newest first
}

// next returns the envelope of a write that follows e.
func (e envelope) next(id string) envelope {
	n := envelope{Format: Format, WriteID: id}
	if e.WriteID != "" {
		kept := e.Earlier[:min(len(e.Earlier), keptWrites-1)]
		n.Earlier = append([]string{e.WriteID}, kept...)
	}
	return n
}

// has reports whether the write is among the last that made the document what it is.
func (e envelope) has(id string) bool {
	return id != "" && (e.WriteID == id || slices.Contains(e.Earlier, id))
}

// follows reports whether the document surely came from what it was at earlier by the writes that it
// still names, and no others.
func (e envelope) follows(earlier envelope) bool {
	if earlier.WriteID == "" { // never written then: all writes there ever were are named
		return len(e.Earlier) < keptWrites
	}
	return e.has(earlier.WriteID)
}

// newWriteID returns an identifier that nobody else will choose: 80 random bits.
func newWriteID() string { return rand.Text()[:16] }

// seal puts the members of body, a JSON object, behind the envelope's.
func seal(e envelope, body []byte) ([]byte, error) {
	head, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	if len(body) < 2 || body[0] != '{' {
		return nil, fmt.Errorf("a document is a JSON object, not %.20q", body)
	}
	if rest := bytes.TrimSpace(body[1:]); rest[0] == '}' {
		return head, nil
	}
	out := make([]byte, 0, len(head)+len(body))
	out = append(out, head[:len(head)-1]...)
	out = append(out, ',')
	return append(out, body[1:]...), nil
}

// open takes a stored document apart into its envelope and its own members. It checks the
// envelope alone; whether the rest can be read shows when it is decoded.
func open(data []byte) (envelope, []byte, error) {
	var e envelope
	rest, inFront, err := readEnvelope(data, &e)
	if err == nil && !inFront {
		rest, err = searchEnvelope(data, &e)
	}
	switch {
	case err != nil:
		return envelope{}, nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	case e.Format > Format:
		return e, nil, fmt.Errorf("%w: it is %d, this program reads up to %d; run a program at least as new as the one that wrote it",
			ErrNewerFormat, e.Format, Format)
	case e.Format < 1:
		return envelope{}, nil, fmt.Errorf("%w: it has no member %q", ErrCorrupt, memberFormat)
	}
	return e, rest, nil
}

// readEnvelope reads the envelope from the front of data, where this program writes it, without
// looking at the rest. It reports false where other members come first.
func readEnvelope(data []byte, e *envelope) (rest []byte, inFront bool, err error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, false, fmt.Errorf("it is not a JSON object: %.40q", data)
	}
	var seenFormat, seenID bool
	end := dec.InputOffset()
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return nil, false, err
		}
		var into any
		switch t {
		case memberFormat:
			into, seenFormat = &e.Format, true
		case memberWriteID:
			into, seenID = &e.WriteID, true
		case memberEarlier:
			into = &e.Earlier
		}
		if into == nil {
			break
		}
		if err := dec.Decode(into); err != nil {
			return nil, false, fmt.Errorf("member %q: %w", t, err)
		}
		end = dec.InputOffset()
	}
	if !seenFormat || !seenID {
		return nil, false, nil
	}
	tail := bytes.TrimLeft(data[end:], " \t\r\n,")
	return append([]byte{'{'}, tail...), true, nil
}

// searchEnvelope reads the envelope from wherever its members stand, as after an edit by hand.
func searchEnvelope(data []byte, e *envelope) ([]byte, error) {
	members, err := parseObject(data)
	if err != nil {
		return nil, err
	}
	own := members[:0]
	for _, m := range members {
		var into any
		switch m.key {
		case memberFormat:
			into = &e.Format
		case memberWriteID:
			into = &e.WriteID
		case memberEarlier:
			into = &e.Earlier
		default:
			own = append(own, m)
			continue
		}
		if err := json.Unmarshal(m.value, into); err != nil {
			return nil, fmt.Errorf("member %q: %w", m.key, err)
		}
	}
	return formatObject(own), nil
}
