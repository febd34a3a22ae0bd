package kube

import (
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// errBlind refuses a write that the API server would not compare with what is stored.
var errBlind = errors.New("refused to replace an object without its resourceVersion and uid")

// notSentError is the failure of a request that no connection was found for.
type notSentError struct{ err error }

func (e *notSentError) Error() string { return e.err.Error() }
func (e *notSentError) Unwrap() error { return e.err }

// Unknown reports whether a write that ended with err may have been applied, or may still be: its
// answer was lost, or the API server itself does not know (any 5xx, a proxy's included). Reading
// the old resourceVersion afterwards proves nothing; only a later write from the same one does.
//
// It is false where the write was surely refused (409, 403, 404, 413, 422, 429, …) or never left.
func Unknown(err error) bool {
	if err == nil || errors.Is(err, errBlind) {
		return false
	}
	if _, ok := errors.AsType[*notSentError](err); ok {
		return false
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		code := status.Status().Code
		return code < http.StatusBadRequest || code == http.StatusRequestTimeout || code >= http.StatusInternalServerError
	}
	return true
}
