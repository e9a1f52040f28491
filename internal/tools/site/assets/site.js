// The search, and what helps to find the way: the pages of the section and the headings of the page. A build adds contents, the pages of each
// section. find is a function of its arguments alone, so that a test can call it without a page.

// find returns the entries [title, under, url, text, inside] that have all words of a query, the best first. A query of plain words, unlike
// the name of a flag or of Go, finds titles of pages before headings, and these before rows of tables, flags and names of packages.
function find({ entries, words }, query) {
  const asked = query.toLowerCase().split(/\s+/).filter(Boolean).map((w) => [w, below(words, w)]);
  const whole = asked.map(([w]) => w).join(" ");
  const plain = !/[^\p{L}\p{N}\s]/u.test(query);
  if (!whole) return [];
  const found = [];
  entries.lower ??= entries.map((e) => e.slice(0, 4).map((s) => s.toLowerCase()));
  entries.forEach((e, i) => {
    const [title, under, url, text] = entries.lower[i];
    const page = plain && !url.includes("#");
    let score = title === whole ? 200 : title.startsWith(whole) ? 60 : title.includes(whole) ? 30 : 0;
    const complete = asked.every(([w, has]) => {
      const points = Math.max(of(title, w) * (page ? 24 : 8), of(under, w) * 2, of(text, w), has.get(i) ?? 0);
      score += points;
      return points > 0;
    });
    if (url.startsWith("changelog")) score /= 4; // it has every word
    if (plain && (e[4] || url.startsWith("api/"))) score /= 3;
    if (complete) found.push([score - title.length / 100, e]);
  });
  return found.sort((a, b) => b[0] - a[0]).map((f) => f[1]);
}

// unpack returns the index of a page's script, which is compressed.
function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"))).json();
}

// read makes the entries and words of the index, whose form search.go has.
function read(index) {
  const entries = [];
  for (const [path, page, prefix, rows] of index.pages) {
    let head = page;
    for (const [name, anchor, text, inside] of rows) {
      const title = anchor === 0 ? prefix + name : name;
      const under = inside && head !== page ? head + " · " + page : page;
      entries.push([title, under, path + (anchor === "" ? "" : "#" + (anchor || name)), text, inside]);
      if (!inside) head = title;
    }
  }
  return { entries, words: index.words.split("\n").map((line) => line.split(/ (.*)/)) };
}

// below returns how well the texts of entries have a word, by their numbers. Of a word such as tools/call they must have each part.
function below(words, asked) {
  let all;
  for (const part of asked.match(/[\p{L}\p{N}]+/gu) ?? []) {
    const found = new Map();
    for (const [word, steps] of words) {
      const points = of(word, part);
      if (!points) continue;
      let at = 0;
      for (const [, high, low] of steps.matchAll(/([0-9a-z]*)([A-Z])/g)) {
        at += parseInt(high || 0, 36) * 26 + low.charCodeAt(0) - 65;
        found.set(at, Math.max(points, found.get(at) ?? 0));
      }
    }
    all = all ? new Map([...all].filter(([at]) => found.has(at)).map(([at, points]) => [at, Math.min(points, found.get(at))])) : found;
  }
  return all ?? new Map();
}

// of says how well a text has a word: as a word or its plural, at the beginning of one, inside of one, or not at all.
function of(text, word) {
  let best = 0;
  for (let i = text.indexOf(word); i >= 0 && best < 4; i = text.indexOf(word, i + 1)) {
    const begins = i === 0 || !/[\p{L}\p{N}]/u.test(text[i - 1]) || !/^[\p{L}\p{N}]/u.test(word);
    const ends = /^s?(?![\p{L}\p{N}])/u.test(text.slice(i + word.length, i + word.length + 2));
    best = Math.max(best, begins ? (ends ? 4 : 2) : 1);
  }
  return best;
}

