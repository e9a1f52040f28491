// What is on the wire.
import type { Shown } from "../screens";

export function Wire(_: Shown) {
	return <h1>Wire</h1>;
}
