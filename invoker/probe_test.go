package invoker_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasecron/leasecron/invoker"
	"github.com/leasecron/leasecron/test/app"
)

// R129, R139, R140: whether the app is there is known before a run is risked on it.
func TestProbeDecidesFromItsAnswers(t *testing.T) {
	// One letter a second: u answered, d failed, h hung. Want is what Reachable says half a
	// second after each, before the next is asked.
	tests := map[string]struct{ answers, want string }{
		"up at the first success":                {"u", "u"},
		"down until the first success":           {"dddddu", "dddddu"},
		"one failure is no outage":               {"uduuddu", "uuuuuuu"},
		"down after three failures in a row":     {"uddddu", "uuudd" + "u"},
		"a success in between starts anew":       {"udduddud", "uuuuuuuu"},
		"a question that hangs fails in its own": {"uhhhu", "uuuu" + "u"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				var n int
				p, err := invoker.NewProbe(invoker.ProbeOptions{Check: func(ctx context.Context) error {
					answer := tt.answers[min(n, len(tt.answers)-1)]
					n++
					switch answer {
					case 'u':
						return nil
					case 'h':
						<-ctx.Done()
						return ctx.Err()
					default:
						return errors.New("no")
					}
				}})
				if err != nil {
					t.Fatal(err)
				}
				if p.Reachable() {
					t.Error("reachable before the first answer")
				}
				done := make(chan error, 1)
				go func() { done <- p.Run(ctx) }()
				var got strings.Builder
				time.Sleep(500 * time.Millisecond)
				for range tt.answers {
					synctest.Wait()
					if p.Reachable() {
						got.WriteByte('u')
					} else {
						got.WriteByte('d')
					}
					if (p.Err() == nil) != p.Reachable() {
						t.Errorf("Err() = %v while Reachable() = %t", p.Err(), p.Reachable())
					}
					time.Sleep(time.Second)
				}
				if diff := cmp.Diff(tt.want, got.String()); diff != "" {
					t.Errorf("answers %s (-want +got):\n%s", tt.answers, diff)
				}
				stop := errors.New("stop")
				cancel(stop)
				if err := <-done; !errors.Is(err, stop) {
					t.Errorf("Run() = %v, want %v", err, stop)
				}
			})
		})
	}
}

func TestProbeTellsEachChangeOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var down atomic.Bool
		p, err := invoker.NewProbe(invoker.ProbeOptions{Check: func(context.Context) error {
			if down.Load() {
				return errors.New("no")
			}
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		changed := p.Changed()
		done := make(chan error, 1)
		go func() { done <- p.Run(ctx) }()
		<-changed
		up := time.Now()
		changed = p.Changed()
		down.Store(true)
		<-changed
		if took := time.Since(up); took != 3*time.Second || p.Reachable() {
			t.Errorf("change after %s, reachable %t; want 3s, false", took, p.Reachable())
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run() = %v", err)
		}
	})
}

