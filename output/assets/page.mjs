/* SPDX-License-Identifier: MIT */
/*
 * The page: its state, which is kept in the URL's fragment, and everything around the views.
 *
 * Tests and scripts can use window.pysample:
 *   ready         a promise, present from the start; rejects if the data cannot be read
 *   state()       what is shown, as an object of plain values (STATE below)
 *   set(patch)    change some of it, as the controls do; returns totals()
 *   zoom(names)   zoom to the node that the labels lead to from the root, [] for all
 *   totals()      of the current view, after all filters and its zoom: {total, samples, base,
 *                 self, totals, matched, hidden, all, view}. Times are in us. self and totals are
 *                 {"qualname (path:line)": us}, escaped as by output/profile/label.h, for
 *                 functions, or if they are split for the known lines. matched is the search's
 *                 {us, samples}, or null
 *   loaded_ms     time to decode and show the page
 */
import {
	Folded, Merged, NO_FRAMES, STATES, buildTree, decode, endingIn, functionSums, isLate, isTimeless, label, leaves, location,
	matchFunctions, matchNodes, outermost, sampleStarts, select, showing, shown, sourceGroups, sourceSums, sumOwn,
} from "./model.mjs";
import { Colours, ORIGINS } from "./colour.mjs";
import { List, count, duration, el, percent, timeRange } from "./stage.mjs";
import { Flame, nodeName } from "./flame.mjs";
import { Chart } from "./chart.mjs";
import { Strip } from "./strip.mjs";
import { Heat } from "./heat.mjs";
import { Table } from "./table.mjs";
import { Source } from "./source.mjs";
import { collapsed, svg } from "./export.mjs";

const VIEWS = ["flame", "inverted", "chart", "table", "source"];
const STATE = {
	view: "flame", threads: null, state: "busy", weight: "time", lines: false, flip: false, norm: true, merge: false,
	heat: false, from: null, to: null, baseFrom: null, baseTo: null, focus: [], exclude: [], query: "", zoom: 0, path: [], func: -1, file: -1, line: 0, theme: "",
};
/* The parts of the state whose change invalidates what is kept. */
const FILTERS = ["threads", "state", "focus", "exclude"], RANGE = ["weight", "from", "to", "baseFrom", "baseTo"];

const KEYS = [
	["1 – 5", "Flame graph, inverted, time order, functions, source"], ["/", "Search; Enter and Shift-Enter go to matches"],
	["Esc", "Back: close, leave the search, zoom out, drop filters"], ["Arrows", "Move the selection; in time order, the time"],
	["Enter", "Zoom to the selection"], ["Home", "Zoom out to everything"], ["t", "Threads and processes"], ["l", "Split functions by line"],
	["u", "Root at the bottom"], ["m", "Merge equal stacks of processes"], ["c", "Toggle: on CPU only"], ["i", "Show or hide idle samples"], ["s", "Source of the selection"],
	["n, p", "Next and previous hot line"], ["+, −", "Zoom the time"], ["d", "Dark or light"], ["Click", "Zoom; in a table, callers and callees"],
	["Right or Alt-click", "Menu: copy, show in table or source, filter by function"],
	["Wheel, drag", "In time order: zoom, move; Shift-wheel scrolls"],
	["h", "Time strip or heatmap"], ["Heatmap", "Click or drag selects a range, with Shift one to compare it with; Esc drops them"],
	["… with keys", "Arrows move, Shift-arrows extend, Enter and Shift-Enter select; +, − narrower and wider columns"],
	["Time strip", "Drag a range, its middle or its edges; double-click clears"],
];

const $ = id => document.getElementById(id);

class Page {
	constructor(profile) {
		this.profile = profile;
		this.timeless = isTimeless(profile.meta);
		this.hasProcesses = profile.meta.process_roots.length > 0;
		this.noun = this.timeless ? "threads" : "samples";
		STATE.state = profile.meta.hides_idle ? "busy" : "all";
		this.state = { ...STATE, ...this.readFragment() };
		if (this.timeless)
			this.state.weight = "samples";
		document.body.classList.toggle("timeless", this.timeless);
		this.kept = {};
		this.trees = {};
		this.mask = null;
		this.setTheme();
		const on = {
			hover: (i, event) => this.hover(this.stacks.view, i, event), select: i => this.selected(this.stacks.view, i),
			zoom: i => this.zoomTo(i), menu: (i, event) => this.nodeMenu(this.stacks.view, i, event),
		};
		this.stacks = new Flame($("stacks"), this, on);
		this.chart = new Chart($("chart"), this, {
			hover: (run, event) => this.hoverRun(run, event), select: run => this.selected(this.folded(), run?.node ?? -1),
			menu: (run, event) => this.nodeMenu(this.folded(), run.node, event), window: () => this.setStrip(),
		});
		this.strip = new Strip($("strip"), this, (from, to) => this.set({ from, to }));
		this.heat = new Heat($("heatmap"), this, (range, isBase) => {
			const [from, to] = range ?? [null, null];
			this.set(isBase ? { baseFrom: from, baseTo: to } : { from, to });
		});
		this.table = new Table($("table"), this, {
			open: f => this.set({ func: f }), showSource: f => this.showSource(f), menuOf: (f, event) => this.functionMenu(f, event),
			hover: (i, event) => this.hover(this.tableView(event), i, event), select: i => this.selected(this.folded(false), -1, i),
			menu: (i, event) => this.nodeMenu(this.tableView(event), i, event),
		});
		this.source = new Source($("source"), this, {
			open: (file, line) => this.set({ file, line }), menuOf: (f, event) => this.functionMenu(f, event),
		});
		this.threadList = new List($("panel").querySelector(".list"), 30, i => this.threadRow(this.threadRows[i]));
		this.makeHeader();
		this.makeControls();
		this.search();
		this.show();
	}

