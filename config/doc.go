// Package config turns bytes into values: the environment into [Settings], a jobs document into
// a [Document]. What it hands out is checked and has every default filled in; what it refuses it
// refuses whole, with every problem reported at once and each problem naming its place and its
// cure.
//
// It does no I/O, reads no clock and knows no Kubernetes: package config/source finds the bytes.
// Every input counts as hostile: sizes, nesting and counts are bounded before anything is built.
package config