// An app that is not there is warned of once at the start too, when it has had time to come up, and later at
// each loss.
func TestProbeWarnsOfAnAppThatIsNotThere(t *testing.T) {
	const (
		absent = "WARN app not reachable since the start, nothing runs until it is: no"
		came   = "INFO app became reachable: "
		lost   = "WARN app became unreachable: no"
	)
	tests := map[string]struct {
		up   func(second int) bool
		want []string
	}{
		"there at once":                 {func(int) bool { return true }, []string{came}},
		"up within some seconds":        {func(s int) bool { return s >= 4 }, []string{came}},
		"never there":                   {func(int) bool { return false }, []string{absent}},
		"late":                          {func(s int) bool { return s >= 40 }, []string{absent, came}},
		"there, and lost":               {func(s int) bool { return s < 10 }, []string{came, lost}},
		"there for a moment, then lost": {func(s int) bool { return s < 1 }, []string{came, lost}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got []string
				begun := time.Now()
				p, err := invoker.NewProbe(invoker.ProbeOptions{
					Log: slog.New(lines{&got}),
					Check: func(context.Context) error {
						if tt.up(int(time.Since(begun) / time.Second)) {
							return nil
						}
						return errors.New("no")
					},
				})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
				defer cancel()
				_ = p.Run(ctx)
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("the log (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// lines is a log as "LEVEL message: error".
type lines struct{ to *[]string }

func (lines) Enabled(context.Context, slog.Level) bool { return true }
func (l lines) WithAttrs([]slog.Attr) slog.Handler     { return l }
func (l lines) WithGroup(string) slog.Handler          { return l }
func (l lines) Handle(_ context.Context, r slog.Record) error {
	reason := ""
	r.Attrs(func(a slog.Attr) bool { reason = a.Value.String(); return true })
	*l.to = append(*l.to, r.Level.String()+" "+r.Message+": "+reason)
	return nil
}

func TestProbeWithoutTargetIsAlwaysUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := invoker.NewProbe(invoker.ProbeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := p.Run(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Run() = %v, want it to last until its context ends", err)
		}
		if !p.Reachable() || p.Err() != nil {
			t.Errorf("Reachable() = %t, Err() = %v, want true, nil", p.Reachable(), p.Err())
		}
	})
}

func TestProbeOnRealSockets(t *testing.T) {
	t.Parallel()
	target := startApp(t, app.Options{})
	target.Script("/ready", app.Status(http.StatusNoContent))
	target.Script("/starting", app.Status(http.StatusServiceUnavailable))
	target.Script("/moved", app.Reply(http.StatusFound, "", "Location", "/ready"))
	target.Script("/hangs", app.Never())
	target.Script("/dies", app.Reset())
	nobody := freeAddress(t)

	tests := map[string]struct {
		options invoker.ProbeOptions
		want    string // part of the reason; empty: reachable
	}{
		"2xx at the health URL":      {options: invoker.ProbeOptions{HealthURL: target.URL() + "/ready"}},
		"a port that is open":        {options: invoker.ProbeOptions{Target: target.URL()}},
		"the health URL goes first":  {options: invoker.ProbeOptions{HealthURL: target.URL() + "/starting", Target: target.URL()}, want: "503"},
		"a redirect is no 2xx":       {options: invoker.ProbeOptions{HealthURL: target.URL() + "/moved"}, want: "302"},
		"no answer within a second":  {options: invoker.ProbeOptions{HealthURL: target.URL() + "/hangs"}, want: "did not answer within 1s"},
		"a reset":                    {options: invoker.ProbeOptions{HealthURL: target.URL() + "/dies?token=hunter2"}, want: "could not be reached"},
		"nothing listens, asked TCP": {options: invoker.ProbeOptions{Target: "http://" + nobody}, want: "connection refused by " + nobody},
		"nothing listens, asked URL": {options: invoker.ProbeOptions{HealthURL: "http://" + nobody + "/ready?token=hunter2"}, want: "connection refused by " + nobody},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := invoker.NewProbe(tt.options)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			before := p.Err()
			go func() { done <- p.Run(ctx) }()
			eventually(t, "the first answer", func() bool { return !errors.Is(p.Err(), before) })
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Errorf("Run() = %v", err)
			}
			if got := p.Reachable(); got != (tt.want == "") {
				t.Errorf("Reachable() = %t: %v", got, p.Err())
			}
			if tt.want != "" && !strings.Contains(p.Err().Error(), tt.want) {
				t.Errorf("Err() = %v, want it to contain %q", p.Err(), tt.want)
			}
			if err := p.Err(); err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("Err() = %v shows the query string", err)
			}
		})
	}
}

// The definitions may name another target while the sidecar runs.
func TestProbeFollowsTheCurrentTarget(t *testing.T) {
	t.Parallel()
	target := startApp(t, app.Options{})
	var current atomic.Pointer[string]
	set := func(url string) { current.Store(&url) }
	set("")
	p, err := invoker.NewProbe(invoker.ProbeOptions{CurrentTarget: func() string { return *current.Load() }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	eventually(t, "no target to count as reachable", p.Reachable)
	set("http://10.0.0.1")
	eventually(t, "a foreign target to be refused", func() bool { return !p.Reachable() })
	if err := p.Err(); !strings.Contains(err.Error(), "neither loopback nor listed") {
		t.Errorf("Err() = %v", err)
	}
	set(target.URL())
	eventually(t, "a target that listens", p.Reachable)
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Run() = %v", err)
	}
}

func TestProbeRefusesForeignTargets(t *testing.T) {
	for _, o := range []invoker.ProbeOptions{
		{HealthURL: "http://example.com/healthz"},
		{Target: "http://10.1.2.3:8080"},
		{Target: "http://169.254.169.254", AllowedHosts: []string{"10.0.0.1"}},
		{Target: "ftp://127.0.0.1"},
		{AllowedHosts: []string{"http://10.0.0.1"}},
	} {
		if _, err := invoker.NewProbe(o); err == nil {
			t.Errorf("NewProbe(%+v) succeeded", o)
		}
	}
}