	/* Kept until the filters change. */
	keep(name, make) { return (this.kept[name] ??= make()); }
	get showing() { return this.keep("showing", () => showing(this.profile, this.state)); }
	get selection() { return this.keep("selection", () => select(this.profile, this.state, this.showing)); }
	/* Whether two profiles are compared, or two ranges of time. */
	get isDiff() { return this.profile.meta.has_base || this.comparesTimes; }
	get comparesTimes() { return this.state.baseFrom !== null; }
	get byCount() { return this.state.weight === "samples"; }
	tree(split, merge = this.state.merge) { return (this.trees[split + " " + merge] ??= buildTree(this.profile, split, merge)); }
	folded(split = this.state.lines) { return this.keep("folded" + split, () => new Folded(this.tree(split), this.selection)); }
	inverted(split = this.state.lines) {
		return this.keep("inverted" + split, () => new Merged(this.folded(split), leaves(this.folded(split)), true));
	}
	outer(split) {
		const tree = this.tree(split), groups = tree.func.map((f, i) => (tree.line[i] ? -1 : f));
		return (tree.outer ??= outermost(tree, groups, this.profile.functions.n));
	}
	groups() {
		const tree = this.tree(true);
		return (tree.groups ??= sourceGroups(this.profile, tree));
	}
	whole() {
		const { samples } = this.profile;
		const sum = values => values.reduce((a, b) => a + b, 0);
		return (this.wholes ??= { time: sum(samples.weight), cpu: samples.cpu ? sum(samples.cpu) : 0, samples: samples.n });
	}
	/* The zoomed part, as a mask of self weights, and its sum. */
	scope() {
		const { view, zoom, path } = this.state, folded = this.folded();
		const mask = view === "flame" && zoom ? folded.below(zoom) : view === "inverted" && path.length ? endingIn(folded, path) : null;
		return { folded, mask, sums: mask ? sumOwn(folded, mask) : { t: folded.t[0], n: folded.n[0], b: folded.b[0] } };
	}

	set(patch) {
		const { state } = this, changed = Object.keys(patch).filter(key => JSON.stringify(plain(state[key])) !== JSON.stringify(plain(patch[key])));
		Object.assign(state, patch);
		if (changed.includes("lines") || changed.includes("merge"))
			Object.assign(state, { zoom: 0, path: [] });
		if (changed.some(key => FILTERS.includes(key) || key === "merge"))
			this.kept = {};
		else if (changed.some(key => RANGE.includes(key)))
			this.kept = { showing: this.showing };
		if (changed.includes("theme"))
			this.setTheme();
		if (changed.includes("query"))
			this.search();
		this.show();
	}
	writeFragment() {
		const parts = Object.keys(STATE).filter(key => JSON.stringify(plain(this.state[key])) !== JSON.stringify(STATE[key]) && key !== "theme")
			.map(key => key + "=" + encodeURIComponent(JSON.stringify(plain(this.state[key]))));
		const fragment = "#" + parts.join("&");
		if (fragment.length < 4000 && fragment !== location_hash())
			history.replaceState(null, "", fragment);
	}
	readFragment() {
		const out = {};
		for (const part of location_hash().slice(1).split("&")) {
			const [key, text] = part.split("=");
			try {
				if (Object.hasOwn(STATE, key))
					out[key] = JSON.parse(decodeURIComponent(text));
			} catch {
				/* not one of ours */
			}
		}
		return this.checked(out);
	}
	/* A fragment may come from anywhere, so values that do not fit the profile are dropped. */
	checked(out) {
		const { functions, threads, samples } = this.profile, isFunction = f => Number.isInteger(f) && f >= 0 && f < functions.n;
		const rules = {
			view: v => VIEWS.includes(v) && !(this.timeless && v === "chart"), state: v => Object.hasOwn(STATES, v), threads: v => Array.isArray(v) && v.every(t => Number.isInteger(t) && threads[t]),
			weight: v => v === "samples" || (!this.timeless && (v === "time" || (v === "cpu" && samples.cpu))), query: v => typeof v === "string",
			focus: v => Array.isArray(v) && v.length < 30 && v.every(isFunction), exclude: v => Array.isArray(v) && v.every(isFunction),
			path: v => Array.isArray(v) && v.every(Number.isInteger), zoom: v => Number.isInteger(v) && v >= 0 && v < this.tree(!!out.lines, out.merge === true).n,
			from: Number.isFinite, to: Number.isFinite, baseFrom: Number.isFinite, baseTo: Number.isFinite, func: isFunction, file: Number.isInteger, line: Number.isInteger,
		};
		this.trees ??= {};
		for (const key of Object.keys(out))
			if (rules[key] ? !rules[key](out[key]) : typeof out[key] !== typeof STATE[key])
				delete out[key];
		for (const [from, to] of [["from", "to"], ["baseFrom", "baseTo"]])
			if (this.timeless || !(out[from] < out[to]))
				delete out[from], delete out[to];
		if (out.threads)
			out.threads = new Set(out.threads);
		return out;
	}

