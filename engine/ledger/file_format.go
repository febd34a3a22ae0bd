package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
)

// A file is one line and the document:
//
//	leasecron-document 1 version=<26 letters and digits> bytes=<n> sha256=<64 hex digits>
//	{"format":1,…}
//
// The checksum covers the version, the length and the document, so that a file is either what was
// written at once or known to be damaged. The document itself stays readable: tail -n +2 FILE | jq.
const fileMagic = "leasecron-document 1 "

// maxFileHeader bounds the first line.
const maxFileHeader = 256

func formatFile(version Version, data []byte) []byte {
	head := fileHead(version, len(data))
	out := make([]byte, 0, maxFileHeader+len(data))
	out = fmt.Appendf(out, "%s%s sha256=%s\n", fileMagic, head, fileSum(head, data))
	return append(out, data...)
}

func fileHead(version Version, size int) string {
	return fmt.Sprintf("version=%s bytes=%d", version, size)
}

func fileSum(head string, data []byte) string {
	sum := sha256.New()
	sum.Write([]byte(head + "\n"))
	sum.Write(data)
	return hex.EncodeToString(sum.Sum(nil))
}

// parseFile takes a file apart and checks it.
func parseFile(raw []byte, limit int) ([]byte, Version, error) {
	if len(raw) == 0 {
		return nil, "", errors.New("it has no content")
	}
	line, data, ok := bytes.Cut(raw, []byte{'\n'})
	if !ok || len(line) > maxFileHeader || !bytes.HasPrefix(line, []byte(fileMagic)) {
		return nil, "", fmt.Errorf("it does not begin with %q", fileMagic)
	}
	var (
		version Version
		size    int
		sum     string
	)
	if _, err := fmt.Sscanf(string(line[len(fileMagic):]), "version=%s bytes=%d sha256=%s", &version, &size, &sum); err != nil {
		return nil, "", fmt.Errorf("its first line: %w", err)
	}
	switch {
	case size > limit || len(data) > limit:
		return nil, "", fmt.Errorf("it is larger than %d bytes", limit)
	case size != len(data):
		return nil, "", fmt.Errorf("it has %d bytes where its first line says %d", len(data), size)
	case sum != fileSum(fileHead(version, size), data):
		return nil, "", errors.New("its checksum does not match: it was damaged, or changed by hand")
	}
	return data, version, nil
}
