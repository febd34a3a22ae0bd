package ledger

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
)

// compressionLevel is fixed, so that equal documents make equal objects.
const compressionLevel = 6

func compress(data []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, compressionLevel)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// decompress stops at limit: a small object must not be able to fill the memory.
func decompress(small []byte, limit int) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(small))
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > limit:
		return nil, fmt.Errorf("it has more than %d bytes when it is unpacked", limit)
	}
	return data, nil
}
