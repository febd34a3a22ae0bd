//go:build long

package e2e_test

func init() { freezes = 20 }
