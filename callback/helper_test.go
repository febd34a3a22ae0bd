package callback_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	runID      = "0192f1c2a7b97c3e8d5f6a7b8c9d0e1f"
	otherRunID = "0192f1c2a7b97c3e8d5f6a7b8c9d0e20"
	occurrence = "5f0e3f8d7c6b5a493827161504f3e2d1"
)

// body is a callback as docs/callback.md shows it.
const body = `{"id":"` + runID + `","occurrence":"` + occurrence + `","job":"reports.nightly","trigger":"workdays",` +
	`"cause":"schedule","scheduledAt":"2026-10-04T22:00:00Z","coveredUntil":"2026-10-05T22:00:00Z",` +
	`"firedAt":"2026-10-04T22:00:00.000412Z","attempt":1,"retryOf":null,"originalOccurrence":null,"term":12,` +
	`"version":3,"data":{"format":"pdf"}}`

// attempt is body for another attempt.
func attempt(id string, number int) string {
	return strings.NewReplacer(runID, id, `"attempt":1`, fmt.Sprintf(`"attempt":%d`, number)).Replace(body)
}

// withTerm is body with another fencing token.
func withTerm(term int) string {
	return strings.Replace(body, `"term":12`, fmt.Sprintf(`"term":%d`, term), 1)
}

func jsonHeader() http.Header { return http.Header{"Content-Type": {"application/json"}} }

// secrets that are none.
func secretOf(letter string, length int) string {
	return "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat(letter, length)))
}

// signed are the headers of a body that was signed with each of the secrets, by an implementation
// of its own.
func signed(at time.Time, body string, secrets ...string) http.Header {
	h := jsonHeader()
	stamp := strconv.FormatInt(at.Unix(), 10)
	list := make([]string, len(secrets))
	for i, secret := range secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		if err != nil {
			panic(err)
		}
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "%s.%s.%s", runID, stamp, body)
		list[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	h.Set("Webhook-Id", runID)
	h.Set("Webhook-Timestamp", stamp)
	h.Set("Webhook-Signature", strings.Join(list, " "))
	return h
}

// reply is an answer that was read to its end.
type reply struct {
	status int
	body   string
	header http.Header
}

func post(ctx context.Context, url string, header http.Header, body string) (reply, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	req.Header = header
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, string(text), resp.Header}, err
}

func mustPost(t *testing.T, url, body string) reply {
	t.Helper()
	r, err := post(t.Context(), url, jsonHeader(), body)
	if err != nil {
		t.Fatalf("POST: %v", err)
	}
	return r
}

func (r reply) check(t *testing.T, status int, contains string) {
	t.Helper()
	if r.status != status || !strings.Contains(r.body, contains) {
		t.Errorf("answer %d %q, want %d and a text with %q", r.status, r.body, status, contains)
	}
}

func serve(t *testing.T, h http.Handler) (url string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// receive waits for a value, as long as a test may take.
func receive[T any](t *testing.T, from <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(20 * time.Second):
		t.Fatalf("waited 20 s in vain: %s", what)
		panic("unreachable")
	}
}
