// Command testsummary runs a test command that speaks go test's JSON and makes it readable:
//
//	testsummary go test -json ./...
//
// It prints a line for each package, failures with all their output, and at the end how many
// tests ran, subtests included. It exits with 1 if anything failed or if nothing ran.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: testsummary go test -json [argument...]")
		os.Exit(2)
	}
	ok, err := run(os.Args[1:], os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testsummary:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

func run(command []string, out io.Writer) (ok bool, err error) {
	// Ctrl-C reaches go test as well, which ends its tests; the summary still comes.
	signal.Ignore(os.Interrupt)
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return false, err
	}
	if err := cmd.Start(); err != nil {
		return false, err
	}
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	go func() {
		for sig := range terminated {
			_ = cmd.Process.Signal(sig) // it may have ended by itself
		}
	}()

	s := newSummary(out)
	if err := s.read(stdout); err != nil {
		return false, errors.Join(err, cmd.Wait())
	}
	err = cmd.Wait()
	if exit, failed := errors.AsType[*exec.ExitError](err); failed {
		err = nil
		if s.failed == 0 {
			s.failed++ // something that is no test, such as a bad argument
			fmt.Fprintln(out, "FAIL", strings.Join(command, " ")+":", exit)
		}
	}
	s.print()
	return s.failed == 0 && s.passed > 0, err
}

// event is what go test -json writes (go doc test2json).
type event struct {
	Action      string
	Package     string
	Test        string
	Output      string
	Elapsed     float64
	ImportPath  string // of build-output
	FailedBuild string
}

type summary struct {
	out                     io.Writer
	passed, failed, skipped int

	output map[testID][]string // of tests and packages that have not ended
	build  map[string][]string // by import path
	counts map[string]int      // tests run, by package
	broken map[string]bool     // packages with a failed test
}

type testID struct{ pkg, test string }

func newSummary(out io.Writer) *summary {
	return &summary{
		out:    out,
		output: map[testID][]string{},
		build:  map[string][]string{},
		counts: map[string]int{},
		broken: map[string]bool{},
	}
}

func (s *summary) read(r io.Reader) error {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil {
				fmt.Fprint(s.out, string(line)) // not an event: show it as it is
			} else {
				s.add(e)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read test output: %w", err)
		}
	}
}

func (s *summary) add(e event) {
	id := testID{e.Package, e.Test}
	switch e.Action {
	case "output":
		s.output[id] = append(s.output[id], e.Output)
	case "build-output":
		s.build[e.ImportPath] = append(s.build[e.ImportPath], e.Output)
	case "pass", "fail", "skip":
		if e.Test == "" {
			s.endPackage(e)
		} else {
			s.endTest(e)
		}
		delete(s.output, id)
	}
}

func (s *summary) endTest(e event) {
	s.counts[e.Package]++
	switch e.Action {
	case "pass":
		s.passed++
	case "skip":
		s.skipped++
	case "fail":
		s.failed++
		s.broken[e.Package] = true
		fmt.Fprint(s.out, strings.Join(s.output[testID{e.Package, e.Test}], ""))
	}
}

func (s *summary) endPackage(e event) {
	n := s.counts[e.Package]
	switch {
	case e.Action == "fail":
		// A failure that is no test's: the build, a panic, a timeout, TestMain.
		if !s.broken[e.Package] {
			s.failed++
		}
		fmt.Fprint(s.out, strings.Join(s.build[e.FailedBuild], ""))
		s.printUnfinished(e.Package)
		fmt.Fprintf(s.out, "FAIL %s (%.1fs)\n", e.Package, e.Elapsed)
	case n > 0:
		took := fmt.Sprintf("%.1fs", e.Elapsed)
		if strings.Contains(strings.Join(s.output[testID{pkg: e.Package}], ""), "(cached)") {
			took = "cached"
		}
		fmt.Fprintf(s.out, "ok   %s (%d tests, %s)\n", e.Package, n, took)
	}
}

// printUnfinished shows the output of a package that failed and of those of its tests that
// never ended: a panic or a timeout is told there.
func (s *summary) printUnfinished(pkg string) {
	for id, lines := range s.output {
		if id.pkg == pkg && id.test != "" {
			fmt.Fprint(s.out, strings.Join(lines, ""))
			delete(s.output, id)
		}
	}
	fmt.Fprint(s.out, strings.Join(s.output[testID{pkg: pkg}], ""))
}

func (s *summary) print() {
	fmt.Fprintf(s.out, "%d passed, %d failed, %d skipped\n", s.passed, s.failed, s.skipped)
}
