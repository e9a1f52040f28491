// URI templates (RFC 6570) with texts as values.

interface Expression {
	operator: string;
	names: { name: string; most?: number }[];
}

// split returns the literals and expressions of a template.
function split(template: string): (string | Expression)[] {
	return template.split(/(\{[^{}]*\})/).map((part) => {
		const m = /^\{([+#./;?&]?)([^{}]*)\}$/.exec(part);
		if (!m) return part;
		const names = m[2]!.split(",").map((n) => {
			const of = /^(.*?)(?:\*|:(\d{1,4}))?$/.exec(n.trim())!;
			return { name: of[1]!, most: of[2] === undefined ? undefined : Number(of[2]) };
		});
		return { operator: m[1]!, names };
	});
}

// variables returns the names of the variables of a template, each once.
export const variables = (template: string): string[] => [...new Set(split(template).flatMap((p) => (typeof p === "string" ? [] : p.names.map((n) => n.name))))];

const encode = (v: string): string => encodeURIComponent(v).replace(/[!'()*]/g, (c) => "%" + c.charCodeAt(0).toString(16).toUpperCase());

// expand puts values into a template. A variable without a value is left out.
export function expand(template: string, values: Record<string, string>): string {
	return split(template)
		.map((part) => {
			if (typeof part === "string") return part;
			const { operator } = part;
			const reserved = operator === "+" || operator === "#";
			const named = operator === ";" || operator === "?" || operator === "&";
			const set = part.names.filter((n) => values[n.name] !== undefined && values[n.name] !== "");
			if (set.length === 0) return "";
			const texts = set.map((n) => {
				const v = [...values[n.name]!].slice(0, n.most).join("");
				const text = reserved ? encodeURI(v).replace(/%25([0-9A-Fa-f]{2})/g, "%$1") : encode(v);
				return named ? n.name + "=" + text : text;
			});
			const first = operator === "+" ? "" : operator;
			const between = operator === "" || reserved ? "," : operator === "?" ? "&" : operator;
			return first + texts.join(between);
		})
		.join("");
}
