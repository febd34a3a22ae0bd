package rights

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasecron/leasecron/internal/logkey"
	"github.com/leasecron/leasecron/rbac"
)

const (
	callTimeout  = 5 * time.Second
	firstPause   = 10 * time.Second // while something is missing; doubles
	maxPause     = 10 * time.Minute
	firstRetry   = time.Second // while the API server does not answer; doubles
	maxRetry     = time.Minute
	leastBetween = time.Minute // between two looks because of refusals
	longestList  = 10          // missing rights that one line of /readyz lists
)

// Reviewer asks the API server about the account of this process.
type Reviewer interface {
	Review(ctx context.Context, path string, question, answer any) error
}

// Options are what a Check takes.
type Options struct {
	Reviewer  Reviewer // required
	App       string   // for the command that grants what is missing
	Set       []string // settings that the command has to know, as NAME=VALUE
	Namespace string   // of everything but the Pod; required
	// PodNamespace is that of the Pod; empty: Namespace.
	PodNamespace string
	Rights       []rbac.Right // that are used; required
	Logger       *slog.Logger // nil: nothing is logged
}

// Check knows which rights are missing. Its methods may be called concurrently.
type Check struct {
	opts Options
	log  *slog.Logger
	wake chan struct{}

	anyRefused atomic.Bool // so that most answers of the API server cost nothing

	mu       sync.Mutex
	checked  time.Time // when it was last found out; zero: not yet
	missing  []rbac.Right
	unasked  error                   // why the API server could not be asked; what is missing is what it refused
	refused  map[rbac.Right]struct{} // by calls of other parts, and not granted since
	account  string                  // of this process, once it was needed
	reported map[rbac.Right]struct{} // that the log has
}

// New checks the options. It asks nothing.
func New(opts Options) (*Check, error) {
	if opts.Reviewer == nil || opts.Namespace == "" || len(opts.Rights) == 0 {
		return nil, errors.New("rights: Reviewer, Namespace and Rights are required")
	}
	if opts.PodNamespace == "" {
		opts.PodNamespace = opts.Namespace
	}
	log := opts.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Check{
		opts: opts, log: log.With(slog.String(logkey.Component, "rights")), wake: make(chan struct{}, 1),
		refused: make(map[rbac.Right]struct{}), reported: make(map[rbac.Right]struct{}),
	}, nil
}

// Missing is how many rights are known to be missing.
func (c *Check) Missing() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.missing)
}

// Probe says how things are, for /readyz?verbose.
func (c *Check) Probe() (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case len(c.missing) > 0:
		var list []string
		for _, r := range c.missing[:min(len(c.missing), longestList)] {
			list = append(list, r.String())
		}
		if more := len(c.missing) - len(list); more > 0 {
			list = append(list, fmt.Sprintf("and %d more", more))
		}
		return "", fmt.Errorf("missing in namespace %s: %s; %s", c.opts.Namespace, strings.Join(list, ", "), c.grant(c.account))
	case c.unasked != nil:
		return "", fmt.Errorf("not known, the API server refused nothing so far: %w", c.unasked)
	case c.checked.IsZero():
		return "", errors.New("not known yet")
	default:
		return fmt.Sprintf("%d rights granted, checked %s", len(c.opts.Rights), c.checked.UTC().Format(time.RFC3339)), nil
	}
}

// Run finds out until ctx ends: at once, again while something is missing or the API server does not
// answer, and when it refuses something.
func (c *Check) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var next time.Time // of the look that the timer is set for; zero: none
	again := func(after time.Duration) { next = time.Now().Add(after); timer.Reset(after) }
	var pause, retry time.Duration
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
		case <-c.wake:
			if soonest := c.lastLook().Add(leastBetween); time.Now().Before(soonest) {
				if next.IsZero() || next.After(soonest) { // a look that is due sooner stays
					again(time.Until(soonest))
				}
				continue
			}
		}
		missing, err := c.look(ctx)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			retry = min(max(2*retry, firstRetry), maxRetry)
			again(jitter(retry))
		case missing:
			retry, pause = 0, min(max(2*pause, firstPause), maxPause)
			again(jitter(pause))
		default:
			retry, pause, next = 0, 0, time.Time{}
			timer.Stop()
		}
	}
}

func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) } //nolint:gosec // spreads load, hides nothing

func (c *Check) lastLook() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.checked
}

