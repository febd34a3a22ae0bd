package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// points are the series of one scrape that have a job's name. There may be tens of thousands of them: they are
// cut from two slabs, and share the pairs of their labels.
type points struct {
	all   []point
	pairs []*dto.LabelPair
}

// point is a series at one moment.
type point struct {
	desc    *prometheus.Desc
	labels  []*dto.LabelPair
	counter bool
	value   float64
}

// newPoints has room for n series of at most two labels.
func newPoints(n int) *points {
	return &points{all: make([]point, 0, n), pairs: make([]*dto.LabelPair, 0, 2*n)}
}

// add appends a series; its labels come in the order of their names, as Prometheus wants them.
func (p *points) add(desc *prometheus.Desc, counter bool, value float64, labels ...*dto.LabelPair) {
	from := len(p.pairs)
	p.pairs = append(p.pairs, labels...)
	p.all = append(p.all, point{desc: desc, labels: p.pairs[from:len(p.pairs):len(p.pairs)], counter: counter, value: value})
}

func (p *points) send(ch chan<- prometheus.Metric) {
	for i := range p.all {
		ch <- &p.all[i]
	}
}

func pair(name, value string) *dto.LabelPair { return &dto.LabelPair{Name: &name, Value: &value} }

// Desc implements [prometheus.Metric].
func (p *point) Desc() *prometheus.Desc { return p.desc }

// Write implements [prometheus.Metric].
func (p *point) Write(m *dto.Metric) error {
	m.Label = p.labels
	if p.counter {
		m.Counter = &dto.Counter{Value: &p.value}
	} else {
		m.Gauge = &dto.Gauge{Value: &p.value}
	}
	return nil
}