	show() {
		const { state } = this;
		document.body.dataset.view = state.view;
		this.showControls();
		this["show_" + state.view]();
		this.showCrumbs();
		this.showFound();
		this.showLegend();
		this.setStrip();
		this.writeFragment();
	}
	show_flame() {
		const { state } = this, folded = this.folded();
		if (!(folded.w[state.zoom] > 0))
			state.zoom = 0;
		this.stacks.set(folded, state.zoom, state.flip);
	}
	show_inverted() {
		const { state } = this, view = this.inverted();
		view.open(state.path, 0.3 / Math.max(300, $("stacks").clientWidth));
		this.stacks.selected = this.stacks.hovered = -1;
		state.path = view.path(view.top);
		this.stacks.set(view, view.top, state.flip);
	}
	show_chart() {
		const { state, profile, chart } = this, tree = this.tree(state.lines);
		const shownNow = [tree, this.showing, state.from, state.to];
		if (this.charted?.every((v, i) => v === shownNow[i]))
			return chart.stage.redraw();
		this.charted = shownNow;
		const threads = this.sortedThreads().filter(t => t.end > t.start && (!state.threads || state.threads.has(t.index)));
		profile.starts ??= sampleStarts(profile);
		chart.set(tree, this.showing, profile.starts, threads, state.from ?? profile.from, state.to ?? profile.to);
	}
	show_table() {
		const folded = this.folded(false), outer = this.outer(false), { functions } = this.profile;
		const sums = this.keep("sums", () => functionSums(folded, outer, functions.n));
		this.table.set(sums, { byCount: this.byCount, t: folded.t[0], n: folded.n[0], b: folded.b[0] }, this.mask);
		this.table.open(this.folded(), this.outer(this.state.lines), this.state.func);
	}
	show_source() {
		const folded = this.folded(true), groups = this.groups(), files = this.keep("files", () => sourceSums(folded, groups));
		if (!files.some(f => f.path === this.state.file))
			Object.assign(this.state, { file: files[0]?.path ?? -1, line: 0 });
		this.source.set(files, folded, groups, folded.t[0], this.state.file, this.state.line);
	}
	setStrip() {
		const { state, chart, profile } = this;
		const zoomed = state.view === "chart" && (chart.from > profile.from || chart.to < profile.to);
		if (state.heat && !this.timeless)
			this.heat.set(state, this.showing, state.from === null ? null : [state.from, state.to], this.comparesTimes ? [state.baseFrom, state.baseTo] : null);
		this.strip.set(this.selection.strip, state.from === null ? null : [state.from, state.to], zoomed ? [chart.from, chart.to] : null);
	}

	/* For the views. */
	rootName() { return "all"; }
	change(view, i) {
		const { w, b } = view.source ?? view, now = view.w[i] / (w[0] || 1), then = view.b[i] / (b[0] || 1);
		return this.state.norm ? now - then : (view.w[i] - view.b[i]) / Math.max(w[0], b[0], 1);
	}
	amount(us) { return this.byCount ? `${count(us)} ${this.noun}` : duration(us); }
	amounts(us, n) { return this.timeless ? this.amount(n) : `${duration(us)}, ${count(n)} samples`; }
	threadName(thread) { return shown(thread.name) || `thread ${thread.tid}`; }
	/* In the panel, threads are below their processes. */
	threadNote(thread, inPanel = false) {
		const process = this.profile.meta.processes[thread.process];
		const parts = [thread.tid ? String(thread.tid) : "", thread.interpreter ? `interpreter ${thread.interpreter}` : "", percent(thread.weight / (this.whole().time || 1)) + " of all"];
		if (this.profile.samples.cpu && this.profile.meta.mode === "wall")
			parts.push(percent(thread.cpu / (thread.weight || 1)) + " on CPU");
		return [...(!inPanel && this.profile.meta.processes.length > 1 && process ? [this.processName(process)] : []), ...parts].filter(Boolean).join(" · ");
	}
	sortedThreads() { return [...this.profile.threads].sort((a, b) => a.process - b.process || !!b.main - !!a.main || b.weight - a.weight); }
	nodeLabel(view, i) {
		return view.func(i) < 0 ? "all" : label(this.profile.functions, view.func(i), view.line(i));
	}
	tip(view, i) {
		return `${this.nodeLabel(view, i)}\n${this.amounts(view.t[i], view.n[i])}, ${percent(view.w[i] / (view.w[0] || 1))}`;
	}

	/* Tooltips and the status line. */
	hover(view, i, event) {
		if (i < 0)
			return this.hideTip();
		const { functions } = this.profile, f = view.func(i), name = nodeName(functions, view, i, this.rootName(view));
		const rows = [["Total", view.t[i], view.n[i]]];
		if (view.own)
			rows.unshift(["Self", view.own.t[i], view.own.n[i]]);
		const place = f < 0 ? "" : view.line(i) ? functions.name[f] + " " + location(functions, f, view.line(i)) : location(functions, f);
		const lines = [el("b", {}, name), el("span", { className: "place" }, place), this.tipTable(view, rows), ...this.lateNote(f, view.line(i))];
		if (this.isDiff && f >= 0) {
			const change = this.change(view, i);
			lines.push(el("div", { className: change > 0 ? "grew" : "shrank" },
				`base ${percent(view.b[i] / ((view.source ?? view).b[0] || 1))}, ${change < 0 ? "−" : "+"}${percent(Math.abs(change))}` + (view.b[i] ? "" : " (new)")));
		}
		this.showTip(event, lines);
	}
	tipTable(view, rows) {
		const top = view === this.stacks.view ? this.stacks.top : 0, w = this.byCount ? 2 : 1;
		const all = this.byCount ? this.whole().samples : this.whole()[this.state.weight], cells = (name, ...texts) => el("tr", {}, ...texts.map(t => el(name, {}, t)));
		return el("table", {}, cells("th", "", ...(this.timeless ? [] : ["time"]), this.noun, "of view", "of all"), ...rows.map(row => {
			const part = row[w] / (view.w[top] || 1), of = view.n[top] || 1;
			const error = !this.timeless && row[2] && part < 1 && view.w[top] ? ` ±\u2009${(196 * Math.sqrt(part * (1 - part) / of)).toFixed(1)}` : "";
			return cells("td", row[0], ...(this.timeless ? [] : [duration(row[1])]), count(row[2]), percent(part) + error, percent(row[w] / (all || 1)));
		}));
	}
	lateNote(f, line) {
		return isLate(this.profile, f, line) ? [el("div", { className: "place" }, "samples ran in JIT code: the line may be a few statements late")] : [];
	}
	hoverRun(run, event) {
		if (!run)
			return this.hideTip();
		const { tree } = this.chart, f = tree.func[run.node], { functions } = this.profile, n = run.last - run.first + 1;
		this.showTip(event, [
			el("b", {}, functions.name[f] + (tree.line[run.node] ? ` line ${tree.line[run.node]}` : "")), el("span", { className: "place" }, location(functions, f, tree.line[run.node])),
			el("div", {}, this.chart.runText(run)), el("div", { className: "place" }, `${count(n)} sample${n > 1 ? "s in a row" : ""}, ${this.threadName(run.thread)}`),
			...this.lateNote(f, tree.line[run.node]),
		]);
	}
	showTip(event, children) {
		const tip = $("tip");
		tip.replaceChildren(...children);
		tip.hidden = false;
		const { offsetWidth: w, offsetHeight: h } = tip, x = event.clientX + 14, y = event.clientY + 18;
		tip.style.left = Math.max(4, Math.min(x, innerWidth - w - 8)) + "px";
		tip.style.top = (y + h > innerHeight - 8 ? Math.max(4, event.clientY - h - 12) : y) + "px";
	}
	hideTip() { $("tip").hidden = true; }
	say(text) { $("status").textContent = text; }
	selected(view, i) {
		this.chosen = i >= 0 ? [view, i] : null;
		this.say(i >= 0 ? this.tip(view, i).replace("\n", ": ") : "");
	}
	tableView(event) { return this.table.flames.find(f => f.stage.canvas === event.target)?.view ?? this.folded(false); }

