// The tools of a server: a form, the call, its result.
import type { Shown } from "../screens";

export function Tools({ words }: Shown) {
	return <h1>Tools of {words[1] ?? ""}</h1>;
}
