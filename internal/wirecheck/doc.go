// Package wirecheck checks frames against the specification: the schema.json of their revision,
// and the further rules that can be decided from one connection. It is only for tests and
// independent of the code it checks.
//
// A [Checker] sees the frames of one connection in the order in which they crossed the wire and
// pairs each response with its request, so that a result is checked against the type of its
// method:
//
//   - the text: JSON without duplicate names, UTF-8, one value;
//   - the envelope: JSONRPCRequest, JSONRPCNotification and the two responses,
//     and no other member; batches in 2025-03-26 only;
//   - the typed definition by method and direction, results by the method of
//     their request, errors by code where the revision types them;
//   - pairing: no response without a request, no second one, no reused id;
//   - members of another revision: resultType, ttlMs, cacheScope, input rounds and per-request
//     _meta before 2026-07-28; error codes of another revision;
//   - of 2026-07-28: resultType, input rounds only where allowed and only with what the client
//     declared, log messages only on request, and notifications of a listen stream only with its
//     id and as requested.
//
// Not checked: HTTP, timing, and whether capabilities of a legacy session
// allow a method. Schemas are compiled when first needed, once per process.
package wirecheck
