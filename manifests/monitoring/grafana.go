package monitoring

// The part of Grafana's dashboard model (schema version 39) that the dashboard uses.
type (
	dashboard struct {
		UID           string         `json:"uid"`
		Title         string         `json:"title"`
		Description   string         `json:"description"`
		Tags          []string       `json:"tags"`
		SchemaVersion int            `json:"schemaVersion"`
		Editable      bool           `json:"editable"`
		Refresh       string         `json:"refresh"`
		Timezone      string         `json:"timezone"`
		Time          timeRange      `json:"time"`
		GraphTooltip  int            `json:"graphTooltip"`
		Templating    templating     `json:"templating"`
		Annotations   map[string]any `json:"annotations"`
		Panels        []panel        `json:"panels"`
	}
	timeRange struct {
		From string `json:"from"`
		To   string `json:"to"`
	}
	templating struct {
		List []variable `json:"list"`
	}
	variable struct {
		Name       string      `json:"name"`
		Label      string      `json:"label"`
		Type       string      `json:"type"`
		Query      any         `json:"query"`
		Definition string      `json:"definition,omitempty"`
		Datasource *datasource `json:"datasource,omitempty"`
		Refresh    int         `json:"refresh"`
		Sort       int         `json:"sort"`
		Multi      bool        `json:"multi"`
		IncludeAll bool        `json:"includeAll"`
		AllValue   string      `json:"allValue,omitempty"`
		Current    *choice     `json:"current,omitempty"`
	}
	choice struct {
		Selected bool   `json:"selected"`
		Text     string `json:"text"`
		Value    string `json:"value"`
	}
	datasource struct {
		Type string `json:"type"`
		UID  string `json:"uid"`
	}
	panel struct {
		ID              int              `json:"id"`
		Type            string           `json:"type"`
		Title           string           `json:"title"`
		Description     string           `json:"description,omitempty"`
		GridPos         gridPos          `json:"gridPos"`
		Datasource      *datasource      `json:"datasource,omitempty"`
		Targets         []target         `json:"targets,omitempty"`
		FieldConfig     *fieldConfig     `json:"fieldConfig,omitempty"`
		Options         map[string]any   `json:"options,omitempty"`
		Transformations []map[string]any `json:"transformations,omitempty"`
		Collapsed       *bool            `json:"collapsed,omitempty"`
		Panels          *[]panel         `json:"panels,omitempty"`
	}
	gridPos struct {
		H int `json:"h"`
		W int `json:"w"`
		X int `json:"x"`
		Y int `json:"y"`
	}
	target struct {
		RefID        string      `json:"refId"`
		Datasource   *datasource `json:"datasource"`
		Expr         string      `json:"expr"`
		LegendFormat string      `json:"legendFormat,omitempty"`
		Instant      bool        `json:"instant"`
		Range        bool        `json:"range"`
		Format       string      `json:"format,omitempty"`
	}
	fieldConfig struct {
		Defaults  fieldDefaults `json:"defaults"`
		Overrides []override    `json:"overrides"`
	}
	fieldDefaults struct {
		Unit       string           `json:"unit,omitempty"`
		Min        *float64         `json:"min,omitempty"`
		Decimals   *int             `json:"decimals,omitempty"`
		NoValue    string           `json:"noValue,omitempty"`
		Mappings   []map[string]any `json:"mappings,omitempty"`
		Thresholds *thresholds      `json:"thresholds,omitempty"`
		Color      map[string]any   `json:"color,omitempty"`
		Custom     map[string]any   `json:"custom,omitempty"`
	}
	thresholds struct {
		Mode  string `json:"mode"`
		Steps []step `json:"steps"`
	}
	step struct {
		Color string   `json:"color"`
		Value *float64 `json:"value"`
	}
	override struct {
		Matcher    map[string]any   `json:"matcher"`
		Properties []map[string]any `json:"properties"`
	}
)

// columns is the width of Grafana's grid.
const columns = 24

// layout puts panels beside and below one another and numbers them.
type layout struct {
	panels  []panel
	x, y, h int
}

func (l *layout) add(width, height int, p panel) {
	if l.x+width > columns {
		l.x, l.y, l.h = 0, l.y+l.h, 0
	}
	p.ID = len(l.panels) + 1
	p.GridPos = gridPos{H: height, W: width, X: l.x, Y: l.y}
	l.x, l.h = l.x+width, max(l.h, height)
	l.panels = append(l.panels, p)
}

// row begins a new part with a heading.
func (l *layout) row(title string) {
	l.x, l.y, l.h = 0, l.y+l.h, 0
	l.add(columns, 1, panel{Type: "row", Title: title, Collapsed: new(false), Panels: &[]panel{}})
	l.x, l.y, l.h = 0, l.y+1, 0
}
