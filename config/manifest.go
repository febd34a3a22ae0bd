package config

import "strings"

// manifest refuses a Kubernetes object, which no jobs document looks like, with one error instead of
// one for each of its keys. It reports whether it is one.
func (d *decoder) manifest(o *object) bool {
	kind := o.value("kind")
	if kind.kind != kindString || !o.has("apiVersion") {
		return false
	}
	if kind.text != "ConfigMap" {
		d.fail(o.placeOf("kind"), "this is a Kubernetes manifest of kind %s (want a jobs document)", quote(kind.text))
		return true
	}
	at, want := o.placeOf("kind"), "data.<key>"
	if data, ok := o.n.get("data"); ok && data.value.kind == kindMap && len(data.value.fields) > 0 {
		m := data.value.fields[0] // the one that looks like a jobs document, else the first
		for _, field := range data.value.fields {
			if strings.Contains(field.value.text, "jobs:") {
				m = field
				break
			}
		}
		at = o.at.child(data).child(m)
		at.line, at.col = m.line, m.col
		want = "data." + m.key
		if !plainKey.MatchString(strings.ReplaceAll(m.key, ".", "")) {
			want = "data." + quote(m.key)
		}
	}
	d.fail(at, "the document is the manifest of a ConfigMap (want the jobs document alone, which is the value of %s)", want)
	return true
}
