package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const shopDeployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, namespace: prod}
spec:
  template:
    spec:
      containers: [{name: shop, image: shop, ports: [{containerPort: 8080}]}]
`

// ran is what a command left behind.
type ran struct {
	stdout, stderr string
	code           int
}

func runCLI(t *testing.T, stdin string, args ...string) ran {
	t.Helper()
	var out, errs bytes.Buffer
	code := Main(t.Context(), args, nil, Streams{In: strings.NewReader(stdin), Out: &out, Err: &errs})
	return ran{out.String(), errs.String(), code}
}

func packFiles(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestPackJudgesTheJobs(t *testing.T) {
	dir := packFiles(t, map[string]string{
		"jobs.yaml": "jobs:\n- {name: a, path: /a, schedul: rate 1s}\n- {name: b, path: b, schedule: \"61 * * * *\"}\n",
	})
	path := filepath.Join(dir, "jobs.yaml")
	out := runCLI(t, "", "pack", "--app", "shop", "-n", "prod", "--jobs", path)
	if out.code != 2 || out.stdout != "" {
		t.Errorf("exit code %d, printed %q", out.code, out.stdout)
	}
	for _, part := range []string{path + ":2:23: ", path + ":3:19: ", path + ":3:32: "} {
		if !strings.Contains(out.stderr, part) {
			t.Errorf("no %q in\n%s", part, out.stderr)
		}
	}
}

// Calendar files that the jobs name come along, from beside them.
func TestPackTakesCalendarsAlong(t *testing.T) {
	dir := packFiles(t, map[string]string{
		"jobs.yaml":    "calendars: {h: {ics: holidays.ics}}\njobs:\n- {name: a, path: /a, schedule: {cron: \"0 3 * * *\", calendar: h}}\n",
		"holidays.ics": "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:x\r\nBEGIN:VEVENT\r\nUID:1\r\nDTSTAMP:20260101T000000Z\r\nDTSTART;VALUE=DATE:20271001\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n",
	})
	out := runCLI(t, "", "pack", "--app", "shop", "-n", "prod", "--jobs", filepath.Join(dir, "jobs.yaml"))
	if out.code != 0 || !strings.Contains(out.stdout, "holidays.ics: |\n    BEGIN:VCALENDAR\n") {
		t.Errorf("exit code %d\n%s%s", out.code, out.stdout, out.stderr)
	}
}

func TestPackUsage(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"no app":                   {[]string{"-n", "prod"}, "say whose jobs these are with --app"},
		"a setting without value":  {[]string{"--app", "a", "-n", "b", "--set", "EVENTS"}, "want NAME=VALUE"},
		"both from standard input": {[]string{"--jobs", "-", "--deployment", "-"}, "cannot both be standard input"},
		"a file that is missing":   {[]string{"--app", "a", "-n", "b", "--jobs", "/nowhere/jobs.yaml"}, "/nowhere/jobs.yaml"},
		"a name for nothing":       {[]string{"--app", "a", "-n", "b", "--name", "a"}, "--name chooses a workload of the file that --deployment gives"},
		"a kind that is shown":     {[]string{"--deployment", "-", "--kind", "StatefulSet"}, "--kind is for a workload that is not shown"},
		"nothing to read":          {[]string{"--jobs", "-", "--app", "a", "-n", "b"}, "standard input is empty"},
		"an argument":              {[]string{"x"}, `pack takes no arguments, got "x"`},
	}
	for name, tt := range tests {
		if out := runCLI(t, "", append([]string{"pack"}, tt.args...)...); out.code != 2 || !strings.Contains(out.stderr, tt.want) {
			t.Errorf("%s: exit code %d, %s", name, out.code, out.stderr)
		}
	}
}

// A folder of somebody else's is not written over, and what is not packed any more goes.
func TestPackFolder(t *testing.T) {
	dir := packFiles(t, map[string]string{"deploy.yaml": shopDeployment})
	out := filepath.Join(dir, "out")
	args := []string{"pack", "--deployment", filepath.Join(dir, "deploy.yaml"), "--out", out}
	if r := runCLI(t, "", append(args, "--with", "pdb")...); r.code != 0 {
		t.Fatalf("exit code %d, %s", r.code, r.stderr)
	}
	mine := filepath.Join(out, "component", "mine.yaml")
	if err := os.WriteFile(mine, []byte("a: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := runCLI(t, "", append(args, "--check")...); r.code != 1 || !strings.Contains(r.stdout, "pdb.yaml: is not packed any more") || strings.Contains(r.stdout, "mine") {
		t.Errorf("exit code %d, %s", r.code, r.stdout)
	}
	if r := runCLI(t, "", args...); r.code != 0 {
		t.Fatalf("exit code %d, %s", r.code, r.stderr)
	}
	if _, err := os.Stat(filepath.Join(out, "component", "pdb.yaml")); !os.IsNotExist(err) {
		t.Errorf("pdb.yaml is still there: %v", err)
	}
	if _, err := os.Stat(mine); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(out, "kustomization.yaml"), []byte("resources: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := runCLI(t, "", args...); r.code != 2 || !strings.Contains(r.stderr, "was not made by pack") {
		t.Errorf("exit code %d, %s", r.code, r.stderr)
	}
}

// What has no effect is said, and what cannot work as it is.
func TestPackAndInjectWarn(t *testing.T) {
	dir := packFiles(t, map[string]string{"deploy.yaml": shopDeployment})
	path := filepath.Join(dir, "deploy.yaml")
	const jobs = "no jobs document was given"
	for name, tt := range map[string]struct {
		args []string
		want string // empty: nothing but that no jobs are given
	}{
		"no image":                     {[]string{"pack", "--deployment", path}, "no image is named: a cluster finds leasecron:"},
		"an image":                     {[]string{"pack", "--deployment", path, "--image", "localhost:5000/a/leasecron:v1.2_x@sha256:" + strings.Repeat("0a", 32)}, ""},
		"no image, and none printed":   {[]string{"pack", "--app", "shop", "-n", "prod"}, ""},
		"flags of a patch, none made":  {[]string{"pack", "--app", "shop", "-n", "prod", "--kind", "StatefulSet", "--target", "http://127.0.0.1:3000"}, "--kind, --target: changes nothing here"},
		"flags of a patch in a folder": {[]string{"pack", "--app", "shop", "-n", "prod", "--kind", "StatefulSet", "--image", "a", "--out", filepath.Join(dir, "out")}, ""},
		"an image to inject":           {[]string{"inject", "-f", path}, "no image is named"},
	} {
		out := runCLI(t, "", tt.args...)
		rest := strings.Split(strings.TrimSpace(out.stderr), "\n")
		found := false
		for _, line := range rest {
			found = found || tt.want != "" && strings.Contains(line, tt.want)
			if tt.want == "" && !strings.Contains(line, jobs) {
				t.Errorf("%s: warns %s", name, line)
			}
		}
		if out.code != 0 || found != (tt.want != "") {
			t.Errorf("%s: exit code %d, %s", name, out.code, out.stderr)
		}
	}
	// An upgrade of the settings keeps the image.
	first := runCLI(t, shopDeployment, "inject", "-f", "-", "--image", "registry.example/leasecron:v1")
	if again := runCLI(t, first.stdout, "inject", "-f", "-", "--set", "EVENTS=false"); again.code != 0 || again.stderr != "" || !strings.Contains(again.stdout, "image: registry.example/leasecron:v1\n") {
		t.Errorf("again without --image: exit code %d, %s\n%s", again.code, again.stderr, again.stdout)
	}
}

// Code 1 says that something differs, and nothing else.
func TestPackExitCodes(t *testing.T) {
	dir := packFiles(t, map[string]string{"deploy.yaml": shopDeployment, "file": "", "config": "{"})
	t.Setenv("KUBECONFIG", filepath.Join(dir, "config"))
	args := []string{"pack", "--deployment", filepath.Join(dir, "deploy.yaml")}
	for name, tt := range map[string]struct {
		more []string
		code int
	}{
		"nothing is there yet":               {[]string{"--out", filepath.Join(dir, "new"), "--check"}, 1},
		"a folder that cannot be made":       {[]string{"--out", filepath.Join(dir, "file")}, 2},
		"a folder that cannot be read":       {[]string{"--out", filepath.Join(dir, "file"), "--check"}, 2},
		"a cluster that cannot be asked":     {[]string{"--check"}, 2},
		"a workload that cannot be read":     {[]string{"--check", "--deployment", "/nowhere"}, 2},
		"a setting that the sidecar refuses": {[]string{"--check", "--set", "LEASE_DURATION=3"}, 2},
	} {
		if out := runCLI(t, "", append(args, tt.more...)...); out.code != tt.code || out.stderr == "" {
			t.Errorf("%s: exit code %d, want %d: %s", name, out.code, tt.code, out.stderr)
		}
	}
}

func TestInjectCommand(t *testing.T) {
	out := runCLI(t, shopDeployment, "inject", "-f", "-", "--image", "leasecron:v1")
	if out.code != 0 || !strings.Contains(out.stderr, "Deployment shop: its pods run as service account shop from now on, and cannot start without it") || !strings.Contains(out.stdout, "        image: leasecron:v1\n") || !strings.HasPrefix(out.stdout, shopDeployment[:60]) {
		t.Errorf("exit code %d, %s\n%s", out.code, out.stderr, out.stdout)
	}
	if out := runCLI(t, out.stdout, "inject", "-f", "-", "--image", "leasecron:v2"); out.code != 0 || out.stderr != "" {
		t.Errorf("injecting again: exit code %d, %s", out.code, out.stderr)
	}
	for name, tt := range map[string]struct {
		stdin string
		args  []string
		want  string
	}{
		"no file":      {"", nil, "inject reads a file"},
		"empty input":  {"\n", []string{"-f", "-"}, "standard input is empty"},
		"a folder":     {"", []string{"-f", "/"}, "sidecar: read /: is a directory\n"},
		"no workload":  {"kind: Service\n", []string{"-f", "-"}, "no workload in standard input"},
		"bad YAML":     {"a: 1\n---\nb: 2\nc: [\n", []string{"-f", "-"}, "standard input: document 2: yaml: line 4: "},
		"bad image":    {shopDeployment, []string{"-f", "-", "--image", "bad image"}, `image "bad image": want a reference such as`},
		"all and some": {"", []string{"-f", "-", "--all", "--name", "a"}, "two answers to one question"},
	} {
		if out := runCLI(t, tt.stdin, append([]string{"inject"}, tt.args...)...); out.code != 2 || out.stdout != "" || !strings.Contains(out.stderr, tt.want) {
			t.Errorf("%s: exit code %d, %s", name, out.code, out.stderr)
		}
	}
}
