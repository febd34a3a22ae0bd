package api

import (
	"maps"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/validation"

	"github.com/leasecron/leasecron/api/problem"
)

// schemasKey is the key, in the context of a request, of the schemas that the operation's refers to.
type schemasKey struct{}

// withSchemas makes the schemas known to whoever explains what is wrong with a request.
func withSchemas(schemas huma.Registry) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) { next(huma.WithValue(ctx, schemasKey{}, schemas)) }
}

// nameAllowed says of each unknown key in a body which ones there are: the framework says that it is unknown.
func nameAllowed(ctx huma.Context, items []problem.Item) {
	for i := range items {
		if items[i].Message != validation.MsgUnexpectedProperty {
			continue
		}
		items[i].Message = "unknown key"
		if keys := keysBeside(ctx, items[i].Location); len(keys) > 0 {
			items[i].Message += "; allowed: " + strings.Join(keys, ", ")
		}
	}
}

// keysBeside returns the keys of the object in which the key at location is unknown; nil if that is not known.
func keysBeside(ctx huma.Context, location string) []string {
	schemas, _ := ctx.Context().Value(schemasKey{}).(huma.Registry)
	path, ok := strings.CutPrefix(location, "body.")
	if !ok || schemas == nil || ctx.Operation().RequestBody == nil {
		return nil
	}
	media := ctx.Operation().RequestBody.Content["application/json"]
	if media == nil {
		return nil
	}
	return keysAt(schemas, media.Schema, path)
}

// keysAt returns the keys of the object within body to which path leads, all but for its last part.
func keysAt(schemas huma.Registry, body *huma.Schema, path string) []string {
	object := follow(schemas, body)
	for object != nil {
		inner, rest := step(schemas, object, path)
		if inner == nil {
			break
		}
		object, path = inner, rest
	}
	if object == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(object.Properties))
}

// step goes along path into an object within object; nil if the path leads into none, so that it begins with the
// unknown key. That may hold whatever its author wrote, dots and brackets too.
func step(schemas huma.Registry, object *huma.Schema, path string) (inner *huma.Schema, rest string) {
	for name, property := range object.Properties {
		rest, ok := strings.CutPrefix(path, name)
		if !ok {
			continue
		}
		property = follow(schemas, property)
		if property != nil && property.Items != nil {
			end := strings.IndexByte(rest, ']')
			if !strings.HasPrefix(rest, "[") || end < 0 {
				continue
			}
			property, rest = follow(schemas, property.Items), rest[end+1:]
		}
		if rest, ok = strings.CutPrefix(rest, "."); ok && property != nil && len(property.Properties) > 0 {
			return property, rest
		}
	}
	return nil, ""
}

func follow(schemas huma.Registry, s *huma.Schema) *huma.Schema {
	if s != nil && s.Ref != "" {
		return schemas.SchemaFromRef(s.Ref)
	}
	return s
}
