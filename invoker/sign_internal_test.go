package invoker

import (
	"net/http"
	"testing"
	"time"
)

// The example of the Standard Webhooks specification and of its reference libraries.
func TestSignatureOfTheSpecification(t *testing.T) {
	key, err := parseSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	other, err := parseSecret("whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD")
	if err != nil {
		t.Fatal(err)
	}
	h := http.Header{}
	sign(h, [][]byte{key}, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 999), []byte(`{"test": 2432232314}`))
	want := map[string]string{
		"webhook-id":        "msg_p5jXN8AQM9LWM0D4loKWxJek",
		"webhook-timestamp": "1614265330",
		"webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
	}
	for name, value := range want {
		if got := h.Get(name); got != value {
			t.Errorf("%s = %q, want %q", name, got, value)
		}
	}
	alone := http.Header{}
	sign(alone, [][]byte{other}, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
	sign(h, [][]byte{other, key}, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
	if got, want := h.Get("webhook-signature"), alone.Get("webhook-signature")+" "+want["webhook-signature"]; got != want {
		t.Errorf("with two keys webhook-signature = %q, want %q", got, want)
	}
}