	/* Zooming, and going back. */
	zoomTo(i) {
		const { view } = this.state;
		this.set(view === "inverted" ? { path: this.inverted().path(i) } : { zoom: i });
	}
	back() {
		const { state } = this, open = ["menu", "panel"].find(id => !$(id).hidden);
		if (open)
			$(open).hidden = true;
		else if (state.view === "flame" && state.zoom)
			this.zoomTo(this.folded().parent(state.zoom));
		else if (state.view === "inverted" && state.path.length)
			this.set({ path: state.path.slice(0, -1) });
		else if (state.query)
			this.set({ query: "" });
		else if (this.comparesTimes)
			this.set({ baseFrom: null, baseTo: null });
		else if (state.from !== null)
			this.set({ from: null, to: null });
		else if (state.focus.length || state.exclude.length)
			this.set({ focus: [], exclude: [] });
	}
	showCrumbs() {
		const { state, profile: { functions } } = this, host = $("crumbs"), out = [];
		const put = (text, title, go) => out.push(...(out.length ? [el("i", {}, "›")] : []), el("button", { title, onclick: go }, text));
		if (state.view === "flame" || state.view === "inverted") {
			const { view, top } = this.stacks, nodes = [];
			for (let i = top; i >= 0 && nodes.length < 6; i = view.parent(i))
				nodes.unshift(i);
			if (nodes[0] > 0) {
				nodes[0] = 0;
				put(this.rootName(view), "Everything", () => this.zoomTo(0));
				out.push(el("i", {}, "› …"));
				nodes.shift();
			}
			for (const i of nodes)
				put(nodeName(functions, view, i, this.rootName(view)), this.nodeLabel(view, i), () => this.zoomTo(i));
		}
		const chip = (text, patch, className = "chip") => out.push(el("button", { className, title: "Drop this filter", onclick: () => this.set(patch) }, text + " ×"));
		const { from } = this.profile;
		if (state.from !== null)
			chip(timeRange(state.from - from, state.to - from), { from: null, to: null });
		if (this.comparesTimes)
			chip(`base ${timeRange(state.baseFrom - from, state.baseTo - from)}`, { baseFrom: null, baseTo: null }, "chip base");
		if (state.threads)
			chip(state.threads.size === 1 ? this.threadName(this.profile.threads[[...state.threads][0]]) : `${state.threads.size} threads`, { threads: null });
		if (!["busy", "all"].includes(state.state))
			chip(STATES[state.state][2], { state: STATE.state });
		for (const [key, word] of [["focus", "only"], ["exclude", "without"]])
			for (const f of state[key])
				chip(`${word} ${functions.name[f]}`, { [key]: state[key].filter(g => g !== f) });
		const { sums } = this.scope(), all = this.whole()[state.weight], w = this.byCount ? sums.n : sums.t;
		const amounts = this.timeless ? [el("b", {}, this.amount(sums.n))] : [el("b", {}, duration(sums.t)), ` · ${count(sums.n)} samples`];
		const sum = el("span", { className: "sum" }, ...amounts, ` · ${percent(w / (all || 1))} of all`);
		host.replaceChildren(...out, sum);
		if (this.isOneSided())
			sum.append(el("span", { className: "bad", title: "This file has only the sums of the base, not its samples" }, " · the base is not filtered"));
		const { hidden } = this.selection, idle = this.byCount ? hidden.n : hidden.t;
		if (idle)
			sum.append(" · ", el("button", { className: "chip", title: "Samples of threads that wait; percentages are of what is shown (i)", onclick: () => this.set({ state: "all" }) }, `${percent(idle / (all || 1))} idle hidden`));
	}

	/* Whether a filter leaves out samples of one side only. The base has none that the page hides at first. */
	isOneSided() {
		const { state, profile: { meta } } = this, whole = meta.hides_idle ? ["busy", "all"] : ["all"];
		return this.isDiff && !this.comparesTimes && (state.from !== null || !!state.threads || !whole.includes(state.state));
	}

