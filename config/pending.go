package config

// What DESIGN promises and the engine cannot do yet is refused instead of ignored. Each entry
// goes when its feature comes.

// pendingSettings are settings of features that do not exist yet.
var pendingSettings = []string{
	"LEASECRON_DISCOVERY_PATH",
	"LEASECRON_API_TOKENS_FILE",
	"LEASECRON_API_TOKEN_REVIEW",
	"LEASECRON_CLOUDEVENTS_SINK",
}

// pendingValues are values of job fields that are known, by field.
var pendingValues = map[string][]string{}

// pendingKeys are keys of a job that are known.
var pendingKeys = []string{}
