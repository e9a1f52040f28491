// The resources and the resource templates of a server.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Combobox } from "../combobox";
import { onCtrlEnter } from "../keys";
import { useList, watch, watched, watchKey, type Resource, type Template } from "../lists";
import { ago, Button, Link, size } from "../parts";
import { history, readResource } from "../runs";
import { join, use } from "../store";
import { expand, variables } from "../template";
import { line, visible } from "../text";
import { Outcome, Questions } from "./prompts";
import { Columns } from "./tools";

export function Resources(p: { server: string; uri?: string }) {
	const list = useList<Resource>(p.server, "resources");
	const resource = list.items?.find((r) => r.uri === p.uri);
	return (
		<Columns what="resources" list={list} chosen={p.uri} id={(r) => r.uri} back={join("s", p.server, "resources")}>
			{p.uri !== undefined ? <Read key={p.server + "\n" + p.uri} server={p.server} uri={p.uri} resource={resource} /> : list.items && <p class="dim empty">Choose a resource.</p>}
		</Columns>
	);
}

function Read(p: { server: string; uri: string; resource?: Resource }) {
	const { server, uri, resource } = p;
	const box = useRef<HTMLElement>(null);
	const runs = use(history(server, "resource", uri));
	useEffect(() => {
		box.current?.querySelector<HTMLElement>("button.main")?.focus();
		if (runs.length === 0) readResource(server, uri); // reading has no effect
	}, []);
	return (
		<>
			<section class="call" ref={box} aria-label={"Read " + line(uri, 60)}>
				<h2>{line(resource?.title || resource?.name || uri, 120)}</h2>
				<p>
					<code>{line(uri, 500)}</code> <span class="dim">{line(resource?.mimeType, 60)} {typeof resource?.size === "number" ? size(resource.size) : ""}</span>
				</p>
				{resource?.description && <p>{visible(resource.description)}</p>}
				{!resource && <p class="dim">It is not in the list of resources.</p>}
				<div class="row buttons">
					<Button kind="main" onPress={() => readResource(server, uri)}>
						Read
					</Button>
					<Subscribe server={server} uri={uri} />
				</div>
				<Questions runs={runs} />
			</section>
			<section class="result" aria-label={"Contents of " + line(uri, 60)}>
				<Outcome runs={runs} />
			</section>
		</>
	);
}

// Subscribe is a switch for updates of a resource, with their number.
function Subscribe(p: { server: string; uri: string }) {
	const w = use(watched).get(watchKey(p.server, p.uri));
	return (
		<>
			<button type="button" role="switch" aria-checked={w !== undefined} onClick={() => watch(p.server, p.uri, !w)}>
				{w ? "Subscribed" : "Subscribe"}
			</button>
			<span role="status" class={w?.refused ? "bad" : "dim"}>
				{w && (w.refused ? "The server does not send updates of it." : `${w.count} ${w.count === 1 ? "update" : "updates"}${w.last ? ", the last " + ago(new Date(w.last).toISOString()) + " ago" : ""}`)}
			</span>
		</>
	);
}

export function Templates(p: { server: string; name?: string }) {
	const list = useList<Template>(p.server, "resourceTemplates");
	const template = list.items?.find((t) => t.uriTemplate === p.name);
	return (
		<Columns what="templates" list={list} chosen={p.name} id={(t) => t.uriTemplate} back={join("s", p.server, "templates")}>
			{template ? (
				<Expand key={p.server + "\n" + template.uriTemplate} server={p.server} template={template} />
			) : (
				list.items && <p class="dim empty">{p.name === undefined ? "Choose a template." : `There is no template ${visible(p.name)} now.`}</p>
			)}
		</Columns>
	);
}

function Expand(p: { server: string; template: Template }) {
	const { server, template } = p;
	const [values, setValues] = useState<Record<string, string>>({});
	const box = useRef<HTMLElement>(null);
	const uri = expand(template.uriTemplate, values);
	const [asked, setAsked] = useState("");
	const runs = use(history(server, "resource", asked));
	useLayoutEffect(() => box.current?.querySelector<HTMLElement>("input, button.main")?.focus(), []);
	const readIt = () => {
		setAsked(uri);
		readResource(server, uri);
	};
	return (
		<>
			<section
				class="call"
				ref={box}
				aria-label={"Expand " + line(template.uriTemplate, 60)}
				onKeyDown={onCtrlEnter(readIt)}
			>
				<h2>{line(template.title || template.name, 120)}</h2>
				<p>
					<code>{line(template.uriTemplate, 500)}</code> <span class="dim">{line(template.mimeType, 60)}</span>
				</p>
				{template.description && <p>{visible(template.description)}</p>}
				{variables(template.uriTemplate).map((name) => (
					<Combobox
						key={name}
						server={server}
						about={{ type: "ref/resource", uri: template.uriTemplate }}
						name={name}
						label={name}
						value={values[name] ?? ""}
						set={(v) => setValues({ ...values, [name]: v })}
						all={values}
					/>
				))}
				<p>
					<span class="dim">reads</span> <code>{line(uri, 500)}</code>
				</p>
				<div class="row buttons">
					<Button kind="main" onPress={readIt} title="ctrl-Enter">
						Read
					</Button>
					<Link to={join("s", server, "resources", uri)}>as a resource</Link>
				</div>
				<Questions runs={runs} />
			</section>
			<section class="result" aria-label="Contents">
				<Outcome runs={runs} />
			</section>
		</>
	);
}
