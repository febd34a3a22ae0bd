package source

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// isMountPoint reports whether a file is a mount of its own, as a volume with subPath is: the
// kubelet binds that one file and never updates it. Where that cannot be told it is not.
func isMountPoint(path string) bool {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return false
	}
	mounts, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return false // not Linux
	}
	defer mounts.Close()
	return listsMount(mounts, absolute)
}

// mountEscapes undoes what the kernel does to white space in its table.
var mountEscapes = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// listsMount looks for a mount point, the fifth column, in the format of mountinfo.
func listsMount(table io.Reader, path string) bool {
	lines := bufio.NewScanner(table)
	for lines.Scan() {
		columns := strings.Fields(lines.Text())
		if len(columns) > 4 && mountEscapes.Replace(columns[4]) == path {
			return true
		}
	}
	return false
}
