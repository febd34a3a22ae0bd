package ledger

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// File is a [Store] on the local disk, for a single instance without Kubernetes. The ledger is the
// file at its path; the other documents lie beside it, named path.catalog and so on.
//
// A document is written beside the old one, synced, and renamed over it, so that a crash or a full
// disk at any point leaves the old one or the new one. What is damaged by other means is found by
// its checksum and never taken for empty. While a File is open no other process opens it.
type File struct {
	path string
	lock *lockFile

	mu     sync.Mutex
	closed bool
	// unsynced: a rename was done and may not be on the disk yet. Nothing is read or written
	// until it is, because whoever reads it relies on it.
	unsynced bool
	docs     map[Name]*fileDocument
}

// fileDocument is what is known of one file.
type fileDocument struct {
	stat    fs.FileInfo // at which version was read or written; nil: unknown
	version Version
	changed chan struct{} // closed by the next write
}

var _ Store = (*File)(nil)

// versionNone is the version of a file that does not exist.
const versionNone Version = "none"

// linked is where a path leads: by whatever links two processes name a file, they compete for one lock.
func linked(path string) string {
	if file, err := filepath.EvalSymlinks(path); err == nil {
		return file
	}
	if folder, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		return filepath.Join(folder, filepath.Base(path))
	}
	return path
}

// OpenFile opens the store whose ledger is the file at path, and locks it until Close. The folder
// must exist; the files need not. It fails with an error that names the process that has it open, or
// a damaged file. Damaged leases do not keep the jobs from their work: whoever loads them is told.
func OpenFile(path string) (*File, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open the ledger file: %w", err)
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("open the ledger file %s: its folder: %w", path, err)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("open the ledger file %s: %s is not a folder", path, filepath.Dir(path))
	}
	path = linked(path)
	// Looked at before anything is left beside it.
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		hint := "name another one"
		if info.IsDir() {
			hint = "name a file in it, such as " + filepath.Join(path, "ledger")
		}
		return nil, fmt.Errorf("open the ledger file %s: it is not a regular file: %s", path, hint)
	}
	lock, err := acquire(path + ".lock")
	if err != nil {
		return nil, fmt.Errorf("open the ledger file %s: %w", path, err)
	}
	f := &File{path: path, lock: lock, docs: make(map[Name]*fileDocument)}
	for _, name := range Names() {
		// What is damaged should be known at the start, not at the first job that is due.
		if _, _, err := f.read(name); err != nil && name != NameLeases {
			return nil, errors.Join(err, lock.release())
		}
	}
	return f, nil
}

// Load implements [Store].
func (f *File) Load(ctx context.Context, name Name) ([]byte, Version, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.ready(ctx); err != nil {
		return nil, "", fmt.Errorf("load %s: %w", name, err)
	}
	return f.read(name)
}

// Replace implements [Store].
func (f *File) Replace(ctx context.Context, name Name, from Version, data []byte) (Version, error) {
	if err := checkSize(name, len(data), name.MaxBytes()); err != nil {
		return "", err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.ready(ctx); err != nil {
		return "", fmt.Errorf("replace %s: %w", name, err)
	}
	current, err := f.current(name)
	if err != nil {
		return "", err
	}
	if current != from {
		return "", fmt.Errorf("replace %s: %w", f.file(name), ErrConflict)
	}
	return f.write(name, data)
}

// Watch implements [Store]. Only this process writes, so it needs no help from the system.
func (f *File) Watch(ctx context.Context, name Name, changed func(Version)) error {
	for {
		f.mu.Lock()
		version, err := f.current(name)
		next := f.document(name).changed
		f.mu.Unlock()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err == nil { // else whoever reads it will be told
			changed(version)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-next:
		}
	}
}

// Exclusive implements [Store].
func (f *File) Exclusive() bool { return true }

// Close lets other processes open the store.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	f.closed = true
	return f.lock.release()
}

// ready reports whether the store may be used. The caller holds f.mu.
func (f *File) ready(ctx context.Context) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case f.closed:
		return fmt.Errorf("%s: %w", f.path, ErrClosed)
	case f.unsynced:
		return f.sync()
	}
	return nil
}

