// Package ledger keeps the small documents that the replicas of an app share: the ledger itself,
// the catalog, the history and the named leases.
//
// It has two layers. A [Store] keeps opaque bytes and changes them only by compare-and-swap:
// in memory, in files, or in ConfigMaps. A [Document] is one typed JSON document in a Store. Its
// Swap promises that
//
//   - a change is a function of freshly read state: after a conflict it is computed anew, never
//     sent again with another version;
//   - no two writers win from the same version, even when they write the same content;
//   - a write whose answer was lost is found out about, and is neither applied twice nor taken for
//     failed while it can still land;
//   - members that this version of the program does not know survive;
//   - a document of a newer format is never written.
//
// The package does not know what the documents mean. Package ledgertest holds the suite that every
// Store passes, and a Store that fails on demand.
package ledger
