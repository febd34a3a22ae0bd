// Command plant plants mistakes into the engine, one after the other, and checks that the simulation
// finds each of them, with the check that is there for it. The tree stays as it is: the compiler is given
// changed copies of files.
//
//	go run ./test/sim/plant [-seeds 5000] [-only WORDS]
package main

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	seeds := flag.Int("seeds", 5000, "how many seeds the simulation has to find a bug")
	first := flag.Int("first", 1, "the first of them")
	only := flag.String("only", "", "plant only bugs with these words in their name")
	flag.Parse()
	if err := run(*seeds, *first, *only); err != nil {
		fmt.Fprintln(os.Stderr, "plant:", err)
		os.Exit(1)
	}
}

func run(seeds, first int, only string) error {
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	missed := 0
	for _, b := range slices.Concat(bugs, decisionBugs, attemptBugs) {
		if !strings.Contains(b.name, only) {
			continue
		}
		began := time.Now()
		found, err := b.find(root, seeds, first)
		if err != nil { // a mistake in the list does not keep the others from being looked for
			found = "ERROR: " + err.Error()
		}
		if err != nil || found == "" {
			missed++
		}
		fmt.Printf("%-76s %s (%s)\n", b.name, cmp.Or(found, "NOT FOUND"), time.Since(began).Round(time.Second))
	}
	if missed > 0 {
		return fmt.Errorf("%d bugs not found within %d seeds", missed, seeds)
	}
	return nil
}

func moduleRoot() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", err
	}
	return filepath.Dir(strings.TrimSpace(string(out))), nil
}

var seedOf = regexp.MustCompile(`(?m)seed (\d+):\s*(.*)$`)

// find plants the bug and says which seed found it and as what, empty if none did.
func (b bug) find(root string, seeds, first int) (string, error) {
	words := cmp.Or(says[b.name], ".")
	check, err := regexp.Compile(words)
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "plant")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	overlay, err := b.overlay(root, dir)
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, "sim.test")
	build := exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", program, "./test/sim")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("does not compile any more: %w\n%s", err, out)
	}
	play := exec.Command(program, "-test.run=^TestSeeds$", "-test.timeout=0", "-sim.failures=1",
		"-sim.first="+strconv.Itoa(first), "-sim.seeds="+strconv.Itoa(seeds), "-sim.says="+words)
	play.Dir = dir
	out, err := play.CombinedOutput()
	if err == nil {
		return "", nil
	}
	match := seedOf.FindSubmatchIndex(out)
	if match == nil {
		return "", fmt.Errorf("the simulation failed without naming a seed: %w\n%.2000s", err, out)
	}
	for why := range strings.Lines(string(out[match[4]:])) {
		if check.MatchString(why) && !strings.Contains(why, "the process that played it died") { // that is no check
			return "seed " + string(out[match[2]:match[3]]) + ": " + strings.TrimSpace(why), nil
		}
	}
	return "", fmt.Errorf("the simulation failed, and not with %q:\n%.2000s", words, out)
}

// overlay writes the changed files and the list of them that the compiler takes.
func (b bug) overlay(root, dir string) (string, error) {
	replace := make(map[string]string)
	for i, e := range b.edits {
		original := filepath.Join(root, filepath.FromSlash(e.file))
		source := cmp.Or(replace[original], original)
		text, err := os.ReadFile(source)
		if err != nil {
			return "", err
		}
		if n := strings.Count(string(text), e.old); n != 1 {
			return "", fmt.Errorf("%s has %d places that say\n%s\nbring bugs.go up to date", e.file, n, e.old)
		}
		changed := filepath.Join(dir, strconv.Itoa(i)+".go")
		if err := os.WriteFile(changed, []byte(strings.Replace(string(text), e.old, e.new, 1)), 0o600); err != nil {
			return "", err
		}
		replace[original] = changed
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, list, 0o600)
}