// Path returns where a document is kept, as an absolute path.
func (f *File) Path(name Name) string { return f.file(name) }

// file returns the path of a document.
func (f *File) file(name Name) string {
	if name == NameLedger {
		return f.path
	}
	return f.path + "." + string(name)
}

// document returns what is known of a file. The caller holds f.mu.
func (f *File) document(name Name) *fileDocument {
	doc := f.docs[name]
	if doc == nil {
		doc = &fileDocument{changed: make(chan struct{})}
		f.docs[name] = doc
	}
	return doc
}

// current returns the version of a file, which it reads only when it is not the file that was last
// read or written: people restore backups and remove files under a running process.
func (f *File) current(name Name) (Version, error) {
	doc := f.document(name)
	if stat, err := os.Lstat(f.file(name)); err == nil && doc.stat != nil && os.SameFile(stat, doc.stat) &&
		stat.Size() == doc.stat.Size() && stat.ModTime().Equal(doc.stat.ModTime()) {
		return doc.version, nil
	}
	_, version, err := f.read(name)
	return version, err
}

// read reads and checks a file.
func (f *File) read(name Name) ([]byte, Version, error) {
	doc, path := f.document(name), f.file(name)
	doc.stat = nil
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, versionNone, nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("read %s: %w", name, err)
	}
	defer file.Close()
	stat, err := file.Stat()
	if err != nil {
		return nil, "", fmt.Errorf("read %s: %w", name, err)
	}
	if !stat.Mode().IsRegular() {
		return nil, "", fmt.Errorf("read %s: %s is not a regular file", name, path)
	}
	raw, err := io.ReadAll(io.LimitReader(file, int64(name.MaxBytes())+maxFileHeader+1))
	if err != nil {
		return nil, "", fmt.Errorf("read %s: %w", name, err)
	}
	data, version, err := parseFile(raw, name.MaxBytes())
	if err != nil {
		return nil, "", fmt.Errorf("%s file %s: %w: %w; put back a copy of it, or move it away to start with an empty one",
			name, path, ErrCorrupt, err)
	}
	doc.stat, doc.version = stat, version
	return bytes.Clone(data), version, nil
}

// write replaces a file. The old one stays what it is until the new one is on the disk.
func (f *File) write(name Name, data []byte) (_ Version, err error) {
	if err := f.lock.held(); err != nil {
		return "", fmt.Errorf("write %s: %w", name, err)
	}
	path := f.file(name)
	temp := path + ".tmp" // what a crash leaves of it is written over by the next
	if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("write %s: %w", name, err)
	}
	version := Version(rand.Text())
	stat, err := writeSynced(temp, formatFile(version, data))
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		// Give back what a full disk has too little of. If it is gone, it was renamed after all.
		if removed := os.Remove(temp); errors.Is(removed, fs.ErrNotExist) && stat != nil {
			err = fmt.Errorf("%w: %w", ErrUnknown, err)
		}
		return "", fmt.Errorf("write %s: %w", name, err)
	}
	doc := f.document(name)
	doc.stat, doc.version = stat, version
	close(doc.changed)
	doc.changed = make(chan struct{})
	if err := f.sync(); err != nil {
		return "", fmt.Errorf("write %s: %w: %w", name, ErrUnknown, err)
	}
	return version, nil
}

// sync makes a rename last.
func (f *File) sync() error {
	f.unsynced = true
	folder, err := os.Open(filepath.Dir(f.path))
	if err != nil {
		return err
	}
	if err := errors.Join(folder.Sync(), folder.Close()); err != nil {
		return err
	}
	f.unsynced = false
	return nil
}

// writeSynced makes a new file that only this user can read, and returns once it is on the disk.
func writeSynced(path string, content []byte) (fs.FileInfo, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = file.Write(content)
	if err == nil {
		err = file.Sync()
	}
	stat, statErr := file.Stat()
	return stat, errors.Join(err, statErr, file.Close())
}
