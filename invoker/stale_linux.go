package invoker

import (
	"errors"
	"net"
	"syscall"
)

// stale reports whether the peer has closed an idle connection, or has sent something that
// nobody asked for. It peeks without waiting. Over TLS, unread bytes may be session tickets,
// so there only the end of the stream counts.
func stale(c net.Conn, overTLS bool) bool {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return true
	}
	var n int
	var peekErr error
	// Control, not Read: the transport's reader holds the read lock of an idle connection.
	err = raw.Control(func(fd uintptr) {
		var b [1]byte
		n, _, peekErr = syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	})
	switch {
	case err != nil:
		return true
	case errors.Is(peekErr, syscall.EAGAIN), errors.Is(peekErr, syscall.EINTR):
		return false
	case peekErr != nil:
		return true
	default:
		return n == 0 || !overTLS
	}
}
