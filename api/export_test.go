package api

import (
	"net"
	"net/http"
	"time"
)

// The bounds that tests go to.
const (
	MaxConnections = maxConnections
	MaxUrgent      = maxUrgent
	MaxAcquires    = maxAcquires
	MaxDrains      = maxDrains
)

// SetTimeouts changes how long the API's connections may take for a request and for its answer.
func (s *Server) SetTimeouts(d time.Duration) {
	s.api.server.ReadTimeout, s.api.server.WriteTimeout = d, d
}

// KeysAt is keysAt.
var KeysAt = keysAt

// Bounded makes a server whose listener has room for that many connections.
func Bounded(l net.Listener, most int, h http.Handler) (*http.Server, net.Listener) {
	return &http.Server{Handler: trackRequests(h), ConnContext: withConn, ReadHeaderTimeout: readHeaderTimeout}, limitListener(l, most)
}
