package faultproxy

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Request is what the proxy saw of a request.
type Request struct {
	At     time.Time
	Method string
	Path   string
	// Verb is the Kubernetes verb: get, list, watch, create, update, patch, delete or
	// deletecollection; the method in lower case for a path that is no resource.
	Verb string
	// Group, Namespace, Resource, Name and Subresource are empty where the path has none.
	Group, Namespace, Resource, Name, Subresource string
	// Selected is the only name that a list or a watch asks for, by its field selector.
	Selected string
	// Status is that of the API server's answer; 0 before it has come, and where none did.
	Status int
}

// Match chooses requests. Several matches given together must all agree.
type Match func(Request) bool

// Method matches the HTTP method.
func Method(method string) Match {
	return func(r Request) bool { return r.Method == method }
}

// Path matches paths in which the regular expression is found. It panics on a bad one.
func Path(expression string) Match {
	re := regexp.MustCompile(expression)
	return func(r Request) bool { return re.MatchString(r.Path) }
}

// Verb matches any of these Kubernetes verbs.
func Verb(verbs ...string) Match {
	return func(r Request) bool { return slices.Contains(verbs, r.Verb) }
}

// Resource matches a resource by its plural name, such as "leases", in any group.
func Resource(resource string) Match {
	return func(r Request) bool { return r.Resource == resource }
}

// Name matches the name of the object.
func Name(name string) Match {
	return func(r Request) bool { return r.Name == name }
}

// Not turns a match round.
func Not(m Match) Match {
	return func(r Request) bool { return !m(r) }
}

func matchesAll(r Request, matches []Match) bool {
	for _, m := range matches {
		if !m(r) {
			return false
		}
	}
	return true
}

// describe reads /api/v1/… and /apis/<group>/<version>/… paths.
func describe(r *http.Request) Request {
	req := Request{
		At:     time.Now(),
		Method: r.Method,
		Path:   r.URL.Path,
		Verb:   strings.ToLower(r.Method),
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		req.Group, parts = parts[1], parts[3:]
	default:
		return req
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		req.Namespace, parts = parts[1], parts[2:]
	}
	at := func(i int) string {
		if i < len(parts) {
			return parts[i]
		}
		return ""
	}
	req.Resource, req.Name, req.Subresource = at(0), at(1), at(2)
	req.Selected, _ = strings.CutPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")
	switch r.Method {
	case http.MethodGet:
		switch watch := r.URL.Query().Get("watch"); {
		case watch == "true" || watch == "1":
			req.Verb = "watch"
		case req.Name == "":
			req.Verb = "list"
		}
	case http.MethodPost:
		req.Verb = "create"
	case http.MethodPut:
		req.Verb = "update"
	case http.MethodDelete:
		if req.Name == "" {
			req.Verb = "deletecollection"
		}
	}
	return req
}
