package app

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasecron/leasecron/engine/ledger"
)

func TestAWatchThatStaysDownIsToldOfOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		w := watches{log: slog.New(slog.NewTextHandler(&out, nil))}
		fail := errors.New("watch configmaps/shop-leasecron-ledger: forbidden")
		w.note(ledger.NameLedger, fail) // an API server that restarts
		w.note(ledger.NameLedger, nil)
		if _, err := w.check(); err != nil || out.Len() != 0 {
			t.Errorf("after a short break: %v, logged %q, want nothing", err, out.String())
		}
		for range 20 {
			w.note(ledger.NameLedger, fail)
			time.Sleep(30 * time.Second)
		}
		if n := strings.Count(out.String(), "level=WARN"); n != 1 || !strings.Contains(out.String(), "forbidden") {
			t.Errorf("ten minutes logged %q, want one warning with the reason", out.String())
		}
		if _, err := w.check(); !errors.Is(err, fail) || !strings.Contains(err.Error(), "ledger not watched for 10m0s") {
			t.Errorf("check() = %v, want what and for how long", err)
		}
		w.note(ledger.NameLedger, nil)
		if _, err := w.check(); err != nil || !strings.Contains(out.String(), "again") {
			t.Errorf("when it is up: %v, logged %q, want it told", err, out.String())
		}
		w.note(ledger.NameCatalog, fail) // and then it stops leading, and watches nothing
		time.Sleep(3 * time.Minute)
		if _, err := w.check(); err != nil {
			t.Errorf("of a sidecar that leads no more: %v, want nothing", err)
		}
	})
}
