package manifests

// ParseStream reads a stream of YAML documents.
func ParseStream(stream []byte) ([]Object, error) {
	documents, err := readDocuments(stream, "the input")
	if err != nil {
		return nil, err
	}
	var out []Object
	for _, d := range documents {
		if d.object != nil {
			out = append(out, d.objects()...)
		}
	}
	return out, nil
}

// Common is what an object in a cluster has of the fields that are wanted: without what the API server filled in and
// what others added.
func Common(wanted, live Object) Object {
	return common(map[string]any(wanted), map[string]any(live)).(map[string]any)
}

func common(wanted, live any) any {
	switch w := wanted.(type) {
	case map[string]any:
		l, ok := live.(map[string]any)
		if !ok {
			return live
		}
		out := make(map[string]any, len(w))
		for key, value := range w {
			if is, ok := l[key]; ok {
				out[key] = common(value, is)
			}
		}
		return out
	case []any:
		l, ok := live.([]any)
		if !ok || len(l) != len(w) {
			return live
		}
		out := make([]any, len(w))
		for i := range w {
			out[i] = common(w[i], l[i])
		}
		return out
	}
	return live
}
