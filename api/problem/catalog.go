package problem

import (
	"net/http"
	"slices"

	"github.com/leasecron/leasecron/engine/run"
)

// entry is what the catalog knows of a code. Titles in further languages go beside english,
// each in a map of its own with the same keys; statuses stay here.
type entry struct {
	status int
	title  string
}

var english = map[run.Code]entry{
	run.CodeJobNotFound:     {http.StatusNotFound, "No such job"},
	run.CodeTriggerNotFound: {http.StatusNotFound, "No such trigger"},
	run.CodeRunNotFound:     {http.StatusNotFound, "No such run, or it has ended"},
	run.CodeNoDefinition:    {http.StatusNotFound, "The job has no configured definition"},

	run.CodeInvalidDefinition: {http.StatusBadRequest, "The definition is not valid"},
	run.CodeInvalidQuery:      {http.StatusBadRequest, "The request is not valid"},

	run.CodeAlreadyRunning:       {http.StatusConflict, "The job is already running"},
	run.CodeLeaseHeld:            {http.StatusConflict, "The lease is held by somebody else"},
	run.CodeCanceled:             {http.StatusConflict, "The run was canceled"},
	run.CodeStaleRevision:        {http.StatusConflict, "The revision is not the newest"},
	run.CodeIdempotencyKeyReused: {http.StatusConflict, "The idempotency key was used with other content"},
	run.CodeRunOver:              {http.StatusConflict, "The run is over"},
	run.CodeRunNotAwaited:        {http.StatusConflict, "The run does not wait for the app's word"},

	run.CodeNoScheduler:     {http.StatusServiceUnavailable, "No scheduler is running"},
	run.CodeElectionUnknown: {http.StatusServiceUnavailable, "The store of the election cannot be reached"},
	run.CodeLedgerUnknown:   {http.StatusServiceUnavailable, "The ledger cannot be reached"},
	run.CodeLedgerFull:      {http.StatusServiceUnavailable, "The ledger is full"},
	run.CodeTooBusy:         {http.StatusServiceUnavailable, "Too many requests at once"},

	run.CodeTimeout: {http.StatusGatewayTimeout, "The run took longer than its timeout"},
	run.CodeFailed:  {http.StatusBadGateway, "The run failed"},
}

// Codes returns every code of the catalog, sorted.
func Codes() []run.Code {
	codes := make([]run.Code, 0, len(english))
	for code := range english {
		codes = append(codes, code)
	}
	slices.Sort(codes)
	return codes
}
