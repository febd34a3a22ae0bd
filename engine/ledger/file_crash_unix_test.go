//go:build unix

package ledger_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leasecron/leasecron/engine/ledger"
)

// The test binary starts itself again, as one of these, with the ledger's path as its argument.
const childEnv = "TEST_LEDGER_CHILD"

var children = map[string]func(path string) error{
	"count": countForEver,
	"full":  fillTheDisk,
	"open":  func(path string) error { _, err := ledger.OpenFile(path); return err },
}

// child runs one of the children instead of the tests, if this process is to be one.
func child() {
	run := children[os.Getenv(childEnv)]
	if run == nil {
		return
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

func childCommand(ctx context.Context, name, path string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], path)
	cmd.Env = append(os.Environ(), childEnv+"="+name)
	return cmd
}

// countForEver adds one and says so once it is stored, again and again.
func countForEver(path string) error {
	store, err := ledger.OpenFile(path)
	if err != nil {
		return err
	}
	doc := newTally(store)
	for {
		value, _, err := doc.Swap(context.Background(), increment)
		if err != nil {
			return err
		}
		fmt.Println(value.Count)
	}
}

// A process that is killed at any moment leaves the document before or after the write it was at,
// and its successor can open it at once.
func TestFileSurvivesKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	const kills = 12
	var least int
	for range kills {
		cmd := childCommand(t.Context(), "count", path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		said := 0
		enough := 1 + rand.IntN(10)
		for n := 0; lines.Scan(); n++ {
			if said, err = strconv.Atoi(lines.Text()); err != nil {
				t.Fatalf("child: %s", lines.Text())
			}
			if n == enough { // and then at any point of the next write
				time.AfterFunc(rand.N(3*time.Millisecond), func() { _ = cmd.Process.Kill() })
			}
		}
		_ = cmd.Wait() // killed
		store, err := ledger.OpenFile(path)
		if err != nil {
			t.Fatalf("OpenFile() after a kill = %v", err)
		}
		got := countOf(t, store)
		if got < said || got > said+1 || got <= least {
			t.Fatalf("count after a kill = %d, the child had said %d, and %d before it started", got, said, least)
		}
		least = got
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d writes, killed %d times", least, kills)
}

// fillTheDisk writes documents that grow until there is no room, then a small one.
func fillTheDisk(path string) error {
	signal.Ignore(unix.SIGXFSZ)
	const room = 64 << 10
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: room, Max: room}); err != nil {
		return err
	}
	store, err := ledger.OpenFile(path)
	if err != nil {
		return err
	}
	ctx := context.Background()
	doc := newTally(store)
	before, version, err := doc.Swap(ctx, func(v *tally) error {
		v.By = map[string]int{strings.Repeat("x", room/2): 1}
		return nil
	})
	if err != nil {
		return err
	}
	for range 3 {
		if _, _, err := doc.Swap(ctx, func(v *tally) error {
			v.By[strings.Repeat("y", room)] = 1
			return nil
		}); err == nil {
			return fmt.Errorf("stored more than there is room for")
		} else if !strings.Contains(err.Error(), unix.EFBIG.Error()) {
			return fmt.Errorf("another failure than the one expected: %w", err)
		}
		after, stays, err := doc.Read(ctx)
		switch {
		case err != nil:
			return err
		case stays != version || len(after.By) != len(before.By):
			return fmt.Errorf("the document did not stay what it was")
		}
	}
	if _, err := os.Stat(path + ".tmp"); err == nil {
		return fmt.Errorf("what could not be stored still takes room")
	}
	_, _, err = doc.Swap(ctx, func(v *tally) error { *v = tally{Count: 1}; return nil })
	return err
}

func TestFileSurvivesAFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	if out, err := childCommand(t.Context(), "full", path).CombinedOutput(); err != nil {
		t.Fatalf("child: %v\n%s", err, out)
	}
	if got := countOf(t, openFile(t, path)); got != 1 {
		t.Errorf("count = %d, want what was stored when there was room again", got)
	}
}

func TestSecondProcessIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	openFile(t, path)
	out, err := childCommand(t.Context(), "open", path).CombinedOutput()
	if err == nil {
		t.Fatal("a second process opened it")
	}
	for _, part := range []string{path, fmt.Sprintf("process %d has it open", os.Getpid())} {
		if !strings.Contains(string(out), part) {
			t.Errorf("it says %q, which lacks %q", out, part)
		}
	}
}
