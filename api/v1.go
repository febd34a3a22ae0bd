package api

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/leasecron/leasecron/api/problem"
	"github.com/leasecron/leasecron/engine/run"
)

// maxBodyBytes is the most that a request may carry; more is answered with 413.
const maxBodyBytes = 512 << 10

// The framework keeps these in variables of its package: set once, before any use.
func init() {
	huma.ValidateStrictCasing = true
	huma.NewError = func(status int, msg string, errs ...error) huma.StatusError {
		return frameworkProblem(nil, status, msg, errs)
	}
	huma.NewErrorWithContext = func(ctx huma.Context, status int, msg string, errs ...error) huma.StatusError {
		p := frameworkProblem(ctx, status, msg, errs)
		if ctx != nil {
			p.RequestID = requestID(ctx.Context())
			if p.Code == run.CodeTooBusy {
				ctx.SetHeader("Retry-After", retryAfter)
			}
		}
		return p
	}
}

// v1 adds the routes of the API, which the OpenAPI document is made from.
func (s *Server) v1(mux *http.ServeMux) huma.API {
	config := huma.DefaultConfig("leasecron", "v1")
	config.Info.Description = "Jobs and runs of one application, as its sidecars see them. Times are UTC, RFC 3339. " +
		"Every answer carries X-Request-Id; every error is a problem document (RFC 9457)."
	config.OpenAPIPath, config.DocsPath, config.SchemasPath = "", "", ""
	config.CreateHooks = nil // no $schema links
	config.Formats = map[string]huma.Format{"application/json": strictJSON, "json": strictJSON}
	api := humago.New(mux, config)
	api.UseMiddleware(checkRequest, withSchemas(api.OpenAPI().Components.Schemas))

	s.registerInfo(api)
	s.registerJobs(api)
	s.registerPauses(api)
	s.registerResumes(api)
	s.registerRuns(api)
	s.registerResolve(api)
	s.registerAsync(api)
	if s.opts.Drain != nil {
		s.registerDrain(api)
	}
	s.registerLeases(api)
	tidyResponses(api.OpenAPI())

	mux.HandleFunc("GET /v1/openapi.json", strictQuery(func(w http.ResponseWriter, r *http.Request) {
		body, err := json.Marshal(api.OpenAPI())
		if err != nil {
			writeProblem(w, r, problem.From(err))
			return
		}
		w.Header().Set("Content-Type", "application/openapi+json")
		_, _ = w.Write(body)
	}))
	return api
}

// operation is what all operations have in common.
func operation(id, method, path, summary string, errs ...int) huma.Operation {
	return huma.Operation{
		OperationID: id, Method: method, Path: path, Summary: summary,
		MaxBodyBytes: maxBodyBytes,
		Errors:       append([]int{http.StatusBadRequest}, errs...),
	}
}

// tidyResponses removes the answers that the framework documents of itself and that never
// come: what it answers with 422 is 400 here.
func tidyResponses(doc *huma.OpenAPI) {
	for _, item := range doc.Paths {
		for _, op := range []*huma.Operation{item.Get, item.Put, item.Post, item.Patch, item.Delete} {
			if op != nil {
				delete(op.Responses, "422")
			}
		}
	}
}

// checkRequest refuses what the framework would let pass, or refuse without saying what to do: an
// unknown or repeated query parameter, a body that does not say that it is JSON.
func checkRequest(ctx huma.Context, next func(huma.Context)) {
	u := ctx.URL()
	p := checkQuery(u.RawQuery, queryParameters(ctx.Operation()))
	r, w := humago.Unwrap(ctx)
	if p == nil && r.ContentLength != 0 && ctx.Operation().RequestBody != nil && r.Header.Get("Content-Type") == "" {
		p = problem.Status(http.StatusUnsupportedMediaType, sendJSON)
	}
	if p == nil {
		next(ctx)
		return
	}
	p.RequestID = requestID(ctx.Context())
	p.Write(w)
}

// sendJSON is the detail of every 415.
const sendJSON = "send Content-Type: application/json"

// queryParameters are the names of those that an operation knows.
func queryParameters(op *huma.Operation) []string {
	var names []string
	for _, p := range op.Parameters {
		if p.In == "query" {
			names = append(names, p.Name)
		}
	}
	return names
}

// frameworkProblem turns what the framework found wrong with a request into a problem. It
// leaves out the values that the framework would quote: no answer repeats a body.
func frameworkProblem(ctx huma.Context, status int, msg string, errs []error) *problem.Problem {
	var items []problem.Item
	for _, err := range errs {
		var detail huma.ErrorDetailer
		switch {
		case err == nil:
		case errors.As(err, &detail):
			d := detail.ErrorDetail()
			items = append(items, problem.Item{Location: d.Location, Message: d.Message})
		case status < http.StatusInternalServerError:
			items = append(items, problem.Item{Message: err.Error()})
		}
	}
	items = firstItems(items)
	if ctx != nil {
		nameAllowed(ctx, items)
	}
	if len(items) > 0 {
		msg = strings.TrimPrefix(items[0].Location+": "+items[0].Message, ": ")
	}
	var p *problem.Problem
	if errors.Is(errors.Join(errs...), errBusy) {
		return busy(errBusy.Error())
	}
	switch status {
	case http.StatusUnprocessableEntity, http.StatusBadRequest:
		p = problem.New(run.CodeInvalidQuery, msg)
	case http.StatusRequestEntityTooLarge:
		p = tooLarge("the body", maxBodyBytes)
	case http.StatusUnsupportedMediaType: // the framework would quote what was sent
		return problem.Status(status, sendJSON)
	default:
		p = problem.Status(status, msg)
	}
	p.Errors = items
	return p
}

// firstItems sorts items and keeps the first few: a hostile body can have very many errors.
func firstItems(items []problem.Item) []problem.Item {
	const most = 20
	slices.SortFunc(items, compareItems)
	return items[:min(len(items), most)]
}

func compareItems(a, b problem.Item) int {
	return cmp.Or(strings.Compare(a.Location, b.Location), strings.Compare(a.Message, b.Message))
}
