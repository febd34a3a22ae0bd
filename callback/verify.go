package callback

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

// DefaultTolerance is how far the time of a signature may be from the app's clock, to either
// side.
const DefaultTolerance = 5 * time.Minute

const (
	// maxSignatures bounds the work for one request; two secrets in a rotation make two.
	maxSignatures = 16
	maxWebhookID  = 256
	secretPrefix  = "whsec_"
	minKey        = 24 // bytes, as the Standard Webhooks specification has it
	maxKey        = 64
)

// ErrSignature is in every error of [Verifier.Verify].
var ErrSignature = errors.New("signature refused")

// Verifier checks the signature of a callback: HMAC-SHA256 over ID, time and body, as Standard
// Webhooks 1.0.0 defines it (https://github.com/standard-webhooks/standard-webhooks). It is safe
// for concurrent use.
//
// The signature covers the body and the three Webhook- headers, not the others.
type Verifier struct {
	keys      func() [][]byte
	tolerance time.Duration
}

// NewVerifier returns a verifier that accepts a signature made with any of the secrets, each
// written whsec_ and 24 to 64 bytes in base64. Two are for a rotation: teach the app the new one
// first, then the sidecar, then drop the old one.
func NewVerifier(secrets ...string) (*Verifier, error) {
	if len(secrets) == 0 {
		return nil, errors.New("a verifier needs at least one secret")
	}
	keys := make([][]byte, len(secrets))
	for i, secret := range secrets {
		key, err := parseSecret(secret)
		if err != nil {
			return nil, fmt.Errorf("secret %d of %d: %w", i+1, len(secrets), err)
		}
		keys[i] = key
	}
	return &Verifier{keys: func() [][]byte { return keys }, tolerance: DefaultTolerance}, nil
}

// WithTolerance returns a verifier that accepts times of signing up to d from the app's clock; 0
// means [DefaultTolerance].
func (v *Verifier) WithTolerance(d time.Duration) *Verifier {
	if d <= 0 {
		d = DefaultTolerance
	}
	return &Verifier{keys: v.keys, tolerance: d}
}

// Verify checks that body was signed, and lately. It wants the body exactly as it arrived:
// parsing it and writing it again changes it. Errors wrap [ErrSignature]; none of them tells a
// sender more than it knows.
func (v *Verifier) Verify(header http.Header, body []byte) error {
	return v.verify(header, body, time.Now())
}

func (v *Verifier) verify(header http.Header, body []byte, now time.Time) error {
	id, err := single(header, "Webhook-Id")
	if err != nil {
		return err
	}
	stamp, err := single(header, "Webhook-Timestamp")
	if err != nil {
		return err
	}
	list, err := single(header, "Webhook-Signature")
	if err != nil {
		return err
	}
	// The parts are joined by dots: one within a part would let a signature stand for another
	// split of the same bytes.
	if len(id) > maxWebhookID || strings.Contains(id, ".") {
		return refused("webhook-id has a dot or more than %d bytes", maxWebhookID)
	}
	if len(stamp) > 12 || strings.Trim(stamp, "0123456789") != "" || stamp[0] == '0' {
		return refused("webhook-timestamp is not a number of seconds")
	}
	unix, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return refused("webhook-timestamp is not a number of seconds")
	}

	signatures, err := parseSignatures(list)
	if err != nil {
		return err
	}
	matched := false
	for _, key := range v.keys() {
		want := sign(key, id, stamp, body)
		for _, got := range signatures {
			if hmac.Equal(want, got) {
				matched = true // and go on: the time taken says nothing
			}
		}
	}
	if !matched {
		return refused("no signature matches: do sidecar and app have the same secret, and is the body as it was sent?")
	}
	if off := now.Sub(time.Unix(unix, 0)); off > v.tolerance || off < -v.tolerance {
		return refused("it was signed %s from now, at most %s are allowed: is a clock wrong, or was it sent before?", off.Round(time.Second), v.tolerance)
	}
	return nil
}

// sign computes a signature.
func sign(key []byte, id, stamp string, body []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + stamp + "."))
	mac.Write(body)
	return mac.Sum(nil)
}

// single returns a header that has to be there exactly once.
func single(header http.Header, name string) (string, error) {
	values := header.Values(name)
	if len(values) == 0 || values[0] == "" {
		return "", refused("there is no %s: does the sidecar sign (LEASECRON_SIGNING_SECRET_FILES)?", strings.ToLower(name))
	}
	if len(values) > 1 {
		return "", refused("there are several %s", strings.ToLower(name))
	}
	return values[0], nil
}

// parseSignatures returns the symmetric signatures of the list; those of other versions are
// passed over.
func parseSignatures(list string) ([][]byte, error) {
	parts := strings.Split(list, " ")
	if len(parts) > maxSignatures {
		return nil, refused("webhook-signature has more than %d signatures", maxSignatures)
	}
	var found [][]byte
	for _, part := range parts {
		version, text, _ := strings.Cut(part, ",")
		if version != "v1" {
			continue
		}
		signature, err := base64.StdEncoding.Strict().DecodeString(text)
		if err != nil || len(signature) != sha256.Size {
			continue
		}
		found = append(found, signature)
	}
	if len(found) == 0 {
		return nil, refused("webhook-signature holds no signature of version v1")
	}
	return found, nil
}

func refused(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrSignature}, args...)...)
}

// parseSecret reads a secret. Its errors do not repeat it.
func parseSecret(secret string) ([]byte, error) {
	encoded, ok := strings.CutPrefix(secret, secretPrefix)
	if !ok {
		return nil, fmt.Errorf("want %s and base64 (make one: echo %s$(openssl rand -base64 32))", secretPrefix, secretPrefix)
	}
	key, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, fmt.Errorf("what follows %s is not base64", secretPrefix)
	}
	if len(key) < minKey || len(key) > maxKey {
		return nil, fmt.Errorf("it has %d bytes: want %d to %d", len(key), minKey, maxKey)
	}
	return key, nil
}
