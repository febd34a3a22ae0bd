package manifests

import (
	"cmp"
	"errors"
	"fmt"
)

// appName is whose jobs a workload's are: what was given, else the workload's name. A name that YAML reads as
// something other than text is refused in any case: the API server would not take it.
func appName(o Object, given string) (string, error) {
	switch name := at(o, "metadata", "name").(type) {
	case string, nil: // none, with generateName: whatever is made of it has the same jobs
		if app := cmp.Or(given, o.Name()); app != "" {
			return app, nil
		}
	default:
		return "", fmt.Errorf("metadata.name is %.40q, which YAML does not read as text: write it in quotes", fmt.Sprint(name))
	}
	return "", errors.New("has no metadata.name, after which the app is called: name it, or say --app")
}
