package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasecron/leasecron/api"
	"github.com/leasecron/leasecron/api/problem"
	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/run"
)

// newDrainCommand asks the sidecar of this pod to hand over, for preStop hooks.
func newDrainCommand(environ map[string]string) *cobra.Command {
	var timeout time.Duration
	var address string
	cmd := &cobra.Command{
		Use:   "drain",
		Short: "Hand over and finish the runs of the sidecar in this pod, for preStop hooks",
		Long: `Tell the sidecar that runs beside this command to hand its leadership over and to finish its runs,
and wait for that. The sidecar goes on until SIGTERM, but it neither leads nor runs anything again before
a restart. Meant for a preStop hook, which needs no shell:

  lifecycle: {preStop: {exec: {command: [/sidecar, drain]}}}

It returns when every run of this sidecar is recorded, or when the grace (LEASECRON_SHUTDOWN_GRACE of
the sidecar) is over: what is open then is recorded as lost. A second drain joins the first, and a drain goes
on when this command ends early.

Exit codes: 0 drained and every run reported; 1 runs were lost or not recorded, the time was over, or no
sidecar answered; 2 an argument is wrong.`,
		Args: noArguments,
	}
	cmd.Flags().StringVar(&address, "address", "", "where the sidecar's API is (default LEASECRON_API_LISTEN, else 127.0.0.1:9471)")
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "how long to wait, such as 20s; the drain goes on after it (default: until the sidecar is done)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		host, err := drainAddress(cmp.Or(address, environ[config.SettingPrefix+"API_LISTEN"], "127.0.0.1:9471"))
		if err != nil {
			return usageError{err}
		}
		if timeout < 0 {
			return usageError{errors.New("--timeout: want a duration such as 20s")}
		}
		ctx := cmd.Context()
		if timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeoutCause(ctx, timeout, fmt.Errorf("not drained within %s", timeout))
			defer cancel()
		}
		d := drain{out: cmd.OutOrStdout(), address: host, client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
		return d.run(ctx)
	}
	return cmd
}

// drainAddress wants host:port; a host that is left out is this machine.
func drainAddress(address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil || port == "" {
		return "", fmt.Errorf("--address: %q: want host:port, such as 127.0.0.1:9471", address)
	}
	if port == "0" {
		return "", fmt.Errorf("--address: %q names no port: the sidecar's log has the one that it got, under api_address", address)
	}
	return net.JoinHostPort(cmp.Or(host, "127.0.0.1"), port), nil
}

// drain is one drain as it is seen from outside.
type drain struct {
	out     io.Writer
	address string
	client  *http.Client
	last    api.DrainStatus
}

// drainStep is how long one request waits, and so how fast progress is told.
const drainStep = time.Second

func (d *drain) run(ctx context.Context) error {
	wait := time.Duration(0) // the first answer tells that it has begun
	for {
		asked := time.Now()
		s, err := d.ask(ctx, wait)
		switch {
		case err != nil && context.Cause(ctx) != nil:
			return fmt.Errorf("%w: %s; the drain goes on", context.Cause(ctx), d.left())
		case err != nil && d.last.State != "":
			return fmt.Errorf("the sidecar ended before it said that it is drained: %w", err)
		case err != nil:
			return err
		}
		d.tell(s)
		if s.State == api.DrainDrained {
			return outcome(s)
		}
		if wait > 0 { // whatever answers there, it is not asked without a pause
			timer := time.NewTimer(time.Until(asked.Add(drainStep / 10)))
			select {
			case <-ctx.Done():
			case <-timer.C:
			}
			timer.Stop()
		}
		wait = drainStep
	}
}

// ask begins or joins the drain and waits for a while.
func (d *drain) ask(ctx context.Context, wait time.Duration) (api.DrainStatus, error) {
	var s api.DrainStatus
	callCtx, cancel := context.WithTimeoutCause(ctx, wait+5*time.Second, errors.New("no answer"))
	defer cancel()
	target := url.URL{Scheme: "http", Host: d.address, Path: "/drain", RawQuery: "wait=" + wait.String()}
	req, err := http.NewRequestWithContext(callCtx, http.MethodPost, target.String(), http.NoBody)
	if err != nil {
		return s, err
	}
	resp, err := d.client.Do(req)
	if err != nil {
		return s, fmt.Errorf("no sidecar answers at %s: %w", d.address, err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return s, fmt.Errorf("read the answer of %s: %w", d.address, err)
	}
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusAccepted {
		return s, refusal(d.address, resp, body)
	}
	if err := json.Unmarshal(body, &s); err != nil || s.State == "" {
		return s, foreign(d.address, resp)
	}
	return s, nil
}

// refusal says in one line why a sidecar does not do what it was asked for, or that no sidecar answered.
func refusal(address string, resp *http.Response, body []byte) error {
	var p problem.Problem
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if kind != problem.ContentType || json.Unmarshal(body, &p) != nil || p.Status != resp.StatusCode {
		return foreign(address, resp)
	}
	return fmt.Errorf("the sidecar at %s answered %d %s: %s", address, resp.StatusCode, http.StatusText(resp.StatusCode), run.OneLine(p.Detail, 1024))
}

// foreign says that something else answered. What it said is a page for somebody else.
func foreign(address string, resp *http.Response) error {
	return fmt.Errorf("%s answered %s: this is not a sidecar's API (LEASECRON_API_LISTEN of the sidecar, or --address, says where that is)",
		address, strings.TrimSpace(fmt.Sprintf("%d %s", resp.StatusCode, http.StatusText(resp.StatusCode))))
}

// tell prints what is new.
func (d *drain) tell(s api.DrainStatus) {
	before := d.last
	d.last = s
	if s.State == api.DrainDrained {
		fmt.Fprintf(d.out, "drained after %s\n", s.EndedAt.Sub(s.Since).Round(time.Millisecond))
		if s.Runs > 0 && s.Error == "" {
			fmt.Fprintf(d.out, "%s that the app has accepted can be completed until the sidecar ends\n", plural(s.Runs, "run"))
		}
		return
	}
	switch {
	case s.HandedOverAt.IsZero() && before.State == "":
		fmt.Fprintln(d.out, "draining: handing over")
	case !s.HandedOverAt.IsZero() && (before.HandedOverAt.IsZero() || before.Runs != s.Runs):
		fmt.Fprintf(d.out, "handed over; waiting until %s for %s\n", s.Until.Format(time.RFC3339), plural(s.Runs, "run"))
	}
}

// left says what the drain still waits for, as far as known.
func (d *drain) left() string {
	if d.last.State == "" {
		return "the sidecar has not answered"
	}
	return plural(d.last.Runs, "run") + " left"
}

// outcome is an error where the app's runs were not all reported.
func outcome(s api.DrainStatus) error {
	switch {
	case s.Error != "":
		return fmt.Errorf("%s could not be recorded: %s; the sidecar goes on trying until it ends", plural(s.Runs, "run"), s.Error)
	case s.Lost > 0:
		return fmt.Errorf("%s did not end within the grace and %s recorded as lost; make LEASECRON_SHUTDOWN_GRACE longer than the longest run",
			plural(s.Lost, "run"), map[bool]string{true: "is", false: "are"}[s.Lost == 1])
	}
	return nil
}