// look finds out once. An error says that the API server did not answer.
func (c *Check) look(ctx context.Context) (missing bool, err error) {
	lacking, err := c.ask(ctx)
	var unasked error
	if refusedToSay(err) {
		// Nobody took that into account: then what is refused has to tell.
		unasked, err = err, nil
		lacking = c.refusedOnes()
	}
	if err != nil {
		c.log.LogAttrs(ctx, slog.LevelDebug, "rights not known yet", logkey.Err(err))
		return false, err
	}
	account := ""
	if len(lacking) > 0 {
		account = c.whoAmI(ctx)
	}
	c.mu.Lock()
	c.checked, c.missing, c.unasked, c.account = time.Now(), lacking, unasked, account
	if unasked == nil { // what was asked for is better known than what was refused once
		clear(c.refused)
		c.anyRefused.Store(false)
	}
	c.mu.Unlock()
	c.report(ctx, lacking, account)
	return len(lacking) > 0, nil
}

func (c *Check) refusedOnes() []rbac.Right {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.opts.Rights), func(r rbac.Right) bool {
		_, refused := c.refused[r]
		return !refused
	})
}

// report logs each right that is missing once, and that it was granted.
func (c *Check) report(ctx context.Context, missing []rbac.Right, account string) {
	for _, r := range missing {
		if _, ok := c.reported[r]; ok {
			continue
		}
		c.reported[r] = struct{}{}
		c.log.LogAttrs(ctx, slog.LevelError, "a right is missing",
			slog.String("verb", r.Verb), slog.String("resource", resourceOf(r)), slog.String("name", r.Name),
			slog.String(logkey.Namespace, c.namespace(r)), slog.String("check", c.canI(r, account)), slog.String("fix", c.grant(account)))
	}
	for r := range c.reported {
		if !slices.Contains(missing, r) {
			delete(c.reported, r)
			c.log.LogAttrs(ctx, slog.LevelInfo, "a right that was missing is granted",
				slog.String("verb", r.Verb), slog.String("resource", resourceOf(r)), slog.String("name", r.Name))
		}
	}
}

func resourceOf(r rbac.Right) string {
	if r.Group == "" {
		return r.Resource
	}
	return r.Resource + "." + r.Group
}

func (c *Check) namespace(r rbac.Right) string {
	if r.Resource == "pods" {
		return c.opts.PodNamespace
	}
	return c.opts.Namespace
}

// canI is the command that shows whether a right is there.
func (c *Check) canI(r rbac.Right, account string) string {
	command := "kubectl auth can-i " + r.String() + " -n " + c.namespace(r)
	if account != "" {
		command += " --as=" + account
	}
	return command
}

// grant is the command that grants what is missing: to this account, or its binding would be lost.
func (c *Check) grant(account string) string {
	var more strings.Builder
	parts := strings.Split(account, ":")
	if name := parts[len(parts)-1]; strings.HasPrefix(account, "system:serviceaccount:") && name != c.opts.App {
		more.WriteString(" --service-account " + name)
	}
	for _, setting := range c.opts.Set {
		more.WriteString(" --set " + setting)
	}
	return fmt.Sprintf("to grant it: sidecar pack --app %s -n %s%s | kubectl apply --server-side --force-conflicts -f -", c.opts.App, c.opts.Namespace, more.String())
}

// Wrap looks at the answers of the API server for what it refuses.
func (c *Check) Wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(req)
		if err == nil && (resp.StatusCode == http.StatusForbidden || resp.StatusCode < http.StatusBadRequest && c.anyRefused.Load()) {
			c.notice(req, resp.StatusCode == http.StatusForbidden)
		}
		return resp, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements [http.RoundTripper].
func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// notice takes in that a call of another part was refused, or granted.
func (c *Check) notice(req *http.Request, refused bool) {
	r, ok := rightOf(req)
	if !ok || !slices.Contains(c.opts.Rights, r) {
		return
	}
	c.mu.Lock()
	_, known := c.refused[r]
	if refused {
		c.refused[r] = struct{}{}
		c.anyRefused.Store(true)
	} else {
		delete(c.refused, r)
	}
	// What is asked for goes by the answer; without one a call that succeeds is the answer.
	news := known != refused && (refused || c.unasked != nil) && !(refused && slices.Contains(c.missing, r))
	c.mu.Unlock()
	if news {
		select {
		case c.wake <- struct{}{}:
		default: // it is awake
		}
	}
}