if (typeof document !== "undefined") {
  // Code and tables that are too wide scroll, also by the keyboard.
  const wide = new ResizeObserver((boxes) => {
    for (const { target } of boxes) target.scrollWidth > target.clientWidth ? (target.tabIndex = 0) : target.removeAttribute("tabindex");
  });
  for (const box of document.querySelectorAll("pre, .table")) wide.observe(box);

  const page = document.currentScript.dataset.page;
  const root = "../".repeat(page.split("/").length - 1);
  const list = (links) => {
    const ul = document.createElement("ul");
    for (const [label, href, current, sub] of links) {
      const a = Object.assign(document.createElement("a"), { href, textContent: label });
      if (current) a.setAttribute("aria-current", current);
      const li = document.createElement("li");
      if (sub) li.className = "sub";
      li.append(a);
      ul.append(li);
    }
    return ul;
  };
  const section = document.querySelector("#contents [aria-current]");
  if (section) {
    const first = page.replace(/-\d+(?=\.html$)/, ""); // of a page in parts
    const folder = (path) => path.split(/[/.]/)[1];
    const near = ([, path]) => !/^api\/.*\//.test(path) || folder(path) === folder(page); // packages below others only among themselves
    const pages = contents[[...section.closest("ul").children].indexOf(section.parentNode)].filter(near);
    section.removeAttribute("aria-current");
    section.after(list(pages.map(([label, path]) => [label, root + path, path === page ? "page" : path === first && "true"])));
  }
  const heads = [...document.querySelectorAll("main :is(h2, h3, h4)[id]")];
  for (const h of heads) {
    if (h.querySelector("a")) continue; // a heading links to itself, unless it has another link
    const self = document.createElement("a");
    self.href = "#" + h.id;
    self.append(...h.childNodes);
    h.append(self);
  }
  const listed = heads.filter((h) => h.tagName !== "H4");
  if (listed.length > 1 && !document.querySelector(".all")) {
    const nav = document.createElement("nav");
    nav.className = "heads";
    nav.setAttribute("aria-label", "On this page");
    nav.insertAdjacentHTML("beforeend", "<p>On this page</p>");
    nav.append(list(listed.map((h) => [h.textContent.replace(/^(func|type) /, ""), "#" + h.id, null, h.tagName === "H3"])));
    document.getElementById("contents").after(nav);
  }

  const header = document.querySelector("header");
  header.querySelector(".home").insertAdjacentHTML("afterend", `<form role="search"><input type="search" placeholder="Search (press /)"
    aria-label="Search the documentation" autocomplete="off" spellcheck="false"></form>`);
  header.insertAdjacentHTML("beforeend", `<section id="results" aria-label="Search results" hidden><p role="status"></p><ul></ul></section>`);
  const form = document.querySelector("form");
  const input = form.querySelector("input");
  const results = document.getElementById("results");
  const hits = results.querySelector("ul");

  // The index is loaded when somebody searches. A script works from the disk, where fetch does not.
  let loaded;
  const load = () => (loaded ??= new Promise((done, failed) => {
    const script = document.createElement("script");
    script.src = root + "search-index.js";
    script.onload = () => done(unpack(index).then(read));
    script.onerror = () => failed(new Error("search-index.js is missing"));
    document.head.append(script);
  }));

  const show = async () => {
    const query = input.value;
    if (!query.trim()) return (results.hidden = true);
    const status = results.querySelector("p");
    let found;
    try {
      found = find(await load(), query);
    } catch (err) {
      results.hidden = false;
      return (status.textContent = err.message);
    }
    if (query !== input.value) return; // typed on meanwhile
    status.textContent = found.length === 1 ? "1 result" : found.length + " results";
    hits.replaceChildren(...found.slice(0, 40).map(([title, under, url, text]) => {
      const link = document.createElement("a");
      link.href = root + url;
      link.append(title);
      for (const [name, line] of [["under", under], ["text", text.slice(0, 200)]]) {
        const small = document.createElement("small");
        small.className = name;
        small.textContent = line;
        if (line && line !== title) link.append(small);
      }
      const item = document.createElement("li");
      item.append(link);
      return item;
    }));
    results.hidden = false;
  };
  const close = () => {
    results.hidden = true;
    input.value = "";
  };

  input.addEventListener("focus", load, { once: true });
  input.addEventListener("input", show);
  form.addEventListener("submit", async (e) => {
    e.preventDefault();
    await show();
    hits.querySelector("a")?.click();
  });
  hits.addEventListener("click", () => (results.hidden = true));
  document.addEventListener("click", (e) => {
    if (!results.contains(e.target) && !form.contains(e.target)) results.hidden = true;
  });
  document.addEventListener("keydown", (e) => {
    const links = [...hits.querySelectorAll("a")];
    const at = links.indexOf(document.activeElement);
    const searching = !results.hidden && (at >= 0 || document.activeElement === input);
    if (e.key === "/" && document.activeElement !== input && !e.ctrlKey && !e.metaKey && !e.altKey) input.focus();
    else if (e.key === "Escape" && searching) close(), input.focus();
    else if (e.key === "ArrowDown" && searching) (links[at + 1] ?? links[0])?.focus();
    else if (e.key === "ArrowUp" && searching) (at > 0 ? links[at - 1] : input).focus();
    else return;
    e.preventDefault();
  });
}
