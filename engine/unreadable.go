package engine

import (
	"log/slog"
	"slices"
	"sync"
)

// Documents are the names by which events and metrics call what the replicas share.
func Documents() []string { return []string{"ledger", "catalog", "history"} }

// unreadable is where the documents have records that this program cannot make sense of, as last seen.
type unreadable struct {
	mu    sync.Mutex
	where map[string][]string // by document
}

// noteUnreadable takes note of what a document has. A leader tells what is new to it.
func (e *Engine) noteUnreadable(document string, where []string) {
	u := &e.unreadable
	u.mu.Lock()
	same := slices.Equal(u.where[document], where)
	if !same {
		if u.where == nil {
			u.where = make(map[string][]string)
		}
		u.where[document] = where
	}
	u.mu.Unlock()
	if !same && e.view.Load().leading {
		e.tellUnreadable(document, where)
	}
}

// tellAllUnreadable tells at the beginning of a term what there is.
func (e *Engine) tellAllUnreadable() {
	for _, document := range Documents() {
		e.unreadable.mu.Lock()
		where := e.unreadable.where[document]
		e.unreadable.mu.Unlock()
		e.tellUnreadable(document, where)
	}
}

func (e *Engine) tellUnreadable(document string, where []string) {
	if len(where) == 0 {
		return
	}
	e.log.Error("records cannot be read and are kept as they are: the jobs of those that say what is in flight or decided stand still until they are repaired or removed",
		slog.String("document", document), slog.Any("records", where[:min(len(where), 10)]), slog.Int("all", len(where)))
	e.emit(Unreadable{Document: document, Records: where})
}

// count says how many unreadable records each document has.
func (u *unreadable) count() map[string]int {
	u.mu.Lock()
	defer u.mu.Unlock()
	n := make(map[string]int, len(u.where))
	for document, where := range u.where {
		n[document] = len(where)
	}
	return n
}
