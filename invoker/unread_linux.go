package invoker

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// tcpClosed is the state of a TCP connection that was reset (TCP_CLOSE in the kernel's tcp_states.h).
const tcpClosed = 7

// acknowledged is how many bytes the peer's kernel has said to have received, and whether the
// connection was reset. It is known of TCP alone.
func acknowledged(c net.Conn) (bytes uint64, reset, known bool) {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return 0, false, false
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return 0, false, false
	}
	var info *unix.TCPInfo
	var infoErr error
	// Control, for the reason that stale gives.
	err = raw.Control(func(fd uintptr) {
		info, infoErr = unix.GetsockoptTCPInfo(int(fd), syscall.IPPROTO_TCP, unix.TCP_INFO)
	})
	if err != nil || infoErr != nil {
		return 0, false, false
	}
	return info.Bytes_acked, info.State == tcpClosed, true
}
