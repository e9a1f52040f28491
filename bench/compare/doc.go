// Compare measures Patchbay side by side with bare, which does not use a library, and with
// other libraries, on this machine, and prints a table:
//
//	go run ./bench/compare                         # about 4 minutes
//	go run ./bench/compare -only stdio,http -rounds 9
//	go run ./bench/compare -peers bare -json out.json
//
// It builds an echo server, an echo client and an in-process benchmark of each peer into a
// temporary folder (the peers of bench/peers; the first time, the go command downloads the
// libraries) and starts them one by one. Peers take turns within a round, and the order
// rotates from round to round, so that other load on the machine affects all alike. A ratio
// is taken within each round, between neighbours in time. The table has the medians over the
// rounds, and after ± half the distance between the least and the greatest.
//
// CPU is the time of the process under test alone, without the load generator's and without
// waiting; with the gateway it is that of both its processes. The load generator is package
// bench/load. docs/performance.md says what each row means.
//
// Process clocks need Linux. On other systems compare says so and exits with status 64. It
// exits with 1 if a measurement of Patchbay or of bare failed; failures of other peers are
// reported below the table.
package main
