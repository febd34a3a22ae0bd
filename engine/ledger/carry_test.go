package ledger_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leasecron/leasecron/engine/ledger"
)

// house is a document with everything in it that a document may have.
type house struct {
	Floor  int                        `json:"floor,omitempty"`
	Door   *door                      `json:"door,omitempty"`
	Rooms  []room                     `json:"rooms,omitempty"`
	Keys   map[string]room            `json:"keys,omitempty"`
	Spans  []span                     `json:"spans,omitempty"`
	Loose  map[string]json.RawMessage `json:"loose,omitempty"`
	Colors []string                   `json:"colors,omitempty"`
	Grid   [][]span                   `json:"grid,omitempty"`
}

type door struct {
	Open bool  `json:"open"`
	Lock *room `json:"lock,omitempty"`
}

type room struct {
	ID   string `json:"id,omitempty"`
	Name string `json:"name,omitempty"`
	Size int    `json:"size,omitempty"`
}

type span struct {
	From int `json:"from"`
	To   int `json:"to"`
}

// Each row is what a newer version has stored, one swap by this one, and what is stored then. The
// member "new", wherever it stands, is one that this version does not know.
func TestUnknownMembersSurviveSwaps(t *testing.T) {
	tests := map[string]struct {
		stored string
		change func(*house)
		want   string
	}{
		"at the top": {
			stored: `{"new":{"a":[1,2]},"floor":1}`,
			change: func(h *house) { h.Floor = 2 },
			want:   `{"floor":2,"new":{"a":[1,2]}}`,
		},
		"with numbers digit for digit": {
			stored: `{"new":9007199254740993,"newer":0.1000000000000000055,"newest":1e400}`,
			change: func(h *house) { h.Floor = 2 },
			want:   `{"floor":2,"new":9007199254740993,"newer":0.1000000000000000055,"newest":1e400}`,
		},
		"in a nested object": {
			stored: `{"door":{"open":false,"new":1,"lock":{"id":"l","new":{"deep":true}}}}`,
			change: func(h *house) { h.Door.Open = true; h.Door.Lock.Size = 3 },
			want:   `{"door":{"open":true,"lock":{"id":"l","size":3,"new":{"deep":true}},"new":1}}`,
		},
		"in an object that this version left out as empty": {
			stored: `{"rooms":[{"id":"a","new":1}],"door":{"open":false}}`,
			change: func(h *house) { h.Door = &door{Open: true} },
			want:   `{"door":{"open":true},"rooms":[{"id":"a","new":1}]}`,
		},
		"not in an object that was removed": {
			stored: `{"floor":1,"door":{"open":true,"new":1}}`,
			change: func(h *house) { h.Door = nil },
			want:   `{"floor":1}`,
		},
		"but members that were removed on purpose do not come back": {
			stored: `{"floor":1,"door":{"open":true,"lock":{"id":"l"}},"new":1}`,
			change: func(h *house) { h.Floor = 0; h.Door.Lock = nil },
			want:   `{"door":{"open":true},"new":1}`,
		},
		"in the values of a map, whose keys come and go": {
			stored: `{"keys":{"a":{"size":1,"new":1},"b":{"size":2,"new":2}}}`,
			change: func(h *house) { delete(h.Keys, "a"); h.Keys["b"] = room{Size: 3}; h.Keys["c"] = room{Size: 4} },
			want:   `{"keys":{"b":{"size":3,"new":2},"c":{"size":4}}}`,
		},
		"in the elements of an array, by ID, whatever their order": {
			stored: `{"rooms":[{"id":"a","new":1},{"id":"b","new":2},{"id":"c","new":3}]}`,
			change: func(h *house) { h.Rooms = []room{{ID: "c", Size: 9}, {ID: "x"}, {ID: "a"}} },
			want:   `{"rooms":[{"id":"c","size":9,"new":3},{"id":"x"},{"id":"a","new":1}]}`,
		},
		"by name where there is no ID": {
			stored: `{"rooms":[{"name":"a","new":1},{"name":"b","new":2}]}`,
			change: func(h *house) { h.Rooms = []room{{Name: "b", Size: 9}} },
			want:   `{"rooms":[{"name":"b","size":9,"new":2}]}`,
		},
		"in elements without a name, while they stay what they are": {
			stored: `{"spans":[{"from":1,"to":2,"new":1},{"from":3,"to":4,"new":2},{"from":5,"to":6,"new":3}]}`,
			change: func(h *house) { h.Spans = append(h.Spans[1:], span{7, 8}) },
			want:   `{"spans":[{"from":3,"to":4,"new":2},{"from":5,"to":6,"new":3},{"from":7,"to":8}]}`,
		},
		"never in the wrong one of two elements of one name": {
			stored: `{"rooms":[{"id":"a","size":1,"new":1},{"id":"a","size":2,"new":2}]}`,
			change: func(h *house) { h.Rooms[0].Size, h.Rooms[1].Size = 3, 4 },
			want:   `{"rooms":[{"id":"a","size":3},{"id":"a","size":4}]}`,
		},
		"in arrays of arrays that stay what they are": {
			stored: `{"grid":[[{"from":1,"to":2,"new":1}],[{"from":3,"to":4}]]}`,
			change: func(h *house) { h.Grid[1][0].To = 5 },
			want:   `{"grid":[[{"from":1,"to":2,"new":1}],[{"from":3,"to":5}]]}`,
		},
		"but not a known member in other letters beside itself": {
			stored: `{"Floor":1,"new":1}`,
			change: func(h *house) { h.Floor++ },
			want:   `{"floor":2,"new":1}`,
		},
		"null and empty values included": {
			stored: `{"floor":1,"new":null,"newer":"","newest":[]}`,
			change: func(h *house) { h.Floor = 2 },
			want:   `{"floor":2,"new":null,"newer":"","newest":[]}`,
		},
		"together with records that only the caller can read": {
			stored: `{"loose":{"bad":"not a room","good":{"size":1,"new":1}},"new":1}`,
			change: func(h *house) { h.Floor = 1 },
			want:   `{"floor":1,"loose":{"bad":"not a room","good":{"size":1,"new":1}},"new":1}`,
		},
		"in text that HTML would have escaped": {
			stored: `{"new":"<a> & <b>","loose":{"x":"<&>"}}`,
			change: func(h *house) { h.Floor = 1 },
			want:   `{"floor":1,"loose":{"x":"<&>"},"new":"<a> & <b>"}`,
		},
		"where the type of a member was changed": {
			stored: `{"colors":["red"],"new":1}`,
			change: func(h *house) { h.Colors = append(h.Colors, "blue") },
			want:   `{"colors":["red","blue"],"new":1}`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			for layout, stored := range map[string]string{
				"as written":  `{"format":1,"writeId":"w0","earlierWrites":["w"],` + tt.stored[1:],
				"other order": tt.stored[:len(tt.stored)-1] + `,"writeId":"w0","format":1}`,
				"over lines":  "{\n  \"format\" : 1,\n  \"writeId\": \"w0\",\n " + tt.stored[1:] + "\n",
			} {
				store := ledger.NewMemory()
				_, from, err := store.Load(t.Context(), ledger.NameCatalog)
				if err == nil {
					_, err = store.Replace(t.Context(), ledger.NameCatalog, from, []byte(stored))
				}
				if err != nil {
					t.Fatal(err)
				}
				doc := ledger.NewDocument[house](store, ledger.NameCatalog)
				if _, _, err := doc.Swap(t.Context(), func(h *house) error { tt.change(h); return nil }); err != nil {
					t.Fatalf("%s: Swap() = %v", layout, err)
				}
				// A second swap, from what is remembered now, must keep them too.
				if _, _, err := doc.Swap(t.Context(), func(*house) error { return nil }); err != nil {
					t.Fatalf("%s: Swap() = %v", layout, err)
				}
				data, _, _ := store.Load(t.Context(), ledger.NameCatalog)
				if diff := cmp.Diff(tt.want, withoutEnvelope(t, data)); diff != "" {
					t.Errorf("%s: stored (-want +got):\n%s", layout, diff)
				}
			}
		})
	}
}

// withoutEnvelope returns the document's own members as they are stored.
func withoutEnvelope(t *testing.T, data []byte) string {
	t.Helper()
	head := struct {
		Format  int      `json:"format"`
		WriteID string   `json:"writeId"`
		Earlier []string `json:"earlierWrites,omitempty"`
	}{}
	if err := json.Unmarshal(data, &head); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(head)
	if err != nil {
		t.Fatal(err)
	}
	body, ok := strings.CutPrefix(string(data), strings.TrimSuffix(string(text), "}"))
	if !ok {
		t.Fatalf("%s does not begin with %s", data, text)
	}
	return "{" + strings.TrimPrefix(body, ",")
}
