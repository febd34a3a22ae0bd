package source_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leasecron/leasecron/config/source"
)

func newFile(t *testing.T, path string, change ...func(*source.FileOptions)) *source.File {
	t.Helper()
	opts := source.FileOptions{Path: path}
	for _, c := range change {
		c(&opts)
	}
	f, err := source.NewFile(opts)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// volume is a folder as the kubelet mounts a ConfigMap: each key is a link through ..data, which is
// a link to a folder of one version.
type volume struct {
	dir     string
	version int
}

func newVolume(t *testing.T, files map[string]string) *volume {
	t.Helper()
	v := &volume{dir: t.TempDir()}
	v.swap(t, files)
	for name := range files {
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(v.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return v
}

// swap publishes a version as the kubelet does: a new folder, a rename of the link, and the old
// folder is gone.
func (v *volume) swap(t *testing.T, files map[string]string) {
	t.Helper()
	old, _ := os.Readlink(filepath.Join(v.dir, "..data"))
	v.flip(t, v.prepare(t, files))
	if old != "" {
		if err := os.RemoveAll(filepath.Join(v.dir, old)); err != nil {
			t.Fatal(err)
		}
	}
}

// prepare writes a version and returns a link to it that can take the place of ..data.
func (v *volume) prepare(t *testing.T, files map[string]string) (link string) {
	t.Helper()
	v.version++
	name := fmt.Sprintf("..2026_11_30_%06d", v.version)
	if err := os.Mkdir(filepath.Join(v.dir, name), 0o700); err != nil {
		t.Fatal(err)
	}
	for file, text := range files {
		write(t, filepath.Join(v.dir, name, file), text)
	}
	link = filepath.Join(v.dir, name+"_tmp")
	if err := os.Symlink(name, link); err != nil {
		t.Fatal(err)
	}
	return link
}

func (v *volume) flip(t *testing.T, link string) {
	t.Helper()
	if err := os.Rename(link, filepath.Join(v.dir, "..data")); err != nil {
		t.Fatal(err)
	}
}

func (v *volume) path() string { return filepath.Join(v.dir, "jobs.yaml") }

func TestFileThatCannotBegin(t *testing.T) {
	dir := t.TempDir()
	invalid := filepath.Join(dir, "invalid.yaml")
	write(t, invalid, "jobs: [{name: a}]\n")
	tests := map[string]struct{ path, want string }{
		"it is missing":     {filepath.Join(dir, "jobs.yaml"), "no such file"},
		"its folder is":     {filepath.Join(dir, "etc", "jobs.yaml"), "no such file"},
		"it is a folder":    {dir, "is not a regular file"},
		"it is no document": {invalid, "invalid.yaml:1:8: jobs[0] (job a): path is missing"},
		"it never ends":     {"/dev/zero", "is not a regular file"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := source.NewFile(source.FileOptions{Path: tt.path})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("NewFile: %v, want an error with %q", err, tt.want)
			}
		})
	}
}

func TestFileThatGoesBeforeItBegins(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.yaml")
	write(t, path, document("one"))
	f := newFile(t, path)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	err := f.Run(t.Context(), func(u source.Update) { t.Errorf("published %v", u) })
	if err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("Run() = %v, want that there is no such file", err)
	}
}

func TestFileThatChangesBeforeItBegins(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.yaml")
	write(t, path, document("one"))
	f := newFile(t, path)
	write(t, path, document("two"))
	wantNames(t, follow(t, f).next(t, 1), "two")
}

func TestFileChanges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.yaml")
	write(t, path, document("one"))
	w := follow(t, newFile(t, path))
	first := w.next(t, 1)
	wantNames(t, first, "one")
	if first.Origin != "file "+path || first.At.IsZero() || len(first.Hash) != 64 {
		t.Errorf("the update does not say what it is: %+v", first)
	}

	began := time.Now()
	write(t, path, document("two")) // in place, as many editors do
	wantNames(t, w.next(t, 2), "two")
	if took := time.Since(began); took > time.Second {
		t.Errorf("a change took %v, want less than a second", took)
	}

	beside := path + "~"
	write(t, beside, document("three")) // by a rename, as others do
	if err := os.Rename(beside, path); err != nil {
		t.Fatal(err)
	}
	wantNames(t, w.next(t, 3), "three")

	write(t, path, "jobs: [{name: four}]\n")
	if u := w.next(t, 4); u.Err == nil || !strings.Contains(u.Err.Error(), "path is missing") {
		t.Errorf("an invalid version was published as %v", u)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if u := w.next(t, 5); u.Err == nil || !strings.Contains(u.Err.Error(), "no such file") {
		t.Errorf("a missing file was published as %v", u)
	}
	write(t, path, document("three")) // as before the trouble: it has to be said that it is over
	wantNames(t, w.next(t, 6), "three")
}

