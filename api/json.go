package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
)

// strictJSON reads JSON as the documents are read: a key that comes twice is an error, because
// two readers would choose differently, and so is text that is not UTF-8.
var strictJSON = huma.Format{
	Marshal: huma.DefaultJSONFormat.Marshal,
	Unmarshal: func(data []byte, v any) error {
		if !utf8.Valid(data) {
			return errors.New("not UTF-8")
		}
		// First, because it bounds the depth.
		if err := json.Unmarshal(data, v); err != nil && !beyondFloats(v, err) {
			return err
		}
		return checkUniqueKeys(data)
	},
}

// beyondFloats reports whether decoding into an any, which is what huma validates, failed for a
// number that no float64 holds. Where numbers stay as written that is none of its business, and
// elsewhere the decoding into the request's type fails again.
func beyondFloats(v any, err error) bool {
	var mismatch *json.UnmarshalTypeError
	_, untyped := v.(*any)
	return untyped && errors.As(err, &mismatch) && mismatch.Type.Kind() == reflect.Float64
}

// checkUniqueKeys returns an error when an object in valid JSON has a key twice.
func checkUniqueKeys(data []byte) error {
	// keys of the objects around the place that is read; nil for an array. In an object every
	// second token on its own level is a key.
	type level struct {
		keys map[string]struct{}
		key  bool // the next token is a key
	}
	var levels []level
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if token == json.Delim('}') || token == json.Delim(']') {
			levels = levels[:len(levels)-1]
			continue
		}
		if n := len(levels) - 1; n >= 0 && levels[n].keys != nil {
			if levels[n].key {
				key, _ := token.(string)
				if _, twice := levels[n].keys[key]; twice {
					return fmt.Errorf("key %.64q comes twice", key)
				}
				levels[n].keys[key] = struct{}{}
			}
			levels[n].key = !levels[n].key
		}
		switch token {
		case json.Delim('{'):
			levels = append(levels, level{keys: map[string]struct{}{}, key: true})
		case json.Delim('['):
			levels = append(levels, level{})
		}
	}
}
