package api_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"github.com/leasecron/leasecron/api"
)

func TestTheKeysBesideAnUnknownOne(t *testing.T) {
	type inner struct {
		Name string `json:"name"`
	}
	type body struct {
		One   inner          `json:"one"`
		Ones  []inner        `json:"ones"`
		Other string         `json:"other"`
		Data  map[string]any `json:"data"`
	}
	schemas := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	schema := schemas.Schema(reflect.TypeFor[body](), true, "")
	ofBody, ofInner := []string{"data", "one", "ones", "other"}, []string{"name"}
	for path, want := range map[string][]string{
		"x": ofBody, "one.x": ofInner, "ones[12].x": ofInner, "ones[12].x.y": ofInner,
		"other.x": ofBody, "ones.x": ofBody, "ones[x": ofBody, "onesx": ofBody, "one[0].x": ofBody, "": ofBody,
	} {
		if got := api.KeysAt(schemas, schema, path); !slices.Equal(got, want) {
			t.Errorf("beside %q there are %v, want %v", path, got, want)
		}
	}
}
