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
	UID    string    // of the ConfigMap; empty: there is none
}

// part is what the document refers to by a name.
type part struct {
	data []byte
	err  error
}

// reader reads one version of the definitions.
type reader interface {
	// document returns the bytes of the newest version, and makes it the one that is read.
	document() ([]byte, error)
	// resolve returns what the document refers to by name.
	resolve(name string) ([]byte, error)
	// replaced reports whether there is a newer version by now, so that an error means little.
	replaced() bool
}

// version is what was read of one version: each part once, so that what was hashed is what was
// parsed.
type version struct {
	reader reader
	doc    []byte
	parts  map[string]part
}

func readVersion(r reader) (*version, error) {
	doc, err := r.document()
	if err != nil {
		return nil, err
	}
	return &version{reader: r, doc: doc, parts: make(map[string]part)}, nil
}

func (v *version) resolve(name string) ([]byte, error) {
	p, ok := v.parts[name]
	if !ok {
		p.data, p.err = v.reader.resolve(name)
		v.parts[name] = p
	}
	return p.data, p.err
}

// hash is that of the document and of the named parts. A part that cannot be read counts as empty:
// that it is missing is the parser's to say.
func (v *version) hash(refs []string) string {
	h := sha256.New()
	add := func(field []byte) {
		sum := sha256.Sum256(field) // of equal length, so that fields cannot run into each other
		h.Write(sum[:])
	}
	add(v.doc)
	for _, ref := range refs {
		data, err := v.resolve(ref)
		if err != nil {
			data = nil
		}
		add([]byte(ref))
		add(data)
	}
	return hex.EncodeToString(h.Sum(nil))
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
	// A version that is replaced while it is read looks broken and is not. More than a few times in
	// a row is no coincidence.
	for range 3 {
		u, ok = l.read(r, now)
		if u.Err == nil || !r.replaced() {
			break
		}
	}
	return u, ok && l.news(u)
}

// read makes an update of the newest version; ok is false where that is the last one, which is not
// parsed again.
func (l *loader) read(r reader, now time.Time) (u Update, ok bool) {
	u = Update{At: now, Origin: l.origin}
	v, err := readVersion(r)
	if err != nil {
		u.Err = err
		return u, true
	}
	// What the last version referred to tells whether anything has changed: one that refers to
	// more differs in the document too.
	if l.told && v.hash(l.refs) == l.hash {
		return u, false
	}
	var refs []string
	opts := l.opts
	opts.Now = now
	opts.Resolve = func(name string) ([]byte, error) {
		if !slices.Contains(refs, name) {
			refs = append(refs, name)
		}
		return v.resolve(name)
	}
	u.Document, u.Warnings, u.Err = config.Parse(l.name, v.doc, opts)
	slices.Sort(refs)
	l.refs = refs
	u.Hash = v.hash(refs)
	return u, true
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
