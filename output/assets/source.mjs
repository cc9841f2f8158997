/* SPDX-License-Identifier: MIT */
/* The source heatmap: files, the lines of their functions that ran, and the callers of a line. */
import { aroundLine, label, shown } from "./model.mjs";
import { List, count, duration, el, percent } from "./stage.mjs";

const CODE_ROW = 20, TAB = "    ";
const WORDS = "and as assert async await break case class continue def del elif else except finally for from global if import in is lambda match nonlocal not or pass raise return try while with yield None True False";
const TOKEN = new RegExp(`("""|''')|(#.*)|("(?:\\\\.|[^"\\\\])*"?|'(?:\\\\.|[^'\\\\])*'?)|(?<!\\.)\\b(${WORDS.split(" ").join("|")})\\b|\\b(\\d[\\w.]*)`, "g");

/* Split a line into [kind, text] pieces. open: the quotes of an unfinished string, or "". */
function pieces(text, open) {
	const out = [];
	let at = 0;
	const put = (kind, end) => {
		if (end > at)
			out.push([kind, text.slice(at, end)]);
		at = end;
	};
	const close = from => {
		const end = text.indexOf(open, from);
		put("str", end < 0 ? text.length : end + 3);
		if (end >= 0)
			open = "";
	};
	if (open)
		close(0);
	for (TOKEN.lastIndex = at; !open; TOKEN.lastIndex = at) {
		const found = TOKEN.exec(text);
		if (!found)
			break;
		put("", found.index);
		if (found[1]) {
			open = found[1];
			close(found.index + 3);
		} else {
			put(["com", "str", "key", "lit"][found.slice(2).findIndex(Boolean)], found.index + found[0].length);
		}
	}
	put(open ? "str" : "", text.length);
	return [out, open];
}

