package chaos

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// injector carries out the faults of a schedule, each in a goroutine of its own, and undoes them.
type injector struct {
	*session
	group sync.WaitGroup
	api   sync.Mutex // held while a fault has its hands on the API server
	edits sync.Mutex // held while somebody edits the jobs
}

// inject carries out the schedule until ctx ends, and returns when every fault is undone.
func (i *injector) inject(ctx context.Context, faults []fault) {
	defer i.group.Wait()
	begin := time.Now()
	for _, f := range faults {
		if !wait(ctx, time.Until(begin.Add(f.At))) {
			return
		}
		i.group.Go(func() {
			s := i.sidecars[max(f.Target, 0)]
			if f.Target == atLeader {
				s = i.leader()
			}
			i.note(f, s, i.carryOut(ctx, f, s))
		})
	}
	wait(ctx, i.options.Time-time.Since(begin))
}

// leader is the sidecar that leads, as far as the ledger tells, or any.
func (i *injector) leader() *sidecar {
	holder := i.witness.holder()
	for _, s := range i.sidecars {
		if strings.HasPrefix(holder, s.name) {
			return s
		}
	}
	return i.sidecars[0]
}

// outcome is what came of a fault: whether it hit anything, and in words what it did.
type outcome struct {
	hit  bool
	text string
}

func hit(text string) outcome    { return outcome{true, text} }
func missed(text string) outcome { return outcome{false, text} }

// befell is the outcome of a fault whose hits were counted.
func befell(hits int, what string) outcome {
	return outcome{hits > 0, fmt.Sprintf("%d %s", hits, what)}
}

// carryOut lets a fault happen to s and undoes it, and no other, when its time, or ctx, has ended.
func (i *injector) carryOut(ctx context.Context, f fault, s *sidecar) outcome {
	switch f.Kind {
	case kill, stop, terminate, drain:
		return i.strike(ctx, f, s)
	case rollOut:
		return i.rollOut(ctx)
	case apiRestart, apiKill, apiPause:
		return i.strikeAPI(ctx, f)
	case cutOff:
		e := s.proxy.Cut()
		wait(ctx, f.For)
		e.End()
		return befell(e.Hits(), "connections broken")
	case partition:
		e := s.proxy.Blackhole()
		wait(ctx, f.For)
		e.End()
		return befell(e.Hits(), "reads and writes held up")
	case appDown:
		return i.appDown(ctx, f, s)
	case editJobs, editInvalid:
		return i.edit(ctx, f)
	case enqueue:
		return i.enqueue(s)
	case intrude:
		how := intrusions[f.Number%len(intrusions)]
		return i.intrude(ctx, how)
	case delayRequests, delayAnswers, resetRequests, hangRequests, hangAnswers, dropAnswers, refuse, throttle:
		fault, matches := proxyFault(f)
		e := s.proxy.Befall(fault, matches...)
		wait(ctx, f.For)
		e.End()
		return befell(e.Hits(), "requests befallen")
	}
	return missed("nobody knows how")
}

// rollOut replaces one process after the other. It hits when most have been: another fault may have the
// process of one.
func (i *injector) rollOut(ctx context.Context) outcome {
	drained, said := 0, ""
	for _, each := range i.sidecars {
		o := i.strike(ctx, fault{Kind: drain}, each)
		drained += count(o.hit)
		said += each.name + ": " + o.text + "; "
		wait(ctx, time.Second)
	}
	return outcome{2*drained > len(i.sidecars), said}
}

// appDown takes the app of s down. It hits the connections that break, and those that s says are refused.
func (i *injector) appDown(ctx context.Context, f fault, s *sidecar) outcome {
	o := befell(s.takeApp(), "connections broken")
	seen := false
	for end := time.Now().Add(f.For); time.Now().Before(end) && wait(ctx, min(time.Until(end), 250*time.Millisecond)); {
		seen = seen || appRefuses(s)
	}
	if seen {
		o = hit(o.text + ", new ones refused")
		i.mu.Lock()
		i.refusals++
		i.mu.Unlock()
	}
	if err := s.returnApp(); err != nil {
		i.t.Error(err)
	}
	return o
}

// appRefuses reports whether a sidecar says that its app refuses connections.
func appRefuses(s *sidecar) bool {
	p := s.running()
	if p == nil || p.Address() == "" {
		return false
	}
	_, body := p.Get("/readyz?verbose")
	return strings.Contains(body, "connection refused by "+s.app.Address())
}