	/* Search. */
	search() {
		const { query } = this.state, box = document.querySelector(".search");
		if ($("query").value !== query)
			$("query").value = query;
		box.classList.toggle("busy", !!query);
		box.classList.remove("bad");
		box.title = "";
		this.mask = null;
		try {
			if (query)
				this.mask = matchFunctions(this.profile.functions, query);
		} catch (error) {
			box.classList.add("bad");
			box.title = error.message;
		}
	}
	matched() {
		if (!this.mask)
			return null;
		const { folded, mask } = this.scope();
		return sumOwn(folded, matchNodes(folded.tree, this.mask), mask);
	}
	showFound() {
		const { sums } = this.scope(), found = this.matched(), key = this.byCount ? "n" : "t";
		$("found").textContent = found ? percent(found[key] / (sums[key] || 1)) : this.state.query ? "invalid expression" : "";
		$("found").title = found ? `${this.amounts(found.t, found.n)}, each counted once` : "";
	}
	/* Select the next or previous match, from left to right. */
	nextMatch(step) {
		const { stacks, mask, state } = this, { view } = stacks;
		if (!mask || state.view === "source" || state.view === "chart")
			return;
		if (state.view === "table")
			return this.table.order.length && this.set({ func: this.table.order[(this.table.order.indexOf(state.func) + step + this.table.order.length) % this.table.order.length] });
		const found = [], { left, w } = view, end = left[stacks.top] + w[stacks.top], least = w[stacks.top] / (2 * stacks.stage.width);
		for (let i = 1; i < view.size; i++)
			if (view.func(i) >= 0 && mask[view.func(i)] && !view.line(i) && w[i] > least && left[i] < end && left[i] + w[i] > left[stacks.top])
				found.push(i);
		found.sort((a, b) => left[a] - left[b] || a - b);
		const at = found.indexOf(stacks.selected);
		if (found.length)
			stacks.select(found[(at + step + found.length + (at < 0 && step < 0 ? 1 : 0)) % found.length]);
	}

	/* Menus. */
	openMenu(event, title, items) {
		event.preventDefault();
		this.hideTip();
		const menu = $("menu");
		menu.replaceChildren(...(title ? [el("p", {}, title)] : []), ...items.map(([text, act]) => el("button", {
			role: "menuitem", onclick: () => {
				menu.hidden = true;
				act();
			},
		}, text)));
		menu.hidden = false;
		menu.style.left = Math.max(4, Math.min(event.clientX, innerWidth - menu.offsetWidth - 8)) + "px";
		menu.style.top = Math.max(4, Math.min(event.clientY, innerHeight - menu.offsetHeight - 8)) + "px";
		menu.querySelector("button")?.focus();
	}
	functionItems(f) {
		const { functions } = this.profile, { focus, exclude } = this.state;
		return [
			["Copy name", () => copy(label(functions, f))],
			["Show in table", () => this.showTable(f)],
			...(functions.hasSource[f] ? [["Show source", () => this.showSource(f)]] : []),
			...(focus.length < 20 ? [["Only stacks with it", () => this.set({ focus: [...new Set([...focus, f])], zoom: 0, path: [] })]] : []),
			["Exclude stacks with it", () => this.set({ exclude: [...new Set([...exclude, f])], zoom: 0, path: [] })],
			["Search for it", () => this.set({ query: "^" + functions.name[f].replace(/[\\^$.*+?()[\]{}|]/g, "\\$&") })],
		];
	}
	functionMenu(f, event) { this.openMenu(event, label(this.profile.functions, f), this.functionItems(f)); }
	nodeMenu(view, i, event) {
		const stack = [];
		for (let node = i; node > 0; node = view.parent(node))
			stack.push(this.nodeLabel(view, node));
		const items = view === this.stacks.view ? [["Zoom to it", () => this.zoomTo(i)]] : [];
		items.push(["Copy stack", () => copy((view.up ? stack : stack.reverse()).join("\n") + "\n")]);
		if (view.func(i) >= 0)
			items.push(...this.functionItems(view.func(i)));
		this.openMenu(event, this.nodeLabel(view, i), items);
	}
	showTable(f) {
		this.set({ view: "table", func: f, query: this.mask && !this.mask[f] ? "" : this.state.query });
		this.table.reveal(f);
	}
	showSource(f, line = 0) {
		const { functions } = this.profile;
		if (!functions.hasSource[f])
			return;
		const file = functions.pathIndex[f];
		if (!line) {
			const { tree, own } = this.folded(true), by = new Map();
			for (let i = 1; i < tree.n; i++)
				if (tree.func[i] === f && tree.line[i])
					by.set(tree.line[i], (by.get(tree.line[i]) ?? 0) + own.w[i]);
			line = [...by].sort((a, b) => b[1] - a[1])[0]?.[0] ?? functions.first[f];
		}
		this.set({ view: "source", file, line });
	}
	exportMenu(event) {
		const { state, profile } = this, { folded, mask } = this.scope(), box = event.target.getBoundingClientRect();
		const name = "pysample-" + (profile.meta.runs[0]?.pid ?? "profile");
		const flame = state.view === "table" ? this.table.flames[1] : this.stacks;
		this.openMenu({ clientX: box.left, clientY: box.bottom + 4, preventDefault() {} }, "The current view", [
			[`Collapsed stacks, ${this.byCount ? this.noun : "microseconds"}`, () => save(name + ".collapsed", "text/plain", collapsed(profile, folded, mask))],
			...(flame.view && state.view !== "chart" && state.view !== "source" ? [["Image (SVG)", () => save(name + ".svg", "image/svg+xml", svg(flame, this, $("command").textContent))]] : []),
			["Link to this view", () => copy(document.URL)],
		]);
	}

