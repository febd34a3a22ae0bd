package election_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasecron/leasecron/election"
	"github.com/leasecron/leasecron/election/electiontest"
	"github.com/leasecron/leasecron/internal/kube"
	"github.com/leasecron/leasecron/test/controlplane"
)

// frozenEnv makes the test binary a leader in a process of its own, which can be stopped.
const frozenEnv = "TEST_FROZEN_LEADER"

// leadAndReport leads and prints, for each check of its lease that it would act on, when it was made:
// a check that was itself interrupted is what no program can close, and left out.
func leadAndReport(namespace string) error {
	cfg, _, err := kube.LoadConfig("")
	if err != nil {
		return err
	}
	client, err := kube.New(cfg, "lease")
	if err != nil {
		return err
	}
	e, err := election.NewKubernetes(election.KubernetesOptions{
		Options: election.Options{Identity: election.NewIdentity("frozen")},
		Client:  client, Namespace: namespace, Name: leaseName, App: "app",
		Duration: duration, RenewDeadline: deadline,
	})
	if err != nil {
		return err
	}
	return e.Run(context.Background(), func(ctx context.Context, lease *election.Lease) error {
		fmt.Println("term")
		for ctx.Err() == nil {
			before := time.Now().Round(0)
			if lease.Valid() {
				if after := time.Now().Round(0); after.Sub(before) < 100*time.Millisecond {
					fmt.Println("valid", before.UnixNano())
				}
			}
			<-time.After(time.Millisecond)
		}
		fmt.Println("over")
		return nil
	})
}

// R079
func TestAProcessThatWasStoppedDoesNotActOnAnOldLease(t *testing.T) {
	t.Parallel()
	a := open(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), frozenEnv+"="+a.ns, "KUBECONFIG="+controlplane.WriteKubeconfig(t, a.cfg, a.ns))
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	lines := bufio.NewScanner(out)
	readUntil := func(what string) {
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), what) {
				return
			}
		}
		t.Fatalf("the process ended before it said %q: %v", what, lines.Err())
	}
	readUntil("valid")

	signal := func(s syscall.Signal) {
		if err := cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	signal(syscall.SIGSTOP)
	follower := a.candidate(t, "pod-b")
	next := follower.Lead(t)
	resumed := time.Now()
	signal(syscall.SIGCONT)
	for lines.Scan() {
		if lines.Text() == "over" {
			break
		}
		var at int64
		if _, err := fmt.Sscanf(lines.Text(), "valid %d", &at); err == nil && time.Unix(0, at).After(resumed) {
			t.Fatal("the process that was stopped found its lease valid after another had taken over")
		}
	}
	electiontest.Until(t, "the process follows", func() bool { return next.Lease.Valid() })
	follower.Stop(t)
	readUntil("valid") // and competes again
}