// strike does something to the process of a sidecar.
func (i *injector) strike(ctx context.Context, f fault, s *sidecar) outcome {
	p := s.claim()
	if p == nil {
		return missed("no process, or another fault has it")
	}
	defer s.release()
	o := hit("done")
	switch f.Kind {
	case kill:
		s.forget()
		p.Kill()
		wait(ctx, f.For)
	case stop:
		err := s.stop(p)
		wait(ctx, f.For)
		s.cont(p)
		if err != nil {
			return missed(err.Error())
		}
		return o
	case drain: // as the hook does that Kubernetes calls first
		status, answer := p.Post("/drain?wait=0s")
		o = outcome{status == http.StatusOK || status == http.StatusAccepted, fmt.Sprintf("the drain was answered with %d", status)}
		if status == 0 {
			o.text += ": " + answer
		}
		wait(ctx, f.For)
		s.terminate(p)
	default:
		s.terminate(p)
	}
	if err := s.start(); err != nil {
		i.t.Error(err)
	}
	return o
}

// strikeAPI does something to the API server.
func (i *injector) strikeAPI(ctx context.Context, f fault) outcome {
	if !i.api.TryLock() {
		return missed("another fault has the API server")
	}
	defer i.api.Unlock()
	server := i.cluster.ControlPlane.APIServer
	if f.Kind == apiPause {
		if err := server.Signal(syscall.SIGSTOP); err != nil {
			i.t.Error(err)
		}
		wait(ctx, f.For)
		if err := server.Signal(syscall.SIGCONT); err != nil {
			i.t.Error(err)
		}
		return hit("done")
	}
	if f.Kind == apiRestart {
		// In good order it waits a minute for connections that faults keep open.
		if err := server.Signal(syscall.SIGTERM); err != nil {
			i.t.Error(err)
		}
		for range 50 {
			if server.PID() == 0 || !wait(ctx, 100*time.Millisecond) {
				break
			}
		}
	}
	if err := server.End(syscall.SIGKILL); err != nil {
		i.t.Error(err)
	}
	wait(ctx, f.For)
	up, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute)
	defer cancel()
	if err := server.Up(up); err != nil {
		i.t.Error(err)
	}
	return hit("done")
}

// edit changes the jobs document, and puts a mistake in and out again. A mistake hits when a sidecar
// says that it has refused it.
func (i *injector) edit(ctx context.Context, f fault) outcome {
	i.edits.Lock()
	defer i.edits.Unlock()
	if f.Kind == editJobs {
		did := i.document.edit(f.Number)
		i.apply(context.WithoutCancel(ctx), i.document.text())
		return hit(did)
	}
	i.apply(ctx, i.document.invalid())
	o := missed("no sidecar has seen the mistake")
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end) && wait(ctx, 250*time.Millisecond); {
		if !o.hit && slices.ContainsFunc(i.sidecars, refusedJobs) {
			o = hit("the mistake was refused")
		}
	}
	i.apply(context.WithoutCancel(ctx), i.document.text())
	return o
}

// refusedJobs reports whether a sidecar says that the jobs document that it sees is not valid.
func refusedJobs(s *sidecar) bool {
	p := s.running()
	return p != nil && p.Address() != "" && p.Metric("leasecron_config_last_reload_successful") == "0"
}

// apply tries until the API server has taken the document, or ctx ends.
func (i *injector) apply(ctx context.Context, text string) {
	for range 60 {
		call, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := i.cluster.EditJobs(call, text)
		cancel()
		if err == nil || !wait(ctx, time.Second) {
			return
		}
	}
	i.t.Error("the jobs document could not be edited within minutes")
}

// enqueue asks one replica for a run, and remembers the run if that was promised.
func (i *injector) enqueue(s *sidecar) outcome {
	p := s.running()
	if p == nil || p.APIAddress() == "" {
		return missed("no process")
	}
	id, err := p.Enqueue("manual")
	if err != nil {
		return missed(err.Error())
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.promised = append(i.promised, id)
	return hit("promised " + id)
}

// note writes a line about a fault that has been undone.
func (i *injector) note(f fault, s *sidecar, o outcome) {
	i.mu.Lock()
	defer i.mu.Unlock()
	t := i.faults[f.Kind]
	t.Set++
	word := "missed"
	if o.hit {
		t.Hit++
		word = "hit"
	}
	i.faults[f.Kind] = t
	fmt.Fprintf(i.events, "%s %7.3fs %s; it was %s: %s: %s\n",
		time.Now().UTC().Format("15:04:05.000"), f.At.Seconds(), f, s.name, word, strings.TrimSpace(o.text))
}
