package rights

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/leasecron/leasecron/rbac"
)

// The reviews that every authenticated account may ask for.
const (
	rulesReview   = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
	accessReview  = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
	subjectReview = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
)

// refusedToSay reports whether the API server does not answer reviews of this account at all.
func refusedToSay(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)
}

// ask finds out which rights are missing: by one request for all rules of the account, which may
// leave some out, and one more for each right that these do not grant.
func (c *Check) ask(ctx context.Context) (missing []rbac.Right, err error) {
	rules, err := c.rules(ctx)
	if err != nil && !refusedToSay(err) {
		return nil, err
	}
	for _, r := range c.opts.Rights {
		if c.namespace(r) == c.opts.Namespace && slices.ContainsFunc(rules, func(rule authorizationv1.ResourceRule) bool { return grants(rule, r) }) {
			continue
		}
		allowed, err := c.allowed(ctx, r)
		if err != nil {
			return nil, err
		}
		if !allowed {
			missing = append(missing, r)
		}
	}
	return missing, nil
}

func (c *Check) rules(ctx context.Context) ([]authorizationv1.ResourceRule, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, callTimeout, errors.New("no answer"))
	defer cancel()
	var answer authorizationv1.SelfSubjectRulesReview
	question := authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: c.opts.Namespace}}
	if err := c.opts.Reviewer.Review(ctx, rulesReview, question, &answer); err != nil {
		return nil, fmt.Errorf("ask for the rules of this account: %w", err)
	}
	return answer.Status.ResourceRules, nil
}

func grants(rule authorizationv1.ResourceRule, r rbac.Right) bool {
	has := func(list []string, want string) bool {
		return slices.Contains(list, want) || slices.Contains(list, "*")
	}
	return has(rule.Verbs, r.Verb) && has(rule.APIGroups, r.Group) && has(rule.Resources, r.Resource) &&
		(len(rule.ResourceNames) == 0 || r.Name != "" && slices.Contains(rule.ResourceNames, r.Name))
}

func (c *Check) allowed(ctx context.Context, r rbac.Right) (bool, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, callTimeout, errors.New("no answer"))
	defer cancel()
	var answer authorizationv1.SelfSubjectAccessReview
	question := authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: c.namespace(r), Verb: r.Verb, Group: r.Group, Resource: r.Resource, Name: r.Name,
		},
	}}
	if err := c.opts.Reviewer.Review(ctx, accessReview, question, &answer); err != nil {
		return false, fmt.Errorf("ask for the right to %s: %w", r, err)
	}
	return answer.Status.Allowed, nil
}

// whoAmI is the account of this process; empty where the API server does not say.
func (c *Check) whoAmI(ctx context.Context) string {
	ctx, cancel := context.WithTimeoutCause(ctx, callTimeout, errors.New("no answer"))
	defer cancel()
	var answer authenticationv1.SelfSubjectReview
	if err := c.opts.Reviewer.Review(ctx, subjectReview, authenticationv1.SelfSubjectReview{}, &answer); err != nil {
		return ""
	}
	return answer.Status.UserInfo.Username
}

// rightOf is the right that a request needs; false where it is none of those that a Role grants here.
func rightOf(req *http.Request) (rbac.Right, bool) {
	var r rbac.Right
	parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		r.Group, parts = parts[1], parts[3:]
	default:
		return r, false
	}
	if len(parts) < 3 || len(parts) > 4 || parts[0] != "namespaces" {
		return r, false
	}
	r.Resource = parts[2]
	if len(parts) == 4 {
		r.Name = parts[3]
	}
	query := req.URL.Query()
	switch {
	case req.Method == http.MethodGet && query.Has("watch"):
		r.Verb = "watch"
	case req.Method == http.MethodGet && r.Name == "":
		r.Verb = "list"
	case req.Method == http.MethodGet:
		r.Verb = "get"
	default:
		r.Verb = map[string]string{http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch"}[req.Method]
	}
	if selector, err := fields.ParseSelector(query.Get("fieldSelector")); err == nil && r.Name == "" {
		r.Name, _ = selector.RequiresExactMatch("metadata.name")
	}
	if r.Resource == "events" || r.Resource == "pods" { // rights on these name none
		r.Name = ""
	}
	return r, r.Verb != ""
}
