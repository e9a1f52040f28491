// Package wirecheck tells whether frames obey the specification: the
// schema.json of their revision, and the rules beside it that a look at one
// connection can decide. It is for tests only and knows nothing of the code
// it checks.
//
// A [Checker] sees the frames of one connection in the order in which they
// crossed the wire and pairs each response with its request, so that a result
// is checked against the type its method promises:
//
//   - the text: JSON without duplicate names, UTF-8, one value;
//   - the envelope: JSONRPCRequest, JSONRPCNotification and the two responses,
//     and no other member; batches in 2025-03-26 only;
//   - the typed definition by method and direction, results by the method of
//     their request, errors by code where the revision types them;
//   - pairing: no response without a request, no second one, no reused id;
//   - what belongs to another revision: resultType, ttlMs, cacheScope, input
//     rounds and per-request _meta before 2026-07-28; codes of the one or the
//     other;
//   - of 2026-07-28: resultType, input rounds only where allowed and only with
//     what the client declared, log messages only on request, and
//     notifications of a listen stream only with its id and as asked.
//
// Not checked: HTTP, timing, and whether capabilities of a legacy session
// allow a method. Schemas are compiled when first needed, once per process.
package wirecheck