	/* Threads and processes. */
	openThreads() {
		const panel = $("panel"), box = $("threads").getBoundingClientRect(), rows = [];
		let process;
		for (const thread of this.sortedThreads().filter(t => t.end > t.start)) {
			if (thread.process !== process && this.profile.meta.processes.length > 1)
				rows.push({ process: thread.process });
			process = thread.process;
			rows.push({ thread });
		}
		this.threadRows = rows;
		panel.hidden = !panel.hidden;
		panel.style.left = Math.max(4, Math.min(box.left, innerWidth - 530)) + "px";
		panel.style.top = box.bottom + 4 + "px";
		panel.querySelector(".list").style.height = Math.min(rows.length * 30, 420) + "px";
		this.threadList.set(rows.length);
	}
	threadRow({ thread, process }) {
		const all = this.profile.threads.filter(t => t.end > t.start).map(t => t.index), chosen = this.state.threads ?? new Set(all);
		const choose = set => this.set({ threads: set.size === all.length ? null : set });
		if (!thread) {
			const own = this.profile.threads.filter(t => t.process === process && t.end > t.start).map(t => t.index), row = this.profile.meta.processes[process];
			return el("label", { className: "row head" }, el("input", {
				type: "checkbox", checked: own.every(t => chosen.has(t)),
				onchange: event => choose(new Set(event.target.checked ? [...chosen, ...own] : [...chosen].filter(t => !own.includes(t)))),
			}), el("b", {}, row ? this.processName(row) : "other"), el("small", {}, this.processNote(process, own)), this.onlyButton(() => choose(new Set(own))));
		}
		return el("label", { className: this.profile.meta.processes.length > 1 ? "row inner" : "row", title: this.threadName(thread) }, el("input", {
			type: "checkbox", checked: chosen.has(thread.index),
			onchange: event => choose(new Set(event.target.checked ? [...chosen, thread.index] : [...chosen].filter(t => t !== thread.index))),
		}), el("b", {}, this.threadName(thread)), el("small", {}, this.threadNote(thread, true)), this.onlyButton(() => choose(new Set([thread.index]))));
	}
	onlyButton(choose) {
		return el("button", {
			onclick: event => {
				event.preventDefault();
				choose();
			},
		}, "Only");
	}
	processName({ name, pid }) { return name + (pid ? ` (${pid})` : ""); }
	/* own: indices of its threads. */
	processNote(process, own) {
		const row = this.profile.meta.processes[process], us = own.reduce((total, t) => total + this.profile.threads[t].weight, 0);
		const parts = [percent(us / (this.whole().time || 1)) + " of all", own.length === 1 ? "1 thread" : `${own.length} threads`];
		return [...parts, ...(row?.command_line ? [shown(row.command_line)] : [])].join(" · ");
	}

