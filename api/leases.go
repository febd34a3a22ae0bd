package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/leasecron/leasecron/election/leases"
)

// Leases is what the API needs of the named leases, which [leases.Service] has. An error that is
// none of that package's, nor a [run.Error], counts as one of their store.
type Leases interface {
	Acquire(ctx context.Context, r leases.AcquireRequest) (leases.Lease, error)
	Renew(ctx context.Context, name string, token int64) (leases.Lease, error)
	Release(ctx context.Context, name string, token int64) error
	Get(ctx context.Context, name string) (leases.Lease, error)
	List(ctx context.Context) ([]leases.Lease, error)
}

// Lease is one named lease of the app's own work.
type Lease struct {
	Name         string    `json:"name"`
	Held         bool      `json:"held" doc:"Whether anybody holds it, for all that this sidecar knows. If not, nothing else is told."`
	Holder       string    `json:"holder,omitempty" doc:"What the holder calls itself."`
	Node         string    `json:"node,omitempty" doc:"The sidecar through which it was acquired."`
	Token        int64     `json:"token,omitempty" doc:"The fencing token: larger than that of every holder before. It renews and releases the lease."`
	TTLSeconds   int       `json:"ttlSeconds,omitempty" doc:"How long it lasts after each renewal."`
	AcquiredAt   time.Time `json:"acquiredAt,omitzero" doc:"By the clock of that sidecar's machine."`
	RenewedAt    time.Time `json:"renewedAt,omitzero" doc:"By the clock of that sidecar's machine; absent: never."`
	ValidMillis  int64     `json:"validMillis,omitempty" doc:"How many milliseconds the holder may go on from now, where this sidecar granted it. Count them from before the request was sent."`
	FreeInMillis int64     `json:"freeInMillis,omitempty" doc:"In how many milliseconds this sidecar may grant it to another, unless it is renewed."`
	Deduplicated bool      `json:"deduplicated,omitempty" doc:"The lease had been acquired by this key before; it was renewed."`
}

// LeaseList is the answer to a request for leases.
type LeaseList struct {
	Leases []Lease `json:"leases" doc:"Those that are held, ordered by name; at most 100."`
}

// AcquireLeaseRequest is the body of a request for a lease.
type AcquireLeaseRequest struct {
	Holder      string `json:"holder" pattern:"^[A-Za-z0-9][A-Za-z0-9._:@/+-]{0,127}$" doc:"What to call the holder, for others to see." example:"worker-1"`
	TTLSeconds  int    `json:"ttlSeconds" minimum:"1" maximum:"86400" doc:"How long it lasts after each renewal." example:"30"`
	WaitSeconds int    `json:"waitSeconds,omitempty" minimum:"0" maximum:"30" doc:"How long to wait while somebody else holds it."`
}

// LeaseTokenRequest is the body of a request of a lease's holder.
type LeaseTokenRequest struct {
	Token int64 `json:"token" minimum:"1" maximum:"9007199254740991" doc:"The token that the acquisition was answered with."`
}

// LeasePath is what the routes of one lease have in common.
type LeasePath struct {
	Name string `path:"name" pattern:"^[a-z0-9][a-z0-9._-]{0,127}$" doc:"The lease's name, of your choice."`
}

type leaseOutput struct{ Body Lease }

