// The outer frame of a view: it is a document of another host than the page, has the view in an inner frame, and passes
// messages between the two as JSON. The inner frame has an origin of its own, so it reaches neither this document nor
// storage; what it may load is in the policy of this document, which it inherits.
//
// The page is known by its origin, and the view by its window. Methods of the sandbox itself are never passed on.

const page = document.body.dataset.page!;
const own = "ui/notifications/sandbox-";

const maxLength = 1 << 20; // characters of a message of the view
const burst = 200; // messages of the view at once
const perSecond = 50; // and after these

let view: HTMLIFrameElement | undefined;
let left = burst;
let last = performance.now();

const tell = (method: string, params: object): void => parent.postMessage(JSON.stringify({ jsonrpc: "2.0", method: own + method, params }), page);

// stop ends the view: what it sends is not read any more.
function stop(reason: string): void {
	view?.remove();
	view = undefined;
	tell("stopped", { reason });
}

function fromView(data: unknown): void {
	const now = performance.now();
	left = Math.min(burst, left + ((now - last) / 1000) * perSecond) - 1;
	last = now;
	if (left < 0) return stop(`it sent more than ${burst} messages at once, or ${perSecond} a second`);
	let text: string | undefined;
	try {
		text = JSON.stringify(data);
	} catch {
		// it has a cycle or a number that JSON lacks
	}
	if (text === undefined || typeof data !== "object" || data === null) return tell("dropped", { reason: "it is not an object of JSON" });
	if (text.length > maxLength) return tell("dropped", { reason: `it has ${text.length} characters, and ${maxLength} are allowed` });
	if (String((data as { method?: unknown }).method).startsWith(own)) return tell("dropped", { reason: "its method is one of the sandbox" });
	parent.postMessage(text, page);
}

function fromPage(text: unknown): void {
	const message = JSON.parse(String(text));
	if (message.method !== own + "resource-ready") {
		view?.contentWindow?.postMessage(message, "*"); // the origin of the view has no name
		return;
	}
	if (view) return;
	view = document.createElement("iframe");
	view.title = "View";
	view.sandbox.add("allow-scripts", "allow-forms");
	view.srcdoc = message.params.html;
	Object.assign(view.style, { position: "fixed", inset: "0", width: "100%", height: "100%", border: "0" });
	document.body.append(view);
}

if (parent !== window) {
	addEventListener("message", (e) => {
		if (e.source === parent && e.origin === page) fromPage(e.data);
		else if (view && e.source === view.contentWindow) fromView(e.data);
	});
	tell("proxy-ready", {});
}
export {};
