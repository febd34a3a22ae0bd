package chaos

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/leasecron/leasecron/test/faultproxy"
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
			done := i.carryOut(ctx, f, s)
			i.note(f, s, done)
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

// carryOut lets a fault happen to s and undoes it when its time, or ctx, has ended. It reports
// what came of it.
func (i *injector) carryOut(ctx context.Context, f fault, s *sidecar) string {
	switch f.Kind {
	case kill, stop, terminate, drain:
		return i.strike(ctx, f, s)
	case rollOut:
		for _, each := range i.sidecars {
			i.strike(ctx, fault{Kind: drain}, each)
			wait(ctx, time.Second)
		}
	case apiRestart, apiKill, apiPause:
		return i.strikeAPI(ctx, f)
	case cutOff:
		s.proxy.Cut()
		wait(ctx, f.For)
		s.proxy.Heal()
	case partition:
		s.proxy.Blackhole()
		wait(ctx, f.For)
		s.proxy.Heal()
	case appDown:
		s.appDown.Add(1)
		wait(ctx, f.For)
		s.appDown.Add(-1)
	case editJobs, editInvalid:
		return i.edit(ctx, f)
	case enqueue:
		return i.enqueue(s)
	case intrude:
		how := intrusions[f.Number%len(intrusions)]
		return i.intrude(ctx, how)
	case delayRequests, delayAnswers, resetRequests, hangRequests, hangAnswers, dropAnswers, refuse, throttle:
		fault, matches := proxyFault(f)
		remove := s.proxy.Inject(fault, matches...)
		wait(ctx, f.For)
		remove()
	}
	return "done"
}

// strike does something to the process of a sidecar.
func (i *injector) strike(ctx context.Context, f fault, s *sidecar) string {
	p := s.claim()
	if p == nil {
		return "not now: no process, or another fault has it"
	}
	defer s.release()
	switch f.Kind {
	case kill:
		s.forget()
		p.Kill()
		wait(ctx, f.For)
	case stop:
		s.stop(p)
		wait(ctx, f.For)
		s.cont(p)
		return "done"
	case drain: // as the hook does that Kubernetes calls first
		status, _ := p.Post("/drain?wait=0s")
		wait(ctx, f.For)
		s.terminate(p)
		if err := s.start(); err != nil {
			i.t.Error(err)
		}
		return fmt.Sprintf("done, the drain was answered with %d", status)
	default:
		s.terminate(p)
	}
	if err := s.start(); err != nil {
		i.t.Error(err)
	}
	return "done"
}

// strikeAPI does something to the API server.
func (i *injector) strikeAPI(ctx context.Context, f fault) string {
	if !i.api.TryLock() {
		return "not now: another fault has the API server"
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
		return "done"
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
	return "done"
}

// edit changes the jobs document, and puts a mistake in and out again.
func (i *injector) edit(ctx context.Context, f fault) string {
	i.edits.Lock()
	defer i.edits.Unlock()
	did := "a mistake"
	if f.Kind == editInvalid {
		i.apply(ctx, i.document.invalid())
		wait(ctx, 3*time.Second)
	} else {
		did = i.document.edit(f.Number)
	}
	i.apply(context.WithoutCancel(ctx), i.document.text())
	return did
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
func (i *injector) enqueue(s *sidecar) string {
	p := s.running()
	if p == nil || p.APIAddress() == "" {
		return "not now: no process"
	}
	id, err := p.Enqueue("manual")
	if err != nil {
		return err.Error()
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.promised = append(i.promised, id)
	return "promised " + id
}

// proxyFault is what the proxy has to do, and to which requests.
func proxyFault(f fault) (faultproxy.Fault, []faultproxy.Match) {
	fault, matches := proxyFaultOfKind(f)
	if f.Only != "" {
		matches = append(matches, faultproxy.Resource(f.Only))
	}
	return fault, matches
}

func proxyFaultOfKind(f fault) (faultproxy.Fault, []faultproxy.Match) {
	few := 1 + f.Number%4
	pause := time.Duration(50+f.Number) * time.Millisecond
	notWatch := faultproxy.Not(faultproxy.Verb("watch"))
	switch f.Kind {
	case delayRequests:
		return faultproxy.Delay(pause), []faultproxy.Match{notWatch}
	case delayAnswers:
		return faultproxy.DelayAnswer(pause), []faultproxy.Match{notWatch}
	case resetRequests:
		return faultproxy.Reset().Times(few), nil
	case hangRequests:
		return faultproxy.Hang(), nil
	case hangAnswers:
		return faultproxy.HangAnswer(), []faultproxy.Match{faultproxy.Verb("update")}
	case dropAnswers:
		return faultproxy.DropAnswer().Times(few), []faultproxy.Match{faultproxy.Verb("update")}
	case throttle:
		return faultproxy.Status(http.StatusTooManyRequests, time.Second), nil
	default:
		return faultproxy.Status(http.StatusServiceUnavailable, 0), nil
	}
}

// note writes a line about a fault that has been undone.
func (i *injector) note(f fault, s *sidecar, done string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.faults[f.Kind]++
	if strings.HasPrefix(done, "not now") {
		i.faults[f.Kind]--
	}
	fmt.Fprintf(i.events, "%s %7.3fs %s; it was %s: %s\n",
		time.Now().UTC().Format("15:04:05.000"), f.At.Seconds(), f, s.name, strings.TrimSpace(done))
}
