package api

import "time"

// SetTimeouts changes how long the API's connections may take for a request and for its answer.
func (s *Server) SetTimeouts(d time.Duration) {
	s.api.server.ReadTimeout, s.api.server.WriteTimeout = d, d
}

// KeysAt is keysAt.
var KeysAt = keysAt