export class Source {
	constructor(host, page, on) {
		Object.assign(this, { host, page, on, files: [], file: null, line: 0, rows: [] });
		const find = id => host.querySelector(id);
		this.list = new List(find(".files"), 40, i => this.fileRow(this.files[i]));
		this.code = new List(find(".code"), CODE_ROW, i => this.row(this.rows[i]));
		this.map = find(".minimap");
		this.title = find(".title");
		this.around = find(".around");
		find(".code").addEventListener("keydown", event => {
			const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
			if (!step)
				return;
			event.preventDefault();
			event.stopPropagation();
			this.hot(step, 0);
		});
	}
	/* files: model.sourceSums(); all: us in the whole selection. */
	set(files, folded, groups, all, path, line) {
		Object.assign(this, { files, folded, groups, all: all || 1 });
		this.list.set(files.length);
		this.open(files.find(f => f.path === path) ?? files[0], line);
	}
	name(path) { return shown(this.page.profile.meta.strings[path]); }
	/* Open a file at a line; 0 for its hottest line. */
	open(file, line = 0) {
		this.file = file ?? null;
		this.list.draw();
		this.rows = file ? this.makeRows(file) : [];
		this.code.set(this.rows.length);
		this.hottest = Math.max(1, ...this.rows.map(r => r.heat?.self || 0));
		this.mostTotal = Math.max(1, ...this.rows.map(r => r.heat?.total || 0));
		this.title.replaceChildren(file ? el("b", {}, this.name(file.path)) : el("span", {}, "No Python function with a source file in this selection."));
		this.drawMap();
		const hot = this.rows.reduce((best, r) => (r.heat && (!best || r.heat.self > best.heat.self) ? r : best), null);
		this.choose(line || hot?.line || 0);
	}
	/* The known text, and lines that ran without text. Line 0 is a gap. */
	makeRows(file) {
		const rows = new Map();
		for (const range of this.page.profile.meta.sources ?? []) {
			if (range.path !== file.path)
				continue;
			let open = "", parts;
			range.lines.forEach((text, i) => {
				[parts, open] = pieces(shown(text.replaceAll("\t", TAB)), open);
				rows.set(range.first + i, { line: range.first + i, parts });
			});
		}
		for (const [line, heat] of file.lines)
			rows.set(line, { line, parts: [], ...rows.get(line), heat });
		const sorted = [...rows.values()].sort((a, b) => a.line - b.line), out = [];
		sorted.forEach((row, i) => {
			if (i && row.line > sorted[i - 1].line + 1)
				out.push({ line: 0 });
			out.push(row);
		});
		return out;
	}
	fileRow(file) {
		const name = this.name(file.path), cut = name.lastIndexOf("/") + 1, bar = el("span", { className: "meter" });
		bar.style.width = 100 * file.self / this.all + "%";
		return el("div", {
			className: "row", role: "option", "aria-selected": String(file === this.file), title: name,
			onclick: () => this.on.open(file.path, 0),
		}, bar, el("b", {}, name.slice(cut) || "?"), el("span", { className: "num" }, percent(file.self / this.all)),
		el("small", {}, el("bdi", {}, name.slice(0, cut))), el("small", { className: "num" }, percent(file.total / this.all)));
	}
	row({ line, parts, heat }) {
		if (!line)
			return el("div", { className: "row gap" }, "⋯");
		const amount = v => (v ? (this.page.byCount ? count(v) : duration(v)) : "");
		const [self, total] = heat ? (this.page.byCount ? [heat.selfN, heat.totalN] : [heat.self, heat.total]) : [0, 0];
		const row = el("div", {
			className: "row" + (heat ? " ran" : "") + (line === this.line ? " here" : ""), role: "row",
			onclick: () => heat && this.on.open(this.file.path, line), oncontextmenu: event => heat && this.on.menuOf([...heat.funcs][0], event),
		}, el("span", { className: "num" }, amount(self)), el("span", { className: "num" }, amount(total)),
		el("span", { className: "no" }, String(line)), el("code", {}, ...parts.map(([kind, text]) => el("span", { className: kind }, text))));
		if (heat) {
			row.style.background = this.page.colours.heat(heat.self / this.hottest);
			row.title = `self ${percent(heat.self / this.all)}, total ${percent(heat.total / this.all)}: ` +
				[...heat.funcs].map(f => this.page.profile.functions.name[f]).join(", ");
		}
		return row;
	}
	choose(line) {
		this.line = line;
		const at = this.rows.findIndex(r => r.line === line && line);
		if (at >= 0)
			this.code.reveal(at);
		this.code.draw();
		this.around.replaceChildren();
		if (!this.rows[at]?.heat)
			return;
		const [callers, callees] = aroundLine(this.folded, this.groups, this.file.path, line);
		const most = this.rows[at].heat[this.page.byCount ? "totalN" : "total"] || 1;
		this.around.append(this.links(`Line ${line} is called from`, callers, most, "nothing: it is outermost"),
			this.links("and calls", callees, most, "nothing in the samples"));
	}
	links(title, rows, most, none) {
		const { functions } = this.page.profile;
		return el("section", {}, el("h3", {}, title), ...rows.slice(0, 12).map(([f, line, w]) => el("button", {
			disabled: !functions.hasSource[f], onclick: () => this.on.open(functions.pathIndex[f], line || functions.first[f]), title: label(functions, f, line),
		}, el("span", { className: "num" }, percent(w / most)), functions.name[f], el("small", {}, line ? ` line ${line}` : ""))),
		...(rows.length ? [] : [el("p", {}, none)]));
	}
	/*
	 * Go to the next or previous line with at least this part of the self time of the hottest
	 * line.
	 */
	hot(step, least = 0.1) {
		const at = this.rows.findIndex(r => r.line === this.line);
		for (let i = at + step; i >= 0 && i < this.rows.length; i += step)
			if (this.rows[i].heat && this.rows[i].heat.self >= least * this.hottest)
				return this.on.open(this.file.path, this.rows[i].line);
	}
	drawMap() {
		this.map.replaceChildren(...this.rows.flatMap((row, i) => {
			if (!row.heat || row.heat.self < 0.02 * this.hottest)
				return [];
			const mark = el("i", { onclick: () => this.on.open(this.file.path, row.line), title: `line ${row.line}` });
			mark.style.top = 100 * i / this.rows.length + "%";
			mark.style.opacity = 0.25 + 0.75 * row.heat.self / this.hottest;
			return [mark];
		}));
	}
	redraw() {
		this.list.draw();
		this.code.draw();
	}
}
