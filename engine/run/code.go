package run

// Code is one of the closed set of error codes that the ledger, the API, the metrics and the
// retry rules share.
type Code string

// The error codes. What the API answers with each is in package api/problem.
const (
	CodeJobNotFound     Code = "SCHEDULING_NOTFOUND_001"
	CodeTriggerNotFound Code = "SCHEDULING_NOTFOUND_003"
	CodeRunNotFound     Code = "SCHEDULING_NOTFOUND_004"
	CodeNoDefinition    Code = "SCHEDULING_NOTFOUND_005"

	CodeInvalidDefinition Code = "SCHEDULING_VALIDATION_001"
	CodeInvalidQuery      Code = "SCHEDULING_VALIDATION_002"

	CodeAlreadyRunning       Code = "SCHEDULING_CONFLICT_001"
	CodeLeaseHeld            Code = "SCHEDULING_CONFLICT_002"
	CodeCanceled             Code = "SCHEDULING_CONFLICT_003"
	CodeStaleRevision        Code = "SCHEDULING_CONFLICT_004"
	CodeIdempotencyKeyReused Code = "SCHEDULING_CONFLICT_005"
	CodeRunOver              Code = "SCHEDULING_CONFLICT_006"
	CodeRunNotAwaited        Code = "SCHEDULING_CONFLICT_007"

	CodeNoScheduler     Code = "SCHEDULING_UNAVAILABLE_001"
	CodeElectionUnknown Code = "SCHEDULING_UNAVAILABLE_002"
	CodeLedgerUnknown   Code = "SCHEDULING_UNAVAILABLE_003"
	CodeLedgerFull      Code = "SCHEDULING_UNAVAILABLE_004"
	CodeTooBusy         Code = "SCHEDULING_UNAVAILABLE_005"

	CodeTimeout Code = "SCHEDULING_TIMEOUT_001"
	// CodeFailed: the app answered with a failure, refused the connection, or lost it.
	CodeFailed Code = "SCHEDULING_UNEXPECTED_001"
)