func TestFileSwaps(t *testing.T) { // R166
	v := newVolume(t, map[string]string{"jobs.yaml": document("one")})
	w := follow(t, newFile(t, v.path()))
	wantNames(t, w.next(t, 1), "one")
	for n, name := range []string{"two", "three", "four"} { // the watch survives the folder that goes
		v.swap(t, map[string]string{"jobs.yaml": document(name)})
		wantNames(t, w.next(t, n+2), name)
	}
}

func TestFileLinkRewritten(t *testing.T) { // R166
	v := newVolume(t, map[string]string{"jobs.yaml": document("one")})
	w := follow(t, newFile(t, v.path()))
	wantNames(t, w.next(t, 1), "one")
	next := filepath.Join(v.dir, "..next")
	if err := os.Mkdir(next, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(next, "jobs.yaml"), document("two"))
	data := filepath.Join(v.dir, "..data")
	if err := os.Remove(data); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("..next", data); err != nil {
		t.Fatal(err)
	}
	for n := 2; ; n++ { // that the link was gone for a moment may be seen or not
		if u := w.next(t, n); u.Err == nil {
			wantNames(t, u, "two")
			break
		}
	}
}

// Where no events come, content is found by looking.
func TestFileWithoutEvents(t *testing.T) { // R166
	v := newVolume(t, map[string]string{"jobs.yaml": document("one")})
	link := filepath.Join(t.TempDir(), "jobs.yaml") // in another folder, two links away
	if err := os.Symlink(v.path(), link); err != nil {
		t.Fatal(err)
	}
	w := follow(t, newFile(t, link, func(o *source.FileOptions) { o.Poll = 100 * time.Millisecond }))
	wantNames(t, w.next(t, 1), "one")
	v.swap(t, map[string]string{"jobs.yaml": document("two")})
	wantNames(t, w.next(t, 2), "two")
}

func TestFileSwappedThreeTimesIsReadOnce(t *testing.T) { // R168
	v := newVolume(t, map[string]string{"jobs.yaml": document("one")})
	w := follow(t, newFile(t, v.path()))
	wantNames(t, w.next(t, 1), "one")
	var links []string
	for _, name := range []string{"two", "three", "four"} {
		links = append(links, v.prepare(t, map[string]string{"jobs.yaml": document(name)}))
	}
	for _, link := range links {
		v.flip(t, link)
	}
	wantNames(t, w.next(t, 2), "four")
	// A last one, to see that nothing came in between.
	v.swap(t, map[string]string{"jobs.yaml": document("five")})
	wantNames(t, w.next(t, 3), "five")
}

const (
	calendarOf = "calendars: {feast: {ics: feast.ics}}\njobs: [{name: %s, path: /x, schedule: {cron: '0 9 * * *', calendar: feast}}]\n"
	icsOf      = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:x\r\nBEGIN:VEVENT\r\nUID:1\r\nDTSTAMP:20260101T000000Z\r\nDTSTART;VALUE=DATE:%s\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
)

