package callback_test

import (
	"encoding/base64"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasecron/leasecron/callback"
)

func newVerifier(t *testing.T, secrets ...string) *callback.Verifier {
	t.Helper()
	v, err := callback.NewVerifier(secrets...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestKnownSignature: the example that the libraries of Standard Webhooks share.
func TestKnownSignature(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := time.Unix(1614265330, 0)
		time.Sleep(time.Until(at))
		v := newVerifier(t, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
		h := http.Header{}
		h.Set("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek")
		h.Set("webhook-timestamp", "1614265330")
		h.Set("webhook-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
		if err := v.Verify(h, []byte(`{"test": 2432232314}`)); err != nil {
			t.Errorf("Verify() = %v, want nil", err)
		}
		if err := v.Verify(h, []byte(`{"test":2432232314}`)); !errors.Is(err, callback.ErrSignature) {
			t.Errorf("Verify() of a body without its space = %v, want ErrSignature", err)
		}
	})
}

func TestVerify(t *testing.T) {
	a, b, c := secretOf("a", 24), secretOf("b", 32), secretOf("c", 64)
	change := func(name string, f func(string) string) func(http.Header) {
		return func(h http.Header) { h.Set(name, f(h.Get(name))) }
	}
	to := func(s string) func(string) string { return func(string) string { return s } }
	again := func(name string) func(http.Header) { return func(h http.Header) { h.Add(name, h.Get(name)) } }
	tests := map[string]struct {
		signedWith []string
		knows      []string // default: what it was signed with
		change     func(http.Header)
		offset     time.Duration // of the signing from now
		tolerance  time.Duration
		body       string // what arrives, if it is not what was signed
		want       string // part of the error; empty: none
	}{
		"signed with the one secret":                        {signedWith: []string{a}},
		"signed with both secrets of a rotation":            {signedWith: []string{a, b}, knows: []string{b}},
		"the app knows the next secret already":             {signedWith: []string{a}, knows: []string{b, a}},
		"signed with a secret that the app does not know":   {signedWith: []string{a, b}, knows: []string{c}, want: "no signature matches"},
		"another version of signature stands beside":        {signedWith: []string{a}, change: change("Webhook-Signature", func(s string) string { return "v1a,AAAA " + s })},
		"a signature of another version only":               {signedWith: []string{a}, change: change("Webhook-Signature", func(s string) string { return "v2" + s[2:] }), want: "no signature of version v1"},
		"spoiled base64 stands beside":                      {signedWith: []string{a}, change: change("Webhook-Signature", func(s string) string { return "v1,!!! v1, " + s })},
		"a cut signature":                                   {signedWith: []string{a}, change: change("Webhook-Signature", func(s string) string { return s[:len(s)-4] }), want: "no signature"},
		"an empty signature":                                {signedWith: []string{a}, change: change("Webhook-Signature", to("v1,")), want: "no signature"},
		"more signatures than two secrets make":             {signedWith: []string{a}, change: change("Webhook-Signature", func(s string) string { return strings.Repeat(s+" ", 16) + s }), want: "more than 16"},
		"no signature":                                      {signedWith: []string{a}, change: func(h http.Header) { h.Del("Webhook-Signature") }, want: "LEASECRON_SIGNING_SECRET_FILES"},
		"no ID":                                             {signedWith: []string{a}, change: func(h http.Header) { h.Del("Webhook-Id") }, want: "no webhook-id"},
		"no time":                                           {signedWith: []string{a}, change: func(h http.Header) { h.Del("Webhook-Timestamp") }, want: "no webhook-timestamp"},
		"two signature headers":                             {signedWith: []string{a}, change: again("Webhook-Signature"), want: "several"},
		"two IDs":                                           {signedWith: []string{a}, change: again("Webhook-Id"), want: "several"},
		"two times":                                         {signedWith: []string{a}, change: again("Webhook-Timestamp"), want: "several"},
		"another ID":                                        {signedWith: []string{a}, change: change("Webhook-Id", to(otherRunID)), want: "no signature matches"},
		"another time":                                      {signedWith: []string{a}, change: change("Webhook-Timestamp", func(s string) string { n, _ := strconv.Atoi(s); return strconv.Itoa(n + 1) }), want: "no signature matches"},
		"an ID with a dot could move bytes between parts":   {signedWith: []string{a}, change: change("Webhook-Id", to("a.1")), want: "dot"},
		"a long ID":                                         {signedWith: []string{a}, change: change("Webhook-Id", to(strings.Repeat("x", 257))), want: "256"},
		"a time with a sign":                                {signedWith: []string{a}, change: change("Webhook-Timestamp", func(s string) string { return "+" + s }), want: "not a number"},
		"a time with a fraction":                            {signedWith: []string{a}, change: change("Webhook-Timestamp", func(s string) string { return s + ".5" }), want: "not a number"},
		"a time with a zero before":                         {signedWith: []string{a}, change: change("Webhook-Timestamp", func(s string) string { return "0" + s }), want: "not a number"},
		"a time that overflows":                             {signedWith: []string{a}, change: change("Webhook-Timestamp", to("99999999999999999999")), want: "not a number"},
		"another body":                                      {signedWith: []string{a}, body: strings.Replace(body, "pdf", "csv", 1), want: "no signature matches"},
		"a body with one space more":                        {signedWith: []string{a}, body: body + " ", want: "no signature matches"},
		"signed five minutes ago":                           {signedWith: []string{a}, offset: -5 * time.Minute},
		"signed more than five minutes ago":                 {signedWith: []string{a}, offset: -5*time.Minute - time.Second, want: "5m1s"},
		"signed five minutes from now":                      {signedWith: []string{a}, offset: 5 * time.Minute},
		"signed more than five minutes from now":            {signedWith: []string{a}, offset: 5*time.Minute + time.Second, want: "-5m1s"},
		"signed a minute ago, where half a minute is right": {signedWith: []string{a}, offset: -time.Minute, tolerance: 30 * time.Second, want: "30s are allowed"},
		"an old body signed by nobody is not called old":    {signedWith: []string{a}, knows: []string{b}, offset: -time.Hour, want: "no signature matches"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				knows := tt.knows
				if knows == nil {
					knows = tt.signedWith
				}
				h := signed(time.Now().Add(tt.offset), body, tt.signedWith...)
				if tt.change != nil {
					tt.change(h)
				}
				arrives := body
				if tt.body != "" {
					arrives = tt.body
				}
				err := newVerifier(t, knows...).WithTolerance(tt.tolerance).Verify(h, []byte(arrives))
				switch {
				case tt.want == "" && err != nil:
					t.Errorf("Verify() = %v, want nil", err)
				case tt.want != "" && (!errors.Is(err, callback.ErrSignature) || !strings.Contains(err.Error(), tt.want)):
					t.Errorf("Verify() = %v, want ErrSignature and a text with %q", err, tt.want)
				}
				right := signed(time.Now().Add(tt.offset), arrives, knows...).Get("Webhook-Signature")
				for one := range strings.FieldsSeq(strings.ReplaceAll(right, "v1,", "")) {
					if err != nil && strings.Contains(err.Error(), one) {
						t.Errorf("the error tells the right signature: %v", err)
					}
				}
			})
		})
	}
}

