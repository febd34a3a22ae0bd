// Package app is a scripted application for tests: it takes callbacks on a real loopback
// socket, records each request that arrives, and answers as it was told to, well or badly.
//
// What it records is what the wire brought: one [Call] for each request whose header arrived,
// also when the script then breaks the connection. Counting calls is counting executions.
package app