func TestFileAndWhatItRefersToAreOfOneVersion(t *testing.T) { // R168
	version := func(n int) map[string]string {
		return map[string]string{
			"jobs.yaml": fmt.Sprintf(calendarOf, fmt.Sprintf("v%02d", n)),
			"feast.ics": fmt.Sprintf(icsOf, fmt.Sprintf("202612%02d", n)),
		}
	}
	v := newVolume(t, version(1))
	w := follow(t, newFile(t, v.path(), func(o *source.FileOptions) { o.Poll = 5 * time.Millisecond }))
	w.next(t, 1)
	for n := 2; n <= 20; n++ {
		v.swap(t, version(n))
		w.next(t, n/4+1) // some of them are seen, whichever
	}
	for n := 1; ; n++ {
		u := w.next(t, n)
		if u.Err != nil {
			continue // it was swapped while it was read, and will be read again
		}
		name := names(u)
		ics := u.Document.Jobs[0].Calendars["feast"].ICS
		if day := strings.TrimPrefix(name, "v"); !strings.Contains(ics, "202612"+day) {
			t.Fatalf("job %s has the calendar of another version:\n%s", name, ics)
		}
		if name == "v20" {
			break
		}
	}
}

func TestFileOfWhichOnlyTheCalendarChanges(t *testing.T) {
	dir := t.TempDir()
	path, ics := filepath.Join(dir, "jobs.yaml"), filepath.Join(dir, "feast.ics")
	write(t, path, fmt.Sprintf(calendarOf, "a"))
	write(t, ics, fmt.Sprintf(icsOf, "20261224"))
	w := follow(t, newFile(t, path))
	before := w.next(t, 1)
	write(t, ics, fmt.Sprintf(icsOf, "20261225"))
	after := w.next(t, 2)
	if after.Err != nil || before.Hash == after.Hash || !strings.Contains(after.Document.Jobs[0].Calendars["feast"].ICS, "20261225") {
		t.Errorf("published %+v after the calendar changed", after)
	}
}

func TestFileRefersToNothingOutsideItsFolder(t *testing.T) {
	for _, name := range []string{"/etc/passwd", "../jobs.yaml", ".hidden", "..", "a/b.ics"} {
		path := filepath.Join(t.TempDir(), "jobs.yaml")
		write(t, path, fmt.Sprintf("calendars: {c: {ics: '%s'}}\njobs: []\n", name))
		u := source.ReadFile(path, source.FileOptions{}.Parse, time.Now())
		if u.Err == nil || !strings.Contains(u.Err.Error(), "is no name of a file beside the document") {
			t.Errorf("ics: %s gives %v", name, u.Err)
		}
	}
}

func TestFileIsPublishedOncePerContent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.yaml")
	write(t, path, document("one"))
	w := follow(t, newFile(t, path, func(o *source.FileOptions) { o.Poll = 5 * time.Millisecond }))
	w.next(t, 1)
	for range 5 {
		write(t, filepath.Join(filepath.Dir(path), "other"), "x") // an event that changes nothing
		write(t, path, document("one"))
	}
	write(t, path, document("two"))
	last := w.next(t, 2)
	for last.Err != nil { // a file that was caught half-written
		last = w.next(t, w.count()+1)
	}
	wantNames(t, last, "two")
}

func TestSubPathMountIsFound(t *testing.T) { // R167
	const table = `640 621 0:50 / /proc rw,nosuid shared:5 - proc proc rw
700 640 8:1 /var/lib/kubelet/pods/x/volumes/jobs /etc/jobs ro,relatime - ext4 /dev/sda1 rw
701 640 8:1 /var/lib/kubelet/pods/x/volume-subpaths/jobs/sidecar/0 /etc/leasecron/my\040jobs.yaml ro,relatime - ext4 /dev/sda1 rw
`
	for path, want := range map[string]bool{
		"/etc/leasecron/my jobs.yaml": true,
		"/etc/jobs/jobs.yaml":         false, // in a mounted folder, as it should be
		"/etc/leasecron":              false,
	} {
		if got := source.ListsMount(strings.NewReader(table), path); got != want {
			t.Errorf("%q is a mount of its own: %t, want %t", path, got, want)
		}
	}
}

func TestOrdinaryFileDrawsNoWarning(t *testing.T) { // R167
	var log bytes.Buffer
	path := filepath.Join(t.TempDir(), "jobs.yaml")
	write(t, path, document("one"))
	ctx, cancel := context.WithCancel(t.Context())
	f := newFile(t, path, func(o *source.FileOptions) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	if err := f.Run(ctx, func(source.Update) { cancel() }); err == nil {
		t.Error("Run() = nil, want the cause of its end")
	}
	if log.Len() > 0 {
		t.Errorf("a file that reloads drew a warning: %s", &log)
	}
}
