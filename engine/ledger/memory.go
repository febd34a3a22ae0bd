package ledger

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"sync"
)

// Memory is a [Store] that ends with its process: for tests and quick starts.
type Memory struct {
	shared bool

	mu     sync.Mutex
	writes uint64
	docs   map[Name]*memoryDocument
}

type memoryDocument struct {
	data    []byte
	version Version
	changed chan struct{} // closed by the next write
}

var _ Store = (*Memory)(nil)

// NewMemory returns an empty store that one node has for itself.
func NewMemory() *Memory {
	return &Memory{docs: make(map[Name]*memoryDocument)}
}

// NewSharedMemory returns an empty store that several nodes of one process use together, each
// of which may outlive the others: it is not exclusive.
func NewSharedMemory() *Memory {
	m := NewMemory()
	m.shared = true
	return m
}

// document returns the document, made on first use. The caller holds m.mu.
func (m *Memory) document(name Name) *memoryDocument {
	doc := m.docs[name]
	if doc == nil {
		doc = &memoryDocument{version: m.nextVersion(), changed: make(chan struct{})}
		m.docs[name] = doc
	}
	return doc
}

func (m *Memory) nextVersion() Version {
	m.writes++
	return Version(strconv.FormatUint(m.writes, 10))
}

// Load implements [Store].
func (m *Memory) Load(ctx context.Context, name Name) ([]byte, Version, error) {
	if ctx.Err() != nil {
		return nil, "", fmt.Errorf("load %s: %w", name, context.Cause(ctx))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	doc := m.document(name)
	return bytes.Clone(doc.data), doc.version, nil
}

// Replace implements [Store].
func (m *Memory) Replace(ctx context.Context, name Name, from Version, data []byte) (Version, error) {
	if ctx.Err() != nil {
		return "", fmt.Errorf("replace %s: %w", name, context.Cause(ctx))
	}
	if err := checkSize(name, len(data), name.MaxBytes()); err != nil {
		return "", err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	doc := m.document(name)
	if doc.version != from {
		return "", fmt.Errorf("replace %s: %w", name, ErrConflict)
	}
	doc.data, doc.version = bytes.Clone(data), m.nextVersion()
	close(doc.changed)
	doc.changed = make(chan struct{})
	return doc.version, nil
}

// Watch implements [Store].
func (m *Memory) Watch(ctx context.Context, name Name, changed func(Version)) error {
	for {
		m.mu.Lock()
		doc := m.document(name)
		version, next := doc.version, doc.changed
		m.mu.Unlock()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		changed(version)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-next:
		}
	}
}

// Exclusive implements [Store]: true unless the store was made to be shared.
func (m *Memory) Exclusive() bool { return !m.shared }

// Close implements [Store]. There is nothing to release, and what is stored stays readable, so
// that in a test one node can leave a shared store and another go on.
func (m *Memory) Close() error { return nil }

func checkSize(name Name, size, limit int) error {
	if size > limit {
		return fmt.Errorf("%s of %d bytes: %w (at most %d)", name, size, ErrTooLarge, limit)
	}
	return nil
}
