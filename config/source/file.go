package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/internal/logkey"
	"github.com/leasecron/leasecron/internal/regularfile"
)

// FileOptions are what a [File] needs. Path is required.
type FileOptions struct {
	Path   string
	Parse  config.Options // Now and Resolve are set for each version
	Logger *slog.Logger   // nil: nothing is logged
	// Poll is how often the file is read although no event asked for it, because events get lost
	// and some file systems send none. 0 means 60 s.
	Poll time.Duration
}

// File follows a jobs document in a file, such as a mounted ConfigMap.
//
// What changes there is a directory: the kubelet writes a new folder and swaps the symbolic link
// ..data, and an editor renames. So the directory is watched, events of any kind count only as a
// hint, and content decides.
type File struct {
	opts  FileOptions
	log   *slog.Logger
	load  loader
	first Update
}

var _ Source = (*File)(nil)

// How long the directory has to be quiet before the file is read, and how long at most a
// directory that is never quiet can delay that.
const (
	quietTime   = 150 * time.Millisecond
	longestWait = 600 * time.Millisecond
)

// NewFile reads the file and returns a source that will follow it. A file that is missing or invalid
// is an error, so that a process can say so before it has started anything.
func NewFile(opts FileOptions) (*File, error) {
	if opts.Path == "" {
		return nil, errors.New("the path of the jobs file is empty")
	}
	opts.Poll = cmp.Or(opts.Poll, time.Minute)
	log := opts.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	f := &File{
		opts: opts,
		log:  log.With(slog.String(logkey.Component, "source")),
		load: loader{origin: "file " + opts.Path, name: opts.Path, opts: opts.Parse},
	}
	f.first, _ = f.load.load(&fileReader{path: opts.Path}, time.Now())
	if f.first.Err != nil {
		return nil, f.first.Err
	}
	return f, nil
}

// Run implements [Source]. A file that has gone or become invalid before it begins is an error; later
// such a version is published as refused.
func (f *File) Run(ctx context.Context, publish func(Update)) error {
	// Watch first, read second: a change in between is then seen.
	watch, err := newDirWatch(f.opts.Path)
	if err != nil {
		f.log.LogAttrs(ctx, slog.LevelWarn, "jobs file is polled only, because it cannot be watched",
			slog.String(logkey.Path, f.opts.Path), slog.Duration("period", f.opts.Poll), logkey.Err(err))
	}
	defer watch.close()

	if changed, ok := f.load.load(&fileReader{path: f.opts.Path}, time.Now()); ok {
		f.first = changed
	}
	if f.first.Err != nil {
		return f.first.Err
	}
	if isMountPoint(f.opts.Path) {
		f.log.LogAttrs(ctx, slog.LevelWarn, "jobs file will not hot-reload: it is a mount of its own (subPath), which never changes; mount the folder",
			slog.String(logkey.Path, f.opts.Path))
	}
	publish(f.first)
	f.first = Update{} // the receiver's now

	poll := time.NewTicker(f.opts.Poll)
	defer poll.Stop()
	quiet := time.NewTimer(time.Hour)
	quiet.Stop()
	defer quiet.Stop()
	var since time.Time // of the first event that has not been acted on
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case _, ok := <-watch.events():
			if !ok {
				watch.close() // from now on only polled
				continue
			}
			now := time.Now()
			if since.IsZero() {
				since = now
			}
			quiet.Reset(min(quietTime, longestWait-now.Sub(since)))
			continue
		case _, ok := <-watch.errors(): // events were lost
			if !ok {
				watch.close()
				continue
			}
			quiet.Reset(quietTime)
			continue
		case <-quiet.C:
		case <-poll.C:
		}
		since = time.Time{}
		if update, ok := f.load.load(&fileReader{path: f.opts.Path}, time.Now()); ok {
			publish(update)
		}
		watch.follow(f.opts.Path)
	}
}

// dirWatch watches the folder that a path names and the one that the file really lies in. A nil
// one has no events.
type dirWatch struct {
	watcher *fsnotify.Watcher
	real    string
	closed  bool
}

func newDirWatch(path string) (*dirWatch, error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	w := &dirWatch{watcher: watcher}
	if err := watcher.Add(filepath.Dir(path)); err != nil {
		w.close()
		return nil, err
	}
	w.follow(path)
	return w, nil
}

// follow watches the folder behind the symbolic links too, as it is now. That it cannot is no
// loss: the swap of a link is an event in the folder of the link, and there is the poll.
func (w *dirWatch) follow(path string) {
	if w == nil || w.closed {
		return
	}
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return
	}
	dir := filepath.Dir(target)
	if dir == w.real {
		return
	}
	if w.real != "" && w.real != filepath.Clean(filepath.Dir(path)) {
		_ = w.watcher.Remove(w.real)
	}
	if w.watcher.Add(dir) == nil {
		w.real = dir
	}
}

func (w *dirWatch) events() <-chan fsnotify.Event {
	if w == nil || w.closed {
		return nil
	}
	return w.watcher.Events
}

func (w *dirWatch) errors() <-chan error {
	if w == nil || w.closed {
		return nil
	}
	return w.watcher.Errors
}

func (w *dirWatch) close() {
	if w != nil && !w.closed {
		w.closed = true
		_ = w.watcher.Close()
	}
}

// fileReader reads the document at a path and files beside it, all of one version: it looks
// through the symbolic links once, however they are swapped meanwhile.
type fileReader struct {
	path string
	real string // what path stood for when the document was read
}

func (r *fileReader) document() ([]byte, error) {
	data, err := r.follow()
	if errors.Is(err, fs.ErrNotExist) {
		// The version that the link named may have been replaced and removed in between.
		data, err = r.follow()
	}
	if err != nil {
		return nil, fmt.Errorf("read the jobs file: %w", err)
	}
	return data, nil
}

func (r *fileReader) follow() (data []byte, err error) {
	if r.real, err = filepath.EvalSymlinks(r.path); err != nil {
		return nil, err
	}
	return readFile(r.real)
}

// replaced reports whether the path stands for another file by now. The kubelet swaps the link
// before it removes the old version, so what is missing from a version that is not replaced has
// never been there.
func (r *fileReader) replaced() bool {
	now, err := filepath.EvalSymlinks(r.path)
	return err == nil && now != r.real
}

// resolve reads a file beside the real document, or else beside the link to it.
func (r *fileReader) resolve(name string) ([]byte, error) {
	if name == "" || name != filepath.Base(name) || strings.HasPrefix(name, ".") {
		return nil, fmt.Errorf("%q is no name of a file beside the document", name)
	}
	data, err := readFile(filepath.Join(filepath.Dir(r.real), name))
	if errors.Is(err, fs.ErrNotExist) && !r.replaced() {
		data, err = readFile(filepath.Join(filepath.Dir(r.path), name))
	}
	return data, err
}

func readFile(path string) ([]byte, error) {
	file, err := regularfile.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readBounded(file, config.LargestDocument)
}
