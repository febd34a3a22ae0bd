package chaos

import (
	"net/http"
	"time"

	"github.com/leasecron/leasecron/test/faultproxy"
)

// proxyFault is what the proxy has to do, and to which requests.
func proxyFault(f fault) (faultproxy.Fault, []faultproxy.Match) {
	fault, matches := proxyFaultOfKind(f)
	if f.Only != "" {
		matches = append(matches, faultproxy.Resource(f.Only))
	}
	return fault, matches
}

func proxyFaultOfKind(f fault) (faultproxy.Fault, []faultproxy.Match) {
	few := 1 + f.Number%4
	pause := time.Duration(50+f.Number) * time.Millisecond
	notWatch := faultproxy.Not(faultproxy.Verb("watch"))
	switch f.Kind {
	case delayRequests:
		return faultproxy.Delay(pause), []faultproxy.Match{notWatch}
	case delayAnswers:
		return faultproxy.DelayAnswer(pause), []faultproxy.Match{notWatch}
	case resetRequests:
		return faultproxy.Reset().Times(few), nil
	case hangRequests:
		return faultproxy.Hang(), nil
	case hangAnswers:
		return faultproxy.HangAnswer(), []faultproxy.Match{faultproxy.Verb("update")}
	case dropAnswers:
		return faultproxy.DropAnswer().Times(few), []faultproxy.Match{faultproxy.Verb("update")}
	case throttle:
		return faultproxy.Status(http.StatusTooManyRequests, time.Second), nil
	default:
		return faultproxy.Status(http.StatusServiceUnavailable, 0), nil
	}
}
