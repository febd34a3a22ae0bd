package api_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasecron/leasecron/api"
	"github.com/leasecron/leasecron/election/leases"
	"github.com/leasecron/leasecron/engine/run"
)

var _ api.Leases = (*leases.Service)(nil)

// fakeLeases answers with one lease, or an error, and remembers what it was asked.
type fakeLeases struct {
	lease leases.Lease
	err   error
	asked []string
}

func heldLease() leases.Lease {
	return leases.Lease{
		Name: "search.rebuild", Held: true, Holder: "worker-1", Node: "demo-0_4f1c", Token: 1796063516289, TTL: 30 * time.Second,
		AcquiredAt: noon, RenewedAt: noon.Add(10 * time.Second), Valid: 29990 * time.Millisecond, FreeIn: 30020 * time.Millisecond,
	}
}

func (f *fakeLeases) Acquire(_ context.Context, r leases.AcquireRequest) (leases.Lease, error) {
	f.asked = append(f.asked, fmt.Sprintf("acquire %s %s %s %s %q", r.Name, r.Holder, r.TTL, r.Wait, r.Key))
	return f.lease, f.err
}

func (f *fakeLeases) Renew(_ context.Context, name string, token int64) (leases.Lease, error) {
	f.asked = append(f.asked, fmt.Sprintf("renew %s %d", name, token))
	return f.lease, f.err
}

func (f *fakeLeases) Release(_ context.Context, name string, token int64) error {
	f.asked = append(f.asked, fmt.Sprintf("release %s %d", name, token))
	return f.err
}

func (f *fakeLeases) Get(_ context.Context, name string) (leases.Lease, error) {
	f.asked = append(f.asked, "get "+name)
	return f.lease, f.err
}

func (f *fakeLeases) List(context.Context) ([]leases.Lease, error) {
	f.asked = append(f.asked, "list")
	return []leases.Lease{f.lease}, f.err
}

// Named leases are every sidecar's to give: whether it leads does not matter.
func TestLeases(t *testing.T) {
	tests := map[string]struct {
		method, path, body string
		header             map[string][]string
		status             int
		asked              string
		golden             string
	}{
		"list":    {"GET", "", "", nil, 200, "list", "leases.json"},
		"get":     {"GET", "/search.rebuild", "", nil, 200, "get search.rebuild", "lease.json"},
		"acquire": {"POST", "/search.rebuild/acquire", `{"holder":"worker-1","ttlSeconds":30}`, nil, 200, `acquire search.rebuild worker-1 30s 0s ""`, "lease.json"},
		"acquire, waiting, with a key": {
			"POST", "/search.rebuild/acquire", `{"holder":"shop/worker@1","ttlSeconds":86400,"waitSeconds":30}`,
			map[string][]string{"Idempotency-Key": {"0193a1b2"}},
			200, `acquire search.rebuild shop/worker@1 24h0m0s 30s "0193a1b2"`, "lease.json",
		},
		"renew":   {"POST", "/search.rebuild/renew", `{"token":1796063516289}`, nil, 200, "renew search.rebuild 1796063516289", "lease.json"},
		"release": {"POST", "/search.rebuild/release", `{"token":1796063516289}`, nil, 204, "release search.rebuild 1796063516289", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			fake := &fakeLeases{lease: heldLease()}
			w := serve(t, func(o *api.Options) { o.Leases = fake })
			w.leadership.leader = api.Leader{Name: "demo-1_9a", Self: "demo-0_4f1c"}
			a := do(t, tt.method, w.api+"/v1/leases"+tt.path, tt.body, tt.header)
			if a.status != tt.status {
				t.Fatalf("status = %d, want %d\n%s", a.status, tt.status, a.body)
			}
			if tt.golden != "" {
				golden(t, tt.golden, a.body)
			}
			if diff := cmp.Diff([]string{tt.asked}, fake.asked); diff != "" {
				t.Errorf("asked of the leases (-want +got):\n%s", diff)
			}
		})
	}
}

func TestALeaseThatNobodyHoldsIsShownAsThat(t *testing.T) {
	w := serve(t, func(o *api.Options) { o.Leases = &fakeLeases{lease: leases.Lease{Name: "mails"}} })
	if a := get(t, w.api+"/v1/leases/mails"); a.status != 200 || strings.TrimSpace(a.body) != `{"name":"mails","held":false}` {
		t.Errorf("GET = %d %s", a.status, a.body)
	}
}