func TestSecrets(t *testing.T) {
	tests := map[string]struct {
		secret string
		want   string
	}{
		"the shortest":        {secretOf("a", 24), ""},
		"the longest":         {secretOf("a", 64), ""},
		"too short":           {secretOf("a", 23), "23 bytes"},
		"too long":            {secretOf("a", 65), "65 bytes"},
		"empty":               {"", "whsec_"},
		"nothing but a start": {"whsec_", "0 bytes"},
		"without its start":   {base64.StdEncoding.EncodeToString(make([]byte, 32)), "openssl rand -base64 32"},
		"not base64":          {"whsec_" + strings.Repeat("?", 40), "not base64"},
		"a private key":       {"whsk_" + strings.Repeat("A", 44), "whsec_"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := callback.NewVerifier(tt.secret)
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("NewVerifier() = %v, want nil", err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("NewVerifier() = %v, want an error with %q", err, tt.want)
			}
			if key := strings.TrimPrefix(tt.secret, "whsec_"); err != nil && len(key) > 8 && strings.Contains(err.Error(), key) {
				t.Error("the error repeats the secret")
			}
		})
	}
	if _, err := callback.NewVerifier(); err == nil {
		t.Error("NewVerifier() without a secret is no error: it would refuse everything")
	}
}

// TestSecretFilesAreReadAgain: a rotation needs no restart, and a spoiled file no outage.
func TestSecretFilesAreReadAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	put := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := callback.NewFileVerifier(file); err == nil {
		t.Error("NewFileVerifier() of a file that is not there = nil, want an error")
	}
	if _, err := callback.NewFileVerifier(t.TempDir()); err == nil {
		t.Error("NewFileVerifier() of a folder = nil, want an error")
	}
	put(strings.Repeat("x", 5000))
	if _, err := callback.NewFileVerifier(file); err == nil || !strings.Contains(err.Error(), "4096") {
		t.Errorf("NewFileVerifier() of a large file = %v, want an error with its limit", err)
	}

	a, b := secretOf("a", 32), secretOf("b", 32)
	synctest.Test(t, func(t *testing.T) {
		put(a + "\n")
		v, err := callback.NewFileVerifier(file)
		if err != nil {
			t.Fatal(err)
		}
		check := func(when, secret string, want bool) {
			t.Helper()
			if err := v.Verify(signed(time.Now(), body, secret), []byte(body)); (err == nil) != want {
				t.Errorf("%s: Verify() = %v, want accepted %v", when, err, want)
			}
		}
		check("at first", a, true)
		put(b)
		check("within the second", a, true)
		time.Sleep(time.Second)
		check("a second later", b, true)
		check("a second later", a, false)
		put("spoiled")
		time.Sleep(time.Second)
		check("spoiled", b, true)
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		check("missing", b, true)
	})
}

// FuzzVerify: no headers pass that were not signed with the secret, whatever they look like.
func FuzzVerify(f *testing.F) {
	secret := secretOf("f", 32)
	h := signed(time.Unix(1_700_000_000, 0), body, secretOf("g", 32))
	f.Add(h.Get("Webhook-Id"), h.Get("Webhook-Timestamp"), h.Get("Webhook-Signature"), body)
	f.Add("a", "1700000000", "v1,"+strings.Repeat("A", 43)+"= v1a,x  v1,", "")
	v, err := callback.NewVerifier(secret)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, id, stamp, signatures, body string) {
		header := http.Header{"Webhook-Id": {id}, "Webhook-Timestamp": {stamp}, "Webhook-Signature": {signatures}}
		if err := v.Verify(header, []byte(body)); !errors.Is(err, callback.ErrSignature) {
			t.Fatalf("Verify() = %v, want ErrSignature", err)
		}
	})
}
