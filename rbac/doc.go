// Package rbac says what a sidecar may do in its namespace: the least Role for what is switched on.
//
// Each verb in it is one that the program uses, on objects that are named: no wildcard, no cluster role, and
// no "create" but that of Events. The sidecar replaces objects that others made (see package manifests), because
// RBAC cannot bind the creation of an object to a name.
package rbac
