/* SPDX-License-Identifier: MIT */
/* The table of functions, with the callers and callees of the selected one. */
import { Merged, label, place } from "./model.mjs";
import { List, count, duration, el, percent } from "./stage.mjs";
import { Flame } from "./flame.mjs";

const TABLE_ROW = 26;

export class Table {
	constructor(host, page, on) {
		Object.assign(this, { host, page, on, sort: "self", down: true, order: [], func: -1 });
		const find = id => host.querySelector(id);
		this.head = find(".thead");
		this.list = new List(find(".list"), TABLE_ROW, i => this.row(this.order[i]));
		this.titles = [...host.querySelectorAll("h2")];
		this.flames = ["#callers", "#callees"].map((id, n) => new Flame(find(id), page, {
			...on, zoom: i => on.open(this.flames[n].view.func(i)), view: () => this.flames[n].view,
		}));
		find(".list").addEventListener("keydown", event => this.key(event));
	}
	columns() {
		const columns = [["name", "Function"], ["self", "Self"], ["total", "Total"], ["samples", this.page.timeless ? "Threads" : "Samples"]];
		return this.page.isDiff ? [...columns, ["dself", "Δ self"], ["dtotal", "Δ total"]] : columns;
	}
	/* sums: model.functionSums(); all: sums of the whole selection; mask: functions to show. */
	set(sums, all, mask) {
		const { byCount, b, t, n } = all, w = byCount ? "n" : "t", whole = (byCount ? n : t) || 1, base = b || 1;
		const nr = sums.total_t.length, share = name => Float64Array.from(sums[`${name}_${w}`], (v, f) => v / whole - sums[name + "_b"][f] / base);
		Object.assign(this, { sums, whole, mask });
		this.values = {
			self: sums["self_" + w], total: sums["total_" + w], samples: sums.self_n,
			dself: share("self"), dtotal: share("total"),
		};
		this.order = [];
		for (let f = 0; f < nr; f++)
			if ((sums.total_n[f] || sums.total_b[f]) && (!mask || mask[f]))
				this.order.push(f);
		this.arrange();
	}
	arrange() {
		const { page, sort, values } = this, sign = this.down ? -1 : 1, { name } = page.profile.functions;
		const by = sort === "name" ? (a, b) => (name[a] < name[b] ? -1 : name[a] > name[b] ? 1 : a - b)
			: (a, b) => values[sort][a] - values[sort][b] || values.total[a] - values.total[b] || b - a;
		this.order.sort((a, b) => sign * by(a, b));
		this.head.replaceChildren(...this.columns().map(([key, title]) => el("button", {
			className: "c-" + key, title: "Sort by " + title.toLowerCase(), onclick: () => this.sortBy(key),
			"aria-sort": sort === key ? (this.down ? "descending" : "ascending") : "none",
		}, title, el("i", {}, sort === key ? (this.down ? " ↓" : " ↑") : ""))));
		this.host.classList.toggle("diff", this.page.isDiff);
		this.list.set(this.order.length);
	}
	sortBy(key) {
		this.down = this.sort === key ? !this.down : key !== "name";
		this.sort = key;
		this.arrange();
	}
	amount(key, f) {
		const value = this.values[key][f], part = value / this.whole;
		const bar = el("span", { className: "meter" });
		bar.style.width = Math.min(100, part * 100) + "%";
		const text = this.page.byCount ? count(value) : duration(value);
		return el("span", { className: "c-" + key }, bar, el("b", {}, value ? percent(part) : "–"), el("span", {}, value ? text : ""));
	}
	change(key, f) {
		const v = this.values[key][f], size = Math.abs(v) < 5e-5 ? "" : v > 0 ? " grew" : " shrank";
		return el("span", { className: "c-" + key + size }, size ? (v > 0 ? "+" : "−") + percent(Math.abs(v)) : "0");
	}
	row(f) {
		const { page, sums } = this, { functions } = page.profile, swatch = el("i", { className: "swatch" });
		swatch.style.background = page.colours.frame(f);
		const gone = !sums.total_n[f] ? [el("em", {}, "gone")] : page.isDiff && !sums.total_b[f] ? [el("em", {}, "new")] : [];
		const cells = [
			el("span", { className: "c-name" }, swatch, el("b", {}, functions.name[f]), ...gone, el("span", {}, place(functions, f))),
			this.amount("self", f), this.amount("total", f), el("span", { className: "c-samples" }, count(this.values.samples[f])),
		];
		if (page.isDiff)
			cells.push(this.change("dself", f), this.change("dtotal", f));
		return el("div", {
			className: "row", role: "row", "aria-selected": String(f === this.func), title: label(functions, f),
			onclick: () => this.on.open(f), ondblclick: () => this.on.showSource(f),
			oncontextmenu: event => this.on.menuOf(f, event),
		}, ...cells);
	}
	/* Show the callers and callees of a function. outer: its outermost nodes. */
	open(folded, outer, f) {
		this.func = f;
		const { functions } = this.page.profile, seeds = [];
		for (let i = 1; i < folded.tree.n; i++)
			if (outer[i] && folded.tree.func[i] === f && (folded.n[i] || folded.b[i]))
				seeds.push(i);
		this.host.classList.toggle("chosen", f >= 0);
		this.list.draw();
		if (f < 0)
			return;
		this.titles.forEach((title, i) => {
			title.textContent = (i ? "Callees of " : "Callers of ") + functions.name[f];
			const view = new Merged(folded, seeds, !i, f);
			view.open([], 0.3 / Math.max(300, this.flames[i].stage.width || 0));
			this.flames[i].set(view, 0, !i);
		});
	}
	key(event) {
		const at = this.order.indexOf(this.func), step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
		if (!step)
			return;
		event.preventDefault();
		event.stopPropagation();
		const next = Math.max(0, Math.min(this.order.length - 1, at + step));
		this.list.reveal(next);
		this.on.open(this.order[next]);
	}
	reveal(f) {
		const at = this.order.indexOf(f);
		if (at >= 0)
			this.list.reveal(at);
	}
	redraw() {
		this.list.draw();
		this.flames.forEach(flame => flame.stage.redraw());
	}
}
