package schedule

import (
	"archive/zip"
	"bytes"
	_ "embed" // the snapshot below
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// The snapshot is the program's own, so that the same text means the same instants on
// every node, whatever the host or the image has installed.
var (
	//go:embed zoneinfo/zoneinfo.zip
	zoneArchive string
	//go:embed zoneinfo/VERSION
	zoneVersion string
)

// maxZoneFile is far above the largest zone file of the snapshot.
const maxZoneFile = 64 << 10

// ErrUnknownZone reports a time zone that the snapshot does not have.
var ErrUnknownZone = errors.New("unknown time zone")

// ZoneDataVersion returns the release of the IANA time zone database inside the program,
// such as "2025c".
func ZoneDataVersion() string { return strings.TrimSpace(zoneVersion) }

// LoadZone returns the zone of an IANA name such as "Europe/Paris", from the snapshot
// inside the program and never from the host. It refuses "Local", paths and POSIX rules.
// Safe for concurrent use.
func LoadZone(name string) (*time.Location, error) {
	if name == "UTC" {
		return time.UTC, nil
	}
	z, err := loadZone(name)
	if err != nil {
		return nil, err
	}
	return z.location, nil
}

// zones keeps what was loaded: a zone is read once and shared.
var zones struct {
	sync.Mutex
	loaded map[string]*zone
}

func loadZone(name string) (*zone, error) {
	zones.Lock()
	defer zones.Unlock()
	if z, ok := zones.loaded[name]; ok {
		return z, nil
	}
	data, err := zoneFile(name)
	if err != nil {
		return nil, err
	}
	location, err := time.LoadLocationFromTZData(name, data)
	if err != nil {
		return nil, fmt.Errorf("time zone %q: %w", name, err)
	}
	z := newZone(location)
	if zones.loaded == nil {
		zones.loaded = make(map[string]*zone)
	}
	zones.loaded[name] = z
	return z, nil
}

// zoneFiles indexes the snapshot by zone name.
var zoneFiles = sync.OnceValues(func() (map[string]*zip.File, error) {
	archive, err := zip.NewReader(strings.NewReader(zoneArchive), int64(len(zoneArchive)))
	if err != nil {
		return nil, fmt.Errorf("read the time zone snapshot: %w", err)
	}
	files := make(map[string]*zip.File, len(archive.File))
	for _, f := range archive.File {
		if name := f.Name; !strings.HasSuffix(name, "/") && name != "Factory" {
			files[name] = f
		}
	}
	return files, nil
})

func zoneFile(name string) ([]byte, error) {
	files, err := zoneFiles()
	if err != nil {
		return nil, err
	}
	f, ok := files[name]
	if !ok {
		return nil, zoneNameError(name, files)
	}
	r, err := f.Open()
	if err != nil {
		return nil, fmt.Errorf("read time zone %q: %w", name, err)
	}
	defer func() { _ = r.Close() }() // nothing is written
	var data bytes.Buffer
	if _, err := io.Copy(&data, io.LimitReader(r, maxZoneFile)); err != nil {
		return nil, fmt.Errorf("read time zone %q: %w", name, err)
	}
	return data.Bytes(), nil
}
