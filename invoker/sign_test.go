package invoker_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasecron/leasecron/invoker"
	"github.com/leasecron/leasecron/test/app"
)

// secretText is a secret of n bytes that all hold c.
func secretText(c byte, n int) string {
	return "whsec_" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{c}, n))
}

// mount is a folder as the kubelet mounts a Secret: files are links into ..data, a link that is
// swapped as a whole.
type mount struct {
	t        *testing.T
	dir      string
	versions int
}

func newMount(t *testing.T, files map[string]string) *mount {
	t.Helper()
	m := &mount{t: t, dir: t.TempDir()}
	m.swap(files)
	for name := range files {
		if err := os.Symlink(filepath.Join("..data", name), m.path(name)); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func (m *mount) path(name string) string { return filepath.Join(m.dir, name) }

// swap replaces all files at once.
func (m *mount) swap(files map[string]string) {
	m.t.Helper()
	m.versions++
	version := "..v" + strconv.Itoa(m.versions)
	if err := os.Mkdir(m.path(version), 0o755); err != nil {
		m.t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(m.path(version), name), []byte(text), 0o400); err != nil {
			m.t.Fatal(err)
		}
	}
	if err := os.Symlink(version, m.path("..tmp")); err != nil {
		m.t.Fatal(err)
	}
	if err := os.Rename(m.path("..tmp"), m.path("..data")); err != nil {
		m.t.Fatal(err)
	}
}

// logLines collects what is logged.
type logLines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// verify computes the signature of a call with a key of 32 bytes that all hold c, and reports the
// place at which it stands among those sent; -1 for none.
func verify(t *testing.T, c app.Call, key byte) int {
	t.Helper()
	mac := hmac.New(sha256.New, bytes.Repeat([]byte{key}, 32))
	mac.Write([]byte(c.Header.Get("webhook-id") + "." + c.Header.Get("webhook-timestamp") + "." + c.Text))
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	for i, got := range strings.Split(c.Header.Get("webhook-signature"), " ") {
		if got == want {
			return i
		}
	}
	return -1
}

func TestRequestsAreSignedWithEachSecret(t *testing.T) {
	secrets := newMount(t, map[string]string{"new": secretText(1, 32) + "\n", "old": secretText(2, 32)})
	signer, err := invoker.NewSigner([]string{secrets.path("new"), secrets.path("old")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	target := startApp(t, app.Options{})
	a := attempt(target.URL() + "/")
	before := time.Now().Unix()
	checkOutcome(t, invoke(newClient(t, invoker.Options{Signer: signer}), a), succeeded, "")
	call := target.Calls()[0]
	if got := call.Header.Get("webhook-id"); got != a.Run.ID {
		t.Errorf("webhook-id = %q, want the run %s", got, a.Run.ID)
	}
	stamp, err := strconv.ParseInt(call.Header.Get("webhook-timestamp"), 10, 64)
	if err != nil || stamp < before || stamp > time.Now().Unix() {
		t.Errorf("webhook-timestamp = %q: %v", call.Header.Get("webhook-timestamp"), err)
	}
	if verify(t, call, 1) != 0 || verify(t, call, 2) != 1 {
		t.Errorf("webhook-signature = %q, want those of both secrets, the first one's first", call.Header.Get("webhook-signature"))
	}
	if got, want := call.Header.Get("Idempotency-Key"), `"`+a.Run.Occurrence+`"`; got != want {
		t.Errorf("Idempotency-Key = %s, want %s", got, want)
	}
}

func TestUnsignedWithoutASecret(t *testing.T) {
	target := startApp(t, app.Options{})
	checkOutcome(t, invoke(newClient(t, invoker.Options{}), attempt(target.URL()+"/")), succeeded, "")
	for name := range target.Calls()[0].Header {
		if strings.HasPrefix(name, "Webhook-") {
			t.Errorf("header %s was sent", name)
		}
	}
}

// The body of a later try says another time, and the signature covers it.
func TestASecondTryIsSignedAnew(t *testing.T) {
	t.Parallel()
	secrets := newMount(t, map[string]string{"s": secretText(1, 32)})
	signer, err := invoker.NewSigner([]string{secrets.path("s")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	late := make(chan *app.App, 1)
	start := time.Now()
	time.AfterFunc(1100*time.Millisecond, func() {
		target, err := app.Start(app.Options{Address: address})
		if err != nil {
			t.Error(err)
		}
		late <- target
	})
	a := attempt("http://" + address + "/")
	checkOutcome(t, invoke(newClient(t, invoker.Options{Signer: signer}), a), succeeded, "")
	target := <-late
	defer target.Close()
	call := target.Calls()[0]
	if verify(t, call, 1) != 0 {
		t.Errorf("the signature %q does not fit the body %s", call.Header.Get("webhook-signature"), call.Text)
	}
	if call.Body.FiredAt.Sub(start) < time.Second {
		t.Errorf("firedAt = %s, the first try was at %s: want the time of the last", call.Body.FiredAt, start)
	}
}

func TestSecretFileThatHoldsNoSecret(t *testing.T) {
	dir := t.TempDir()
	tests := map[string]struct{ content, want string }{
		"empty":                {"\n", "is empty"},
		"not a secret":         {"hunter2hunter2", "starts with whsec_"},
		"not base64":           {"whsec_hunter2!hunter2!", "is no base64"},
		"without its padding":  {"whsec_" + strings.TrimRight(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("h"), 32)), "="), "is no base64"},
		"two secrets":          {secretText('h', 32) + "\n" + secretText('h', 32), "on one line"},
		"too short":            {secretText('h', 23), "23 bytes, which is too short"},
		"too long":             {secretText('h', 65), "65 bytes, which is too long"},
		"an asymmetric key":    {"whsk_aHVudGVyMg==", "not supported"},
		"larger than a secret": {strings.Repeat("hunter2", 200), "larger than 1024 bytes"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, name)
			if err := os.WriteFile(path, []byte(tt.content), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := invoker.NewSigner([]string{path}, nil)
			if err == nil {
				t.Fatal("was accepted")
			}
			text := err.Error()
			if !strings.Contains(text, tt.want) || !strings.Contains(text, path) || strings.ContainsRune(text, '\n') {
				t.Errorf("error = %q, want one line with the file and %q", text, tt.want)
			}
			if strings.Contains(text, "hunter2") || strings.Contains(text, "aGho") {
				t.Errorf("error = %q repeats the content", text)
			}
		})
	}
	_, err := invoker.NewSigner([]string{filepath.Join(dir, "none"), dir}, nil)
	if err == nil || !strings.Contains(err.Error(), "none does not exist: mount it") || !strings.Contains(err.Error(), "is not a regular file") {
		t.Errorf("error = %v, want both files named", err)
	}
	for _, n := range []int{24, 64} {
		path := filepath.Join(dir, "good"+strconv.Itoa(n))
		if err := os.WriteFile(path, []byte(secretText('h', n)), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := invoker.NewSigner([]string{path}, nil); err != nil {
			t.Errorf("a secret of %d bytes: %v", n, err)
		}
	}
}

// A mounted Secret is rotated, breaks, and is good again: without a restart, with one line of log for
// each change, and never without a signature.
func TestSecretsAreReadAnew(t *testing.T) {
	secrets := newMount(t, map[string]string{"s": secretText(1, 32)})
	synctest.Test(t, func(t *testing.T) {
		var log logLines
		signer, err := invoker.NewSigner([]string{secrets.path("s")}, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		steps := []struct {
			files map[string]string
			line  string // the one that is logged
			bad   bool
		}{
			{map[string]string{"s": secretText(2, 32)}, "signing secret changed", false},
			{map[string]string{"s": "whsec_hunter2"}, "its last good secret stays in use", true},
			{map[string]string{}, "", true},
			{map[string]string{"s": secretText(2, 32)}, "good again", false},
			{map[string]string{"s": secretText(2, 32)}, "", false},
			{map[string]string{"s": secretText(3, 32)}, "signing secret changed", false},
		}
		for i, step := range steps {
			secrets.swap(step.files)
			time.Sleep(1100 * time.Millisecond)
			before := log.String()
			for range 3 {
				if err := signer.Err(); (err != nil) != step.bad {
					t.Errorf("step %d: Err() = %v", i, err)
				}
				time.Sleep(1100 * time.Millisecond)
			}
			lines := strings.TrimPrefix(log.String(), before)
			if n := strings.Count(lines, "\n"); (n == 1) != (step.line != "") || n > 1 || !strings.Contains(lines, step.line) {
				t.Errorf("step %d logged %q, want one line with %q", i, lines, step.line)
			}
		}
		if strings.Contains(log.String(), "hunter2") || strings.Contains(log.String(), "AgIC") {
			t.Errorf("the log repeats a secret:\n%s", log.String())
		}
	})
}

func TestARotationReachesTheNextRequest(t *testing.T) {
	t.Parallel()
	target := startApp(t, app.Options{})
	secrets := newMount(t, map[string]string{"s": secretText(1, 32)})
	signer, err := invoker.NewSigner([]string{secrets.path("s")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := newClient(t, invoker.Options{Signer: signer})
	checkOutcome(t, invoke(client, attempt(target.URL()+"/")), succeeded, "")
	secrets.swap(map[string]string{"s": secretText(2, 32)})
	eventually(t, "a request signed with the new secret", func() bool {
		checkOutcome(t, invoke(client, attempt(target.URL()+"/")), succeeded, "")
		calls := target.Calls()
		last := calls[len(calls)-1]
		if verify(t, last, 1) < 0 && verify(t, last, 2) < 0 {
			t.Fatal("a request without a valid signature")
		}
		return verify(t, last, 2) == 0
	})
	secrets.swap(map[string]string{"s": "broken"})
	eventually(t, "the broken file to be seen", func() bool { return signer.Err() != nil })
	checkOutcome(t, invoke(client, attempt(target.URL()+"/")), succeeded, "")
	calls := target.Calls()
	if verify(t, calls[len(calls)-1], 2) != 0 {
		t.Error("the last good secret is not used")
	}
}

func TestTheSignerLooksByItself(t *testing.T) {
	secrets := newMount(t, map[string]string{"s": secretText(1, 32)})
	synctest.Test(t, func(t *testing.T) {
		var log logLines
		signer, err := invoker.NewSigner([]string{secrets.path("s")}, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = signer.Run(t.Context()) }()
		secrets.swap(map[string]string{})
		time.Sleep(11 * time.Second)
		synctest.Wait()
		if !strings.Contains(log.String(), "signing secret file is broken") {
			t.Errorf("nothing was said within 11s: %q", log.String())
		}
	})
}

// Where requests are signed, an app that refuses one has most likely another secret.
func TestARefusalOfASignedRequestAsksForTheSecretFirst(t *testing.T) {
	t.Parallel()
	secrets := newMount(t, map[string]string{"s": secretText(1, 32), "token": "abc"})
	signer, err := invoker.NewSigner([]string{secrets.path("s")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	const (
		secret = "do sidecar and app have the same signing secret (LEASECRON_SIGNING_SECRET_FILES)?"
		needed = "does the job need a bearerFile?"
		good   = "does the app accept the token in the job's bearerFile?"
	)
	tests := map[string]struct {
		signer *invoker.Signer
		bearer string
		status int
		body   string
		want   string
	}{
		"signed":                           {signer, "", 401, "", "the app answered 401 Unauthorized: " + secret + " " + needed},
		"signed, and the app says it":      {signer, "", 401, "no Signature matches", "the app answered 401 Unauthorized: " + secret + ": no Signature matches"},
		"signed, and refused as forbidden": {signer, "", 403, "go away", "the app answered 403 Forbidden: " + secret + " " + needed + ": go away"},
		"signed, with a token":             {signer, secrets.path("token"), 401, "", "the app answered 401 Unauthorized: " + secret + " " + good},
		"not signed":                       {nil, "", 401, "no signature", "the app answered 401 Unauthorized: " + needed + ": no signature"},
		"not signed, with a token":         {nil, secrets.path("token"), 401, "", "the app answered 401 Unauthorized: " + good},
	}
	target := startApp(t, app.Options{})
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			target.Script("/", app.Reply(tt.status, tt.body))
			a := attempt(target.URL() + "/")
			a.BearerFile = tt.bearer
			if got := invoke(newClient(t, invoker.Options{Signer: tt.signer}), a); got.Message != tt.want {
				t.Errorf("message %q, want %q", got.Message, tt.want)
			}
		})
	}
}