	/* Header, controls and legend. */
	makeHeader() {
		const { meta } = this.profile, run = meta.runs[0] ?? {}, number = (name, runs = meta.runs) => runs.reduce((sum, r) => sum + (Number(r[name]) || 0), 0);
		const lost = number0(meta.runs, "lost."), tried = number("samples") + sum(lost), part = sum(lost) / (tried || 1);
		const reasons = lost.filter(([, n]) => n).map(([name, n]) => `${name.replace("_", " ")} ${percent(n / tried)}`).join(", ");
		const command = shown(run.command_line || meta.processes[0]?.command_line || "") || `pid ${run.pid ?? "?"}`;
		$("command").textContent = $("command").title = document.title = command;
		document.title += " – pysample";
		const wall = number("wall_s"), rate = number("ticks") / (wall || 1), requested = Number(run.requested_hz);
		const own = this.profile.threads.filter(t => t.end > t.start).map(t => meta.processes[t.process]?.pid); /* without those of the base */
		const pids = [...new Set([...meta.runs.map(r => r.pid), ...own].map(Number))].filter(Boolean);
		const facts = [
			run.python && `Python ${shown(run.python)}`, pids.length && `pid ${pids.slice(0, 4).join(", ")}${pids.length > 4 ? ` and ${pids.length - 4} more` : ""}`,
			meta.start_ms && new Date(meta.start_ms).toLocaleString(), wall && duration(wall * 1e6), `${count(this.profile.samples.n)} ${this.noun}`,
			...(this.timeless ? [meta.runs.length > 1 ? `${meta.runs.length} cores` : run.death && shown(run.death)]
				: [rate && `${count(rate)}${requested ? " of " + count(requested) : ""} Hz`, `${meta.mode} time`, meta.runs.length > 1 && `${meta.runs.length} runs`]),
		].filter(Boolean).map(text => el("span", {}, text));
		if (meta.approximate)
			facts.push(el("span", { className: "bad", title: meta.caveats }, meta.approximate < 1 ? "approximate in part" : "approximate"));
		if (!this.timeless)
			facts.push(el("span", { className: part > 0.01 ? "bad" : "", title: reasons }, `${percent(part)} lost`));
		$("facts").append(...facts);
		const note = text => $("notes").append(el("span", {}, text));
		if (part > 0.01)
			note(`${percent(part)} of samples were lost (${reasons}) and are missing from the profile.`);
		if (requested && rate < 0.9 * requested)
			note(`${percent(rate / requested)} of the requested rate was reached; weights are times, so percentages remain valid.`);
		if (meta.caveats)
			note(meta.caveats);
		if (run.python_newer_than_tested === "true")
			note("This Python is newer than any version that pysample was tested with.");
	}
	fillDetails() {
		const { meta } = this.profile, tables = [["", meta.runs], ["Base: ", meta.base_runs ?? []]].flatMap(([prefix, runs]) => runs.flatMap((run, i) => [
			el("h3", {}, `${prefix}run ${i + 1}`),
			el("table", {}, ...Object.entries(run).map(([name, value]) => el("tr", {}, el("td", {}, shown(name)), el("td", {}, shown(String(value)))))),
		]));
		const lost = "lost: stacks that were omitted because they could not be proven, by reason.";
		$("details").lastElementChild.replaceChildren(el("p", {}, `Written by pysample ${shown(meta.pysample)}. ${lost}`), ...tables);
		$("keys").lastElementChild.replaceChildren(el("table", {}, ...KEYS.map(([key, what]) => el("tr", {}, el("td", {}, el("kbd", {}, key)), el("td", {}, what)))));
	}
	makeControls() {
		const { profile } = this, { flags, n, cpu } = profile.samples, seen = new Uint8Array(2 ** 16);
		for (let i = 0; i < n; i++)
			seen[flags[i]] = 1;
		const has = ([looked, value]) => seen.some((is, f) => is && (f & looked) === value);
		this.hasIdle = has(STATES.idle);
		for (const [key, state] of Object.entries(STATES))
			$("state").append(el("option", { value: key, disabled: !has(state) }, state[2]));
		const time = { cpu: "CPU time" }[profile.meta.mode] ?? "Time";
		const weights = this.timeless ? [["samples", "Threads"]] : [["time", time], ...(cpu ? [["cpu", "CPU time"]] : []), ["samples", "Samples"]];
		for (const [key, name] of weights)
			$("weight").append(el("option", { value: key }, name));
		this.fillDetails();
		const click = (id, act) => $(id).addEventListener("click", act);
		for (const tab of document.querySelectorAll("[role=tab]"))
			tab.addEventListener("click", () => this.set({ view: tab.dataset.view }));
		$("state").addEventListener("change", () => this.set({ state: $("state").value }));
		$("weight").addEventListener("change", () => this.set({ weight: $("weight").value }));
		for (const id of ["lines", "flip", "norm", "merge", "heat"])
			click(id, () => this.set({ [id]: !this.state[id] }));
		click("threads", () => this.openThreads());
		click("all-threads", () => this.set({ threads: null }));
		click("no-threads", () => this.set({ threads: new Set() }));
		click("main-threads", () => this.set({ threads: new Set(profile.threads.filter(t => t.main).map(t => t.index)) }));
		click("theme", () => this.set({ theme: this.colours.dark ? "light" : "dark" }));
		click("about", () => $("details").showModal());
		click("help", () => $("keys").showModal());
		click("export", event => this.exportMenu(event));
		click("next", () => this.nextMatch(1));
		click("previous", () => this.nextMatch(-1));
		click("hot-down", () => this.source.hot(1));
		click("hot-up", () => this.source.hot(-1));
		$("merge").hidden = !this.hasProcesses;
		$("query").addEventListener("input", () => {
			clearTimeout(this.typing);
			this.typing = setTimeout(() => this.set({ query: $("query").value }), 90);
		});
		document.addEventListener("keydown", event => this.key(event));
		document.addEventListener("pointerdown", event => {
			for (const id of ["menu", "panel"])
				if (!$(id).contains(event.target) && !$("threads").contains(event.target))
					$(id).hidden = true;
		}, true);
		addEventListener("hashchange", () => this.set({ ...STATE, theme: this.state.theme, ...this.readFragment() }));
		matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.state.theme || this.setTheme());
		addEventListener("beforeprint", () => this.setTheme(true));
		addEventListener("afterprint", () => this.setTheme());
	}
	showControls() {
		const { state, profile } = this, nr = profile.threads.filter(t => t.end > t.start).length;
		for (const tab of document.querySelectorAll("[role=tab]"))
			tab.setAttribute("aria-selected", String(tab.dataset.view === state.view));
		$("state").value = state.state;
		$("weight").value = state.weight;
		$("norm").hidden = !this.isDiff;
		document.body.classList.toggle("heat", state.heat);
		for (const id of ["lines", "flip", "norm", "merge", "heat"])
			$(id).setAttribute("aria-pressed", String(state[id]));
		$("threads").textContent = state.threads ? `${state.threads.size} of ${nr} threads ▾` : nr === 1 ? "1 thread ▾" : `${nr} threads ▾`;
		$("threads").setAttribute("aria-pressed", String(!!state.threads));
		if (!$("panel").hidden)
			this.threadList.draw();
	}
	showLegend() {
		if (this.isDiff && this.state.view !== "chart")
			return $("legend").replaceChildren(...[["grew", 0.2], ["unchanged", 0], ["shrank", -0.2]].map(([name, v]) => this.legendItem(this.colours.delta(v), name)));
		const { own, tree } = this.folded(), by = new Map(), { origin } = this.profile.functions;
		for (let i = 1; i < tree.n; i++)
			if (own.w[i])
				by.set(origin[tree.func[i]], (by.get(origin[tree.func[i]]) ?? 0) + own.w[i]);
		const all = [...by.values()].reduce((a, b) => a + b, 0) || 1;
		$("legend").title = "Self time by origin of the code";
		$("legend").replaceChildren(...Object.keys(ORIGINS).filter(o => by.has(o)).map(o => this.legendItem(this.colours.fill(o), `${ORIGINS[o][2]} ${percent(by.get(o) / all)}`)));
	}
	legendItem(colour, text) {
		const swatch = el("i", { className: "swatch" });
		swatch.style.background = colour;
		return el("span", {}, swatch, text);
	}
	/* Paper is light. */
	setTheme(isPrinted = false) {
		const dark = !isPrinted && (this.state.theme ? this.state.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
		document.documentElement.classList.toggle("dark", dark);
		this.colours = new Colours(this.profile.functions, dark);
		if (!this.strip)
			return;
		this.strip.known = undefined;
		this.heat.drawnWidth = 0;
		const stages = [this.stacks.stage, this.chart.stage, this.strip.stage, this.heat.stage];
		for (const part of [...stages, this.table, this.source])
			part.redraw();
		if (isPrinted)
			stages.forEach(stage => stage.draw());
		this.showLegend();
	}

	key(event) {
		const { state } = this, typing = event.target.matches("input[type=search]");
		if (document.querySelector("dialog[open]") || event.ctrlKey || event.metaKey)
			return;
		if (typing && event.key === "Enter") {
			clearTimeout(this.typing);
			this.set({ query: $("query").value });
			return this.nextMatch(event.shiftKey ? -1 : 1);
		}
		if (event.key === "Escape") {
			event.preventDefault();
			if (typing && !$("query").value)
				return $("stacks").focus();
			if (typing)
				$("query").blur();
			return this.back();
		}
		if (!$("menu").hidden)
			return this.menuKey(event);
		if (typing || event.target.matches("select") || (event.key === "Enter" && event.target.matches("button")) || event.altKey)
			return;
		const act = this.actions()[event.key] ?? VIEWS[event.key - 1];
		if (act === "chart" && this.timeless)
			return;
		if (act)
			typeof act === "string" ? this.set({ view: act }) : act();
		else if (!((state.view === "chart" && this.chart.key(event)) || (["flame", "inverted"].includes(state.view) && this.stacks.key(event))))
			return;
		event.preventDefault();
	}
	menuKey(event) {
		const items = [...$("menu").querySelectorAll("button")], step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
		if (!step)
			return;
		event.preventDefault();
		items[(items.indexOf(document.activeElement) + step + items.length) % items.length].focus();
	}
	actions() {
		const { state } = this, toggle = (key, a, b) => () => this.set({ [key]: state[key] === a ? b : a });
		return {
			"/": () => $("query").select(), "?": () => $("keys").showModal(), t: () => this.openThreads(), l: () => this.set({ lines: !state.lines }),
			u: () => this.set({ flip: !state.flip }), h: () => this.timeless || this.set({ heat: !state.heat }), m: () => this.hasProcesses && this.set({ merge: !state.merge }), c: toggle("state", "cpu", STATE.state), i: toggle("state", "all", "busy"),
			d: () => $("theme").click(), Home: () => this.set({ zoom: 0, path: [] }), n: () => this.hot(1), p: () => this.hot(-1),
			s: () => this.chosen && this.showSource(this.chosen[0].func(this.chosen[1]), this.chosen[0].line(this.chosen[1])),
		};
	}
	hot(step) { this.state.view === "source" ? this.source.hot(step) : this.nextMatch(step); }

	/* window.pysample.totals(): rows with equal labels are merged, within a stack as well. */
	totals() {
		const { folded, mask, sums } = this.scope(), { tree, own } = folded, { functions } = this.profile, self = Object.create(null), totals = Object.create(null);
		const found = this.matched(), { t } = mask ? totalsWithin(folded, mask) : folded, labels = [], ids = new Map();
		const group = tree.func.map((f, i) => {
			const place = !tree.split || tree.line[i] ? location(functions, f, tree.line[i]) : functions.path[f];
			labels[i] = i && functions.name[f] + (place && ` (${place})`);
			if (i && !ids.has(labels[i]))
				ids.set(labels[i], ids.size);
			return !i || (tree.split && !tree.line[i]) ? -1 : ids.get(labels[i]);
		});
		const isOuter = outermost(tree, group, ids.size);
		const add = (to, i, us) => (to[labels[i]] = (to[labels[i]] ?? 0) + us);
		for (let i = 1; i < tree.n; i++) {
			if (own.n[i] && (!mask || mask[i]))
				add(self, i, own.t[i]);
			if (isOuter[i] && t[i])
				add(totals, i, t[i]);
		}
		return {
			total: sums.t, samples: sums.n, base: sums.b, self, totals, matched: found && { us: found.t, samples: found.n },
			hidden: this.selection.hidden, all: this.whole(), view: this.state.view, oneSided: this.isOneSided(),
		};
	}
	zoom(names) {
		const folded = this.folded();
		let at = 0;
		for (const wanted of names) {
			const [a, b] = folded.children(at), found = [];
			for (let i = a; i < b; i++)
				if (this.nodeLabel(folded, i) === wanted)
					found.push(i);
			if (found.length !== 1)
				throw new Error(`${found.length} nodes are called ${wanted}`);
			at = found[0];
		}
		this.set({ view: "flame", zoom: at });
		return this.totals();
	}
}

