// Package source finds the job definitions, a ConfigMap or a file, follows their changes, and
// publishes each version that it sees: the document, or why it was refused.
//
// A refused version changes nothing: the receiver keeps the last good one in force. Versions are
// published in order, one at a time, and the same content is published once.
package source

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"slices"
	"time"

	"github.com/leasecron/leasecron/config"
)

// Source publishes job definitions.
type Source interface {
	// Run follows the definitions until ctx ends, and returns its cause. It returns earlier, with
	// the reason, only where there is nothing that can be waited for: a file that is missing, or
	// invalid, when it begins. publish is called by one goroutine at a time and may take a while.
	Run(ctx context.Context, publish func(Update)) error
}

// Update is one version of the definitions as it was seen.
type Update struct {
	Document config.Document // empty if Err is set
	Warnings []config.Warning
	Err      error // why the version is refused, or why there is none
	// Hash is the SHA-256, in hex, of the document and of what it refers to; empty if there is none.
	Hash   string
	At     time.Time // when it was seen
	Origin string    // "file jobs.yaml", "ConfigMap shop/shop-jobs key jobs.yaml"
}

// part is a named piece of what was read: the document, or a file that it refers to.
type part struct {
	name string
	data []byte
}

// hashParts hashes names and contents so that no two sets of parts look alike.
func hashParts(parts []part) string {
	h := sha256.New()
	for _, p := range parts {
		for _, field := range [][]byte{[]byte(p.name), p.data} {
			sum := sha256.Sum256(field)
			h.Write(sum[:])
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// reader reads the definitions once.
type reader interface {
	// document returns the bytes of the document.
	document() ([]byte, error)
	// resolve returns what the document refers to by name.
	resolve(name string) ([]byte, error)
}

// loader turns what readers read into updates, and tells news from repetition.
type loader struct {
	origin string
	name   string // what errors call the document
	opts   config.Options

	refs []string // what the last document referred to
	hash string   // of the last version; empty after a failure to read
	err  string   // of the last update
	told bool     // whether there was one
}

// load reads and parses; ok is false where that is what the last update said already.
func (l *loader) load(r reader, now time.Time) (u Update, ok bool) {
	u = Update{At: now, Origin: l.origin}
	data, err := r.document()
	if err != nil {
		l.refs = nil
		u.Err = err
		return u, l.news(u)
	}
	// The references of the last version tell whether anything has changed; a version that refers
	// to more differs in the document too.
	if hash := hashParts(l.parts(data, r)); l.told && hash == l.hash {
		return u, false
	}
	opts := l.opts
	opts.Now = now
	var refs []string
	opts.Resolve = func(name string) ([]byte, error) {
		if !slices.Contains(refs, name) {
			refs = append(refs, name)
		}
		return r.resolve(name)
	}
	u.Document, u.Warnings, u.Err = config.Parse(l.name, data, opts)
	slices.Sort(refs)
	l.refs = refs
	u.Hash = hashParts(l.parts(data, r))
	return u, l.news(u)
}

// parts are the document and what it referred to when it was last parsed. What cannot be read
// counts as empty: that it is missing is the parser's to say.
func (l *loader) parts(data []byte, r reader) []part {
	parts := []part{{name: l.name, data: data}}
	for _, ref := range l.refs {
		content, err := r.resolve(ref)
		if err != nil {
			content = nil
		}
		parts = append(parts, part{name: ref, data: content})
	}
	return parts
}

// fail is an update that says why there is nothing to load.
func (l *loader) fail(err error, now time.Time) (u Update, ok bool) {
	u = Update{At: now, Origin: l.origin, Err: err}
	return u, l.news(u)
}

// news remembers the update and reports whether it says anything that the last did not.
func (l *loader) news(u Update) bool {
	text := ""
	if u.Err != nil {
		text = u.Err.Error()
	}
	same := l.told && u.Hash == l.hash && text == l.err
	l.told, l.hash, l.err = true, u.Hash, text
	return !same
}

// readBounded reads at most limit bytes and one more, which tells the parser that there were more.
func readBounded(r io.Reader, limit int64) ([]byte, error) {
	return io.ReadAll(io.LimitReader(r, limit+1))
}

// ReadFile reads a jobs document and what it refers to once, as a [File] would at that time.
func ReadFile(path string, opts config.Options, now time.Time) Update {
	l := loader{origin: "file " + path, name: path, opts: opts}
	u, _ := l.load(&fileReader{path: path}, now)
	return u
}
