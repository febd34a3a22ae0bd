package app

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasecron/leasecron/election"
	"github.com/leasecron/leasecron/invoker"
)

// An app that nobody has asked yet is not one that cannot be reached.
func TestWhyTheAppIsNotReachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		probe, err := invoker.NewProbe(invoker.ProbeOptions{Check: func(context.Context) error { return errors.New("refused") }})
		if err != nil {
			t.Fatal(err)
		}
		if err := reachable(probe); !errors.Is(err, election.ErrUndecided) || strings.Contains(err.Error(), "cannot") {
			t.Errorf("before the first answer reachable() = %v, want that it is not known yet", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		_ = probe.Run(ctx)
		if err := reachable(probe); errors.Is(err, election.ErrUndecided) || err == nil || err.Error() != "the app cannot be reached: refused" {
			t.Errorf("after it reachable() = %v, want the reason", err)
		}
	})
}