/* Total weights, summed over the self weights that mask selects. */
function totalsWithin({ tree, own }, mask) {
	const t = own.t.map((v, i) => (mask[i] ? v : 0));
	for (let i = tree.n - 1; i > 0; i--)
		t[tree.parent[i]] += t[i];
	return { t };
}

const plain = value => (value instanceof Set ? [...value].sort((a, b) => a - b) : value);
const location_hash = () => document.location.hash;
const sum = pairs => pairs.reduce((total, [, n]) => total + n, 0);

/* Counters whose names begin with prefix, summed over runs: [name without prefix, count]. */
function number0(runs, prefix) {
	const by = new Map();
	for (const run of runs)
		for (const [name, value] of Object.entries(run))
			if (name.startsWith(prefix))
				by.set(name.slice(prefix.length), (by.get(name.slice(prefix.length)) ?? 0) + Number(value));
	return [...by];
}

async function copy(text) {
	try {
		await navigator.clipboard.writeText(text);
	} catch {
		const area = el("textarea", { value: text });
		document.body.append(area);
		area.select();
		document.execCommand("copy");
		area.remove();
	}
	$("status").textContent = "Copied.";
}

function save(name, type, parts) {
	const url = URL.createObjectURL(new Blob(parts, { type }));
	el("a", { href: url, download: name }).click();
	setTimeout(() => URL.revokeObjectURL(url), 10000);
}

let page;
async function start() {
	const begun = performance.now();
	try {
		page = new Page(decode(new Uint8Array(await (await window.pysample.unpack("pysample-data")).arrayBuffer())));
		window.pysample.loaded_ms = performance.now() - begun;
	} catch (error) {
		document.querySelector("main").replaceChildren(el("p", { className: "error" }, "The data of this page cannot be read: " + error.message));
		throw error;
	}
}
Object.assign(window.pysample, {
	started: start(), state: () => Object.fromEntries(Object.entries(page.state).map(([k, v]) => [k, plain(v)])), totals: () => page.totals(),
	set: patch => {
		page.set(patch.threads ? { ...patch, threads: new Set(patch.threads) } : patch);
		return page.totals();
	},
	zoom: names => page.zoom(names),
});