func (s *Server) registerLeases(api huma.API) {
	if s.opts.Leases == nil {
		return
	}
	type list struct{ Body LeaseList }
	huma.Register(api, operation("listLeases", http.MethodGet, "/v1/leases", "The named leases that are held",
		http.StatusServiceUnavailable),
		func(ctx context.Context, _ *struct{}) (*list, error) {
			all, err := s.opts.Leases.List(ctx)
			if err != nil {
				return nil, s.fail(ctx, ofLeases(err))
			}
			out := &list{Body: LeaseList{Leases: make([]Lease, len(all))}}
			for i := range all {
				out.Body.Leases[i] = leaseOf(&all[i])
			}
			return out, nil
		})

	huma.Register(api, operation("getLease", http.MethodGet, "/v1/leases/{name}", "One named lease, held or not",
		http.StatusServiceUnavailable),
		func(ctx context.Context, in *LeasePath) (*leaseOutput, error) {
			return s.leaseAnswer(ctx)(s.opts.Leases.Get(ctx, in.Name))
		})

	s.registerAcquire(api)

	type token struct {
		LeasePath
		Body LeaseTokenRequest
	}
	op := leaseOperation("renewLease", "renew", "Extend a named lease by its time to live", http.StatusConflict)
	op.Description = "A conflict says that the lease is lost, and who holds it now: the work must stop. After a 503 ask again, as long " +
		"as the lease is valid."
	huma.Register(api, op, func(ctx context.Context, in *token) (*leaseOutput, error) {
		return s.leaseAnswer(ctx)(s.opts.Leases.Renew(ctx, in.Name, in.Body.Token))
	})

	op = leaseOperation("releaseLease", "release", "Give a named lease up")
	op.Description = "Nothing happens where the token does not hold it any more."
	huma.Register(api, op, func(ctx context.Context, in *token) (*struct{}, error) {
		if err := s.opts.Leases.Release(ctx, in.Name, in.Body.Token); err != nil {
			return nil, s.fail(ctx, ofLeases(err))
		}
		return nil, nil
	})
}

type acquireInput struct {
	LeasePath
	Key  string `header:"Idempotency-Key" minLength:"1" maxLength:"255" doc:"Makes the request repeatable: while the lease is held, the same key from the same pod gives the same token. Choose a random one for each acquisition."`
	Body AcquireLeaseRequest
}

// Resolve refuses a key that is there and empty, which huma takes for none: the client relies on it.
func (*acquireInput) Resolve(ctx huma.Context) (problems []error) {
	ctx.EachHeader(func(name, value string) {
		if http.CanonicalHeaderKey(name) == "Idempotency-Key" && value == "" {
			problems = append(problems, &huma.ErrorDetail{Location: "header.Idempotency-Key", Message: "is empty: want 1 to 255 characters, or no such header"})
		}
	})
	return problems
}

func (s *Server) registerAcquire(api huma.API) {
	op := leaseOperation("acquireLease", "acquire", "Take a named lease", http.StatusConflict)
	op.Description = "A conflict names the holder. Not re-entrant: who holds the lease is refused as well. After a 503 the lease may be held; " +
		"repeat the request with the same Idempotency-Key."
	huma.Register(api, op, func(ctx context.Context, in *acquireInput) (*leaseOutput, error) {
		if in.Body.WaitSeconds > 0 {
			if !s.acquires.take() {
				p := busy(fmt.Sprintf("%d acquisitions wait already", maxAcquires))
				p.RequestID = requestID(ctx)
				return nil, huma.ErrorWithHeaders(p, http.Header{"Retry-After": {retryAfter}})
			}
			defer s.acquires.give()
		}
		return s.leaseAnswer(ctx)(s.opts.Leases.Acquire(ctx, leases.AcquireRequest{
			Name: in.Name, Holder: in.Body.Holder, TTL: time.Duration(in.Body.TTLSeconds) * time.Second,
			Wait: time.Duration(in.Body.WaitSeconds) * time.Second, Key: in.Key,
		}))
	})
}

func leaseOperation(id, verb, summary string, errs ...int) huma.Operation {
	return operation(id, http.MethodPost, "/v1/leases/{name}/"+verb, summary,
		append(errs, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusServiceUnavailable)...)
}

// leaseAnswer turns what the leases answered into what the API answers.
func (s *Server) leaseAnswer(ctx context.Context) func(leases.Lease, error) (*leaseOutput, error) {
	return func(l leases.Lease, err error) (*leaseOutput, error) {
		if err != nil {
			return nil, s.fail(ctx, ofLeases(err))
		}
		return &leaseOutput{Body: leaseOf(&l)}, nil
	}
}

func leaseOf(l *leases.Lease) Lease {
	return Lease{
		Name: l.Name, Held: l.Held, Holder: l.Holder, Node: l.Node, Token: l.Token, TTLSeconds: int(l.TTL / time.Second),
		AcquiredAt: l.AcquiredAt.UTC(), RenewedAt: l.RenewedAt.UTC(), ValidMillis: l.Valid.Milliseconds(),
		FreeInMillis: l.FreeIn.Milliseconds(), Deduplicated: l.Repeated,
	}
}