func TestRequestsForLeasesAreStrict(t *testing.T) {
	const acquire, good = "/search.rebuild/acquire", `{"holder":"w","ttlSeconds":30}`
	long := strings.Repeat("x", 300)
	tests := map[string]struct {
		path, body string
		header     map[string][]string
		status     int
		has        string
	}{
		"a name in capitals":         {"/Rebuild/acquire", good, nil, 400, "path.name"},
		"a name that is too long":    {"/" + long + "/acquire", good, nil, 400, "path.name"},
		"no body":                    {acquire, "", nil, 400, "body"},
		"no holder":                  {acquire, `{"ttlSeconds":30}`, nil, 400, "holder"},
		"a holder of several lines":  {acquire, `{"holder":"a\nb","ttlSeconds":30}`, nil, 400, "body.holder"},
		"a holder that is too long":  {acquire, `{"holder":"` + long + `","ttlSeconds":30}`, nil, 400, "body.holder"},
		"no time to live":            {acquire, `{"holder":"w"}`, nil, 400, "ttlSeconds"},
		"none at all":                {acquire, `{"holder":"w","ttlSeconds":0}`, nil, 400, "body.ttlSeconds"},
		"more than a day":            {acquire, `{"holder":"w","ttlSeconds":86401}`, nil, 400, "body.ttlSeconds"},
		"a part of a second":         {acquire, `{"holder":"w","ttlSeconds":1.5}`, nil, 400, "body"},
		"a duration as Go writes it": {acquire, `{"holder":"w","ttlSeconds":"30s"}`, nil, 400, "body.ttlSeconds"},
		"a wait that is too long":    {acquire, `{"holder":"w","ttlSeconds":30,"waitSeconds":31}`, nil, 400, "body.waitSeconds"},
		"a negative wait":            {acquire, `{"holder":"w","ttlSeconds":30,"waitSeconds":-1}`, nil, 400, "body.waitSeconds"},
		"a key that is not known":    {acquire, `{"holder":"w","ttlSeconds":30,"force":true}`, nil, 400, "body.force"},
		"a key that comes twice":     {acquire, `{"holder":"w","holder":"v","ttlSeconds":30}`, nil, 400, "twice"},
		"a key of the request that is empty": {
			acquire, good, map[string][]string{"Idempotency-Key": {""}}, 400, "Idempotency-Key",
		},
		"a key of the request that is too long": {
			acquire, good, map[string][]string{"Idempotency-Key": {long}}, 400, "Idempotency-Key",
		},
		"no token":                   {"/search.rebuild/renew", `{}`, nil, 400, "token"},
		"a token of 0":               {"/search.rebuild/renew", `{"token":0}`, nil, 400, "body.token"},
		"a token as text":            {"/search.rebuild/release", `{"token":"5"}`, nil, 400, "body.token"},
		"a token beyond all readers": {"/search.rebuild/release", `{"token":9007199254740993}`, nil, 400, "body.token"},
		"a query":                    {"/search.rebuild/release?force=true", `{"token":5}`, nil, 400, "query.force"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			fake := &fakeLeases{lease: heldLease()}
			w := serve(t, func(o *api.Options) { o.Leases = fake })
			a := do(t, "POST", w.api+"/v1/leases"+tt.path, tt.body, tt.header)
			if a.status != tt.status || !strings.Contains(a.body, tt.has) || !strings.Contains(a.body, "SCHEDULING_VALIDATION_002") {
				t.Errorf("answer = %d, want %d with %q\n%s", a.status, tt.status, tt.has, a.body)
			}
			if len(fake.asked) > 0 {
				t.Errorf("asked of the leases: %q", fake.asked)
			}
		})
	}
}

func TestErrorsOfTheLeases(t *testing.T) {
	secret := errors.New("put 10.0.0.1: secret thing broke")
	tests := map[string]struct {
		err    error
		status int
		code   run.Code
		has    string
	}{
		"held":            {&leases.HeldError{Name: "r", Holder: "worker-2", Node: "demo-1_9a", Token: 7, FreeIn: 12 * time.Second}, 409, run.CodeLeaseHeld, "held by worker-2"},
		"lost":            {&leases.LostError{Name: "r", Token: 5, Holder: "worker-2", HolderToken: 7}, 409, run.CodeLeaseHeld, "worker-2 holds it"},
		"expired":         {&leases.LostError{Name: "r", Token: 5, Expired: true}, 409, run.CodeLeaseHeld, "stop the work"},
		"another pod's":   {&leases.LostError{Name: "r", Token: 5, Elsewhere: true, Holder: "worker-2"}, 409, run.CodeLeaseHeld, "in that pod only"},
		"nobody's":        {&leases.LostError{Name: "r", Token: 5}, 409, run.CodeLeaseHeld, "nobody holds it"},
		"key reused":      {leases.ErrKeyReused, 409, run.CodeIdempotencyKeyReused, "another holder or time to live"},
		"full":            {leases.ErrFull, 503, run.CodeLedgerFull, "all 100 leases"},
		"too late":        {leases.ErrTooLate, 503, run.CodeElectionUnknown, "take a longer one"},
		"tokens":          {leases.ErrTokensUsedUp, 503, run.CodeElectionUnknown, "lastToken"},
		"invalid":         {&leases.InvalidError{Field: "name", Problem: "must be one"}, 400, run.CodeInvalidQuery, "must be one"},
		"nothing changed": {&leases.StoreError{Err: secret}, 503, run.CodeElectionUnknown, "nothing was changed"},
		"unknown":         {&leases.StoreError{Unknown: true, Err: secret}, 503, run.CodeElectionUnknown, "may have been made"},
		"with advice": {
			&leases.StoreError{Unknown: true, Err: &run.Error{Code: run.CodeElectionUnknown, Detail: "ConfigMap a/b does not exist", Err: secret}},
			503, run.CodeElectionUnknown, "does not exist",
		},
		"anything else": {secret, 503, run.CodeElectionUnknown, "did not answer"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var log syncBuffer
			w := serve(t, func(o *api.Options) {
				o.Leases, o.Logger = &fakeLeases{err: tt.err}, slog.New(slog.NewJSONHandler(&log, nil))
			})
			a := do(t, "POST", w.api+"/v1/leases/r/renew", `{"token":5}`, nil)
			if a.status != tt.status || !strings.Contains(a.body, string(tt.code)) || !strings.Contains(a.body, tt.has) {
				t.Errorf("answer = %d, want %d %s with %q\n%s", a.status, tt.status, tt.code, tt.has, a.body)
			}
			if strings.Contains(a.body, "secret") {
				t.Errorf("the answer shows what lies beneath:\n%s", a.body)
			}
			if logged := strings.Contains(log.String(), "request failed"); logged != (tt.status >= 500) {
				t.Errorf("logged = %v with status %d:\n%s", logged, tt.status, log.String())
			}
		})
	}
}
