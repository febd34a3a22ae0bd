package invoker_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/invoker"
	"github.com/leasecron/leasecron/test/app"
)

func TestBearerFile(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct{ path, message string }{
		"missing":             {filepath.Join(dir, "none"), "does not exist: mount it into the sidecar"},
		"empty":               {write("empty", " \n"), "is empty"},
		"too large":           {write("large", strings.Repeat("hunter2", 10_000)), "is larger than 16384 bytes"},
		"in two lines":        {write("lines", "hunter2\nhunter2"), "holds characters that no token has"},
		"a folder":            {dir, "is not a regular file"},
		"a pipe nobody fills": {pipe, "is not a regular file"},
	}
	target := startApp(t, app.Options{})
	client := newClient(t, invoker.Options{})
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			a := attempt(target.URL() + "/")
			a.BearerFile = tt.path
			got := invoke(client, a)
			checkOutcome(t, got, unreached, tt.message)
			if !strings.Contains(got.Message, tt.path) || strings.Contains(got.Message, "hunter2") {
				t.Errorf("message = %q, want it to name the file and not its content", got.Message)
			}
		})
	}
	if n := len(target.Calls()); n != 0 {
		t.Errorf("%d requests arrived", n)
	}
}

func TestBearerFileIsReadAnewForEachAttempt(t *testing.T) {
	target := startApp(t, app.Options{})
	client := newClient(t, invoker.Options{})
	a := attempt(target.URL() + "/")
	a.BearerFile = filepath.Join(t.TempDir(), "token")
	for _, token := range []string{"one", "two"} {
		if err := os.WriteFile(a.BearerFile, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
		checkOutcome(t, invoke(client, a), succeeded, "")
	}
	for i, want := range []string{"Bearer one", "Bearer two"} {
		if got := target.Calls()[i].Header.Get("Authorization"); got != want {
			t.Errorf("attempt %d: Authorization = %q, want %q", i, got, want)
		}
	}
}

// No outcome shows a token, a query string or the data of the request, whatever goes wrong.
func TestOutcomesKeepSecrets(t *testing.T) {
	target := startApp(t, app.Options{})
	target.Script("/404", app.Status(404))
	target.Script("/500", app.Status(500))
	target.Script("/moved", app.Reply(302, "", "Location", "/?token=hunter2"))
	target.Script("/echo", app.Reply(500, "bad token Bearer hunter2-token"))
	target.Script("/close", app.ReadThenClose())
	target.Script("/reset", app.Reset())
	target.Script("/garbage", app.Raw("x\r\n\r\n"))
	target.Script("/never", app.Never())
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("hunter2-token"), 0o600); err != nil {
		t.Fatal(err)
	}
	client := newClient(t, invoker.Options{})
	for _, base := range []string{
		target.URL() + "/404", target.URL() + "/500", target.URL() + "/moved", target.URL() + "/echo",
		target.URL() + "/close", target.URL() + "/reset", target.URL() + "/garbage", target.URL() + "/never",
		"http://" + freeAddress(t) + "/", "http://10.0.0.1/", "http://127.0.0.1:99999/", "http://127.0.0.1:x/", "http://[::1/",
	} {
		a := attempt(base + "?key=hunter2")
		a.BearerFile = token
		a.Data = []byte(`{"password":"hunter2"}`)
		a.Timeout = a.Timeout / 20
		if got := invoke(client, a); got.State == run.StateSucceeded || got.Message == "" || strings.Contains(got.Message, "hunter2") {
			t.Errorf("%s: %+v", base, got)
		}
	}
}
