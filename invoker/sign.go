package invoker

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The bounds that Standard Webhooks sets for the key of a symmetric signature, in bytes.
const (
	shortestKey = 24
	longestKey  = 64
	// maxSecret bounds a secret file; the longest secret has 94 characters.
	maxSecret    = 1 << 10
	secretPrefix = "whsec_"
)

// The headers of a signed request, in canonical form.
const (
	headerWebhookID        = "Webhook-Id"
	headerWebhookTimestamp = "Webhook-Timestamp"
	headerWebhookSignature = "Webhook-Signature"
)

// sign adds the headers of Standard Webhooks 1.0: one signature for each key, in their order, over
// the message's ID, the time in whole seconds, and the body as sent.
func sign(h http.Header, keys [][]byte, id string, at time.Time, body []byte) {
	stamp := strconv.FormatInt(at.Unix(), 10)
	signatures := make([]string, len(keys))
	for i, key := range keys {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + stamp + "."))
		mac.Write(body)
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	h[headerWebhookID] = []string{id}
	h[headerWebhookTimestamp] = []string{stamp}
	h[headerWebhookSignature] = []string{strings.Join(signatures, " ")}
}

// readSecret reads the key from a secret file. No error repeats any of it.
func readSecret(path string) ([]byte, error) {
	raw, err := readSmall(secretFile, path, maxSecret)
	if err != nil {
		return nil, err
	}
	key, err := parseSecret(strings.TrimSpace(string(raw)))
	if err != nil {
		return nil, fmt.Errorf("%s %s %w", secretFile, path, err)
	}
	return key, nil
}

func parseSecret(text string) ([]byte, error) {
	const want = "want whsec_ and the base64 of 24 to 64 random bytes; make one with: echo whsec_$(openssl rand -base64 32)"
	encoded, ok := strings.CutPrefix(text, secretPrefix)
	switch {
	case text == "":
		return nil, errors.New("is empty: " + want)
	case strings.HasPrefix(text, "whsk_"), strings.HasPrefix(text, "whpk_"):
		return nil, errors.New("holds a key for asymmetric signatures, which are not supported: " + want)
	case !ok:
		return nil, errors.New("holds no secret that starts with whsec_: " + want)
	}
	key, err := base64.StdEncoding.Strict().DecodeString(encoded)
	switch {
	case err != nil: // whose text would tell a position, and is of no help
		return nil, errors.New("holds a secret whose part after whsec_ is no base64 (with padding, on one line): " + want)
	case len(key) < shortestKey:
		return nil, fmt.Errorf("holds a secret of %d bytes, which is too short: %s", len(key), want)
	case len(key) > longestKey:
		return nil, fmt.Errorf("holds a secret of %d bytes, which is too long: %s", len(key), want)
	}
	return key, nil
}
